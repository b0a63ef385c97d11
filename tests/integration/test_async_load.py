"""repl-diskless-load swapdb: a replica serves what it has while it loads what its primary sends, and then changes over."""

import contextlib
import threading
import time

import pytest
import redis

from helpers import info, is_error, is_in_sync, load, map_keys, reply, texts, wait_for, wait_for_replica
from proxy import Proxy
from traffic import assert_same_records

KEYS = 6000
MAPS = 300  # of the primary, and so in its file


def value(name, i):
    return f"{name} {i} ".encode() * (1 + i % 40)


def write(server, name, keys=KEYS, command="CSET"):
    with server.client() as r, r.pipeline(transaction=False) as pipe:
        for i in range(keys):
            pipe.execute_command(command, f"key:{i * 37}", value(name, i))
        pipe.execute()


def holds(r, name, keys=KEYS, command="CMGET"):
    found = r.execute_command(command, *(f"key:{i * 37}" for i in range(keys)))
    return found == [value(name, i) for i in range(keys)]


def lose_replica(server, name, command="CSET", *field):
    """The replica is to load a whole file again, of the same history: it was gone for more than the backlog holds."""
    with server.client() as r:
        r.config_set("repl-backlog-size", 16384)
        with r.pipeline(transaction=True) as pipe:
            pipe.execute_command("CLIENT", "KILL", "TYPE", "replica")
            for i in range(KEYS):
                pipe.execute_command(command, f"key:{i * 37}", *field, value(name, i))
            pipe.execute()


def slow_down(r, seconds):
    """A file takes about that long, and clients are served in between."""
    r.config_set("key-load-delay", int(seconds * 1e6 / MAPS))
    r.config_set("loading-process-events-interval-bytes", 1024)


@pytest.fixture(params=["CSET", "CSET, other maps", "SET"])
def pair(request, own_server):
    """A primary, its replica in sync, and the commands to write and to read with."""
    command = request.param.split(",")[0]
    reading = command.replace("SET", "MGET")
    # Nothing is learned: the file is to be longer than what the system keeps of it while the replica is slow.
    config = {"ckv.maps": MAPS, "ckv.prefixes": "*" if command == "SET" else '""', "ckv.train-after": "1gb"}
    server = own_server({**config, "repl-diskless-sync": "yes", "rdbcompression": "no"})
    write(server, "old", command=command)
    if "other" in request.param:
        config["ckv.maps"] = 512
    replica = own_server({**config, "repl-diskless-load": "swapdb"})
    with replica.client() as r:
        r.replicaof("127.0.0.1", server.port)
        wait_for(lambda: is_in_sync(r) and holds(r, "old", command=reading))
    return server, replica, command, reading


def test_what_is_there_is_served_until_all_has_come(pair):
    server, replica, command, reading = pair
    with replica.client() as r, replica.client() as watching:
        slow_down(r, 60)
        watching.execute_command("WATCH", "key:0")
        lose_replica(server, "new", command)
        wait_for(lambda: r.info("persistence")["async_loading"] == 1)
        for _ in range(5):
            assert holds(r, "old", command=reading)
        assert r.info("persistence")["async_loading"] == 1
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r))
        assert holds(r, "new", command=reading)
        assert r.execute_command("CDBSIZE") == KEYS
        assert [watching.execute_command(word) for word in ("MULTI", "PING", "EXEC")] == [b"OK", b"QUEUED", None]
        with server.client() as other:
            other.execute_command(command, "key:0", "newest")
        wait_for(lambda: r.execute_command(reading, "key:0") == [b"newest"])
    replica.stop(save=True)
    replica.start()
    with replica.client() as r:
        assert r.execute_command("CDBSIZE") == KEYS


def test_what_is_there_stays_if_the_primary_goes_away(pair):
    server, replica, command, reading = pair
    with replica.client() as r:
        slow_down(r, 60)
        for _ in range(2):
            lose_replica(server, "new", command)
            wait_for(lambda: r.info("persistence")["async_loading"] == 1)
            assert holds(r, "old", command=reading)
            with server.client() as other:
                other.config_set("repl-diskless-sync-delay", 1)
                other.execute_command("CLIENT", "KILL", "TYPE", "replica")
            wait_for(lambda: r.info("persistence")["async_loading"] == 0)
            assert holds(r, "old", command=reading)
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r) and holds(r, "new", command=reading))
        assert r.execute_command("CDBSIZE") == KEYS


