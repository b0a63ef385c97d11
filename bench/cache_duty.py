"""Cache duty: expiry under load, hit rates, memory at its limit.

expiry  records with TTLs of 1-60 s under continuous load: how many of the stored ones have expired
        already, and what memory is left when all are gone
hits    reads by Zipf's law that write back what they miss: ckv and Redis' strings in the same memory,
        and ckv against exact LRU with as many records
limit   writes of mixed sizes at maxmemory, under every policy: how far memory goes, who evicts"""

import bisect
import itertools
import platform
import random
import time
from collections import OrderedDict
from datetime import date

from load import Data, progress
from measure import used_memory
from server import Server, command

POLICIES = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
            "volatile-ttl"]
MB = 1 << 20


# --- expiry ---


def expiry(options, values):
    """2M records live at a time, the TTLs even from 1 to 60 s, 30.5 s on average. Scaled, both are less."""
    live, longest = int(2_000_000 * options.scale), max(10, 60 * options.scale)
    seconds, rate = 1.5 * longest, 2 * live / (longest + 1)
    every = seconds / 18
    rng = random.Random(1)
    with Server(options) as server:
        # A command's first call makes the server's histogram of its latencies.
        for words in (("CSET", "k", "v", "PX", 1), ("CGET", "k"), ("CDEL", "k"), ("CDBSIZE",), ("INFO", "ckv")):
            server.call(*words)
        time.sleep(2)
        empty = used_memory(server)
        ends, samples, wrong, n = [], [], 0, 0
        began = now = time.time()
        next_sample = began + every
        while now - began < seconds:
            due = int((now - began) * rate)
            for _ in range(n, due, 500):
                ttls = [rng.randrange(1000, int(1000 * longest)) for _ in range(500)]
                batch = [command("CSET", b"KEY:%d" % (n + i), values[(n + i) % len(values)], "PX", ttl)
                         for i, ttl in enumerate(ttls)]
                server.client.pipeline(batch)
                answered = time.time()  # by then they had been given their times, on a machine with other work long behind sending
                ends += [answered + ttl / 1000 for ttl in ttls]
                n += 500
            if time.time() >= next_sample:
                next_sample += every
                samples.append((time.time() - began, *sample_expiry(server, ends)))
                wrong += returned_expired(server, ends, rng)
            now = time.time()
        worst = max(share for _, _, share in samples)
        time.sleep(longest + 1 - (time.time() - max(0, now)))
        waited = 0.0
        while server.call("CDBSIZE") and waited < 10:
            time.sleep(0.1)
            waited += 0.1
        time.sleep(1.5)
        left = used_memory(server)
        stats = server.info("ckv")
    return {"records": n, "seconds": seconds, "live": live, "worst_expired_share": worst, "returned_expired": wrong,
            "samples": samples, "empty_bytes": empty, "bytes_after": left,
            "expire_seconds": float(stats["ckv_expire_seconds"])}


def sample_expiry(server, ends):
    """Records stored, and the share of these that have expired."""
    stored, now = server.call("CDBSIZE"), time.time()
    live = sum(end > now for end in ends)
    return stored, max(0, stored - live) / max(stored, 1)


def returned_expired(server, ends, rng):
    """Reads records that have expired lately; how many came."""
    now = time.time()
    lately = [i for i in (rng.randrange(len(ends)) for _ in range(20_000)) if now - 10 < ends[i] < now - 0.1]
    return sum(v is not None for v in server.client.pipeline([command("CGET", b"KEY:%d" % i) for i in lately]))


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


def replay(server, reads, values, get, put, step=250):
    """Reads all keys in turn and writes back what is missing; the hit rate of the second half."""
    hits = total = 0
    for at in range(0, len(reads), step):
        part = reads[at : at + step]
        found = server.call(get, *(b"KEY:%07d" % k for k in part))
        missing = [k for k, v in zip(part, found) if v is None]
        if missing:
            server.call(put, *itertools.chain(*((b"KEY:%07d" % k, values[k % len(values)]) for k in missing)))
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
    return Server(options, maxmemory=limit, maxmemory_policy=policy)


