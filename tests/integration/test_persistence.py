"""SAVE, BGSAVE, restarts; and RDB files that somebody or something has damaged."""

import gzip
import os
import random
import signal
import time

import pytest
import redis

from damage import exercise, flipped
from helpers import assert_stored, expiries, forget_exact_times, info, is_error, late_by, load, map_keys, noise, now_ms, reply, texts, wait_for
from server import ROOT, ServerFailed


def varied(r, count=4000):
    """Fills the server with records of all kinds; returns {key: value} and {key: expiry in ms}."""
    stored = load(r, texts(count))
    stored |= load(r, texts(count, seed=2), first=count, ttl=100_000)
    odd = {
        b"": b"the empty key",
        b"empty value": b"",
        b"\x00\x01\xff": bytes(range(256)),
        b"k" * 3000: b"a long key",
        b"large": noise(300_000),
        b"larger": b"abc" * 1_000_000,
    }
    odd |= {b"size:%d" % n: noise(n) for n in range(0, 6000, 37)}
    for key, value in odd.items():
        assert r.execute_command("CSET", key, value) == b"OK"
    r.execute_command("CEXPIRE", "large", 50_000)
    r.execute_command("CEXPIRE", "size:370", 10_000_000)
    stored |= odd
    forget_exact_times(r)
    return stored, expiries(r, stored)


def bgsave(r):
    assert reply(r, "BGSAVE").startswith(b"Background")
    wait_for(lambda: r.info("persistence")["rdb_bgsave_in_progress"] == 0, what="BGSAVE")
    assert r.info("persistence")["rdb_last_bgsave_status"] == "ok"


@pytest.mark.parametrize("how", ["SAVE", "BGSAVE", "SHUTDOWN SAVE"])
@pytest.mark.parametrize("trained", [False, True], ids=["untrained", "trained"])
def test_everything_comes_back(own_server, how, trained):
    server = own_server({"ckv.train-after": "64kb"} if trained else {"ckv.train-after": "1gb"})
    with server.client() as r:
        stored, times = varied(r)
        if trained:
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")
            assert info(r)["dictionaries"] >= 1
        else:
            assert info(r)["dictionaries"] == 0
        before = info(r)
        if how == "SAVE":
            r.execute_command("SAVE")
        elif how == "BGSAVE":
            bgsave(r)
    server.restart(save=how == "SHUTDOWN SAVE")
    with server.client() as r:
        assert_stored(r, stored, batch=100)
        assert expiries(r, stored) == times
        after = info(r)
        for field in ("records", "records_with_expiry", "raw_key_bytes", "raw_value_bytes", "maps"):
            assert after[field] == before[field], field
        assert r.execute_command("CDBSIZE") == len(stored)
        if trained:
            assert after["dictionaries"] >= 1
            assert after["page_bytes"] <= before["page_bytes"] * 1.05


def test_a_second_save_and_restart(own_server):
    """What was loaded is saved and loaded again, changed in between."""
    server = own_server({"ckv.train-after": "64kb"})
    with server.client() as r:
        stored, _ = varied(r)
    for round in range(3):
        server.restart()
        with server.client() as r:
            assert_stored(r, stored, batch=100)
            stored |= load(r, texts(500, seed=round + 10), first=round * 700)
            gone = random.Random(round).sample(sorted(stored), 300)
            assert r.execute_command("CDEL", *gone) == 300
            for key in gone:
                del stored[key]
            assert r.execute_command("CDBSIZE") == len(stored)


