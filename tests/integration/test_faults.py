"""What a machine does to a server: full disks, killed processes, cut connections, clocks that step, no
process and no memory to be had. Nothing crashes, nothing that was confirmed is lost, the log says why."""

import os
import random
import resource
import signal
import threading
import time

import pytest
import redis

from helpers import (
    assert_stored,
    info,
    is_error,
    is_in_sync,
    late_by,
    load,
    noise,
    now_ms,
    reply,
    texts,
    wait_for,
    wait_for_replica,
)
from proxy import Proxy

# Ignored signals stay ignored: a file at its limit is then an error of write(), as on a full disk.
NO_SIGNAL_FOR_LARGE_FILES = ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"]


def fill(r, count=20_000):
    """Records whose file is larger than any log."""
    stored = load(r, texts(count))
    stored |= load(r, [noise(900, i) for i in range(500)], key=b"noise:%d")
    r.execute_command("CKV", "TRAIN")
    return stored


def saved(r):
    """The outcome of the last BGSAVE, when it is over."""
    wait_for(lambda: r.info("persistence")["rdb_bgsave_in_progress"] == 0, what="BGSAVE")
    return r.info("persistence")["rdb_last_bgsave_status"]


def child_of(server):
    def find():
        with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as f:
            return f.read().split()

    return int(wait_for(find, what="a child process")[0])


