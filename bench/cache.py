"""Cache duty: expiry under load, hit rates, memory at its limit.

    cache.py [--parts expiry,hits,limit] [--scale 1.0] [--data FILE]

expiry  records with TTLs of 1-60 s under continuous load: how many of the stored ones have expired
        already, and what memory is left when all are gone
hits    reads by Zipf's law that write back what they miss: ckv and Redis' strings in the same memory,
        and ckv against exact LRU with as many records
limit   writes of mixed sizes at maxmemory, under every policy: how far memory goes, who evicts

Prints tables and keeps the figures in bench/results/cache_duty.json."""

import argparse
import bisect
import itertools
import json
import os
import platform
import random
import sys
import time
from collections import OrderedDict
from datetime import date

import data
from server import ROOT, Client, Failed, Server, command

RESULT = os.path.join(ROOT, "bench", "results", "cache_duty.json")
POLICIES = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
            "volatile-ttl"]
MB = 1 << 20


def start(options, **config):
    server = Server(options.redis_server, module=options.module,
                    config={k.replace("_", "-"): v for k, v in config.items()})
    server.start()
    return server


def pipeline(client, commands):
    """Sends commands, returns their replies."""
    client.socket.sendall(b"".join(commands))
    return [client.read() for _ in commands]


def table(title, header, rows):
    print(f"\n{title}\n")
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  " + "  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))


# --- expiry ---


def expiry(options, values):
    """2M records live at a time, the TTLs even from 1 to 60 s: 30.5 s on average."""
    live, seconds = int(2_000_000 * options.scale), 90
    rate = live / 30.5
    rng = random.Random(1)
    with start(options) as server, Client(server.port) as client:
        # A command's first call makes the server's histogram of its latencies.
        for words in (("CSET", "k", "v", "PX", 1), ("CGET", "k"), ("CDEL", "k"), ("CDBSIZE",), ("INFO", "ckv")):
            client.call(*words)
        time.sleep(2)
        empty = int(client.info("memory")["used_memory"])
        ends, samples, wrong, n = [], [], 0, 0
        began = now = time.time()
        next_sample = began + 5
        while now - began < seconds:
            due = int((now - began) * rate)
            for _ in range(n, due, 500):
                ttls = [rng.randrange(1000, 60_000) for _ in range(500)]
                batch = [command("CSET", b"KEY:%d" % (n + i), values[(n + i) % len(values)], "PX", ttl)
                         for i, ttl in enumerate(ttls)]
                sent = time.time()
                pipeline(client, batch)
                ends += [sent + ttl / 1000 for ttl in ttls]
                n += 500
            if time.time() >= next_sample:
                next_sample += 5
                samples.append((time.time() - began, *sample_expiry(client, ends)))
                wrong += returned_expired(client, ends, rng)
            now = time.time()
        worst = max(share for _, _, share in samples)
        time.sleep(61 - (time.time() - max(0, now)))
        waited = 0.0
        while client.call("CDBSIZE") and waited < 10:
            time.sleep(0.1)
            waited += 0.1
        time.sleep(1.5)
        left = int(client.info("memory")["used_memory"])
        stats = client.info("ckv")
    rows = [(f"{second:.0f} s", f"{stored:,}", f"{share:.2%}") for second, stored, share in samples]
    table("Records that are stored though they have expired", ("after", "stored", "expired"), rows)
    print(f"\n  {n:,} written in {seconds} s; expired ones returned: {wrong}; memory empty before: {empty:,}, "
          f"after: {left:,} ({left / empty - 1:+.1%}); {float(stats['ckv_expire_seconds']):.1f} s of active expiry")
    return {"records": n, "seconds": seconds, "live": live, "worst_expired_share": worst, "returned_expired": wrong,
            "samples": samples, "empty_bytes": empty, "bytes_after": left,
            "expire_seconds": float(stats["ckv_expire_seconds"])}