def test_several_dictionaries(own_server):
    """Pages of more than one dictionary in one file."""
    server = own_server({"ckv.train-after": "1gb"})
    with server.client() as r:
        stored = load(r, texts(3000, seed=1))
        r.execute_command("CKV", "TRAIN")
        stored |= load(r, [b'{"id": %d, "name": "person %d", "active": true}' % (i, i * 7) for i in range(3000)],
                       key=b"json:%d")
        r.execute_command("CKV", "TRAIN")
        stored |= load(r, [b"2024-01-%02d 12:00:00 GET /index/%d HTTP/1.1 200" % (i % 28 + 1, i) for i in range(3000)],
                       key=b"log:%d")
        r.execute_command("CKV", "TRAIN")
        assert info(r)["trainings"] == 3
        r.execute_command("SAVE")
    server.restart(save=False)
    with server.client() as r:
        assert_stored(r, stored)
        assert info(r)["dictionaries"] >= 1
        r.execute_command("CKV", "OPTIMIZE")
        assert_stored(r, stored)
    server.restart()
    with server.client() as r:
        assert_stored(r, stored)


def test_several_databases(own_server):
    server = own_server()
    stored = {}
    for db in (0, 3, 15):
        with server.client(db=db) as r:
            stored[db] = load(r, texts(1000, seed=db), first=db)
    server.restart()
    for db in range(16):
        with server.client(db=db) as r:
            assert r.execute_command("CDBSIZE") == len(stored.get(db, ()))
            assert_stored(r, stored.get(db, {}))


def test_beside_native_keys(own_server):
    server = own_server()
    with server.client() as r:
        stored = load(r, texts(500))
        r.execute_command("SET", "string", "s")
        r.execute_command("RPUSH", "list", *range(100))
        r.execute_command("HSET", "hash", "f", "v")
    server.restart()
    with server.client() as r:
        assert_stored(r, stored)
        assert r.execute_command("GET", "string") == b"s"
        assert r.execute_command("LLEN", "list") == 100
        assert r.execute_command("HGET", "hash", "f") == b"v"


def test_expires_while_the_server_is_down(own_server):
    server = own_server()
    with server.client() as r:
        stored = load(r, texts(1000))
        gone = load(r, texts(1000), first=10_000)
        pipe = r.pipeline(transaction=False)
        for key in gone:
            pipe.execute_command("CPEXPIRE", key, 300)
        pipe.execute()
        r.execute_command("SAVE")
    server.stop()
    time.sleep(0.4)
    server.start()
    with server.client() as r:
        assert r.execute_command("CMGET", *gone) == [None] * len(gone)
        assert_stored(r, stored)


def test_expiries_stay_exact_over_many_restarts(own_server):
    server = own_server()
    ttls = [8_001, 59_999, 3_600_000, 86_400_000, 10_000_000_000]
    with server.client() as r:
        base = now_ms()
        for i, ttl in enumerate(ttls):
            r.execute_command("CSET", f"user:1{i:02}", "v", "PXAT", base + ttl)
    for _ in range(4):
        server.restart()
        with server.client() as r:
            for i, ttl in enumerate(ttls):
                at = r.execute_command("CPEXPIRETIME", f"user:1{i:02}")
                if at != -2:
                    assert base + ttl - late_by(ttl) <= at <= base + ttl


def process_state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


def stopped_saving(r, server):
    """The child of a BGSAVE, in the middle of which it stands still. Again if it was faster."""

    def stopped():
        if reply(r, "BGSAVE") != b"Background saving started":
            return None
        with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as f:
            children = f.read().split()
        try:
            child = int(children[0])
            os.kill(child, signal.SIGSTOP)
            wait_for(lambda: process_state(child) in "TZX")
            return child if process_state(child) == "T" else None
        except (IndexError, FileNotFoundError, ProcessLookupError):
            return None  # it has ended

    return wait_for(stopped, what="a child that is in time")