def hits(options, values):
    """maxmemory so that Redis' strings hold about a tenth of the keys."""
    tenth = int(500_000 * options.scale)
    with Server(options) as server:
        before = used_memory(server)
        for at in range(0, tenth, 500):
            server.client.pipeline([command("SET", b"KEY:%07d" % i, values[i % len(values)]) for i in range(at, at + 500)])
        limit = used_memory(server)
    result = {"maxmemory": limit, "keys": int(5_000_000 * options.scale), "runs": []}
    for alpha in (0.9, 1.1):
        reads = trace(options, alpha)
        for policy in ("allkeys-lru", "allkeys-lfu"):
            with limited(options, policy, limit) as server:
                strings = replay(server, reads, values, "MGET", "MSET")
                held = server.call("DBSIZE")
            with limited(options, policy, limit) as server:
                same_memory = replay(server, reads, values, "CMGET", "CMSET")
                held_ckv = server.call("CDBSIZE")
                taken = used_memory(server)
            # As many records as Redis held, or half of all that are read.
            small = before + (taken - before) * min(held, held_ckv // 2) // held_ckv
            with limited(options, policy, small) as server:
                same_records = replay(server, reads, values, "CMGET", "CMSET")
                held_small = server.call("CDBSIZE")
            lru = exact_lru(reads, held_small)
            result["runs"].append({"alpha": alpha, "policy": policy, "strings": strings, "strings_records": held,
                                   "ckv": same_memory, "ckv_records": held_ckv, "ckv_equal": same_records,
                                   "ckv_equal_records": held_small, "exact_lru": lru})
    return result


# --- the limit ---


def limit(options, values):
    """10M writes of mixed sizes under allkeys-lru, a tenth of that under the other policies; with
    native keys besides, as many bytes of each."""
    runs = []
    for policy, others in [(p, False) for p in POLICIES] + [("allkeys-lru", True), ("volatile-ttl", True)]:
        count = int((10_000_000 if policy == "allkeys-lru" and not others else 1_000_000) * options.scale)
        progress.step(f"limit: {policy}{' with strings' if others else ''}")
        runs.append(write_at_limit(options, values, policy, count, others))
    return runs


def write_at_limit(options, values, policy, count, others):
    room = max(2 * MB, int(count * (12 if not others else 40)))
    rng = random.Random(2)
    ttl = ("EX", 100_000) if policy.startswith("volatile") else ()
    with limited(options, policy, 2 * MB + room) as server:
        allowed, highest, strings = int(server.info("memory")["maxmemory"]), 0, 0
        for at in range(0, count, 250):
            batch = []
            for i in range(at, at + 250):
                value = values[i % len(values)] * (rng.randrange(2, 60) if rng.random() < 0.01 else 1)
                batch.append(command("CSET", b"KEY:%d" % i, value, *ttl))
                if others and i % 4 == 0:
                    batch.append(command("SET", b"string:%d" % i, value, *ttl))
                    strings += 1
            server.client.pipeline(batch)
            highest = max(highest, used_memory(server))
        maps = int(server.info("ckv")["ckv_maps"])
        return {"policy": policy, "others": others, "writes": count, "maxmemory": allowed, "highest": highest / allowed,
                "evicted_by_server": int(server.info("stats")["evicted_keys"]),
                "kept_records": server.call("CDBSIZE") / count,
                "kept_strings": (server.call("DBSIZE") - maps) / strings if strings else None}


PARTS = {"expiry": expiry, "hits": hits, "limit": limit}


def run(options, found, part):
    data = Data.first(options)
    found[part] = PARTS[part](options, data.values)
    found["about"] = {"date": str(date.today()), "data": data.name, "scale": options.scale, "machine": platform.machine(),
                      "command": "make bench-cache"}
