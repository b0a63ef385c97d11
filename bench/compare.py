#!/usr/bin/env python3
"""Stores side by side, driven by build/ckv-bench, which compares each value that it reads.

    bench/compare.py cache     bytes per record, load rate, save and load time, on each data file
    bench/compare.py latency   one write at a time by 1, 8, 16 and 32 clients, a MessagePack object of 200 fields
    bench/compare.py fans      pages liked together: read, update and write back a JSON object for every pair
    bench/compare.py uuid      records keyed by UUIDs: strings, hashes by the length of their keys, ckv

A fresh server for each store and file. The module is loaded in every Redis server; what a server takes
before it holds anything is taken off. Each comparison writes bench/results/<name>.json.
"""

import argparse
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import fan_pages
from demo import machine, positive
from server import ROOT, Client, Failed, Server, _die_with_parent

BENCH = os.path.join(ROOT, "build", "ckv-bench")
RESULTS = os.path.join(ROOT, "bench", "results")
CACHE_STORES = ["strings", "strings-zlib", "strings-zstd", "hashes", "memcached", "ckv"]
BUCKETS = [3, 4, 5, 6, 7]
CLIENTS = [1, 8, 16, 32]
# Hashes keep buckets of a thousand fields compact, as Instagram had them.
HASHES = {"hash-max-listpack-entries": "1100", "hash-max-listpack-value": "65536"}


