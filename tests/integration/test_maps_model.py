"""Random operations on maps as Redis keys, beside commands on their records, against a model.

Maps are copied, renamed, moved, restored (also damaged ones, and over others), swapped with their database, flushed,
deleted; files are written and read in every way, with another ckv.maps as well; a replica follows. CKV_SEED=<n> repeats
a run."""

import os
import random

import pytest

from helpers import reply, is_error, wait_for, wait_for_replica
from server import Server

SEED = int(os.environ.get("CKV_SEED", 0)) or random.randrange(1, 1 << 32)
STEPS = int(os.environ.get("CKV_STEPS", 250))
DBS = 3
KEYS = [b"user:%d:x" % i for i in range(30)] + [b"KEY:%d" % i for i in range(1000, 1005)]
LAYOUTS = (4, 7)


@pytest.fixture(scope="module")
def places():
    """{ckv.maps: {key: name of its map}}, as a server says."""
    found = {}
    for maps in LAYOUTS:
        with Server({"ckv.maps": maps}) as server, server.client() as r:
            found[maps] = {}
            for key in KEYS:
                r.execute_command("CSET", key, "v")
                (found[maps][key],) = r.execute_command("KEYS", "*")
                r.execute_command("FLUSHALL")
    return found


class Map:
    """A value: records, and the name under which they are served, None if they belong to several."""

    def __init__(self, records, home):
        self.records, self.home = dict(records), home


class Model:
    def __init__(self, places, maps):
        self.places, self.maps = places, maps
        self.dbs = [{} for _ in range(DBS)]

    def home(self, records):
        homes = {self.places[self.maps][k] for k in records}
        return homes.pop() if len(homes) == 1 else None

    def map_of(self, db, key):
        """The map that serves a key; None: there is none; False: something else stands there."""
        name = self.places[self.maps][key]
        found = self.dbs[db].get(name)
        return None if found is None else found if found.home == name else False

    def served(self, db):
        return {k: v for name, m in self.dbs[db].items() if m.home == name for k, v in m.records.items()}

    def inert_in_the_way(self):
        return [(db, name) for db in range(DBS) for name, m in self.dbs[db].items()
                if name.startswith(b"ckv:") and m.home != name]

    def change_layout(self, maps):
        """As loading does: the records that are served move, other maps stay."""
        served = [self.served(db) for db in range(DBS)]
        others = [{name: m for name, m in self.dbs[db].items() if m.home != name} for db in range(DBS)]
        self.maps = maps
        for db in range(DBS):
            for m in others[db].values():
                m.home = self.home(m.records)
            self.dbs[db] = others[db]
            for key, value in served[db].items():
                name = self.places[maps][key]
                self.dbs[db].setdefault(name, Map({}, name)).records[key] = value