def test_a_replica_that_may_be_written_to_meanwhile(pair):
    server, replica, command, reading = pair
    with replica.client() as r:
        r.config_set("replica-read-only", "no")
        slow_down(r, 60)
        lose_replica(server, "new", command)
        wait_for(lambda: r.info("persistence")["async_loading"] == 1)
        for i in range(10):
            r.execute_command(command, f"own:{i}", "written meanwhile")
            assert r.execute_command(reading, f"own:{i}") == [b"written meanwhile"]
        # They come from a client, and not from a file.
        r.execute_command(command, "own:0", "v", "PX", 1)
        wait_for(lambda: r.execute_command(reading, "own:0") == [None])
        assert is_error(reply(r, "CPLAIN", "1", "DEL", "own:1"))
        payload = r.execute_command("DUMP", map_keys(r)[0]) if command == "CSET" else None
        if payload:
            r.execute_command("RESTORE", "ckv:aside", 0, payload)
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r))
        assert holds(r, "new", command=reading)
        assert info(r)["unserved_maps"] == 0
        assert r.execute_command(reading, *(f"own:{i}" for i in range(10))) == [None] * 10
        assert r.execute_command("CDBSIZE") == KEYS


# --- links that break, and what else comes with a file ---

RECORDS = 4000
# Clients are served between pieces of this size.
SWAPDB = {"repl-diskless-load": "swapdb", "loading-process-events-interval-bytes": 1024, "repl-timeout": 60}
PRIMARY = {"repl-diskless-sync": "yes", "repl-backlog-size": "16kb", "ckv.train-after": "64kb"}


class Reader(threading.Thread):
    """Reads old records all the time, and notes what it got that was neither old nor new."""

    def __init__(self, replica, old, new):
        super().__init__(daemon=True)
        self.replica, self.old, self.new = replica, old, new
        self.wrong, self.during = [], 0
        self.stopping = threading.Event()

    def run(self):
        keys = list(self.old)[::40]
        with self.replica.client() as r:
            while not self.stopping.is_set():
                pipe = r.pipeline(transaction=True)
                pipe.execute_command("INFO", "persistence")
                pipe.execute_command("CMGET", *keys)
                pipe.execute_command("CDBSIZE")
                state, values, count = pipe.execute()
                got = (values, count)
                allowed = [([data.get(k) for k in keys], len(data)) for data in (self.old, self.new)]
                if got not in allowed:
                    self.wrong.append(got)
                self.during += state["async_loading"] == 1 and got == allowed[0]

    def finish(self):
        self.stopping.set()
        self.join(60)
        assert not self.is_alive() and not self.wrong
        return self.during


@pytest.fixture
def behind_proxy(own_server):
    """Starts a primary and a replica behind a proxy, in step; returns them, and the records that both have."""
    proxies = []

    def start(primary=(), replica=()):
        server = own_server({**PRIMARY, **dict(primary)})
        proxy = Proxy(server.port)
        proxies.append(proxy)
        with server.client() as r:
            old = load(r, texts(RECORDS, seed=1))
            behind = own_server({**SWAPDB, "replicaof": f"127.0.0.1 {proxy.port}", **dict(replica)})
            wait_for_replica(r)
        return server, behind, proxy, old

    yield start
    for proxy in proxies:
        proxy.close()


