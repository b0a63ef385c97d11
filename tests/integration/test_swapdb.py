"""repl-diskless-load swapdb: a replica serves the data that it has until its primary's file is there, whole."""

import threading

import pytest

from helpers import info, load, map_keys, reply, texts, wait_for, wait_for_replica
from proxy import Proxy
from traffic import assert_same_records

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
                pipe = r.pipeline(transaction=False)
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
def pair(own_server):
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


def test_old_data_is_served_until_the_new_is_whole(pair):
    server, replica, proxy, old = pair()
    with server.client() as r, replica.client() as q:
        # Redis 8 has a second connection for the file, which makes it hard to say where in it the cut is.
        reply(q, "CONFIG", "SET", "repl-rdb-channel", "no")
        proxy.cut()
        new = replace_all(r, seed=2)
        reader = Reader(replica, old, new)
        reader.start()
        q.execute_command("CONFIG", "SET", "key-load-delay", 1000)
        size = info(r)["page_bytes"]
        # The first falls between the dictionaries, which come before the maps.
        for stage in (2000, size // 10, size // 2, size * 9 // 10):
            break_load(replica, proxy, stage)
            assert q.execute_command("CDBSIZE") == len(old)
            assert q.execute_command("CMGET", *old) == list(old.values())
        proxy.mend()
        wait_for(lambda: q.info("replication")["master_link_status"] == "up", what="the link")
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
        wait_for(lambda: q.info("replication")["master_link_status"] == "up", what="the link")
        wait_for_replica(r)


def test_another_layout(pair):
    """Records are put in place after the swap."""
    server, replica, proxy, old = pair(primary={"ckv.maps": 8}, replica={"ckv.maps": 5})
    full_sync(server, replica, proxy, lambda r: r.execute_command("CDEL", "KEY:1"))
    with server.client() as r, replica.client() as q:
        assert_same_records(r, q)
        assert len(map_keys(q)) == 5 and info(q)["unserved_maps"] == 0


def test_inert_maps_and_databases(pair):
    server, replica, proxy, old = pair()

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
        assert q.execute_command("CGET", "in another") == b"v"


def test_watch_and_expiry_of_what_comes(pair):
    server, replica, proxy, old = pair()
    with replica.client() as q:
        q.execute_command("WATCH", "KEY:2")
        full_sync(server, replica, proxy, lambda r: r.execute_command("CSET", "KEY:1", "v", "PX", 1))
        q.execute_command("MULTI")
        q.execute_command("CGET", "KEY:2")
        assert q.execute_command("EXEC") is None
        assert q.execute_command("CGET", "KEY:1") is None
    with server.client() as r:
        assert r.execute_command("CGET", "KEY:1") is None


def test_prefixes(pair):
    """A replica without them serves what comes with the file."""
    server, replica, proxy, old = pair(primary={"ckv.prefixes": '"s:"'})

    def change(r):
        for i in range(500):
            r.execute_command("SET", f"s:{i}", "v")

    full_sync(server, replica, proxy, change)
    with replica.client() as q:
        assert q.execute_command("MGET", *[f"s:{i}" for i in range(500)]) == [b"v"] * 500
        assert info(q)["prefixes_leaving"] == "s:"
