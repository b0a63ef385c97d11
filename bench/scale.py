"""Density and speed by the number of records: ckv against strings and hashes on the same kind of server.

    scale.py [--records N] [--parts density,pairs,speed,pause,churn,files,drift] [--sizes 10000,100000,...]

Prints a table for each part and keeps the figures in bench/results/scale.json."""

import argparse
import json
import multiprocessing
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
import uuid
from datetime import date

import data
from server import ROOT, Client, Failed, Pipelines, Server, command

DEPTH = 50
CHUNK = 50_000
MOST_OF_A_KIND = 1_000_000  # records, where each is written many times
TTL = "86400"
RESULT = os.path.join(ROOT, "bench", "results", "scale.json")
# Instagram's setting for its buckets; by default a server keeps only smaller hashes compact.
BUCKETS = {"hash-max-listpack-entries": "1000"}
LOADER = os.path.join(ROOT, "build", "bench-load")


def start(options, **config):
    server = Server(options.redis_server, module=options.module, config=config)
    server.start()
    return server


def send(server, commands, total, reply=b"+OK\r\n"):
    """Sends commands (a function from a record's number to bytes) in pipelines; returns seconds."""
    seconds = 0.0
    with Pipelines(server.port, 8) as pipelines:
        for first in range(0, total, CHUNK):
            pairs = []
            for at in range(first, min(first + CHUNK, total), DEPTH):
                part = [commands(i) for i in range(at, min(at + DEPTH, total))]
                pairs.append((b"".join(part), reply * len(part)))
            seconds += pipelines.run(pairs)
    return seconds


def load(server, verb, values, total, digits=1):
    """Records KEY:<n> with these values, by a loader that is faster than the server; returns seconds."""
    path = os.path.join(server.dir, "values")
    with open(path, "wb") as f:
        f.write(b"\n".join(values))
    done = subprocess.run([LOADER, str(server.port), verb, str(total), path, str(digits), TTL], capture_output=True,
                          text=True)
    if done.returncode:
        raise Failed(f"loading failed: {done.stderr}")
    return float(done.stdout)


def used(client):
    try:
        client.call("MEMORY", "PURGE")
    except Failed:
        pass
    time.sleep(1.5)
    memory = client.info("memory")
    return int(memory["used_memory"]), int(memory["used_memory_rss"])


def settle(client):
    """Where a server gets to by itself, in the background, a while after a bulk load."""
    client.call("CKV", "TRAIN")
    client.call("CKV", "OPTIMIZE")


def growth(options, fill, total, is_ckv):
    """Bytes a record by which used_memory and RSS grow when fill(server) has sent them, and INFO ckv."""
    with start(options, **BUCKETS) as server, Client(server.port) as client:
        before = used(client)
        seconds = fill(server)
        if is_ckv:
            settle(client)
        after = used(client)
        info = client.info("ckv") if is_ckv else {}
        return {"used_memory": (after[0] - before[0]) / total, "rss": (after[1] - before[1]) / total,
                "per_second": total / seconds, "info": info}


def row(*cells):
    print("| " + " | ".join(f"{c:,.2f}" if isinstance(c, float) else str(c) for c in cells) + " |", flush=True)


def head(*cells):
    print()
    row(*cells)
    print("|" + "---|" * len(cells), flush=True)


# ---- 1, 2: bytes a record ------------------------------------------------------------------------


def density(options, values, name):
    result = []
    head(name, "records", "used_memory", "RSS", "in pages", "dictionaries", "SET used_memory")
    for total in options.sizes:
        ours = growth(options, lambda server: load(server, "CSET", values, total), total, True)
        few = min(total, 1_000_000)
        theirs = growth(options, lambda server: load(server, "SET", values, few), few, False)
        info = ours["info"]
        row("", total, ours["used_memory"], ours["rss"], int(info["ckv_page_bytes"]) / total,
            int(info["ckv_dictionary_bytes"]) / total, theirs["used_memory"])
        result.append({"records": total, "ckv": ours, "strings": theirs})
    return result


