"""Stores side by side, driven by build/ckv-bench, which compares each value that it reads.

A fresh server for each store and file. The module is loaded in every Redis server; what a server takes before it holds
anything is taken off."""

import argparse
import contextlib
import os
import random
import struct
import tempfile

import glide_client
import measure
from load import DEPTH, Data, bench, progress
from server import Memcached, Server

CACHE_STORES = ["strings", "valkey-strings", "strings-zlib", "strings-zstd", "valkey-glide", "hashes", "memcached", "ckv"]
TTL = 86400
BUCKETS = [3, 4, 5, 6, 7]
CLIENTS = [1, 8, 16, 32]
# Hashes keep buckets of a thousand fields compact, as Instagram had them.
HASHES = {"hash_max_listpack_entries": "1100", "hash_max_listpack_value": "65536"}
LOAD = ["--pipeline", DEPTH]
READ = ["--mode", "read", "--pipeline", DEPTH]


def in_redis(options, name, store, data, load_args=(), keys=()):
    """Bytes per record, rates, and the seconds to save and to load the file."""
    with Server(options, **(HASHES if store == "hashes" else {})) as server:
        return measure.life(name, server, options.records, store == "ckv",
                            lambda server: bench(server, store, data, options.records, *LOAD, *load_args, *keys)["seconds"],
                            lambda server: bench(server, store, data, options.records, *READ, *keys)["seconds"])


def by_glide(options, name, data):
    with Server(options) as server:
        return measure.life(name, server, options.records, False,
                            lambda server: glide_client.fill(server, data, options.records, TTL),
                            lambda server: glide_client.read(server, data, options.records))


def in_memcached(options, name, data, load_args, keys):
    progress.step(name)
    with Memcached(options) as server:
        before = {"used_memory": server.used(), "rss": server.rss()}
        loaded = bench(server, "memcached", data, options.records, *LOAD, *load_args, *keys)
        read = bench(server, "memcached", data, options.records, *READ, *keys)
        after = {"used_memory": server.used(), "rss": server.rss()}
        return {"bytes": measure.per_record(before, after, options.records), "load_per_second": loaded["per_second"],
                "read_per_second": read["per_second"]}


def cached(options, data, store):
    args, name = [] if store == "hashes" else ["--ttl", TTL], f"{data.name}: {store}"
    keys = ["--keys", data.keys]
    if store == "memcached":
        return in_memcached(options, name, data, args, keys)
    if store == "valkey-glide":
        return by_glide(options, name, data)
    if store == "valkey-strings":
        return in_redis(argparse.Namespace(**{**vars(options), "redis_server": options.valkey_server}), name, "strings", data, args, keys)
    if store == "hashes" and data.keys == "uuid":
        keys += ["--bucket", BUCKETS[0]]
    return in_redis(options, name, store, data, args, keys)


def cache(options):
    missing = {"valkey-strings": None if options.valkey_server else "no server of Valkey is named: --valkey-server FILE",
               "valkey-glide": None if glide_client.INSTALLED else "it is not installed: make setup-glide"}
    for store, reason in missing.items():
        if reason:
            progress.step(f"{store} is left out, as {reason}")
    stores = [store for store in CACHE_STORES if not missing.get(store)]
    return [{"data": os.path.splitext(data.name)[0], "store": store, "value_bytes": data.mean(options.records),
             **cached(options, data, store)}
            for data in (Data(given, options.records) for given in options.data) for store in stores]


def uuid(options):
    rows = []
    data = Data(next((path for path in options.data if os.path.basename(path) == "tweets.txt"), options.data[0]))
    for store, bucket in [("strings", None)] + [("hashes", n) for n in BUCKETS] + [("ckv", None)]:
        keys = ["--keys", "uuid"] + (["--bucket", bucket] if bucket else [])
        rows.append({"store": store, "bucket": bucket, **in_redis(options, f"{store} {bucket or ''}", store, data, keys=keys)})
    return rows


def packed(value):
    """MessagePack of what the objects here are made of: texts, small numbers and a map."""
    if isinstance(value, int):
        return struct.pack(">Bi", 0xd2, value)
    if isinstance(value, str):
        text = value.encode()
        return struct.pack(">BB", 0xd9, len(text)) + text
    return struct.pack(">BH", 0xde, len(value)) + b"".join(packed(k) + packed(v) for k, v in value.items())


def write_objects(f, count):
    rng = random.Random(7)
    for _ in range(count):
        value = packed({f"field_{i}": rng.randrange(100_000) if i % 2 else f"text {rng.randrange(1000)}"
                        for i in range(200)})
        f.write(struct.pack("<I", len(value)) + value)
    f.flush()


def stored_once(options, store, server, data, clients):
    """Each object written over, where all are settled: the rate, and how long one took."""
    if store == "ckv":
        measure.settle(server)
    timed = bench(server, store, data, options.records, "--threads", clients, "--clients", clients)
    return {"per_second": timed["per_second"], **timed["pipeline_us"]}


def latency(options):
    """Each object is stored once beforehand, so that memory is taken and dictionaries are learned. A round takes less than a
    second: medians of several, by turns."""
    rows = []
    with tempfile.NamedTemporaryFile(suffix=".u32le") as f:
        write_objects(f, 2000)
        data = Data(f.name)
        for clients in CLIENTS:
            stores = {"strings": Server(options), "memcached": Memcached(options), "ckv": Server(options)}
            with contextlib.ExitStack() as running:
                for store, server in stores.items():
                    bench(running.enter_context(server), store, data, options.records, "--pipeline", 20)
                runs = {store: [] for store in stores}
                for i in range(options.rounds):
                    progress.step(f"{clients} clients, round {i + 1}")
                    for store, server in stores.items():
                        runs[store].append(stored_once(options, store, server, data, clients))
            for store, rounds in runs.items():
                figures = measure.medians(rounds)
                rows.append({"clients": clients, "store": store, "per_second": figures.pop("per_second"), "us": figures})
    return rows