def sample_expiry(client, ends):
    """Records stored, and the share of these that have expired."""
    stored, now = client.call("CDBSIZE"), time.time()
    live = sum(end > now for end in ends)
    return stored, max(0, stored - live) / max(stored, 1)


def returned_expired(client, ends, rng):
    """Reads records that have expired lately; how many came."""
    now = time.time()
    lately = [i for i in (rng.randrange(len(ends)) for _ in range(20_000)) if now - 10 < ends[i] < now - 0.1]
    return sum(v is not None for v in pipeline(client, [command("CGET", b"KEY:%d" % i) for i in lately]))


# --- hit rates ---


class Zipf:
    """Numbers below n by Zipf's law, the popular ones spread over all of them."""

    def __init__(self, n, alpha, seed=1):
        self.rng = random.Random(seed)
        self.cumulated = list(itertools.accumulate((i + 1) ** -alpha for i in range(n)))
        self.total, self.n = self.cumulated[-1], n
        self.step = 7_368_787 % n | 1  # coprime to n: a prime, and n a round number

    def draw(self, count):
        rank = (bisect.bisect(self.cumulated, self.rng.random() * self.total) for _ in range(count))
        return [min(r, self.n - 1) * self.step % self.n for r in rank]


def trace(options, alpha):
    keys, reads = int(5_000_000 * options.scale), int(10_000_000 * options.scale)
    return Zipf(keys, alpha).draw(reads)


def run_cache(client, reads, values, get, put, step=250):
    """Reads all keys in turn and writes back what is missing; the hit rate of the second half."""
    hits = total = 0
    for at in range(0, len(reads), step):
        part = reads[at : at + step]
        found = client.call(get, *(b"KEY:%07d" % k for k in part))
        missing = [k for k, v in zip(part, found) if v is None]
        if missing:
            client.call(put, *itertools.chain(*((b"KEY:%07d" % k, values[k % len(values)]) for k in missing)))
        if at >= len(reads) // 2:
            hits += len(part) - len(missing)
            total += len(part)
    return hits / total


