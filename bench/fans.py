"""The fan-page job: which pages are liked by the same people?

Profiles are lists of liked pages. For every pair of pages in a profile the row of the one, a JSON object that
counts what is liked along with it, is read, updated and written back, as programs do that outgrow a dictionary.
The job is the same in all stores; the null store keeps nothing and shows what the job takes without one."""

import hashlib
import itertools
import json
import os
import random
import time

import redis
from pymemcache.client.base import Client as MemcachedClient

import measure
from load import progress
from server import Failed, Memcached, Server

PAGES = 2000
LIKES = (2, 8)  # of a profile


def profiles(count):
    """The same lists each time; few pages are liked by many."""
    rng = random.Random(4)
    weights = [1 / (rank + 10) for rank in range(PAGES)]
    pages = [f"{10_000 + rank}/{rng.choice(['Music', 'Sports', 'Film', 'News', 'Food'])}" for rank in range(PAGES)]
    for _ in range(count):
        yield sorted(set(rng.choices(pages, weights, k=rng.randint(*LIKES))))


class Nothing:
    def get(self, key):
        return None

    def set(self, key, row):
        pass


class InProcess(dict):
    def set(self, key, row):
        self[key] = row


class Redis:
    """Rows by a client's commands: GET and SET, or CGET and CSET."""

    def __init__(self, client, prefix=""):
        self.client = client
        self.read, self.write = prefix + "GET", prefix + "SET"

    def get(self, key):
        return self.client.execute_command(self.read, key)

    def set(self, key, row):
        self.client.execute_command(self.write, key, row)


def job(store, count):
    """Seconds and pairs of the job, and a digest of all rows."""
    pairs, pages = 0, set()
    began = time.perf_counter()
    for likes in profiles(count):
        pages.update(likes)
        for page, other in itertools.permutations(likes, 2):
            row = json.loads(store.get(page) or b"{}")
            row[other] = row.get(other, 0) + 1
            store.set(page, json.dumps(row).encode())
            pairs += 1
    seconds = time.perf_counter() - began
    digest = hashlib.sha256()
    for page in sorted(pages):
        digest.update(page.encode() + b"\0" + (store.get(page) or b"") + b"\0")
    return {"seconds": seconds, "pairs": pairs, "per_second": pairs / seconds, "digest": digest.hexdigest()}


def in_redis(options, prefix, unix):
    with Server(options, unixsocket="bench.sock") as server:
        where = {"unix_socket_path": os.path.join(server.dir, "bench.sock")} if unix else {"port": server.port}
        before = measure.used_memory(server)
        with redis.Redis(**where, single_connection_client=True) as client:
            result = job(Redis(client, prefix), options.records)
        if prefix:
            measure.settle(server)
        result["bytes"] = measure.used_memory(server) - before
        return result


def in_memcached(options, unix):
    with Memcached(options, unix) as server:
        client = MemcachedClient(server.address, no_delay=True)
        result = job(client, options.records)
        client.close()
        result["bytes"] = server.used()
        return result


def run(options):
    """Rows of the comparison. The stores that keep rows must end up with the same ones."""
    jobs = [("null", "", lambda: job(Nothing(), options.records)),
            ("process", "", lambda: job(InProcess(), options.records))]
    for transport in ("TCP", "Unix socket"):
        unix = transport == "Unix socket"
        jobs += [("memcached", transport, lambda unix=unix: in_memcached(options, unix)),
                 ("strings", transport, lambda unix=unix: in_redis(options, "", unix)),
                 ("ckv", transport, lambda unix=unix: in_redis(options, "C", unix))]
    rows = []
    for store, transport, measured in jobs:
        progress.step(f"{store} {transport}")
        rows.append({"store": store, "transport": transport, **measured()})
    if len({row["digest"] for row in rows if row["store"] != "null"}) != 1:
        raise Failed("the stores do not hold the same rows: " + json.dumps(rows))
    return rows
