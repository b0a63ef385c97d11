"""Published statistics of caches, each a workload of its own: strings on a server without the module against ckv under SET and
GET with ckv.prefixes "*", all settings as they come.

Objects and requests are made by build/ckv-bench (its modes fill, age and replay). Of each cache

    RAM       for the same content, after so many requests; at its peak since the server's start
    time      the main thread's a request, at a steady rate that leaves it idle mostly; latencies of single requests; strings and ckv
              by turns
    hits      with a maxmemory of a third of what strings take; strings once more, with 2.5 times as much
    a control the same with values of random bytes, which no codec makes smaller"""

import csv
import functools
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import report
from caches_report import server_of
from load import Data, bench, progress
from measure import machine, memory, per_record, settle, version
from server import Failed, Server

STRINGS = {"loadmodule": None}
CKV = {"ckv.prefixes": "*"}
TRAIN_AFTER = "ckv.train-after"
MB = 1 << 20
# As many objects as this lets be, and requests a second.
OBJECTS, CONTENT_BYTES = 100_000, 32 * MB
RATE, RATE_BYTES = 20_000, 50 * MB
CONNECTIONS = 32
CONNECTION_BYTES = 40_000  # its buffers, which maxmemory counts
LESS, MORE = 1 / 3, 2.5  # of what strings take; times that
CONTROL = 1 / 4  # of the objects: learning takes longest where there is nothing to learn


def table(path):
    if not path:
        raise Failed("no statistics of caches: --caches FILE")
    try:
        with open(path, newline="") as f:
            return {int(row["cluster"]): row for row in csv.DictReader(f)}
    except (OSError, KeyError, ValueError) as error:
        raise Failed(f"cannot read the caches' statistics: {error!r}")


class Workload:
    """One cache, and ckv-bench run for it."""

    def __init__(self, options, row, files, values="records", share=1):
        size = float(row["value_bytes"])
        self.objects = max(int(min(OBJECTS, CONTENT_BYTES / (float(row["key_bytes"]) + size)) * options.scale * share), 100)
        self.rate = int(min(RATE, RATE_BYTES / size))
        # Of the kind whose records are as long as the values, as far as there is one.
        self.data = min(files, key=lambda data: max(files[data] / size, size / files[data]))
        self.line = ["--cache", row["cluster"], "--caches", options.caches, "--values", values]

    def run(self, server, mode, *args):
        return bench(server, "strings", self.data, self.objects, "--mode", mode, *self.line, *args)

    def fill(self, server, ckv):
        """With ckv it is learned once what there is, from all of it, instead of on the way as well: that is half of the time."""
        if ckv:
            after = server.call("CONFIG", "GET", TRAIN_AFTER)[1]
            server.call("CONFIG", "SET", TRAIN_AFTER, "1gb")
        self.run(server, "fill")
        if ckv:
            server.call("CONFIG", "SET", TRAIN_AFTER, after)
            settle(server)

    def replay(self, server, seconds, turn=0, turns=1):
        """Everything that expires does so from now on."""
        rate = ["--rate", self.rate, "--turn", turn, "--turns", turns]
        self.run(server, "age", *rate)
        found = self.run(server, "replay", *rate, "--operations", int(self.rate * seconds) + 1, "--clients", CONNECTIONS,
                         "--pid", server.process.pid)
        return {**found, "hit_rate": found["hits"] / found["gets"] if found["gets"] else None}


def peak(server):
    return {"used_memory": int(server.info("memory")["used_memory_peak"]), "rss": server.status_bytes("VmHWM")}


def grown(before, after):
    return per_record(before, after, 1)


def at_once(function, *rows):
    """Of each row of arguments, in threads."""
    with ThreadPoolExecutor(len(rows)) as pool:
        return [run.result() for run in [pool.submit(function, *row) for row in rows]]


