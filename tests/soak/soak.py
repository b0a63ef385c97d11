"""Mixed operations for as long as one likes, everything checked against a model.

    python tests/soak/soak.py [--operations 100000000] [--seconds 300] [--records 300000] [--state build/soak]

One server, a replica that follows it, a BGSAVE every minute, a restart every tenth of the way. Values of
many sizes, expiries of seconds to days, deletes. Reads are checked as they come; at every restart all
records are, on the server, and on the replica once it is up to date. Memory must stay what it was for
the same data. Ends with 0 if all was well.

Up to forty times on the way, and when it is interrupted (Ctrl-C, SIGTERM), the server's file and the model are kept in a
folder below that of --state, named after the other arguments: the same command goes on from there. A run that has come
to its end removes it.
"""

import argparse
import array
import os
import pickle
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from helpers import info, is_in_sync, late_by, now_ms, texts, wait_for  # noqa: E402
from server import ROOT, Server  # noqa: E402

BATCH = 400
TEXT = b" ".join(texts(20_000))
# Memory for the same data may differ by this, because a dictionary is another one, or pages are as they are.
FLAT, FLAT_RSS = 1.15, 1.5
LEAST_MB = 20  # of data; with less the server's own memory, and whether it is just learning, is most of it


def value_of(key, version):
    """Mostly some dozens of bytes, some kilobytes here and there; no two alike."""
    mixed = (key * 2654435761 + version * 40503) & 0xFFFFFFFF
    kind = mixed % 200
    size = 20_000 if kind == 0 else 1000 + mixed % 3000 if kind < 8 else 10 + mixed % 250
    start = (mixed >> 3) % (len(TEXT) - size)
    return b"%d/%d " % (key, version) + TEXT[start : start + size]


def name_of(key):
    return b"session:%d:data" % key if key % 3 == 0 else b"KEY:%d" % (1000 + key)


class Interrupted(Exception):
    pass


class Model:
    """What the server must hold, and how far the run is: all that is kept beside the server's file."""

    def __init__(self, records, seed):
        self.rng = random.Random(seed)
        self.version = array.array("q", bytes(8 * records))  # 0: not there
        self.at_ms = array.array("q", bytes(8 * records))  # 0: does not expire
        self.ttl_ms = array.array("q", bytes(8 * records))
        self.next_version = 1
        self.operations = 0
        self.seconds = 0.0
        self.memory = []  # (used, resident) per raw byte of data, and how many MB of these


