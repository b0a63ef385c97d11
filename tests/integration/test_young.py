"""Long values are young at first: stored as they came, encoded by threads later. Whatever happens to them meanwhile,
the replies are those of a plain dictionary, and memory stays within what was set."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers import info, is_error, reply, texts, wait_for

SEED = int(os.environ.get("CKV_SEED", 0)) or random.randrange(1, 1 << 32)
WORDS = texts(400, seed=18)


def document(rng, length):
    text = b"".join(rng.choice(WORDS) for _ in range(length // 40 + 1))
    return (b"%d" % rng.randrange(10**9) + text)[:length]


def load(r, stored, rng, count, lengths=(300, 900, 2500), db=0, at_once=False):
    """`at_once`: in one transaction, within which nothing is encoded in the background. INFO ckv at its end."""
    p = r.pipeline(transaction=at_once)  # on a connection of its own
    p.execute_command("SELECT", db)
    for _ in range(count):
        key = b"doc:%d" % rng.randrange(5000)
        stored[key] = document(rng, rng.choice(lengths))
        p.execute_command("CSET", key, stored[key])
    p.execute_command("INFO", "ckv")
    return {k.removeprefix("ckv_"): v for k, v in p.execute()[-1].items()}


def compare(r, stored):
    keys = sorted(stored)
    for at in range(0, len(keys), 500):
        some = keys[at : at + 500]
        assert r.execute_command("CMGET", *some) == [stored[k] for k in some]


def settled(r):
    return info(r)["young_records"] == 0


def test_long_values_are_young_and_settle_by_themselves(own_server):
    rng, stored = random.Random(1), {}
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        r.execute_command("CSET", "short", "x" * 255)
        fields = load(r, stored, rng, 200, at_once=True)
        assert fields["young_records"] == fields["large_records"] == len(stored)
        assert fields["young_bytes"] == fields["large_bytes"] >= sum(map(len, stored.values()))
        assert fields["raw_value_bytes"] == sum(map(len, stored.values())) + 255
        compare(r, stored)
        wait_for(lambda: settled(r))
        fields = info(r)
        assert fields["young_encoded"] == len(stored) and fields["young_bytes"] == 0
        assert fields["young_never_encoded"] == 200 - len(stored)
        assert fields["raw_value_bytes"] == sum(map(len, stored.values())) + 255
        compare(r, stored)


def test_optimize_waits_for_them(own_server):
    rng, stored = random.Random(2), {}
    with own_server().client() as r:
        load(r, stored, rng, 3000)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        assert settled(r)
        assert load(r, stored, rng, 1000, at_once=True)["young_records"] > 0
        r.execute_command("CKV", "OPTIMIZE")
        assert settled(r)
        compare(r, stored)


def test_what_is_written_over_is_never_encoded(own_server):
    with own_server().client() as r, r.pipeline(transaction=True) as p:
        for i in range(2000):
            p.execute_command("CSET", "session", b"%d" % i + b"x" * (1000 + i // 10))
        p.execute_command("CDEL", "session")
        assert p.execute()[-1] == 1
        fields = info(r)
        assert fields["young_encoded"] == 0 and fields["young_never_encoded"] == 2000
        assert fields["young_records"] == fields["young_bytes"] == 0


def test_what_is_read_is_counted(own_server):
    with own_server().client() as r, r.pipeline(transaction=True) as p:
        p.execute_command("CSET", "page", b"x" * 1000)
        for _ in range(10):
            p.execute_command("CGET", "page")
        p.execute()
        assert info(r)["young_reads"] == 10


@pytest.mark.parametrize("limit", [64 << 10, 1 << 20])
def test_memory_is_bounded(own_server, limit):
    rng, stored = random.Random(3), {}
    with own_server({"ckv.young-memory": limit, "ckv.train-after": "64kb"}).client() as r:
        for _ in range(6):
            fields = load(r, stored, rng, 1000, at_once=True)
            assert fields["young_limit"] == limit
            assert limit // 2 < fields["young_bytes"] <= limit
        assert fields["encoded_at_once"] > 0
        compare(r, stored)


WRITES_FOR_LONG = """
local function encoded() return tonumber(string.match(redis.call('INFO', 'ckv'), 'ckv_young_encoded:(%d+)')) end
local before = encoded()
for i = 1, 3000 do redis.call('CSET', ARGV[1] .. i % 1000, string.rep(ARGV[1] .. i .. ' and so on, ', 30)) end
return encoded() - before
"""


def test_encoders_are_fed_while_timers_wait(own_server):
    """Scripts of two clients, one behind the other, as long pipelines are: no timer comes by within one."""
    server = own_server({"ckv.young-memory": "64kb"})
    found = []

    def write(name):
        with server.client() as r:
            while not any(found) and len(found) < 200:
                found.append(r.eval(WRITES_FOR_LONG, 0, name))

    with ThreadPoolExecutor() as clients:
        list(clients.map(write, "ab"))
    assert any(found)
    with server.client() as r:  # the filter that this takes looks for no keys, and so at no clients, of which there may be many
        assert "cmdstat_client|list" not in r.info("commandstats")


def test_without_threads_all_is_encoded_at_once(own_server):
    rng, stored = random.Random(4), {}
    with own_server({"ckv.encode-threads": 0}).client() as r:
        load(r, stored, rng, 500)
        fields = info(r)
        assert fields["young_records"] == fields["young_encoded"] == 0
        compare(r, stored)


def test_threads_come_and_go(own_server):
    rng, stored = random.Random(5), {}
    with own_server({"ckv.young-memory": "256kb", "ckv.train-after": "64kb"}).client() as r:
        for turn in range(30):
            r.execute_command("CONFIG", "SET", "ckv.encode-threads", (1, 0, 4, 2, 0, 64)[turn % 6])
            load(r, stored, rng, 150)
        r.execute_command("CONFIG", "SET", "ckv.encode-threads", 0)
        wait_for(lambda: settled(r))
        compare(r, stored)


def test_values_of_every_size(own_server):
    rng = random.Random(6)
    stored = {b"%d" % n: document(rng, n) for base in (256, 1024, 3584, 65536, 1 << 20) for n in (base - 1, base, base + 1)}
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        for key, value in stored.items():
            r.execute_command("CSET", key, value)
        compare(r, stored)
        r.execute_command("CKV", "OPTIMIZE")
        assert settled(r)
        compare(r, stored)


def test_expiry_and_keys_go_with_them(own_server):
    with own_server().client() as r:
        r.execute_command("CSET", "user:1001", b"a" * 400, "PX", 1500)
        r.execute_command("CSET", "user:1002", b"b" * 400, "EX", 100_000)
        r.execute_command("CSET", b"k" * 2000, b"c" * 400)
        r.execute_command("CSET", b"k" * 900, b"d" * 400)
        r.execute_command("CKV", "OPTIMIZE")
        assert 99_000 <= r.execute_command("CTTL", "user:1002") <= 100_000
        assert r.execute_command("CGET", b"k" * 2000) == b"c" * 400
        assert r.execute_command("CGET", b"k" * 900) == b"d" * 400
        time.sleep(1.6)
        assert r.execute_command("CMGET", "user:1001", "user:1002") == [None, b"b" * 400]


def test_files_hold_them(own_server):
    rng, stored = random.Random(7), {}
    server = own_server({"ckv.train-after": "64kb"})
    with server.client() as r:
        assert load(r, stored, rng, 500, at_once=True)["young_records"] > 0
        r.execute_command("SAVE")
        r.execute_command("DEBUG", "RELOAD", "NOSAVE")
        compare(r, stored)
        r.execute_command("CKV", "OPTIMIZE")
        assert settled(r)
        compare(r, stored)
        raw = info(r)["raw_value_bytes"]
        assert raw == sum(map(len, stored.values()))


def test_encoded_before_a_record_is_evicted_for_them(own_server):
    rng, stored = random.Random(8), {}
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        load(r, stored, rng, 6000, (2000,))
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        fields = info(r)
        used = fields["page_bytes"] + fields["dictionary_bytes"]
        r.execute_command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        r.execute_command("CONFIG", "SET", "ckv.maxmemory", 2 * used, "ckv.young-memory", 64 << 20)
        # They fit when they are encoded, and not by far as they come. What a thread is just encoding can't be had.
        for _ in range(3):
            load(r, stored, rng, 2000, (2000,))
        assert info(r)["evicted_records"] < len(stored) // 50


def test_a_map_that_is_renamed_leaves_its_share(own_server):
    """Its values stay as they are; of what may be young they take nothing."""
    with own_server({"ckv.maps": 1, "ckv.young-memory": 1 << 20}).client() as r:
        values = [random.Random(i).randbytes(2000) for i in range(500)]
        pipe = r.pipeline(transaction=True)
        for i, value in enumerate(values[:400]):
            pipe.execute_command("CSET", f"there:{i}", value)
        pipe.execute_command("RENAME", "ckv:0", "elsewhere")
        for i, value in enumerate(values[400:]):
            pipe.execute_command("CSET", f"here:{i}", value)
        pipe.execute()
        assert info(r)["encoded_at_once"] == 0
        r.execute_command("DEL", "ckv:0")
        r.execute_command("RENAME", "elsewhere", "ckv:0")
        assert [r.execute_command("CGET", f"there:{i}") for i in range(400)] == values[:400]


# --- hot values: decoded again and again, kept decoded ---


def settled_store(server, rng, count=500, lengths=(300, 900, 2500)):
    stored = {}
    with server.client() as r:
        load(r, stored, rng, count, lengths)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
    return stored


def read_until_hot(r, stored, least):
    """Bytes; what is not read for a while is dropped again, so one reading may not be enough."""
    def enough():
        compare(r, stored)
        return info(r)["hot_bytes"] > least
    wait_for(enough)


def test_what_is_read_again_becomes_hot(own_server):
    server = own_server()
    stored = settled_store(server, random.Random(9))
    with server.client() as r:
        compare(r, stored)
        assert info(r)["hot_records"] == info(r)["hot_reads"] == 0
        some = {key: stored[key] for key in sorted(stored)[:100]}
        read_until_hot(r, some, sum(map(len, some.values())) * 0.8)
        wait_for(lambda: compare(r, some) or info(r)["hot_reads"] > 0)
        assert info(r)["raw_value_bytes"] == sum(map(len, stored.values()))
        # What changes is read as it is now, at once and later.
        for key in sorted(stored)[::3]:
            stored[key] = stored[key][::-1]
            r.execute_command("CSET", key, stored[key])
        for key in sorted(stored)[1::3]:
            assert r.execute_command("CDEL", key) == 1
            assert r.execute_command("CGET", key) is None
            del stored[key]
        for _ in range(3):
            compare(r, stored)
        r.execute_command("CKV", "OPTIMIZE")
        assert info(r)["hot_records"] == info(r)["hot_bytes"] == 0
        compare(r, stored)


def test_hot_values_go_with_all_maps(own_server):
    server = own_server()
    stored = settled_store(server, random.Random(10))
    with server.client() as r:
        for mode in ("ASYNC", "SYNC"):
            read_until_hot(r, stored, 0)
            r.execute_command("FLUSHALL", mode)
            wait_for(lambda: info(r)["hot_bytes"] == 0)
            stored = settled_store(server, random.Random(11))


@pytest.mark.slow
def test_hot_values_go_when_nobody_reads_them(own_server):
    server = own_server()
    stored = settled_store(server, random.Random(15))
    with server.client() as r:
        read_until_hot(r, stored, 0)
        began = time.monotonic()
        wait_for(lambda: info(r)["hot_bytes"] == 0)
        assert time.monotonic() - began < 120
        compare(r, stored)


def test_hot_values_are_bounded(own_server):
    limit = 256 << 10
    server = own_server({"ckv.young-memory": limit})
    stored = settled_store(server, random.Random(12), 2000)
    with server.client() as r:
        read_until_hot(r, stored, limit // 4)
        assert info(r)["hot_bytes"] <= limit
        load(r, stored, random.Random(13), 300)
        assert (fields := info(r))["hot_bytes"] + fields["young_bytes"] <= limit
        r.execute_command("CONFIG", "SET", "ckv.encode-threads", 0)
        wait_for(lambda: info(r)["hot_bytes"] == 0)
        for _ in range(3):
            compare(r, stored)
        assert info(r)["hot_bytes"] == 0


def test_reading_all_takes_little(own_server):
    rng = random.Random(16)
    stored = {b"hex:%d" % i: rng.randbytes(300).hex().encode() for i in range(5000)}
    with own_server().client() as r:
        r.execute_command("CMSET", *(part for record in stored.items() for part in record))
        r.execute_command("CKV", "OPTIMIZE")
        settled_bytes = info(r)["page_bytes"] + info(r)["large_bytes"]
        compare(r, stored)
        assert info(r)["hot_bytes"] <= settled_bytes // 32
        read_until_hot(r, stored, settled_bytes // 5)
        assert info(r)["hot_bytes"] <= settled_bytes // 4


def test_hot_values_go_before_a_record_is_evicted(own_server):
    server = own_server()
    stored = settled_store(server, random.Random(14), 2000, (2000,))
    with server.client() as r:
        fields = info(r)
        settled_bytes = fields["page_bytes"] + fields["large_bytes"] + fields["dictionary_bytes"]
        read_until_hot(r, stored, settled_bytes // 5)
        r.execute_command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "ckv.maxmemory", settled_bytes * 9 // 8)
        wait_for(lambda: info(r)["hot_bytes"] <= settled_bytes // 8)
        for _ in range(3):
            compare(r, stored)
        assert info(r)["evicted_records"] == 0


# --- everything at once ---


class Run:
    def __init__(self, server, rng):
        self.server, self.rng = server, rng
        self.r = server.client()
        self.stored = [{}, {}]

    def call(self, db, *args):
        self.r.execute_command("SELECT", db)
        return reply(self.r, *args)

    def write(self):
        db = self.rng.randrange(2)
        load(self.r, self.stored[db], self.rng, self.rng.choice([1, 10, 100]), (100, 300, 900, 2500, 20000), db)

    def session(self):
        """One key again and again, read in between."""
        db = self.rng.randrange(2)
        for _ in range(30):
            value = document(self.rng, self.rng.choice([800, 900, 1500]))
            assert self.call(db, "CSET", "session", value) == b"OK"
            assert self.call(db, "CGET", "session") == value
        self.stored[db][b"session"] = value

    def read(self):
        """Some keys again and again, so that they become hot."""
        db = self.rng.randrange(2)
        keys = self.rng.sample(sorted(self.stored[db]), min(30, len(self.stored[db])))
        for key in keys * 4:
            assert self.call(db, "CGET", key) == self.stored[db][key]

    def remove(self):
        db = self.rng.randrange(2)
        for key in self.rng.sample(sorted(self.stored[db]), len(self.stored[db]) // 10):
            assert self.call(db, "CDEL", key) == 1
            del self.stored[db][key]

    def append(self):
        db = self.rng.randrange(2)
        if self.stored[db]:
            key = self.rng.choice(sorted(self.stored[db]))
            self.stored[db][key] += b"more"
            assert self.call(db, "CAPPEND", key, "more") == len(self.stored[db][key])

    def flush(self):
        db = self.rng.randrange(2)
        assert self.call(db, "FLUSHDB", self.rng.choice(["ASYNC", "SYNC"])) == b"OK"
        self.stored[db] = {}

    def swap(self):
        assert self.call(0, "SWAPDB", 0, 1) == b"OK"
        self.stored.reverse()

    def unlink_and_rename(self):
        db = self.rng.randrange(2)
        names = self.call(db, "KEYS", "*")
        if names:
            name = self.rng.choice(names)
            self.call(db, "RENAME", name, "aside")
            self.call(db, "COPY", "aside", "copied", "REPLACE")
            self.call(db, "RENAME", "aside", name)
            assert self.call(db, "UNLINK", "copied") == 1

    def dump(self):
        db = self.rng.randrange(2)
        names = self.call(db, "KEYS", "*")
        if names:
            name = self.rng.choice(names)
            assert self.call(db, "RESTORE", name, 0, self.call(db, "DUMP", name), "REPLACE") == b"OK"

    def save(self):
        self.call(0, self.rng.choice(["SAVE", "BGSAVE", "BGREWRITEAOF"]))

    def reload(self):
        wait_for(lambda: not self.r.info("persistence")["rdb_bgsave_in_progress"])
        assert self.call(0, "DEBUG", "RELOAD") == b"OK"

    def learn(self):
        self.call(0, "CKV", "TRAIN")
        if self.rng.random() < 0.3:
            assert self.call(0, "CKV", "OPTIMIZE") == b"OK"

    def settings(self):
        self.call(0, "CONFIG", "SET", "ckv.encode-threads", self.rng.choice([0, 1, 1, 2]))

    def expire(self):
        db = self.rng.randrange(2)
        keys = [b"brief %d" % i for i in range(20)]
        for key in keys:
            assert self.call(db, "CSET", key, document(self.rng, self.rng.choice([100, 900, 5000])), "PX", self.rng.randrange(1, 50)) == b"OK"
        wait_for(lambda: self.call(db, "CEXISTS", *keys) == 0, what="expiry")

    def keep_what_is_there(self):
        """When records may have gone: what there is still is as it was."""
        for db in range(2):
            for key in sorted(self.stored[db]):
                value = self.call(db, "CGET", key)
                assert value in (None, self.stored[db][key]), key
                if value is None:
                    del self.stored[db][key]

    def evict(self):
        self.call(0, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "ckv.maxmemory", self.rng.choice(["1mb", "2mb", "8mb"]))
        self.write()
        self.rest()
        self.call(0, "CONFIG", "SET", "ckv.maxmemory", 0, "maxmemory-policy", "noeviction")
        self.keep_what_is_there()

    def unlink(self):
        db = self.rng.randrange(2)
        names = self.call(db, "KEYS", "*")
        if names:
            assert self.call(db, "UNLINK", self.rng.choice(names)) == 1
            self.keep_what_is_there()

    def watch(self):
        """That a value is encoded, or a page written anew, changes nothing for who watches."""
        db = self.rng.randrange(2)
        if not self.stored[db]:
            return
        key = self.rng.choice(sorted(self.stored[db]))
        self.call(db, "WATCH", key)
        self.rest()
        changed = self.rng.random() < 0.5
        if changed:
            with self.server.client(db) as other:
                self.stored[db][key] = document(self.rng, 900)
                other.execute_command("CSET", key, self.stored[db][key])
        self.r.execute_command("MULTI")
        self.r.execute_command("CGET", key)
        assert reply(self.r, "EXEC") == (None if changed else [self.stored[db][key]])

    def unload(self):
        assert is_error(reply(self.r, "MODULE", "UNLOAD", "ckv"))

    def restart(self):
        wait_for(lambda: not self.r.info("persistence")["rdb_bgsave_in_progress"])
        self.r.close()
        self.server.restart(save=True)
        self.r = self.server.client()

    def rest(self):
        time.sleep(self.rng.random() / 5)

    def check(self):
        for db in range(2):
            self.r.execute_command("SELECT", db)
            assert self.r.execute_command("CDBSIZE") == len(self.stored[db])
            compare(self.r, self.stored[db])


OFTEN = ["write"] * 10 + ["session", "append", "read", "read", "rest", "rest"]
SELDOM = ["remove", "flush", "swap", "unlink_and_rename", "dump", "save", "reload", "learn", "settings", "expire", "evict", "unlink", "watch",
          "unload", "restart"]


@pytest.mark.parametrize("limit", ["64kb", "1mb", "0"])
def test_everything_in_between(own_server, limit):
    print(f"CKV_SEED={SEED}")
    steps = int(os.environ.get("CKV_STEPS", 150))
    run = Run(own_server({"ckv.young-memory": limit, "ckv.maps": 16, "ckv.train-after": "64kb"}), random.Random(SEED))
    for i in range(steps):
        getattr(run, run.rng.choice(SELDOM if run.rng.random() < 0.2 else OFTEN))()
        if i % 10 == 0:
            run.check()
    run.check()
    wait_for(lambda: not run.r.info("persistence")["rdb_bgsave_in_progress"])
    assert reply(run.r, "CKV", "OPTIMIZE") == b"OK"
    run.check()
    replica = own_server({"replicaof": f"127.0.0.1 {run.server.port}", "ckv.maps": 16})
    run.r.close()
    run.r = replica.client()
    wait_for(lambda: run.r.info("replication").get("master_link_status") == "up", what="the replica")
    run.check()
    run.r.close()