class Run:
    def __init__(self, rng, places, preamble, young):
        self.rng = rng
        self.server = Server({"ckv.maps": LAYOUTS[0], "ckv.train-after": "64kb", "appendonly": "yes",
                              "appendfsync": "no", "aof-use-rdb-preamble": preamble, "ckv.young-memory": young})
        self.replica = Server({"ckv.maps": LAYOUTS[0], "ckv.young-memory": young, "replicaof": f"127.0.0.1 {self.server.port}"})
        self.model = Model(places, LAYOUTS[0])
        self.r = self.server.client()
        self.log = []

    def close(self):
        self.r.close()
        self.replica.close()
        self.server.close()

    def call(self, db, *args):
        self.log.append((db, *args))
        self.r.execute_command("SELECT", db)
        return reply(self.r, *args)

    # --- what is chosen ---

    def db(self):
        return self.rng.randrange(DBS)

    def name(self, db):
        """Mostly one that there is."""
        if self.model.dbs[db] and self.rng.random() < 0.8:
            return self.rng.choice(sorted(self.model.dbs[db]))
        return self.new_name()

    def new_name(self):
        return self.rng.choice([b"ckv:%d" % self.rng.randrange(self.model.maps), b"aside:%d" % self.rng.randrange(4)])

    # --- steps ---

    def set(self):
        db, key, value = self.db(), self.rng.choice(KEYS), b"value %d of a certain length" % self.rng.randrange(10**6)
        value *= self.rng.choice([1, 1, 20, 100])  # long ones are young at first
        found, answer = self.model.map_of(db, key), self.call(db, "CSET", key, value)
        if found is False:
            assert is_error(answer, "WRONGTYPE")
            return
        assert answer == b"OK"
        name = self.model.places[self.model.maps][key]
        self.model.dbs[db].setdefault(name, Map({}, name)).records[key] = value

    def delete(self):
        db, key = self.db(), self.rng.choice(KEYS)
        found, answer = self.model.map_of(db, key), self.call(db, "CDEL", key)
        assert answer == (1 if found and key in found.records else 0)
        if answer:
            del found.records[key]
            if not found.records:
                del self.model.dbs[db][self.model.places[self.model.maps][key]]

    def copy(self):
        db, to = self.db(), self.db()
        name, new = self.name(db), self.new_name()
        replace = self.rng.choice([(), ("REPLACE",)])
        answer = self.call(db, "COPY", name, new, "DB", to, *replace)
        source = self.model.dbs[db].get(name)
        if (db, name) == (to, new):
            assert is_error(answer)
        elif source is None or (new in self.model.dbs[to] and not replace):
            assert answer == 0
        else:
            assert answer == 1
            self.model.dbs[to][new] = Map(source.records, source.home)

    def rename(self):
        db = self.db()
        name, new = self.name(db), self.new_name()
        answer = self.call(db, "RENAME", name, new)
        if name not in self.model.dbs[db]:
            assert is_error(answer, "no such key")
        elif name != new:
            assert answer == b"OK"
            self.model.dbs[db][new] = self.model.dbs[db].pop(name)

    def home_again(self):
        """What is inert goes back to where it serves."""
        db = self.db()
        inert = [(n, m.home) for n, m in sorted(self.model.dbs[db].items()) if m.home not in (n, None)]
        if inert:
            name, home = self.rng.choice(inert)
            assert self.call(db, "RENAME", name, home) == b"OK"
            self.model.dbs[db][home] = self.model.dbs[db].pop(name)

    def move(self):
        db, to = self.db(), self.db()
        name = self.name(db)
        answer = self.call(db, "MOVE", name, to)
        if db == to:
            assert is_error(answer)
        elif name not in self.model.dbs[db] or name in self.model.dbs[to]:
            assert answer == 0
        else:
            assert answer == 1
            self.model.dbs[to][name] = self.model.dbs[db].pop(name)

    def restore(self):
        db, to = self.db(), self.db()
        name, new = self.name(db), self.new_name()
        if name not in self.model.dbs[db]:
            return
        payload = bytearray(self.call(db, "DUMP", name))
        replace = self.rng.choice([(), ("REPLACE",)])
        damaged = self.rng.random() < 0.3
        if damaged:
            from test_restore_damage import seal

            payload = seal(bytes(payload[:-11]) + b"\x05" + bytes(payload[-10:-8]))  # read, and then refused
        answer = self.call(to, "RESTORE", new, 0, bytes(payload), *replace)
        if new in self.model.dbs[to] and not replace:
            assert is_error(answer, "BUSYKEY")
        elif damaged:
            assert is_error(answer, "Bad data format")
        else:
            assert answer == b"OK"
            source = self.model.dbs[db][name]
            self.model.dbs[to][new] = Map(source.records, source.home)

    def drop(self):
        db = self.db()
        name = self.name(db)
        answer = self.call(db, self.rng.choice(["DEL", "UNLINK"]), name)
        assert answer == (self.model.dbs[db].pop(name, None) is not None)

    def swap(self):
        a, b = self.db(), self.db()
        assert self.call(0, "SWAPDB", a, b) == b"OK"
        self.model.dbs[a], self.model.dbs[b] = self.model.dbs[b], self.model.dbs[a]

    def flush(self):
        db = self.db()
        assert self.call(db, "FLUSHDB", self.rng.choice(["SYNC", "ASYNC"])) == b"OK"
        self.model.dbs[db] = {}

    def train(self):
        if not is_error(self.call(0, "CKV", "TRAIN")) and self.rng.random() < 0.5:
            self.call(0, "CKV", "OPTIMIZE")

    def settle(self):
        assert self.call(0, "CKV", "OPTIMIZE") == b"OK"

    def reload(self):
        assert self.call(0, "DEBUG", "RELOAD") == b"OK"

    def rewrite(self):
        def idle():
            fields = self.r.info("persistence")
            return not fields["aof_rewrite_in_progress"] and not fields["aof_rewrite_scheduled"]

        wait_for(idle)
        self.call(0, "BGREWRITEAOF")
        wait_for(idle)
        assert self.r.info("persistence")["aof_last_bgrewrite_status"] == "ok"

    def restart(self):
        """Commands behind the file name maps of this layout, so another one is for files without any. What stands in the way
        of a place is renamed first, as docs/operations.md says."""
        maps = self.rng.choice(LAYOUTS)
        if maps != self.model.maps:
            for db, name in self.model.inert_in_the_way():
                new = b"aside:" + name
                assert self.call(db, "RENAME", name, new) == b"OK"
                self.model.dbs[db][new] = self.model.dbs[db].pop(name)
            self.rewrite()
            self.model.change_layout(maps)
            self.log.append(("layout", maps))
        self.r.close()
        self.server.config["ckv.maps"] = self.replica.config["ckv.maps"] = maps
        self.replica.stop(save=False)
        self.server.restart(save=False)
        self.replica.config["replicaof"] = f"127.0.0.1 {self.server.port}"
        if os.path.exists(self.replica.rdb_path):
            os.remove(self.replica.rdb_path)
        self.replica.start()
        self.r = self.server.client()

    # --- comparing ---

    def compare(self, r):
        for db in range(DBS):
            r.execute_command("SELECT", db)
            assert set(r.execute_command("KEYS", "*")) == set(self.model.dbs[db])
            served = self.model.served(db)
            assert r.execute_command("CDBSIZE") == len(served)
            assert sorted(r.execute_command("CKEYS", "*")) == sorted(served)
            assert sorted(r.execute_command("CSCAN", 0, "COUNT", 10_000)[1]) == sorted(served)
            drawn = r.execute_command("CRANDOMKEY")
            assert drawn in served or (drawn is None and not served)
            for key in KEYS:
                answer, found = reply(r, "CGET", key), self.model.map_of(db, key)
                if found is False:
                    assert is_error(answer, "WRONGTYPE")
                else:
                    assert answer == served.get(key)
        r.execute_command("SELECT", 0)

    def check(self):
        try:
            self.compare(self.r)
            wait_for_replica(self.r)
            with self.replica.client() as q:
                self.compare(q)
        except AssertionError as error:
            raise AssertionError(f"{error}\nCKV_SEED={SEED}; the last steps:\n" + "\n".join(map(str, self.log[-25:])))


COMMON = ["set"] * 8 + ["delete"] * 3 + ["copy", "rename", "home_again", "move", "restore"] * 2
RARE = ["drop", "swap", "flush", "train", "settle", "reload", "rewrite", "restart"]


# Young values that hardly have room, and are encoded at once; and such that stay young.
@pytest.mark.parametrize("preamble, young", [("yes", "16kb"), ("no", "0")])
def test_random_operations(places, preamble, young):
    print(f"CKV_SEED={SEED}")
    run = Run(random.Random(SEED), places, preamble, young)
    try:
        wait_for_replica_link(run)
        for _ in range(STEPS):
            step = run.rng.choice(RARE if run.rng.random() < 0.12 else COMMON)
            getattr(run, step)()
            if run.rng.random() < 0.3 or step in RARE:
                if step == "restart":
                    wait_for_replica_link(run)
                run.check()
        run.restart()
        wait_for_replica_link(run)
        run.check()
    finally:
        run.close()


def wait_for_replica_link(run):
    def linked():
        with run.replica.client() as q:
            return q.info("replication").get("master_link_status") == "up"

    wait_for(linked)