class State:
    """A folder with a model and the server's file of the same moment."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def rdb(self, model):
        return self.path(f"{model.operations}.rdb")

    def load(self):
        """The model, None if nothing is kept."""
        try:
            with open(self.path("model"), "rb") as f:
                return pickle.load(f)
        except FileNotFoundError:
            return None

    def keep(self, model, rdb):
        """The model takes the place of the one before when its file is there: an interruption leaves one pair whole."""
        os.makedirs(self.folder, exist_ok=True)
        shutil.copyfile(rdb, self.path("new"))
        os.replace(self.path("new"), self.rdb(model))
        with open(self.path("new"), "wb") as f:
            pickle.dump(model, f)
        os.replace(self.path("new"), self.path("model"))
        for name in os.listdir(self.folder):
            if name.endswith(".rdb") and self.path(name) != self.rdb(model):
                os.remove(self.path(name))

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Soak:
    def __init__(self, records, seed, state):
        self.state = state
        kept = state.load()
        self.model = kept or Model(records, seed)
        self.records = records
        self.interrupted = False
        self.server = Server({"save": '""', "repl-backlog-size": "1mb"}, start=False)
        if kept:
            shutil.copyfile(state.rdb(kept), self.server.rdb_path)
        self.server.start()
        self.replica = Server({"replicaof": f"127.0.0.1 {self.server.port}"})
        self.r = self.server.client()
        if kept:
            print(f"going on after {kept.operations:,} operations", flush=True)
            self.check_all(self.r)

    # --- one operation: its command, and what the model makes of it ---

    def write(self, key):
        model = self.model
        version, model.next_version = model.next_version, model.next_version + 1
        model.version[key] = version
        model.at_ms[key] = 0
        if model.rng.random() < 0.5:
            return "CSET", name_of(key), value_of(key, version)
        self.set_expiry(key, model.rng.choice([500, 5_000, 60_000, 3_600_000, 86_400_000 * 30]))
        return "CSET", name_of(key), value_of(key, version), "PXAT", model.at_ms[key]

    def set_expiry(self, key, ttl):
        self.model.ttl_ms[key] = ttl
        self.model.at_ms[key] = now_ms() + ttl

    def delete(self, key):
        self.model.version[key] = 0
        return "CDEL", name_of(key)

    def expire(self, key):
        # What may be gone at any moment is left alone: whether it is there is not known.
        if not self.model.version[key] or 0 < self.model.at_ms[key] < now_ms() + 2000:
            return "CGET", name_of(key)
        self.set_expiry(key, self.model.rng.choice([3_000, 30_000, 3_600_000]))
        return "CPEXPIREAT", name_of(key), self.model.at_ms[key]

    def batch(self):
        """Sends a batch; what is read is checked."""
        pipe, reads, keys = self.r.pipeline(transaction=False), [], set()
        for i in range(BATCH):
            key = self.model.rng.randrange(self.records)
            while key in keys:  # once a batch, so that a reply can be judged by the model after it
                key = self.model.rng.randrange(self.records)
            keys.add(key)
            chance = self.model.rng.random()
            if chance < 0.5:
                pipe.execute_command(*self.write(key))
            elif chance < 0.6:
                pipe.execute_command(*self.delete(key))
            elif chance < 0.65:
                pipe.execute_command(*self.expire(key))
            else:
                pipe.execute_command("CGET", name_of(key))
                reads.append((i, key))
        before = now_ms()
        replies = pipe.execute()
        after = now_ms()
        for i, key in reads:
            self.check(key, replies[i], before, after)
        self.model.operations += BATCH

    # --- checking ---

    def check(self, key, value, before, after, lag_ms=0):
        """A value that was read between two times."""
        version, at_ms = self.model.version[key], self.model.at_ms[key]
        wanted = value_of(key, version) if version else None
        if value is None and wanted is not None and at_ms and after >= at_ms:
            return
        late = at_ms and before > at_ms + late_by(self.model.ttl_ms[key]) + lag_ms
        if value == wanted and not (late and value is not None):
            return
        raise AssertionError(f"{name_of(key)!r}: {value!r:.100} instead of {wanted!r:.100}, expiry {at_ms}, now {before}")

    def check_all(self, r, lag_ms=0):
        for start in range(0, self.records, 1000):
            keys = range(start, min(start + 1000, self.records))
            before = now_ms()
            values = r.execute_command("CMGET", *map(name_of, keys))
            after = now_ms()
            for key, value in zip(keys, values):
                self.check(key, value, before, after, lag_ms)

    def check_replica(self):
        with self.replica.client(timeout=300) as r:
            def caught_up():
                return r.info("replication")["master_repl_offset"] >= offset

            wait_for(lambda: is_in_sync(r), what="the link")
            offset = self.r.info("replication")["master_repl_offset"]
            wait_for(caught_up, what="the replica")
            self.check_all(r)

    def note_memory(self):
        self.r.execute_command("CKV", "OPTIMIZE")
        wait_for(lambda: not info(self.r)["training"], what="the end of the training")
        fields, memory = info(self.r), self.r.info("memory")
        raw = fields["raw_key_bytes"] + fields["raw_value_bytes"]
        self.model.memory.append((memory["used_memory"] / raw, memory["used_memory_rss"] / raw, raw / 1e6))
        print(f"{self.model.operations:>11,} operations, {fields['records']:,} records, {raw / 1e6:.0f} MB of data, "
              f"{memory['used_memory'] / 1e6:.0f} MB used, {memory['used_memory_rss'] / 1e6:.0f} MB resident, "
              f"{fields['trainings']} trainings", flush=True)  # fmt: skip

    def check_memory(self):
        """The last against those of the second quarter, when all records had been written."""
        samples = self.model.memory
        early = samples[len(samples) // 4 : len(samples) // 2 + 1]
        if min(megabytes for *_, megabytes in [*early, samples[-1]]) < LEAST_MB:
            return
        for which, limit in ((0, FLAT), (1, FLAT_RSS)):
            most = max(sample[which] for sample in early)
            assert samples[-1][which] <= most * limit, f"memory grows: {samples}"

    # --- the whole ---

    def restart(self):
        self.r.close()
        self.server.restart(save=True)
        self.r = self.server.client()
        with self.replica.client() as r:
            r.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
        self.check_all(self.r)
        self.check_replica()

    def keep(self):
        """What a later run goes on with, should this one end."""
        wait_for(lambda: not self.r.info("persistence")["rdb_bgsave_in_progress"])
        self.r.execute_command("SAVE")
        self.state.keep(self.model, self.server.rdb_path)

    def run(self, done):
        """`done` tells of the model how far it is, 0 to 1."""
        began = time.monotonic() - self.model.seconds
        share = done(self.model)
        save_at, note_at, tenths = time.monotonic() + 60, 0, int(share * 10)
        while share < 1:
            self.batch()
            self.model.seconds = time.monotonic() - began
            share = done(self.model)
            if self.interrupted:
                self.keep()
                raise Interrupted
            if time.monotonic() >= save_at:
                self.r.execute_command("BGSAVE")
                save_at += 60
            if share * 40 >= len(self.model.memory) and time.monotonic() >= note_at:
                self.note_memory()
                self.keep()
                note_at = time.monotonic() + 5
            if share * 10 >= tenths + 1:
                tenths += 1
                assert self.r.info("persistence")["rdb_last_bgsave_status"] == "ok"
                wait_for(lambda: not self.r.info("persistence")["rdb_bgsave_in_progress"])
                self.restart()
        self.note_memory()
        self.restart()
        self.check_memory()

    def close(self):
        self.replica.close()
        self.server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--operations", type=int, default=100_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after that time at the latest")
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", default=os.path.join(ROOT, "build", "soak"), help="where it is kept how far a run is")
    args = parser.parse_args()
    state = State(os.path.join(args.state, f"{args.operations}-{args.seconds:g}-{args.records}-{args.seed}"))
    soak = Soak(args.records, args.seed, state)

    def interrupt(*_):
        soak.interrupted = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        soak.run(lambda model: max(model.operations / args.operations, model.seconds / args.seconds))
    except Interrupted:
        print(f"{soak.model.operations:,} operations: the same command goes on from here, {state.folder}")
        return 130
    finally:
        soak.close()
    state.remove()
    print(f"{soak.model.operations:,} operations in {soak.model.seconds:.0f} s: all records as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