def limit_files(server, size):
    """No file of the server may become larger than `size` bytes; -1: as large as it likes."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, -1))


# --- a full disk ---


@pytest.fixture
def full_disk(own_server):
    return own_server({"ckv.maps": 16, "stop-writes-on-bgsave-error": "no"}, prefix=NO_SIGNAL_FOR_LARGE_FILES)


def test_full_disk_during_bgsave(full_disk):
    server = full_disk
    with server.client() as r:
        stored = fill(r)
        r.execute_command("SAVE")
        more = load(r, texts(1000, seed=2), first=100_000)
        limit_files(server, 100_000)
        r.execute_command("BGSAVE")
        assert saved(r) == "err"
        assert "Background saving error" in server.log()
        assert_stored(r, stored | more)
        # The file of the save before is still there, and whole.
        limit_files(server, -1)
    server.kill()
    server.start()
    with server.client() as r:
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored)
        load(r, list(more.values()), first=100_000)
        r.execute_command("BGSAVE")
        assert saved(r) == "ok"
    server.kill()
    server.start()
    with server.client() as r:
        assert_stored(r, stored | more)


def test_full_disk_during_save(full_disk):
    """The server itself saves, and what it was in the middle of must not show in anything later."""
    server = full_disk
    with server.client() as r:
        stored = fill(r)
        limit_files(server, 100_000)
        assert is_error(reply(r, "SAVE"))
        limit_files(server, -1)
        assert_stored(r, stored)
        assert r.config_get("rdbcompression") == [b"rdbcompression", b"yes"]
        # A payload is one that any server can read: plain records, not pages.
        payload = r.execute_command("DUMP", "ckv:3")
        count = r.execute_command("CDBSIZE")
        r.execute_command("DEL", "ckv:3")
        assert r.execute_command("CDBSIZE") < count
        assert r.execute_command("RESTORE", "ckv:3", 0, payload) == b"OK"
        assert_stored(r, stored)
        assert r.execute_command("SAVE") == b"OK"
    server.restart(save=False)
    with server.client() as r:
        assert_stored(r, stored)


def test_full_disk_under_the_aof(own_server):
    """With appendfsync always a write that can't be logged ends the server, as Redis does it: what was
    confirmed is there after the restart."""
    server = own_server({"appendonly": "yes", "appendfsync": "everysec"}, prefix=NO_SIGNAL_FOR_LARGE_FILES)
    with server.client() as r:
        stored = load(r, texts(2000))
        limit_files(server, 300_000)
        refused = 0
        for i, value in enumerate(texts(6000, seed=3), 50_000):
            key = b"KEY:%d" % i
            answer = reply(r, "CSET", key, value)
            if answer == b"OK":
                stored[key] = value
            else:
                assert "MISCONF" in str(answer), answer
                refused += 1
                break
        assert refused
        assert_stored(r, stored)
        limit_files(server, -1)
        wait_for(lambda: reply(r, "CSET", "again", "v") == b"OK", what="writing again")
    server.restart(save=False)
    with server.client() as r:
        assert r.execute_command("CGET", "again") == b"v"
        assert_stored(r, stored)


# --- killed processes ---

NEVER_DONE_US = 60_000_000  # of each map: the child is killed first, however long that takes


def test_the_saving_child_is_killed(own_server):
    server = own_server({"ckv.maps": 16, "rdb-key-save-delay": NEVER_DONE_US, "stop-writes-on-bgsave-error": "no"})
    with server.client() as r:
        stored = fill(r)
        r.execute_command("BGSAVE")
        os.kill(child_of(server), signal.SIGKILL)
        assert saved(r) == "err"
        assert "terminated by signal 9" in server.log()
        assert_stored(r, stored)
        stored |= load(r, texts(500, seed=2), first=100_000)
        r.execute_command("CONFIG", "SET", "rdb-key-save-delay", 0)
        r.execute_command("BGSAVE")
        assert saved(r) == "ok"
    server.kill()
    server.start()
    with server.client() as r:
        assert_stored(r, stored)


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("victim", ["child", "server"])
def test_killed_during_an_aof_rewrite(own_server, preamble, victim):
    """Whatever was confirmed is in the file, before, during and after the rewrite."""
    server = own_server({
        "ckv.maps": 16, "appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": preamble,
        "rdb-key-save-delay": NEVER_DONE_US,
    })  # fmt: skip
    with server.client() as r:
        stored = load(r, texts(5000), ttl=10_000)
        gone = list(stored)[:100]
        r.execute_command("BGREWRITEAOF")
        child = child_of(server)
        stored |= load(r, texts(300, seed=2), first=100_000)
        assert r.execute_command("CDEL", *gone) == len(gone)
        for key in gone:
            del stored[key]
        if victim == "child":
            os.kill(child, signal.SIGKILL)
            wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, what="the end of the rewrite")
            assert r.info("persistence")["aof_last_bgrewrite_status"] == "err"
            stored |= load(r, texts(100, seed=3), first=200_000)
    server.kill()
    if victim == "server":
        os.kill(child, signal.SIGKILL)  # or it would outlive the test
    server.config["rdb-key-save-delay"] = 0
    server.start()
    with server.client() as r:
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored)
        r.execute_command("BGREWRITEAOF")
        wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, what="a rewrite")
        assert r.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    server.kill()
    server.start()
    with server.client() as r:
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored)


# --- a replica that is cut off ---


@pytest.fixture
def cut_off(own_server):
    """A primary, a replica, and the proxy between them."""
    primary = own_server({"ckv.train-after": "64kb", "repl-backlog-size": "64kb", "repl-timeout": 60})
    proxy = Proxy(primary.port)
    replica = own_server({"replicaof": f"127.0.0.1 {proxy.port}"})
    yield primary, replica, proxy
    proxy.close()


def in_touch(primary, replica):
    with primary.client() as p, replica.client() as r:
        wait_for(lambda: is_in_sync(r), what="the link")
        p.execute_command("CSET", "the last", str(time.time()))
        last = p.execute_command("CGET", "the last")
        wait_for(lambda: r.execute_command("CGET", "the last") == last, what="the replica")


@pytest.mark.parametrize("count", [50, 5000], ids=["partial", "full"])
def test_a_replica_cut_off_and_back(cut_off, count):
    """It goes on where it was, or starts anew where the backlog is too short for that."""
    primary, replica, proxy = cut_off
    with primary.client() as p, replica.client() as r:
        stored = load(p, texts(3000))
        in_touch(primary, replica)
        before = p.info("stats")["sync_full"]
        for round in range(3):
            proxy.cut()
            wait_for(lambda: r.info("replication")["master_link_status"] == "down", what="the cut")
            stored |= load(p, texts(count, seed=round), first=10_000 * round, ttl=1000)
            gone = list(stored)[round :: 40]
            p.execute_command("CDEL", *gone)
            for key in gone:
                del stored[key]
            assert r.execute_command("CDBSIZE") > 0
            proxy.mend()
            in_touch(primary, replica)
            assert_stored(r, stored)
            assert r.execute_command("CDBSIZE") == p.execute_command("CDBSIZE") == len(stored) + 1
        assert p.info("stats")["sync_full"] - before == (3 if count == 5000 else 0)


def leaves_primary(r):
    try:
        return r.execute_command("REPLICAOF", "NO", "ONE")
    except redis.exceptions.BusyLoadingError:  # it loads what it has been sent
        return False


def test_a_replica_cut_off_in_the_middle_of_a_sync(cut_off):
    """Cut at any place of the file that it is being sent: it tries again, and keeps nothing half."""
    primary, replica, proxy = cut_off
    with primary.client() as p, replica.client() as r:
        stored = load(p, texts(20_000)) | load(p, [noise(900, i) for i in range(3000)], key=b"noise:%d")
        in_touch(primary, replica)
        p.execute_command("CONFIG", "SET", "rdb-key-save-delay", 200)
        for pause in (0.0, 0.05, 0.1, 0.2):
            wait_for(lambda: leaves_primary(r))
            r.execute_command("FLUSHALL")
            r.execute_command("REPLICAOF", "127.0.0.1", proxy.port)
            time.sleep(pause)
            proxy.cut()
            time.sleep(0.05)
            proxy.mend()
        p.execute_command("CONFIG", "SET", "rdb-key-save-delay", 0)
        in_touch(primary, replica)
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored) + 1


# --- the clock, and processes that can't be had ---


@pytest.fixture
def faulty(own_server, faults):
    """A server and what it suffers from."""
    return own_server({"stop-writes-on-bgsave-error": "no", "ckv.maps": 16}, env=faults.env), faults


def server_ms(r):
    seconds, micros = r.execute_command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


DAY = 86_400


def test_the_clock_steps_forward(faulty):
    server, faults = faulty
    with server.client() as r:
        lasting = load(r, texts(2000))
        long_lived = load(r, texts(2000, seed=2), first=10_000, ttl=30 * DAY)
        short = load(r, texts(2000, seed=3), first=20_000, ttl=3600)
        faults.set(seconds=DAY)
        wait_for(lambda: server_ms(r) > now_ms() + DAY * 1000 - 10_000, what="that Valkey looks at the clock, as it does a thousand times a second")
        assert r.execute_command("CMGET", *short) == [None] * len(short)
        wait_for(lambda: info(r)["records"] == len(lasting) + len(long_lived), what="active expiry")
        assert_stored(r, lasting | long_lived)
        ttl = r.execute_command("CTTL", next(iter(long_lived)))
        assert 29 * DAY - 60 - 30 * DAY // 1000 <= ttl <= 29 * DAY + 60


def test_a_replica_whose_clock_is_ahead_forgets_no_times(own_server, faulty):
    """What has expired by its own clock is the primary's to delete, and comes back when the clock is right."""
    primary = own_server({"ckv.maps": 16})
    replica, faults = faulty
    with primary.client() as r, replica.client() as q:
        stored = load(r, texts(300), ttl=3600)
        q.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        wait_for(lambda: is_in_sync(q))
        time.sleep(0.3)
        faults.set(seconds=DAY)
        time.sleep(0.3)
        # The pages that they are in are written to, records of all ages come and go, some keep their expiry.
        stored |= load(r, texts(300), first=1000, ttl=7200)
        load(r, texts(300), first=2000, ttl=3 * DAY)
        r.execute_command("CDEL", *[f"KEY:{i}" for i in range(2000, 2300)])
        for i in range(0, 300, 3):
            stored[b"KEY:%d" % i] += b"!"
            r.execute_command("CAPPEND", f"KEY:{i}", "!")
            r.execute_command("CEXPIRE", f"KEY:{i}", 1800)
        wait_for_replica(r)
        q.execute_command("CKV", "OPTIMIZE")
        assert q.execute_command("CGET", "KEY:1") is None and q.execute_command("CDBSIZE") == 600
        faults.set(seconds=0)
        wait_for(lambda: q.execute_command("CGET", "KEY:1") is not None)
        assert_stored(q, stored)
        ttls = [q.execute_command("CTTL", key) for key in stored]
        assert min(ttls) > 1600 and max(ttls) <= 7200
    primary.close()