def test_bgsave_is_a_snapshot(own_server):
    """What is written while the child saves is not in the file."""
    server = own_server({"ckv.train-after": "64kb", "rdb-key-save-delay": 2000})  # us for each of the maps: 2 s
    with server.client() as r:
        stored = load(r, texts(20_000))
        r.execute_command("CKV", "TRAIN")
        child = stopped_saving(r, server)
        try:
            for n in range(12):
                load(r, texts(500, seed=100 + n), first=n * 400)
                r.execute_command("CDEL", *[b"KEY:%d" % (n * 50 + i) for i in range(50)])
                if n % 10 == 5:
                    r.execute_command("CKV", "TRAIN")
            assert r.info("persistence")["rdb_bgsave_in_progress"] == 1
        finally:
            os.kill(child, signal.SIGCONT)
        wait_for(lambda: r.info("persistence")["rdb_bgsave_in_progress"] == 0, what="BGSAVE")
    server.kill()
    server.start()
    with server.client() as r:
        assert r.execute_command("CDBSIZE") == len(stored)
        assert_stored(r, stored)


def test_debug_reload(own_server):
    with own_server().client() as r:
        stored, times = varied(r)
        r.execute_command("CKV", "TRAIN")
        assert r.execute_command("DEBUG", "RELOAD") == b"OK"
        assert_stored(r, stored, batch=100)
        assert expiries(r, stored) == times


def test_nothing_stored(own_server):
    server = own_server()
    with server.client() as r:
        r.execute_command("CSET", "k", "v")
        r.execute_command("CDEL", "k")
    server.restart()
    with server.client() as r:
        assert r.execute_command("CDBSIZE") == 0
        assert map_keys(r) == []


def test_a_server_without_the_module_refuses_the_file(own_server):
    server = own_server()
    with server.client() as r:
        stored = load(r, texts(100))
        r.execute_command("SAVE")
    server.stop()
    server.module = False
    with pytest.raises(ServerFailed, match="(?i)module"):
        server.start()
    server.check_log()
    server.module = True
    server.start()
    with server.client() as r:
        assert_stored(r, stored)


# --- damaged files ---


@pytest.fixture
def saved(own_server):
    """A stopped server with a small RDB file of everything: server, the file's bytes, the records."""
    server = own_server({"ckv.train-after": "64kb", "ckv.maps": 4})
    with server.client() as r:
        stored = load(r, texts(1200))
        stored |= load(r, texts(300, seed=2), first=10_000, ttl=100_000)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        for key, value in {b"large": noise(3000), b"larger": noise(9000), b"": b"", b"\x00": b"\x00"}.items():
            r.execute_command("CSET", key, value)
            stored[key] = value
        r.execute_command("SAVE")
    server.stop()
    with open(server.rdb_path, "rb") as f:
        return server, f.read(), stored


def start_with(server, data):
    """Starts on `data`; returns whether it came up. A crash is a failure, a refusal has a log line."""
    with open(server.rdb_path, "wb") as f:
        f.write(data)
    try:
        server.start()
    except ServerFailed as failed:
        # Redis hands a file that it cannot load to its own checker and ends with that one's verdict, which
        # may be 0: what a module's bytes mean the checker does not know.
        assert failed.returncode is not None and failed.returncode >= 0, f"ended by a signal\n{failed.log}"
        # "can't load": the bit was in the module's name, which the server looks for.
        words = ("error", "corrupt", "wrong", "fatal", "bad", "short read", "can't load")
        assert any(word in failed.log.lower() for word in words), failed.log
        server.check_log()
        return False
    except redis.TimeoutError:
        # That checker never ends when a file is cut between two parts of what a module has written, a map or
        # auxiliary data; of the latter's end only the server knows that it is missing.
        log = server.log()
        assert "a map is damaged" in log or "Unexpected EOF reading RDB file" in log, log
        assert "aborting now" in log, log
        server.kill()
        return False
    return True


