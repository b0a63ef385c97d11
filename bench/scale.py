"""Density and speed by the number of records: ckv against strings and hashes on the same kind of server.

density  bytes a record of each file, by the number of records
pairs    the same for small pairs, beside hashes in buckets
speed    redis-benchmark: rates, the main thread's CPU time, p99.9
pause    what a PING takes during a load
churn    bytes a record after overwriting and deleting, against records freshly loaded
files    SAVE and the start from the file
drift    files one after the other in one server, against each alone"""

import multiprocessing
import os
import platform
import random
import sys
import time
import uuid
from datetime import date

from load import DEPTH, Data, fill, progress, send
from measure import growth, medians, memory, redis_benchmark, restart, save, settle, stolen
from server import Client, Server, command

MOST_OF_A_KIND = 1_000_000  # records, where each is written many times
TTL = "86400"
# Instagram's setting for its buckets; by default a server keeps only smaller hashes compact.
BUCKETS = {"hash_max_listpack_entries": "1000"}
STORES = {"SET": "strings", "CSET": "ckv"}


# ---- bytes a record ----------------------------------------------------------------------------------


def grown(options, records, filling, ckv):
    with Server(options, **BUCKETS) as server:
        return growth(server, records, filling, ckv)


def density(options, data):
    result = []
    for total in options.sizes or [10 ** e for e in range(4, 9) if 10 ** e <= options.records]:
        progress.step(f"density: {data.name}, {total:,} records")
        few = min(total, MOST_OF_A_KIND)
        result.append({"records": total,
                       "ckv": grown(options, total, lambda server: fill(server, "ckv", data, total), True),
                       "strings": grown(options, few, lambda server: fill(server, "strings", data, few), False)})
    return result


def merge(old, new):
    """Rows of other sizes stay: the largest is not for every run."""
    rows = {row["records"]: row for row in old + new}
    return [rows[records] for records in sorted(rows)]


def media_user(i):
    return 1_000_000 + i, random.Random(i).randrange(1_000_000_000)


def media(verb):
    return lambda i: command(verb, b"media:%d" % media_user(i)[0], media_user(i)[1])