def merge(old, new):
    """Rows of other sizes stay: the largest is not for every run."""
    rows = {row["records"]: row for row in old + new}
    return [rows[records] for records in sorted(rows)]


# ---- 3: small pairs ----------------------------------------------------------------------------------


def media_user(i):
    return 1_000_000 + i, random.Random(i).randrange(1_000_000_000)


def pairs(options, total, _values, _name):
    result = {}
    head("pairs", "kind", "used_memory", "RSS")

    def case(what, commands, is_ckv, reply=b"+OK\r\n"):
        result[what] = growth(options, lambda server: send(server, commands, total, reply), total, is_ckv)
        row("", what, result[what]["used_memory"], result[what]["rss"])

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

    case("media id -> user id, CSET", media("CSET"), True)
    case("media id -> user id, SET", media("SET"), False)
    case("media id -> user id, HSET", bucket, False, b":1\r\n")
    case("UUID -> 8 bytes, CSET", unique("CSET"), True)
    case("UUID -> 8 bytes, SET", unique("SET"), False)
    return result


# ---- 4: speed ------------------------------------------------------------------------------------------


def thread_cpu(pid):
    with open(f"/proc/{pid}/task/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def benchmark(server, pid, total, depth, *words):
    """redis-benchmark: requests a second, the server's CPU time per command in us, p99.9 in ms."""
    requests = min(25 * total, 200_000 if depth == 1 else 2_000_000)
    before = thread_cpu(pid)
    out = subprocess.run(["redis-benchmark", "-p", str(server.port), "-c", "50", "-P", str(depth), "-n", str(requests),
                          "-r", str(total), "--precision", "3", *words], capture_output=True, text=True, check=True).stdout
    out = out.replace("\r", "\n")
    per_second = float(re.findall(r"throughput summary: ([0-9.]+)", out)[-1])
    slowest = [float(ms) for percent, ms in re.findall(r"([0-9.]+)% <= ([0-9.]+) milliseconds", out)
               if float(percent) >= 99.9]
    return {"per_second": per_second, "cpu_us": (thread_cpu(pid) - before) / requests * 1e6,
            "p999_ms": min(slowest) if slowest else 0.0}


def speed(options, total, values, _name):
    """redis-benchmark's keys have twelve digits: records with just these are loaded, as both kinds."""
    value = values[0].decode("latin-1")
    result = {}
    with start(options) as server, Client(server.port) as client:
        for verb in ("SET", "CSET"):
            load(server, verb, values, total, digits=12)
        settle(client)
        pid = int(client.info("server")["process_id"])
        head(f"speed, {total:,} records", "pipeline", "requests/s", "CPU us", "p99.9 ms", "ratio of requests/s",
             "ratio of CPU")
        for depth in (1, DEPTH):
            runs = {verb: [] for verb in ("SET", "CSET", "GET", "CGET")}
            for _ in range(options.rounds):
                for verb in runs:
                    words = [verb, "KEY:__rand_int__"] + ([value, "EX", "86400"] if "SET" in verb else [])
                    runs[verb].append(benchmark(server, pid, total, depth, *words))
            middle = {verb: {f: statistics.median(r[f] for r in rows) for f in rows[0]} for verb, rows in runs.items()}
            for verb, m in middle.items():
                native = middle[verb.removeprefix("C")]
                row(verb, depth, m["per_second"], m["cpu_us"], m["p999_ms"], m["per_second"] / native["per_second"],
                    native["cpu_us"] / m["cpu_us"])
            result[depth] = middle
    return result


# ---- 5: pauses ------------------------------------------------------------------------------------------


SLOW_MS = 2  # of a PING


def stolen():
    """Seconds that the cores were kept from this machine by the one that it runs on (Linux: steal)."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


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


def paused(options, total, values, verb):
    """What a load looks like from outside, and to the server's own latency monitor."""
    with start(options) as server, Client(server.port) as client:
        client.call("CONFIG", "SET", "latency-monitor-threshold", "1")
        stop, out = multiprocessing.Event(), multiprocessing.Queue()
        prober = multiprocessing.Process(target=probe, args=(server.port, stop, out))
        prober.start()
        stolen_before = stolen()
        load(server, verb, values, total)
        if verb == "CSET":
            client.call("CKV", "OPTIMIZE")
        stop.set()
        worst, histogram = out.get()
        prober.join()
        latest = [[x.decode() if isinstance(x, bytes) else x for x in event] for event in client.call("LATENCY", "LATEST")]
        return {"worst_ms": worst["all"], "own_worst_ms": worst["own"], "histogram": histogram, "latency": latest, "stolen_seconds": stolen() - stolen_before}


def pause(options, total, values, _name):
    """Rounds by turns: what the host takes from the machine comes and goes."""
    result = {"SET": [], "CSET": []}
    head("pauses", "command", "longest ms", "with nothing stolen", "histogram: up to ms: count", "LATENCY LATEST", "s stolen")
    for _ in range(options.rounds):
        for verb, rounds in result.items():
            rounds.append(paused(options, total, values, verb))
            r = rounds[-1]
            row("", verb, r["worst_ms"], r["own_worst_ms"], ", ".join(f"{b}: {n}" for b, n in sorted(r["histogram"].items())), r["latency"],
                r["stolen_seconds"])
    return result


# ---- 6: churn -------------------------------------------------------------------------------------------


def churn(options, total, values, _name):
    joined = b" ".join(values[:50_000])

    def value(i, turn):
        rng = random.Random(i * 31 + turn)
        at = rng.randrange(len(joined) - 200)
        return joined[at:at + rng.randrange(1, 200)]

    def live(client):
        settle(client)
        return used(client)[0] / (total / 2)

    with start(options) as server, Client(server.port) as client:
        for turn in range(10):
            send(server, lambda i: command("CSET", b"KEY:%d" % i, value(i, turn), "EX", TTL), total)
        send(server, lambda i: command("CDEL", b"KEY:%d" % (2 * i)), total // 2, b":1\r\n")
        churned = live(client)
    with start(options) as server, Client(server.port) as client:
        send(server, lambda i: command("CSET", b"KEY:%d" % (2 * i + 1), value(2 * i + 1, 9), "EX", TTL), total // 2)
        fresh = live(client)
    head("churn", "records left", "bytes per record", "freshly loaded", "difference")
    row("", total // 2, churned, fresh, f"{100 * (churned / fresh - 1):+.1f}%")
    return {"churned": churned, "fresh": fresh}


# ---- 7: files ---------------------------------------------------------------------------------------------


def timed_save(client, pid):
    """Seconds of a SAVE, and of these the main thread's in user and in kernel mode."""
    def spent():
        with open(f"/proc/{pid}/task/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return [int(n) / os.sysconf("SC_CLK_TCK") for n in fields[11:13]]
    before, began = spent(), time.perf_counter()
    client.call("SAVE")
    seconds = time.perf_counter() - began
    user, system = (after - earlier for after, earlier in zip(spent(), before))
    return seconds, {"user": user, "system": system}


def unchecked_save(options, total, values):
    """Seconds of a SAVE without a checksum."""
    with start(options, rdbchecksum="no") as server, Client(server.port) as client:
        load(server, "CSET", values, total)
        settle(client)
        return timed_save(client, int(client.info("server")["process_id"]))[0]


def files(options, total, values, _name):
    result = {}
    head("files", "kind", "SAVE s", "load s", "both s", "file MB", "file / used_memory")
    for verb in ("SET", "CSET"):
        with start(options) as server:
            with Client(server.port) as client:
                load(server, verb, values, total)
                if verb == "CSET":
                    settle(client)
                memory = used(client)[0]
                saved, spent = timed_save(client, int(client.info("server")["process_id"]))
            size = os.path.getsize(os.path.join(server.dir, "dump.rdb"))
            server.stop()
            server.start()
            loaded = server.load_seconds()
            result[verb] = {"save": saved, "load": loaded, "bytes": size, "used_memory": memory, "save_spent": spent}
            row("", verb, saved, loaded, saved + loaded, size / 1e6, size / memory)
    result["CSET"]["save_spent"]["unchecked"] = unchecked_save(options, total, values)
    both = {verb: r["save"] + r["load"] for verb, r in result.items()}
    print(f"\nsaving and loading: {both['SET'] / both['CSET']:.1f} times faster")
    return result


# ---- data that changes its kind --------------------------------------------------------------------------------


def at_rest(client):
    """INFO ckv when the background has nothing left to do: no CKV TRAIN here."""
    last = None
    while True:
        time.sleep(5)
        info = client.info("ckv")
        state = [info[name] for name in ("ckv_trainings", "ckv_pages_to_reencode", "ckv_page_bytes")]
        if state == last and info["ckv_training"] == "0":
            return int(info["ckv_page_bytes"]) + int(info["ckv_large_bytes"])
        last = state


def drift(options, total, _values, _name):
    """Records of several files, one after the other, in one server and each alone: bytes of pages per record."""
    sources = [(name, values) for values, name in (data.records(path) for path in options.kinds)]
    result = {}

    def fill(server, values, first):
        send(server, lambda i: command("CSET", b"KEY:%d" % (first + i), values[i % len(values)]), total)

    for name, values in sources:
        with start(options) as server, Client(server.port) as client:
            fill(server, values, 0)
            result[name] = {"alone": at_rest(client) / total}
    with start(options) as server, Client(server.port) as client:
        for n, (name, values) in enumerate(sources):
            fill(server, values, n * total)
            before = at_rest(client)
        for n, (name, _) in enumerate(sources):
            send(server, lambda i: command("CDEL", b"KEY:%d" % (n * total + i)), total, b":1\r\n")
            after = at_rest(client)
            result[name]["together"] = (before - after) / total
            before = after
    head("data that changes", "alone", "together", "difference")
    for name, r in result.items():
        row(name, r["alone"], r["together"], f"{100 * (r['together'] / r['alone'] - 1):+.1f}%")
    return result


# ---- all ----------------------------------------------------------------------------------------------------

PARTS = {"density": density, "pairs": pairs, "speed": speed, "pause": pause, "churn": churn, "files": files, "drift": drift}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "ckv.so"))
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--sizes", default="", help="for density; up to --records if not given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--data", action="append", help="files with one record a line; density takes them all")
    parser.add_argument("--kinds", action="append", default=[], help="files for drift, in the order they come")
    parser.add_argument("--json", default=RESULT, help="figures of other parts stay in it")
    options = parser.parse_args()
    sizes = options.sizes or ",".join(str(10 ** e) for e in range(4, 9) if 10 ** e <= options.records)
    options.sizes = [int(size) for size in sizes.split(",")]
    sources = [data.records(path) for path in options.data or [None]]
    result = {}
    if os.path.exists(options.json):
        with open(options.json) as f:
            result = json.load(f)
    result["run"] = {"date": str(date.today()), "machine": platform.processor() or platform.machine(),
                     "cores": os.cpu_count(), "command": " ".join(sys.argv)}
    for part in options.parts.split(","):
        if part == "density":
            rows = result.setdefault(part, {})
            for values, name in sources:
                rows[name] = merge(rows.get(name, []), density(options, values, name))
        else:
            total = min(options.records, MOST_OF_A_KIND) if part in ("churn", "drift") else options.records
            result[part] = {"records": total, "figures": PARTS[part](options, total, *sources[0])}
        with open(options.json, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"scale.py: {failed}")
    except KeyboardInterrupt:
        sys.exit(130)