def test_the_clock_steps_back_and_forth(faulty):
    """No record expires before its time by any of the clocks that it has lived under."""
    server, faults = faulty
    rng = random.Random(5)
    with server.client() as r:
        stored = load(r, texts(1000))
        at_ms = {}
        for round, seconds in enumerate([0, -DAY, DAY // 2, -30 * DAY, 0, -400 * DAY, 0]):
            faults.set(seconds=seconds)
            now = server_ms(r)
            for i in range(300):
                key = b"expiring:%d" % (1000 * round + i)
                at_ms[key] = now + rng.choice([500 * DAY, 1000 * DAY]) * 1000 + rng.randrange(DAY * 1000)
                assert r.execute_command("CSET", key, b"v%d" % i, "PXAT", at_ms[key]) == b"OK"
            for key, wanted in at_ms.items():
                got = r.execute_command("CPEXPIRETIME", key)
                # Two bytes reach as far as it is from the farthest that the clock was set back.
                assert wanted - late_by(1500 * DAY * 1000) <= got <= wanted, f"{key}: {got - wanted} ms after a step to {seconds}"
            assert_stored(r, stored)
            assert None not in r.execute_command("CMGET", *at_ms)
            r.execute_command("CKV", "OPTIMIZE")
        r.execute_command("SAVE")
    server.restart(save=False)
    with server.client() as r:
        assert_stored(r, stored)
        assert None not in r.execute_command("CMGET", *at_ms)
        for key, wanted in at_ms.items():
            assert wanted - late_by(1500 * DAY * 1000) <= r.execute_command("CPEXPIRETIME", key) <= wanted


def test_the_clock_is_set_back_while_a_timer_runs(faulty):
    """The server called it again and again, and nobody else, until the clock had caught up."""
    server, faults = faulty
    with server.client() as r:
        r.config_set("ckv.prefixes", "KEY:")
        for times in range(1, 40):  # it is set back whenever the server has looked at it so often
            faults.set(seconds=3600, times=times)
            time.sleep(0.25)
            assert r.ping()


def test_no_process_to_be_had(faulty):
    """fork() fails: BGSAVE and BGREWRITEAOF say so, and nothing else is the worse for it."""
    server, faults = faulty
    with server.client() as r:
        stored = fill(r, 3000)
        faults.set(no_fork=True)
        assert is_error(reply(r, "BGSAVE"))
        assert is_error(reply(r, "BGREWRITEAOF"))
        assert "fork" in server.log().lower()
        assert_stored(r, stored)
        payload = r.execute_command("DUMP", "ckv:3")
        assert r.execute_command("RESTORE", "ckv:3", 0, payload, "REPLACE") == b"OK"
        assert_stored(r, stored)
        faults.set(no_fork=False)
        r.execute_command("BGSAVE")
        assert saved(r) == "ok"
    server.kill()
    server.start()
    with server.client() as r:
        assert_stored(r, stored)


# --- memory ---


def test_maxmemory_lowered_below_use(own_server):
    with own_server({"maxmemory-policy": "noeviction"}).client() as r:
        stored = load(r, texts(20_000))
        used = r.info("memory")["used_memory"]
        r.execute_command("CONFIG", "SET", "maxmemory", used // 2)
        for command in (("CSET", "new", "v"), ("CSET", b"KEY:1", "v"), ("CMSET", "a", "1", "b", "2"), ("CAPPEND", b"KEY:1", "x"),
                        ("CINCR", "n"), ("CSETEX", "e", 10, "v"), ("CMSETEX", 1, "m", "v")):  # fmt: skip
            assert isinstance(reply(r, *command), redis.exceptions.OutOfMemoryError), command
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored)
        # What frees memory is allowed, and so is what changes nothing of it.
        gone = list(stored)[:15_000]
        assert r.execute_command("CEXPIRE", gone[0], 1000) == 1
        assert r.execute_command("CDEL", *gone) == len(gone)
        for key in gone:
            del stored[key]
        assert_stored(r, stored)
        r.execute_command("CONFIG", "SET", "maxmemory", 0)
        assert r.execute_command("CSET", "new", "v") == b"OK"
        assert_stored(r, stored)


def test_maxmemory_lowered_under_load(own_server):
    """Writers at full speed while the limit goes up and down: what was confirmed is there."""
    server = own_server({"maxmemory-policy": "noeviction", "ckv.train-after": "64kb"})
    stored, confirmed, refused, failures, stop = {}, [], [], [], threading.Event()

    def write():
        with server.client() as r:
            i = 0
            while not stop.is_set():
                key, value = b"KEY:%d" % (i % 30_000), b"value %d of a record" % i
                i += 1
                try:
                    r.execute_command("CSET", key, value)
                    stored[key] = value
                    confirmed.append(key)
                except redis.exceptions.OutOfMemoryError:
                    refused.append(key)
                except redis.ResponseError as error:
                    failures.append(error)
                    return

    with server.client() as r:
        used = r.info("memory")["used_memory"]
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(10):
            for limit, progress in ((0, confirmed), (used // 2, refused)):
                before = len(progress)
                r.execute_command("CONFIG", "SET", "maxmemory", limit)
                wait_for(lambda: failures or len(progress) >= before + 200)
        stop.set()
        writer.join()
        r.execute_command("CONFIG", "SET", "maxmemory", 0)
        assert not failures and len(stored) > 1000 and refused
        assert_stored(r, stored)