def replace_all(r, seed):
    """The primary's data is another; more has been written than what a backlog keeps."""
    r.execute_command("FLUSHALL")
    return load(r, texts(RECORDS // 2, seed=seed))


def break_load(replica, proxy, stage):
    """The link breaks after so many bytes, again and again until that was within the file."""

    def count():
        return replica.log().count("Discarding temporary DB")

    before = count()

    def broken():
        if not proxy.connected:
            proxy.mend(cut_after=stage)
        return count() > before

    wait_for(broken, what="a broken load")


def test_links_that_break_at_every_stage(behind_proxy):
    server, replica, proxy, old = behind_proxy()
    with server.client() as r, replica.client() as q:
        # Redis 8 has a second connection for the file, which makes it hard to say where in it the cut is.
        reply(q, "CONFIG", "SET", "repl-rdb-channel", "no")
        proxy.cut()
        new = replace_all(r, seed=2)
        reader = Reader(replica, old, new)
        reader.start()
        q.execute_command("CONFIG", "SET", "key-load-delay", 1000)
        # Nothing is learned meanwhile that would make the file shorter.
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        size = info(r)["page_bytes"]
        # The first falls between the dictionaries, which come before the maps.
        for stage in (2000, size // 10, size // 2, size * 9 // 10):
            break_load(replica, proxy, stage)
            assert q.execute_command("CDBSIZE") == len(old)
            assert q.execute_command("CMGET", *old) == list(old.values())
        proxy.mend()
        wait_for(lambda: is_in_sync(q), what="the link")
        assert reader.finish() > 0
        assert_same_records(r, q)
        assert info(q)["maps"] == len(map_keys(q))
        # What was dropped is gone, and commands reach what has come.
        wait_for(lambda: info(q)["dictionaries"] <= 2)
        r.execute_command("CSET", "KEY:0", "written since")
        wait_for_replica(r)
        assert q.execute_command("CGET", "KEY:0") == b"written since"
        assert q.execute_command("DEBUG", "DIGEST") == r.execute_command("DEBUG", "DIGEST")


def full_sync(server, replica, proxy, change):
    """The replica gets a file of what there is after `change`."""
    with server.client() as r, replica.client() as q:
        proxy.cut()
        change(r)
        load(r, texts(RECORDS, seed=3), key=b"other:%d")
        syncs = r.info("stats")["sync_full"]
        proxy.mend()
        wait_for(lambda: r.info("stats")["sync_full"] > syncs, what="a full sync")
        wait_for(lambda: is_in_sync(q), what="the link")
        wait_for_replica(r)


def test_inert_maps_and_databases(behind_proxy):
    server, replica, proxy, old = behind_proxy()

    def change(r):
        r.execute_command("COPY", map_keys(r)[0], "aside")
        r.execute_command("SELECT", 3)
        r.execute_command("CSET", "in another", "v")
        r.execute_command("SELECT", 0)

    full_sync(server, replica, proxy, change)
    with server.client() as r, replica.client() as q:
        assert_same_records(r, q)
        assert info(q)["unserved_maps"] == 1
    with replica.client(db=3) as q:
        assert q.execute_command("CDBSIZE") == 1  # before anybody asks for it
        assert q.execute_command("CGET", "in another") == b"v"


def test_prefixes_that_are_not_set_here(behind_proxy):
    """A replica without them serves what comes with the file."""
    server, replica, proxy, old = behind_proxy(primary={"ckv.prefixes": '"s:"'})

    def change(r):
        for i in range(500):
            r.execute_command("SET", f"s:{i}", "v")

    full_sync(server, replica, proxy, change)
    with replica.client() as q:
        assert q.execute_command("MGET", *[f"s:{i}" for i in range(500)]) == [b"v"] * 500


@pytest.mark.parametrize("maps", (MAPS, 64))
def test_records_of_several_databases(own_server, maps):
    """Redis 7.0 says of each database that is loaded beside that it is the first."""
    server = own_server({"ckv.maps": MAPS, "repl-diskless-sync": "yes"})
    replica = own_server({"ckv.maps": maps, "repl-diskless-load": "swapdb"})
    for db in (0, 3):
        with server.client() as r, r.pipeline(transaction=False) as pipe:
            pipe.execute_command("SELECT", db)
            for i in range(1000):
                pipe.execute_command("CSET", f"{db}:{i * 37}", f"value {i}")
            pipe.execute()
    with replica.client() as r:
        r.replicaof("127.0.0.1", server.port)
        wait_for(lambda: is_in_sync(r))
        for db in (0, 3):
            r.execute_command("SELECT", db)
            assert r.execute_command("CDBSIZE") == 1000
            assert r.execute_command("CMGET", *(f"{db}:{i * 37}" for i in range(1000))) == [f"value {i}".encode() for i in range(1000)]


READS = "for i = 1, 5000 do redis.call('GET', 'text:' .. i) end return redis.call('GET', 'text:' .. ARGV[1])"


@contextlib.contextmanager
def readers(server, db, wanted):
    """Two clients with scripts, one behind the other: they keep timers waiting. What they are answered is right."""
    over = threading.Event()
    wrong = []

    def read():
        with server.client(db=db) as r:
            while not over.is_set():
                with contextlib.suppress(redis.exceptions.BusyLoadingError):
                    found = r.pipeline(transaction=False).eval(READS, 0, 5).eval(READS, 0, 6).execute()
                    wrong.extend([] if found == wanted[5:7] else [found])

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:2]


def test_what_a_file_was_encoded_with_stays_where_a_training_ends_meanwhile(own_server):
    found = [one + other for one, other in zip(texts(20_000, seed=5), texts(20_000, seed=6))]  # to learn from it takes seconds
    config = {"ckv.prefixes": "*", "ckv.train-after": "1gb"}
    server = own_server({**config, "repl-diskless-sync": "yes", "rdbcompression": "no"})
    replica = own_server({**config, "repl-diskless-load": "swapdb"})
    with server.client(db=1) as r, r.pipeline(transaction=False) as pipe:
        for i, text in enumerate(found):
            pipe.set(f"text:{i}", text)
        pipe.execute()
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
    with replica.client() as r, replica.client(db=1) as reading:
        r.replicaof("127.0.0.1", server.port)
        wait_for(lambda: is_in_sync(r) and reading.get("text:9") == found[9])
        trainings = info(r)["trainings"]
        with readers(replica, 1, found), replica.socket() as training:
            training.sendall(b"CKV TRAIN\r\n")
            wait_for(lambda: info(r)["training"] == 1)
            slow_down(r, 5)
            lose_replica(server, "hashes, which come first in the file", "HSET", "field")
            wait_for(lambda: r.info("persistence")["async_loading"] == 1)
            until = time.monotonic() + 8
            while time.monotonic() < until and (info(r)["trainings"] == trainings or info(r)["pages_to_reencode"] > 0):
                time.sleep(0.1)
            assert r.info("persistence")["async_loading"] == 1
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r))
        assert reading.mget(f"text:{i}" for i in range(len(found))) == found