def exact_lru(reads, capacity):
    """The hit rate, of the second half, of a list in order of use."""
    stored, hits = OrderedDict(), 0
    for at, key in enumerate(reads):
        if key in stored:
            stored.move_to_end(key)
            hits += at >= len(reads) // 2
        else:
            stored[key] = True
            if len(stored) > capacity:
                stored.popitem(last=False)
    return hits / (len(reads) - len(reads) // 2)


def limited(options, policy, limit):
    return start(options, maxmemory=limit, maxmemory_policy=policy)


def hits(options, values):
    """maxmemory so that Redis' strings hold about a tenth of the keys."""
    tenth = int(500_000 * options.scale)
    with start(options) as server, Client(server.port) as client:
        before = int(client.info("memory")["used_memory"])
        for at in range(0, tenth, 500):
            pipeline(client, [command("SET", b"KEY:%07d" % i, values[i % len(values)]) for i in range(at, at + 500)])
        limit = int(client.info("memory")["used_memory"])
    result, rows = {"maxmemory": limit, "keys": int(5_000_000 * options.scale), "runs": []}, []
    for alpha in (0.9, 1.1):
        reads = trace(options, alpha)
        for policy in ("allkeys-lru", "allkeys-lfu"):
            with limited(options, policy, limit) as server, Client(server.port) as client:
                strings = run_cache(client, reads, values, "MGET", "MSET")
                held = client.call("DBSIZE")
            with limited(options, policy, limit) as server, Client(server.port) as client:
                same_memory = run_cache(client, reads, values, "CMGET", "CMSET")
                held_ckv = client.call("CDBSIZE")
                taken = int(client.info("memory")["used_memory"])
            # As many records as Redis held, or half of all that are read.
            small = before + (taken - before) * min(held, held_ckv // 2) // held_ckv
            with limited(options, policy, small) as server, Client(server.port) as client:
                same_records = run_cache(client, reads, values, "CMGET", "CMSET")
                held_small = client.call("CDBSIZE")
            lru = exact_lru(reads, held_small)
            result["runs"].append({"alpha": alpha, "policy": policy, "strings": strings, "strings_records": held,
                                   "ckv": same_memory, "ckv_records": held_ckv, "ckv_equal": same_records,
                                   "ckv_equal_records": held_small, "exact_lru": lru})
            rows.append((alpha, policy, f"{strings:.2%}", f"{held:,}", f"{same_memory:.2%}", f"{held_ckv:,}",
                         f"{same_records:.2%}", f"{lru:.2%}", f"{held_small:,}"))
    table(f"Hit rates, maxmemory {limit / MB:.0f} MB, {result['keys']:,} keys",
          ("alpha", "policy", "strings", "records", "ckv", "records", "ckv with less", "exact LRU", "records"), rows)
    return result


# --- the limit ---


def limit(options, values):
    """10M writes of mixed sizes under allkeys-lru, a tenth of that under the other policies; with
    native keys besides, as many bytes of each."""
    rows, runs = [], []
    for policy, others in [(p, False) for p in POLICIES] + [("allkeys-lru", True), ("volatile-ttl", True)]:
        count = int((10_000_000 if policy == "allkeys-lru" and not others else 1_000_000) * options.scale)
        run = write_at_limit(options, values, policy, count, others)
        runs.append(run)
        rows.append((policy + (" with strings" if others else ""), f"{count:,}", f"{run['highest'] - 1:+.2%}",
                     f"{run['evicted_by_server']}", f"{run['kept_records']:.1%}",
                     f"{run['kept_strings']:.1%}" if others else ""))
    table("Writes at maxmemory", ("policy", "writes", "most memory", "keys evicted by the server", "records kept",
                                  "strings kept"), rows)
    return runs


def write_at_limit(options, values, policy, count, others):
    room = max(2 * MB, int(count * (12 if not others else 40)))
    rng = random.Random(2)
    ttl = ("EX", 100_000) if policy.startswith("volatile") else ()
    with limited(options, policy, 2 * MB + room) as server, Client(server.port) as client:
        allowed, highest, strings = int(client.info("memory")["maxmemory"]), 0, 0
        for at in range(0, count, 250):
            batch = []
            for i in range(at, at + 250):
                value = values[i % len(values)] * (rng.randrange(2, 60) if rng.random() < 0.01 else 1)
                batch.append(command("CSET", b"KEY:%d" % i, value, *ttl))
                if others and i % 4 == 0:
                    batch.append(command("SET", b"string:%d" % i, value, *ttl))
                    strings += 1
            pipeline(client, batch)
            highest = max(highest, int(client.info("memory")["used_memory"]))
        maps = int(client.info("ckv")["ckv_maps"])
        return {"policy": policy, "others": others, "writes": count, "maxmemory": allowed, "highest": highest / allowed,
                "evicted_by_server": int(client.info("stats")["evicted_keys"]),
                "kept_records": client.call("CDBSIZE") / count,
                "kept_strings": (client.call("DBSIZE") - maps) / strings if strings else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default="expiry,hits,limit")
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of records, 0.01 to 1")
    parser.add_argument("--data", help="a file, one value a line")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "ckv.so"))
    options = parser.parse_args()
    values, name = data.records(options.data)
    known = {"expiry": expiry, "hits": hits, "limit": limit}
    result = {}
    if os.path.exists(RESULT):
        with open(RESULT) as f:
            result = json.load(f)
    for part in options.parts.split(","):
        result[part] = known[part](options, values)
    result["about"] = {"date": str(date.today()), "data": name, "scale": options.scale, "machine": platform.machine(),
                       "command": "make bench-cache"}
    with open(RESULT, "w") as f:
        json.dump(result, f, indent=1)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"cache.py: {failed}")
