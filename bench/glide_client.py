"""A store for compare.py: strings by Valkey's official client, valkey-glide, which compresses values by itself (zstd, from 64 bytes on)
and answers as if it did not. What other clients read then is the compressed bytes, and APPEND, STRLEN, INCR or GETRANGE see these."""

import asyncio
import importlib.util
import random
import time
import uuid

from load import DEPTH
from server import Failed

INSTALLED = importlib.util.find_spec("glide") is not None


async def connect(server):
    import glide
    compression = glide.CompressionConfiguration(enabled=True, backend=glide.CompressionBackend.ZSTD)
    return await glide.GlideClient.create(glide.GlideClientConfiguration(
        [glide.NodeAddress("127.0.0.1", server.port)], compression=compression, request_timeout=60_000))


def of_all(server, records, request):
    """So many at once as others have in a pipeline: the client sends them together. Returns seconds."""
    async def run():
        client = await connect(server)
        began = time.perf_counter()
        for first in range(0, records, DEPTH):
            await asyncio.gather(*(request(client, n) for n in range(first, min(first + DEPTH, records))))
        seconds = time.perf_counter() - began
        await client.close()
        return seconds

    return asyncio.run(run())


def key(data, n):
    if data.keys == "uuid":
        return str(uuid.UUID(int=random.Random(n).getrandbits(128), version=4))
    return f"KEY:{100_000_000 + n}"


def fill(server, data, records, ttl):
    from glide import ExpirySet, ExpiryType
    values, expiry = data.values, ExpirySet(ExpiryType.SEC, ttl)

    async def store(client, n):
        await client.set(key(data, n), values[n % len(values)], expiry=expiry)

    return of_all(server, records, store)


def read(server, data, records):
    values = data.values

    async def compare(client, n):
        if await client.get(key(data, n)) != values[n % len(values)]:
            raise Failed(f"valkey-glide: the value of {key(data, n)} differs from what was stored")

    return of_all(server, records, compare)