def side_by_side(options, work, seconds, also=lambda *_: {}):
    """What the same content takes in strings and in ckv, what requests cost, by turns, INFO ckv, and what `also` finds afterwards."""
    with Server(options, **STRINGS) as strings, Server(options, **CKV) as ckv:
        servers, found = (strings, ckv), []
        empty = [memory(server) for server in servers]
        for server in servers:
            work.fill(server, server is ckv)
        filled = [memory(server) for server in servers]
        replayed = at_once(work.replay, *((server, seconds, turn, 2) for turn, server in enumerate(servers)))
        for server, none, full, run in zip(servers, empty, filled, replayed):
            found.append({**run, "empty": none["used_memory"], "filled": grown(none, full), "bytes": grown(none, memory(server)),
                          "peak": grown(none, peak(server))})
        return *found, ckv.info("ckv"), also(strings, ckv, found[0])


def hit_rates(work, seconds, strings, ckv, needed):
    """With maxmemory as a part of what strings need. Nothing is timed, so the servers work at the same time."""
    def limited(server, times):
        third = needed["filled"]["used_memory"] * LESS
        if server is strings:  # Redis 8.6 refuses writes (OOM) while its table of keys shrinks by two thirds
            server.call("FLUSHALL")
        server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        server.call("CONFIG", "SET", "maxmemory", int(needed["empty"] + CONNECTIONS * CONNECTION_BYTES + third * times))
        work.fill(server, False)
        return work.replay(server, seconds)["hit_rate"]

    same = at_once(limited, (strings, 1), (ckv, 1))
    return dict(zip(("hits_strings", "hits_ckv", "hits_strings_more"), (*same, limited(strings, MORE))))


def ratios(strings, ckv):
    def ratio(*path):
        a, b = ckv, strings
        for name in path:
            a, b = a[name], b[name]
        return a / b

    return {"memory_ratio": ratio("bytes", "used_memory"), "rss_ratio": ratio("bytes", "rss"),
            "peak_memory_ratio": ratio("peak", "used_memory"), "peak_rss_ratio": ratio("peak", "rss"), "cpu_ratio": ratio("cpu_us"),
            "p50_ratio": ratio("us", "median"), "p99_ratio": ratio("us", "p99"), "p999_ratio": ratio("us", "p999")}


def measure(options, row, files):
    """One row of the result."""
    name, load = f"cache {row['cluster']}", os.getloadavg()[0]
    work, noise = Workload(options, row, files), Workload(options, row, files, "random", CONTROL)
    progress.step(name)
    strings, ckv, info, hits = side_by_side(options, work, options.seconds, functools.partial(hit_rates, work, options.seconds))
    progress.step(f"{name}: random bytes")
    control = ratios(*side_by_side(options, noise, options.seconds / 2)[:2])
    return {"cluster": int(row["cluster"]), **ratios(strings, ckv), **hits,
            "random_memory_ratio": control["memory_ratio"], "random_cpu_ratio": control["cpu_ratio"],
            "dictionaries": int(info["ckv_dictionaries"]), "dictionary_bytes": int(info["ckv_dictionary_bytes"]),
            "never_encoded": int(info.get("ckv_young_never_encoded", 0)),
            "records": int(info["ckv_records"]), "objects": work.objects, "rate": work.rate, "speed": ckv["speed"],
            "data": work.data.name, "strings": strings, "ckv": ckv,
            **{field: float(row[field]) for field in ("key_bytes", "value_bytes", "sets", "working_set_mb", "kilo_requests_per_second")},
            "server": version(options.redis_server, "--version"), "machine": machine(), "date": str(date.today()),
            "scale": options.scale, "load_average": load}


def run(options, path):
    """Adds the caches asked for, on this server, to those that are known."""
    rows = table(options.caches)
    files = {data: statistics.mean(map(len, data.values)) for data in map(Data, options.data or [None])}
    for data in files:
        data.path  # the file is made, where there is none
    known = {(server_of(row), row["cluster"]): row for row in report.kept(path, [])}
    for cluster in options.cluster or rows:
        if cluster not in rows:
            raise Failed(f"{options.caches} has no cache {cluster}")
        began = time.monotonic()
        row = {**measure(options, rows[cluster], files), "seconds": time.monotonic() - began}
        known[server_of(row), cluster] = row
        report.keep(path, [known[place] for place in sorted(known)])
    return report.kept(path, [])