class Memcached:
    """With the interface of server.Server, as far as it is used here. Listens on a loopback port, or on a Unix
    socket."""

    def __init__(self, megabytes, unix=False):
        self.dir = tempfile.mkdtemp(prefix="ckv-bench-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.address = os.path.join(self.dir, "memcached.sock") if unix else ("127.0.0.1", self.port)
        where = ["-s", self.address] if unix else ["-l", "127.0.0.1", "-p", str(self.port), "-U", "0"]
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            ["memcached", *where, "-m", str(megabytes), *user],
            stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)
        self.wait()

    def connect(self):
        if isinstance(self.address, tuple):
            return socket.create_connection(self.address)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.address)
        return connection

    def wait(self):
        for _ in range(500):
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(0.01)
        raise Failed("memcached does not answer")

    def stats(self):
        with self.connect() as s:
            s.sendall(b"stats\r\n")
            text = b""
            while not text.endswith(b"END\r\n"):
                text += s.recv(65536)
        return {line.split()[1].decode(): line.split()[2].decode() for line in text.splitlines()[:-1]}

    def rss(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def bench(server, store, data, records, *args):
    """Runs ckv-bench; its report."""
    line = [BENCH, "--server", store, "--data", data, "--records", str(records), "--port", str(server.port),
            *map(str, args)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(line)} ended with {done.returncode}")
    return json.loads(done.stdout)


def memory(client):
    client.call("MEMORY", "PURGE")
    time.sleep(0.3)
    found = client.info("memory")
    return {"used_memory": int(found["used_memory"]), "rss": int(found["used_memory_rss"])}


def per_record(before, after, records):
    return {name: (after[name] - before[name]) / records for name in before}


def settle(client, store):
    """Where ckv gets to by itself, in the background."""
    if store == "ckv":
        client.call("CKV", "TRAIN")
        client.call("CKV", "OPTIMIZE")


def in_redis(options, store, data, load_args, read_args=()):
    """Loads and reads; bytes per record, rates, and the seconds to save and to load the file."""
    records = options.records
    config = HASHES if store.startswith("hashes") else {}
    with Server(options.redis_server, module=options.module, config=config) as server:
        server.start()
        with Client(server.port) as client:
            before = memory(client)
            loaded = bench(server, store, data, records, *load_args, *read_args)
            settle(client, store)
            read = bench(server, store, data, records, "--mode", "read", "--pipeline", 50, *read_args)
            result = {"bytes": per_record(before, memory(client), records),
                      "load_per_second": loaded["per_second"], "read_per_second": read["per_second"]}
            began = time.perf_counter()
            client.call("SAVE")
            result["save_seconds"] = time.perf_counter() - began
        result["file_bytes"] = os.path.getsize(os.path.join(server.dir, "dump.rdb"))
        server.stop()
        result["restart_seconds"] = server.start()
        result["file_load_seconds"] = server.load_seconds()
        bench(server, store, data, records, "--mode", "read", "--pipeline", 50, *read_args)
        server.stop()
    return result


def in_memcached(options, data, load_args):
    with Memcached(options.memcached_megabytes) as server:
        rss = server.rss()
        loaded = bench(server, "memcached", data, options.records, *load_args)
        read = bench(server, "memcached", data, options.records, "--mode", "read", "--pipeline", 50)
        stats = server.stats()
        # Item headers, keys, values and what their slab chunks leave free; the hash table besides.
        used = int(stats["bytes"]) + int(stats["hash_bytes"])
        return {"bytes": {"used_memory": used / options.records, "rss": (server.rss() - rss) / options.records},
                "load_per_second": loaded["per_second"], "read_per_second": read["per_second"]}


def cache(options):
    rows = []
    for path in options.data:
        for store in CACHE_STORES:
            args = ["--pipeline", 50] + ([] if store.startswith("hashes") else ["--ttl", 86400])
            print(f"{os.path.basename(path)}: {store}", file=sys.stderr, flush=True)
            result = (in_memcached(options, path, args) if store == "memcached"
                      else in_redis(options, store, path, args))
            rows.append({"data": os.path.splitext(os.path.basename(path))[0], "store": store, **result})
    return rows


def uuid(options):
    rows = []
    data = next((path for path in options.data if os.path.basename(path) == "tweets.txt"), options.data[0])
    stores = [("strings", None)] + [("hashes", n) for n in BUCKETS] + [("ckv", None)]
    for store, bucket in stores:
        print(store, bucket or "", file=sys.stderr, flush=True)
        keys = ["--keys", "uuid"] + (["--bucket", bucket] if bucket else [])
        rows.append({"store": store, "bucket": bucket,
                     **in_redis(options, store, data, ["--pipeline", 50], keys)})
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


def latency(options):
    """Each object is stored once beforehand, so that memory is taken and dictionaries are learned."""
    rows = []
    with tempfile.NamedTemporaryFile(suffix=".u32le") as f:
        write_objects(f, 2000)
        for clients in CLIENTS:
            for store in ("strings", "memcached", "ckv"):
                print(f"{clients} clients: {store}", file=sys.stderr, flush=True)
                before, timed = ["--pipeline", 20], ["--threads", clients, "--clients", clients]
                if store == "memcached":
                    with Memcached(options.memcached_megabytes) as server:
                        bench(server, store, f.name, options.records, *before)
                        report = bench(server, store, f.name, options.records, *timed)
                else:
                    with Server(options.redis_server, module=options.module) as server:
                        server.start()
                        bench(server, store, f.name, options.records, *before)
                        with Client(server.port) as client:
                            settle(client, store)
                        report = bench(server, store, f.name, options.records, *timed)
                rows.append({"clients": clients, "store": store, "per_second": report["per_second"],
                             "us": report["pipeline_us"]})
    return rows


def version(*line):
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def fans(options):
    return fan_pages.compare(options, lambda unix: Memcached(options.memcached_megabytes, unix),
                             lambda *what: print(*what, file=sys.stderr, flush=True))


COMPARISONS = {"cache": cache, "latency": latency, "uuid": uuid, "fans": fans}
OF_FILES = {"cache", "uuid"}
RECORDS = {"cache": 100_000, "latency": 20_000, "uuid": 200_000, "fans": 10_000}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("comparison", choices=COMPARISONS)
    parser.add_argument("--records", type=positive, help="profiles, for fans (default: by the comparison)")
    parser.add_argument("--data", action="append", help="a file; may be repeated")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "ckv.so"))
    parser.add_argument("--memcached-megabytes", type=positive, default=4096)
    parser.add_argument("--json", help="default: bench/results/<comparison>.json")
    options = parser.parse_args()
    options.records = options.records or RECORDS[options.comparison]
    try:
        if options.comparison in OF_FILES and not options.data:
            raise Failed("no data: --data FILE")
        began = time.monotonic()
        rows = COMPARISONS[options.comparison](options)
        report = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "records": options.records,
                  "servers": [version(options.redis_server, "--version"), version("memcached", "--version")],
                  "command": " ".join([f"bench/compare.py {options.comparison} --records {options.records}"]
                                      + [f"--data {os.path.basename(path)}" for path in options.data or []
                                         if options.comparison in OF_FILES]),
                  "seconds": time.monotonic() - began, "rows": rows}
    except Failed as failed:
        print(f"compare: {failed}", file=sys.stderr)
        return 1
    with open(options.json or os.path.join(RESULTS, f"{options.comparison}.json"), "w") as f:
        json.dump(report, f, indent=1)
        f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