def bucket(i):
    media_id, user = media_user(i)
    return command("HSET", b"mediabucket:%d" % (media_id // 1000), media_id, user)


def unique(verb):
    def make(i):
        rng = random.Random(i)
        return command(verb, str(uuid.UUID(int=rng.getrandbits(128), version=4)), rng.randbytes(8))
    return make


def pairs(options, total, _data):
    cases = {"media id -> user id, CSET": media("CSET"), "media id -> user id, SET": media("SET"),
             "media id -> user id, HSET": bucket, "UUID -> 8 bytes, CSET": unique("CSET"),
             "UUID -> 8 bytes, SET": unique("SET")}
    result = {}
    for what, request in cases.items():
        progress.step(f"pairs: {what}")
        reply = b":1\r\n" if request is bucket else b"+OK\r\n"
        result[what] = grown(options, total, lambda server: send(server, total, request, reply), what.endswith("CSET"))
    return result


# ---- speed -------------------------------------------------------------------------------------------


def speed(options, total, data, requests=None):
    """Medians of rounds by turns, so that what else the machine does hits all alike. redis-benchmark's keys have twelve
    digits: records with just these are loaded, as both kinds."""
    value = data.values[0].decode("latin-1")
    result = {}
    with Server(options) as server:
        progress.step("speed: load")
        for store in STORES.values():
            fill(server, store, data, total, digits=12)
        settle(server)
        for depth in (1, DEPTH):
            count = min(25 * total, 200_000 if depth == 1 else 2_000_000)
            if requests:
                count = requests if depth > 1 else max(requests // 5, 1)
            runs = {verb: [] for verb in ("SET", "CSET", "GET", "CGET")}
            progress.step(f"speed: {depth} in a pipeline")
            for done in range(options.rounds):
                progress.show(done, options.rounds)
                for verb in runs:
                    words = [verb, "KEY:__rand_int__"] + ([value, "EX", TTL] if "SET" in verb else [])
                    runs[verb].append(redis_benchmark(server, count, depth, total, *words))
            result[depth] = {verb: medians(rounds) for verb, rounds in runs.items()}
    return result


# ---- pauses ------------------------------------------------------------------------------------------


SLOW_MS = 2  # of a PING


def probe(port, stop, out):
    """PING each millisecond; what it took, ms, by powers of two. The longest: of all, and of those during which the
    host took nothing from the machine."""
    worst = {"all": 0.0, "own": 0.0}
    histogram = {}
    with Client(port) as client:
        before = stolen()
        while not stop.is_set():
            began = time.perf_counter()
            client.call("PING")
            ms = (time.perf_counter() - began) * 1000
            time.sleep(0.001 if ms < SLOW_MS else 0.02)  # what was stolen is counted at a tick of the clock
            worst["all"] = max(worst["all"], ms)
            if (now := stolen()) == before:
                worst["own"] = max(worst["own"], ms)
            before = now
            bound = next(b for b in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 1e9) if ms <= b)
            histogram[bound] = histogram.get(bound, 0) + 1
    out.put((worst, histogram))


def paused(options, total, data, store):
    """What a load looks like from outside, and to the server's own latency monitor."""
    with Server(options) as server:
        server.call("CONFIG", "SET", "latency-monitor-threshold", "1")
        stop, out = multiprocessing.Event(), multiprocessing.Queue()
        prober = multiprocessing.Process(target=probe, args=(server.port, stop, out))
        prober.start()
        stolen_before = stolen()
        fill(server, store, data, total)
        if store == "ckv":
            server.call("CKV", "OPTIMIZE")
        stop.set()
        worst, histogram = out.get()
        prober.join()
        latest = [[x.decode() if isinstance(x, bytes) else x for x in event] for event in server.call("LATENCY", "LATEST")]
        return {"worst_ms": worst["all"], "own_worst_ms": worst["own"], "histogram": histogram, "latency": latest,
                "stolen_seconds": stolen() - stolen_before}


def pause(options, total, data):
    """Rounds by turns: what the host takes from the machine comes and goes."""
    result = {verb: [] for verb in STORES}
    for turn in range(options.rounds):
        for verb, rounds in result.items():
            progress.step(f"pause: {verb}, round {turn + 1}")
            rounds.append(paused(options, total, data, STORES[verb]))
    return result


# ---- churn -------------------------------------------------------------------------------------------


def churn(options, total, data):
    joined = b" ".join(data.values[:50_000])

    def put(i, turn):
        rng = random.Random(i * 31 + turn)
        at = rng.randrange(len(joined) - 200)
        return command("CSET", b"KEY:%d" % i, joined[at:at + rng.randrange(1, 200)], "EX", TTL)

    def live(server):
        settle(server)
        return memory(server)["used_memory"] / (total / 2)

    progress.step("churn: overwrite and delete")
    with Server(options) as server:
        for turn in range(10):
            send(server, total, lambda i: put(i, turn))
        send(server, total // 2, lambda i: command("CDEL", b"KEY:%d" % (2 * i)), b":1\r\n")
        churned = live(server)
    progress.step("churn: load afresh")
    with Server(options) as server:
        send(server, total // 2, lambda i: put(2 * i + 1, 9))
        return {"churned": churned, "fresh": live(server)}


# ---- files -------------------------------------------------------------------------------------------


def saved(options, total, data, store, restarted=True, **config):
    progress.step(f"files: {store}")
    with Server(options, **config) as server:
        fill(server, store, data, total)
        if store == "ckv":
            settle(server)
        used = memory(server)["used_memory"]
        found = save(server)
        return {"save": found["seconds"], "load": restart(server)["load"] if restarted else None, "bytes": found["bytes"],
                "used_memory": used, "save_spent": found["spent"]}


def files(options, total, data):
    result = {verb: saved(options, total, data, store) for verb, store in STORES.items()}
    result["CSET"]["save_spent"]["unchecked"] = saved(options, total, data, "ckv", False, rdbchecksum="no")["save"]
    return result


# ---- data that changes its kind ----------------------------------------------------------------------


def at_rest(server):
    """Bytes of records when the background has nothing left to do: no CKV TRAIN here."""
    last = None
    while True:
        time.sleep(5)
        info = server.info("ckv")
        state = [info[name] for name in ("ckv_trainings", "ckv_pages_to_reencode", "ckv_page_bytes")]
        if state == last and info["ckv_training"] == "0":
            return int(info["ckv_page_bytes"]) + int(info["ckv_large_bytes"])
        last = state


def drift(options, total, _data):
    """Records of several files, one after the other, in one server and each alone: bytes of pages per record."""
    sources = [Data(path) for path in options.kinds]
    result = {}
    for data in sources:
        progress.step(f"drift: {data.name} alone")
        with Server(options) as server:
            fill(server, "ckv", data, total, ttl=())
            result[data.name] = {"alone": at_rest(server) / total}
    with Server(options) as server:
        progress.step("drift: together")
        for n, data in enumerate(sources):
            fill(server, "ckv", data, total, first=n * total, ttl=())
            before = at_rest(server)
        for n, data in enumerate(sources):
            send(server, total, lambda i: command("CDEL", b"KEY:%d" % (n * total + i)), b":1\r\n")
            after = at_rest(server)
            result[data.name]["together"] = (before - after) / total
            before = after
    return result


# ---- all ---------------------------------------------------------------------------------------------


PARTS = {"density": density, "pairs": pairs, "speed": speed, "pause": pause, "churn": churn, "files": files, "drift": drift}


def run(options, found, part):
    sources = [Data(path) for path in options.data or [None]]
    if part == "density":
        rows = found.setdefault(part, {})
        for data in sources:
            rows[data.name] = merge(rows.get(data.name, []), density(options, data))
    else:
        total = min(options.records, MOST_OF_A_KIND) if part in ("churn", "drift") else options.records
        found[part] = {"records": total, "figures": PARTS[part](options, total, sources[0])}
    found["run"] = {"date": str(date.today()), "machine": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(), "command": " ".join(sys.argv)}


def throughput(options):
    """The speed alone, with as many requests as are told."""
    data = Data.first(options)
    return {"speed": {"records": options.records, "figures": speed(options, options.records, data, options.requests)}}
