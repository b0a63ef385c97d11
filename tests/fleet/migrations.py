"""Atomic slot migrations, many of them, of slots that are written, expire and are evicted meanwhile.

    python tests/fleet/migrations.py [--rounds 200] [--records 200000] [--slots 16] [--data FILE] [--asan]

Two primaries with a replica each. All records lie in the first slots, which go to and fro between the primaries; every
tenth round they are on their way when the migration is cancelled. Two clients read and write the records; a third writes
records beside them that expire within seconds, or are evicted since ckv.maxmemory has no room for them; both primaries
train and re-encode without a break. Every ten rounds all records are looked at, and those of the replicas are counted.
Ends with 0 if none was lost, none wrong, and no server's log tells of a crash or of what a sanitizer found."""

import argparse
import itertools
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import redis  # noqa: E402

import server as servers  # noqa: E402
from atomic import ended, move, way_of  # noqa: E402
from cluster import Cluster, other  # noqa: E402
from helpers import reply, texts, wait_for  # noqa: E402
from load import STORES, Bulk, Load, Model, keys_of_slots, lines  # noqa: E402

CKV = STORES["ckv"]
CHECKED_EVERY = 10  # rounds
ENOUGH = 1_000_000_000  # numbers, among which are those of the slots
TOLD = ("expired_records", "evicted_records", "trainings")


class SlotModel(Model):
    """Records whose keys lie in a few slots."""

    def __init__(self, values, keys):
        super().__init__(values, len(keys))
        self.keys = keys

    def key(self, i):
        return self.keys[i]


class Passing(Load):
    """Writes and reads records of the same slots that expire soon or have to go for others. What is read is right or gone."""

    EACH = 20

    def step(self, i):
        keys = [b"{%b}:%d" % (self.model.key(i), n) for n in range(self.EACH)]
        values = [self.model.value(i, n) for n in range(self.EACH)]
        if self.random.random() < 0.3:
            for key, value, found in zip(keys, values, self.call(i, *[(CKV.get, key) for key in keys])):
                if found not in (None, value):
                    self.wrong.append((key, found))
            return
        soon = self.random.random() < 0.5
        self.call(i, *[(CKV.set, key, value, "PX", self.random.randint(100, 3_000) if soon else 3_600_000)
                       for key, value in zip(keys, values)])


class Timers(threading.Thread):
    """Has a node train and re-encode, over and over."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.stopping = node, threading.Event()

    def run(self):
        with self.node.client() as r:
            while not self.stopping.wait(0.5):
                for what in ("TRAIN", "OPTIMIZE"):  # an empty node has nothing to learn from
                    reply(r, "CKV", what)


class Shuttle:
    """The slots go to and fro between the primaries."""

    def __init__(self, cluster, slots):
        self.cluster, self.way, self.bounds = cluster, way_of(cluster.primaries[0]), (0, slots - 1)
        self.moved = self.cancelled = 0

    def ends(self):
        """(who has them, who gets them)"""
        source = self.cluster.owner(0)
        return source, other(self.cluster, source)

    def go(self):
        """How many seconds it took."""
        began = time.monotonic()
        move(self.cluster, self.way, *self.ends(), *self.bounds)
        self.moved += 1
        return time.monotonic() - began

    def turn_back(self, after):
        """Sets out and is cancelled after so many seconds. It may be too late for that."""
        source, target = self.ends()
        self.way.start(source, target, *self.bounds)
        time.sleep(after)
        try:
            self.way.cancel(source, target)
        except (AssertionError, redis.ResponseError):
            pass
        for node in (source, target):
            wait_for(lambda node=node: ended(self.way, node), "the end of a cancelled migration")
        self.cluster.wait()
        self.cancelled += self.cluster.owner(0) is source


def check(cluster, model, loads):
    """How many operations there were; all were right, and so is what is stored."""
    operations = sum(load.finish() for load in loads)
    wrong = [found for load in loads for found in load.wrong]
    lost_or_wrong = Bulk(cluster, CKV).check(model)
    assert not wrong and lost_or_wrong == (0, 0), f"lost, wrong: {lost_or_wrong}; read: {wrong[:3]} of {len(wrong)}"
    for primary, replica in zip(cluster.primaries, cluster.replicas):
        wait_for(lambda: replica.ask("DBSIZE") == primary.ask("DBSIZE"), "a replica with all maps")
    return operations


def fill(cluster, model):
    """And leaves room for a tenth as much again."""
    Bulk(cluster, CKV).fill(model)
    source = cluster.owner(0)
    with source.client() as r:
        r.execute_command("CKV", "OPTIMIZE")
    told = source.ask("INFO", "ckv")
    for node in cluster.nodes:
        node.ask("CONFIG", "SET", "ckv.maxmemory", (told["ckv_page_bytes"] + told["ckv_dictionary_bytes"]) * 11 // 10)


def ten_rounds(cluster, model, shuttle, wait):
    """(operations, seconds of each migration); all records are looked at in the end."""
    loads = [Load(cluster, CKV, model, share, 2) for share in range(2)] + [Passing(cluster, CKV, model, 0, 1)]
    for load in loads:
        load.start()
    shuttle.turn_back(wait)
    seconds = [shuttle.go() for _ in range(CHECKED_EVERY)]
    return check(cluster, model, loads), seconds


def run(cluster, model, slots, rounds):
    shuttle = Shuttle(cluster, slots)
    if not shuttle.way:
        sys.exit("the server has no atomic slot migration")
    fill(cluster, model)
    timers = [Timers(node) for node in cluster.primaries]
    for timer in timers:
        timer.start()
    operations = 0
    try:
        for first in range(0, rounds, CHECKED_EVERY):
            done, seconds = ten_rounds(cluster, model, shuttle, wait=first / rounds)
            operations += done
            told = {name: sum(node.ask("INFO", "ckv")[f"ckv_{name}"] for node in cluster.primaries) for name in TOLD}
            print(f"{shuttle.moved} migrations, {shuttle.cancelled} cancelled, median {statistics.median(seconds):.1f} s, "
                  f"longest {max(seconds):.1f} s; {operations:,} operations, {told}; 0 lost, 0 wrong", flush=True)
    except AssertionError:
        for node in cluster.nodes:
            print(f"--- {node.port}\n{node.log()[-4000:]}")
        raise
    finally:
        for timer in timers:
            timer.stopping.set()
            timer.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--data", help="values, one a line")
    parser.add_argument("--asan", action="store_true", help="server and module with AddressSanitizer")
    args = parser.parse_args()
    if args.asan:
        servers.use_sanitizer("asan")
    values = lines(args.data) if args.data else texts(20_000)
    model = SlotModel(values, list(itertools.islice(keys_of_slots(args.slots, ENOUGH), args.records)))
    with Cluster(2, replicas=1, config={"maxmemory-policy": "volatile-lru"}) as cluster:
        run(cluster, model, args.slots, args.rounds)


if __name__ == "__main__":
    main()