def test_a_file_cut_short(saved):
    server, data, stored = saved
    rng = random.Random(3)
    cuts = {1, 5, 9, 20, len(data) - 1, len(data) - 8, len(data) - 9, len(data) // 2}
    cuts |= {rng.randrange(10, len(data)) for _ in range(25)}
    for cut in sorted(cuts):
        assert not start_with(server, data[:cut]), f"it started with {cut} of {len(data)} bytes"
    assert start_with(server, data)
    with server.client() as r:
        assert_stored(r, stored)


def test_a_flipped_bit_is_found_by_the_checksum(saved):
    server, data, stored = saved
    rng = random.Random(4)
    for _ in range(25):
        # The first nine bytes are the file's own header: "REDIS" and a version.
        assert not start_with(server, flipped(rng, data, 9, len(data) - 8, most=1))
    assert start_with(server, data)
    with server.client() as r:
        assert_stored(r, stored)


def test_what_damage_hides_is_not_waited_for(own_server):
    """A file in which one bit was wrong: keys that are written anew stand there twice then, and only one is found."""
    server = own_server({"ckv.maps": 4, "rdbchecksum": "no"})
    server.stop()
    with gzip.open(os.path.join(ROOT, "tests", "golden", "damaged.rdb.gz")) as packed, open(server.rdb_path, "wb") as f:
        f.write(packed.read())
    server.start()
    with server.client() as r:
        load(r, [noise(300, i) for i in range(1200)])
        r.execute_command("CKV", "OPTIMIZE")
        assert info(r)["young_records"] > 0
        r.execute_command("FLUSHALL")
        assert info(r)["young_records"] == 0


def test_how_long_a_damaged_value_is(own_server):
    """Nobody can tell: that is the reply, and INFO's keysizes leave it out."""
    server = own_server({"ckv.prefixes": '"*"', "rdbchecksum": "no"})
    with server.client() as r:
        r.mset({f"name:{i}": f"some value {i}" for i in range(10, 50)})
        r.execute_command("SAVE")
    server.stop()
    with open(server.rdb_path, "rb") as f:
        data = f.read()
    as_it_is, of_a_dictionary = b"\xffsome value 30", b"\0some value 30"
    assert data.count(as_it_is) == 1
    assert start_with(server, data.replace(as_it_is, of_a_dictionary))  # and there is none
    with server.client() as r:
        for command in ["GET"], ["STRLEN"], ["APPEND", "x"], ["APPEND", ""], ["SETRANGE", 3, "x"], ["SETRANGE", 3, ""]:
            assert is_error(reply(r, command[0], "name:30", *command[1:]), "damaged"), command
        for condition in "IFEQ", "IFNE":
            assert is_error(reply(r, "CDELEX", "name:30", condition, "some value"), "damaged")
            assert is_error(reply(r, "CSET", "name:30", "x", condition, "some value"), "damaged")
        keysizes = r.info("keysizes")
        assert keysizes in ({}, {"db0_distrib_strings_sizes": {"8": 39}})
        assert r.strlen("name:31") == len("some value 31") and r.dbsize() == 40


ROUNDS = 60


def test_flipped_bits_without_a_checksum(saved):
    """Nothing but ckv's own checks stands between the file and the memory: an error, or sane maps."""
    server, data, stored = saved
    server.config["rdbchecksum"] = "no"
    first = data.index(b"ckv")  # the module's part of the file; what is before is Redis' own
    rng = random.Random(int(os.environ.get("CKV_SEED", "5")))
    started = 0
    for round in range(ROUNDS):
        bad = flipped(rng, data, first, len(data) - 9)
        try:
            if not start_with(server, bad):
                continue
            started += 1
            with server.client() as r:
                exercise(r, stored, round)
            server.stop()
        except (AssertionError, redis.ConnectionError):
            # Kept, so that it can be loaded again under a debugger: rdbchecksum no.
            kept = os.path.join(ROOT, "build", "damaged.rdb")
            with open(kept, "wb") as f:
                f.write(bad)
            server.check_log()
            raise AssertionError(f"round {round}: the server did not survive {kept}")
    # Some of it is found, and with some of it, as within a value, the server has to live.
    assert 0 < started < ROUNDS
