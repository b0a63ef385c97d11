"""Keys under prefixes and the append-only file: what comes back after a crash is what was there, whatever the file began with."""

import glob
import os
import random
import re
import shutil
import time

import pytest

from helpers import info, is_in_sync, late_by, reply, rewrite_aof, wait_for, wait_for_replica
from loading import LOADS_SLOWLY, start_and_send, write_what_loads_slowly

ROUNDS = int(os.environ.get("CKV_AOF_ROUNDS", 4))
ALWAYS = {"appendonly": "yes", "appendfsync": "always"}
KEYS = [b"c:%d" % i for i in range(12)] + [b"n:%d" % i for i in range(3)]


def random_command(rng):
    """One that a server answers the same way whenever it has the same keys."""
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    value = rng.choice([b"a text of some words", b"17", b"", rng.randbytes(9), b"x" * 300])
    return rng.choice(
        [
            ("SET", key, value),
            ("SET", key, value, "EX", rng.randint(1000, 100_000)),
            ("SET", key, value, "KEEPTTL"),
            ("MSET", key, value, other, b"both"),
            ("DEL", key, other),
            ("INCR", key),
            ("INCRBYFLOAT", key, "1.5"),
            ("APPEND", key, value),
            ("SETRANGE", key, rng.randint(0, 20), b"range"),
            ("GETDEL", key),
            ("GETEX", key, "EX", rng.randint(1000, 100_000)),
            ("EXPIRE", key, rng.randint(1000, 100_000)),
            ("PERSIST", key),
            ("SETBIT", key, rng.randint(0, 60), rng.randint(0, 1)),
            ("RENAME", key, other),
            ("COPY", key, other, "REPLACE"),
            ("BITOP", "NOT", key, other),
            ("LPUSH", key, value),
            ("HSET", key, b"f", value),
            ("PFADD", key, value),
            ("GETSET", key, value),
            ("SETNX", key, value),
            ("MSETNX", key, value, other, value),
            ("UNLINK", key),
            ("EVAL", "redis.call('set', KEYS[1], ARGV[1]) redis.call('setbit', KEYS[1], 3, 1) return redis.call('append', KEYS[1], 'z')", 1, key, value),
        ]
    )


EVENTS = [
    ("BGREWRITEAOF",),
    ("CONFIG", "SET", "aof-use-rdb-preamble", "yes"),
    ("CONFIG", "SET", "aof-use-rdb-preamble", "no"),
    ("CONFIG", "SET", "ckv.prefixes", "*"),
    ("CONFIG", "SET", "ckv.prefixes", "c:"),
    ("CONFIG", "SET", "ckv.prefixes", ""),
    ("DEBUG", "LOADAOF"),
    ("OBJECT", "ENCODING", "c:1"),
    ("DUMP", "c:2"),
    ("CONFIG", "SET", "appendonly", "no"),
    ("CONFIG", "SET", "appendonly", "yes"),
]


def held(server):
    """{key: (type, value, ms left)} of a server."""
    with server.client() as r:
        found = {}
        for key in KEYS:
            kind = r.execute_command("TYPE", key)
            if kind == b"none":
                continue
            payload = {b"string": ("GET",), b"list": ("LRANGE", 0, -1), b"hash": ("HGETALL",)}[kind]
            value = r.execute_command(payload[0], key, *payload[1:])
            found[key] = kind, value, r.execute_command("PTTL", key)
        return found


def assert_same(ours, theirs, what, slack_ms=60_000):
    assert ours.keys() == theirs.keys(), (what, ours.keys() ^ theirs.keys())
    for key in ours:
        assert ours[key][:2] == theirs[key][:2], (what, key, ours[key], theirs[key])
        (mine, other) = ours[key][2], theirs[key][2]
        assert (mine < 0) == (other < 0), (what, key, mine, other)
        assert abs(mine - other) <= slack_ms + late_by(max(other, 0)), (what, key, mine, other)


def settle(r):
    for field in ("aof_rewrite_in_progress", "aof_rewrite_scheduled"):
        wait_for(lambda field=field: r.info("persistence")[field] == 0, what=field)


def test_an_aof_that_is_loaded_while_another_is_written(own_server):
    """The one made strings of the server's own of what are records in the other, and the commands behind it did not find these."""
    server = own_server({"ckv.prefixes": "*", "appendonly": "yes", "appendfsync": "always"})
    with server.client() as r:
        r.mset({"w": "abc", "i": 5, "v": "q"})
        r.config_set("rdb-key-save-delay", 300_000)  # us
        rewrites = r.info("persistence")["aof_rewrites"]
        r.bgrewriteaof()
        r.execute_command("DEBUG", "LOADAOF")
        assert r.info("persistence")["aof_rewrite_in_progress"] == 1
        assert [r.append("w", "x"), r.incr("i"), r.getdel("v")] == [4, 6, b"q"]
        wait_for(lambda: r.info("persistence")["aof_rewrites"] == rewrites + 2, what="another rewrite")
        settle(r)
    server.kill()
    server.start()
    with server.client() as r:
        assert r.mget("w", "i", "v") == [b"abcx", b"6", None]


@pytest.mark.parametrize("asked", ("MEMORY USAGE k", "OBJECT ENCODING k", "DUMP k"))
def test_asked_about_what_has_expired(own_server, asked):
    """It was lent to the server, which found that it had expired; the AOF still had the record when the key was used again."""
    server = own_server({"ckv.prefixes": "*", "appendonly": "yes"})
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.set("k", "5", px=300)
        r.bgrewriteaof()
        wait_for(lambda: not r.info("persistence")["aof_rewrite_in_progress"], what="the rewrite")
        time.sleep(0.4)
        reply(r, *asked.split())
        assert r.incr("k") == 1
    server.restart()
    with server.client() as r:
        assert (r.get("k"), r.ttl("k")) == (b"1", -1)


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_what_was_written_is_there_after_a_crash(own_server, seed, preamble):
    rng = random.Random(seed * 2 + (preamble == "yes"))
    ours = own_server({**ALWAYS, "aof-use-rdb-preamble": preamble, "ckv.prefixes": '"*"'})
    model = own_server(module=False)
    for life in range(4):
        done = []
        with ours.client() as r, model.client() as m:
            for _ in range(rng.randint(20, 150)):
                if rng.random() < 0.08:
                    event = rng.choice(EVENTS)
                    if event[0] == "DEBUG":
                        settle(r)
                        if r.info("persistence")["aof_enabled"] == 0:
                            continue
                    done.append((event, reply(r, *event)))
                    continue
                multi = [random_command(rng) for _ in range(rng.randint(1, 4))]
                if rng.random() < 0.8:
                    multi = multi[:1]
                else:
                    multi = [("MULTI",), *multi, ("EXEC",)]
                for command in multi:
                    mine, other = reply(r, *command), reply(m, *command)
                    done.append((command, mine))
                    assert repr(mine) == repr(other), (command, done[-10:])
            # Only an AOF that is on has everything.
            settle(r)
            assert reply(r, "CONFIG", "SET", "appendonly", "yes") == b"OK"
            settle(r)
        before = held(ours)
        assert_same(before, held(model), done)
        ours.kill()
        ours.config["ckv.prefixes"] = rng.choice(['"*"', '"c:"', '""', '"n:"'])
        ours.start()
        assert_same(held(ours), before, (life, ours.config, done))


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_any_moment(own_server, seed, preamble):
    """A counter that the client saw is never lost, whichever way it is written."""
    rng = random.Random(seed)
    server = own_server({**ALWAYS, "aof-use-rdb-preamble": preamble, "ckv.prefixes": '"*"'})
    known = {}
    for life in range(5):
        with server.client() as r:
            for key, value in known.items():
                assert int(r.execute_command("GET", key)) == value, (key, life)
            for i in range(rng.randint(1, 120)):
                key = b"k:%d" % rng.randint(0, 5)
                if rng.random() < 0.1:
                    reply(r, "BGREWRITEAOF")
                if rng.random() < 0.2:
                    r.execute_command("GETBIT", key, 1)  # moves it out
                if rng.random() < 0.3:
                    replies = [r.execute_command(*c) for c in (("MULTI",), ("BITCOUNT", key), ("INCR", key), ("EXEC",))]
                    known[key] = replies[-1][1]
                else:
                    known[key] = r.execute_command("INCR", key)
        server.kill()
        server.start()


def test_a_preamble_loads_after_prefixes_were_dropped(own_server):
    """With other prefixes, or none, records stay within reach and change as before."""
    server = own_server({**ALWAYS, "aof-use-rdb-preamble": "yes", "ckv.prefixes": '"a: b:"'})
    with server.client() as r:
        for key in ("a:1", "a:2", "b:1", "b:2"):
            r.execute_command("SET", key, "1", "EX", 10_000)
        r.execute_command("BGREWRITEAOF")
        settle(r)
        r.execute_command("INCR", "a:1")
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "b:")
        r.execute_command("INCR", "a:1")
        r.execute_command("SETBIT", "a:2", 0, 1)
        r.execute_command("DEL", "b:2")
        r.execute_command("APPEND", "b:1", "0")
        r.execute_command("INCR", "b:1")
        r.execute_command("RENAME", "b:1", "a:3")
    for prefixes in ('""', '"z:"', '"*"', '"a:"'):
        server.kill()
        server.config["ckv.prefixes"] = prefixes
        server.start()
        with server.client() as r:
            assert r.execute_command("MGET", "a:1", "a:2", "b:1", "b:2", "a:3") == [b"3", b"\xb1", None, None, b"11"], prefixes
            assert r.execute_command("DBSIZE") == 3
            assert 9_000 < r.execute_command("TTL", "a:1") <= 10_000


@pytest.mark.parametrize("known", ["of the file", "since the file"])
def test_what_a_file_loads_is_the_same_under_any_setting(own_server, known):
    """A command that was served makes a record of what had been none, when the file is loaded, or a string of the server's
    own, whatever the setting is by then: what follows in the file relies on it."""
    of_file = "c: n:" if known == "of the file" else "c:"
    server = own_server({**ALWAYS, "aof-use-rdb-preamble": "yes", "ckv.prefixes": f'"{of_file}"', "ckv.move-cpu": 1})
    with server.client() as r:
        r.execute_command("SET", "c:0", "in the file")
        r.execute_command("BGREWRITEAOF")
        settle(r)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "c: n:")
        for key in ("n:1", "n:2", "n:3"):
            r.execute_command("SET", key, "1")
    added = ""
    for prefixes in ("c:", "c: n:", "", "z:", "n:", "", "*", "c:"):
        server.kill()
        server.config["ckv.prefixes"] = f'"{prefixes}"'
        server.start()
        with server.client() as r:
            assert r.execute_command("MGET", "n:1", "n:2") == [b"1" + added.encode()] * 2, prefixes
            assert r.execute_command("GETBIT", "n:3", 100 + len(added)) == 0
            assert r.execute_command("BITCOUNT", "n:3") == 3 + len(added), prefixes
            r.execute_command("APPEND", "n:1", "+")
            r.execute_command("MULTI")
            r.execute_command("APPEND", "n:2", "+")
            r.execute_command("EXEC")
            r.execute_command("SETBIT", "n:3", 100 + len(added), 1)
            added += "+"


def test_the_file_of_a_replica_loads(own_server):
    primary = own_server({"ckv.prefixes": '"*"'})
    with primary.client() as p:
        p.execute_command("SET", "k", "1", "EX", 1000)
        replica = own_server({**ALWAYS, "aof-use-rdb-preamble": "yes", "ckv.prefixes": '"*"', "replicaof": f"127.0.0.1 {primary.port}"})
        with replica.client() as r:
            wait_for(lambda: is_in_sync(r), what="the link")
            settle(r)
            for command in (("INCR", "k"), ("SETBIT", "k", 7, 0), ("INCR", "k"), ("SET", "m", "x"), ("MULTI",), ("APPEND", "m", "y"), ("SETRANGE", "m", 0, "z"), ("GETBIT", "m", 1), ("EXEC",), ("RENAME", "m", "o")):
                p.execute_command(*command)
            wait_for_replica(p)
            want = [p.execute_command("GET", k) for k in ("k", "m", "o")]
            assert [r.execute_command("GET", k) for k in ("k", "m", "o")] == want
        replica.kill()
        copy = own_server({**ALWAYS, "ckv.prefixes": '"*"'}, start=False)
        shutil.copytree(os.path.join(replica.dir, "appendonlydir"), os.path.join(copy.dir, "appendonlydir"))
        copy.start()
        with copy.client() as r:
            assert [r.execute_command("GET", k) for k in ("k", "m", "o")] == want
            assert 0 < r.execute_command("TTL", "k") <= 1000


def test_a_prefix_that_no_file_could_hold_is_refused(r):
    answer = reply(r, "CONFIG", "SET", "ckv.prefixes", b"a: \x00b:")
    assert "a prefix can't hold a zero byte" in str(answer)
    assert r.execute_command("CONFIG", "GET", "ckv.prefixes") == [b"ckv.prefixes", b""]


def test_waitaof_waits_for_what_is_served(own_server):
    server = own_server({"ckv.prefixes": "*", "appendonly": "yes", "appendfsync": "no"})
    with server.client() as r:
        if "unknown command" in str(reply(r, "WAITAOF", 0, 0, 1)):
            pytest.skip("the server has no WAITAOF")
        for i in range(20):
            r.config_set("appendonly", "no")  # the next file begins with the records that there are
            r.config_set("appendonly", "yes")
            for command in (("SET", "key", i), ("INCR", "counter"), ("DEL", "key"), ("LPUSH", "list", i)):
                r.execute_command(*command)
                assert r.execute_command("WAITAOF", 1, 0, 20) == [0, 0]
            wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0)
            r.incr("counter")
            assert r.execute_command("WAITAOF", 1, 0, 20) == [0, 0]
        r.config_set("appendfsync", "always")
        r.incr("counter")
        assert r.execute_command("WAITAOF", 1, 0, 0) == [1, 0]


@pytest.mark.parametrize("io_threads", (1, 4))
@pytest.mark.parametrize("ends", ("by a command", "in a transaction", "by itself"))
def test_what_a_pause_held_back_is_told_behind_what_it_needs(own_server, ends, io_threads):
    """Redis 7.2 runs it without asking anybody again: a record that has moved out for it is told of before. Where a thread has read
    UNPAUSE, it runs in the same moment."""
    server = own_server({"ckv.prefixes": "*", "io-threads": io_threads, **ALWAYS})
    with server.client() as r:
        reply(r, "CONFIG", "SET", "io-threads-always-active", "yes")  # which Valkey knows
        for i in range(9):
            r.set(f"k{i}", f"hello world {i}")
        rewrite_aof(r)
        held = [server.client() for _ in range(3)]
        commands = [("SETBIT", "k1", 1, 0), ("APPEND", "k2", "tail"), ("RENAME", "k3", "renamed")]
        r.execute_command("CLIENT", "PAUSE", 20_000 if ends == "by itself" else 600_000, "WRITE")
        r.getbit("k2", 1)
        connections = [client.connection_pool.get_connection() for client in held]
        for connection, command in zip(connections, commands):
            connection.send_command(*command)
        wait_for(lambda: r.info("clients")["blocked_clients"] == 3)
        if ends == "in a transaction":
            r.execute_command("MULTI"), r.execute_command("CLIENT", "UNPAUSE"), r.execute_command("EXEC")
        elif ends == "by a command":
            r.execute_command("CLIENT", "UNPAUSE")
        assert [connection.read_response() for connection in connections] == [1, 17, b"OK"]
        names = ["k0", "k1", "k2", "k3", "renamed"]
        before = r.mget(names)
        assert before == [b"hello world 0", b"(ello world 1", b"hello world 2tail", None, b"hello world 3"]
    server.kill()
    server.start()
    with server.client() as r:
        assert r.mget(names) == before


@pytest.mark.parametrize("when", ["before", "behind"])
def test_commands_on_maps_with_a_rewrite(own_server, when):
    """As the manual has it: before them one with a preamble, so that the AOF has maps, or any behind them."""
    server = own_server({"ckv.prefixes": "p:", "ckv.maps": 8, "aof-use-rdb-preamble": "no", **ALWAYS})
    names = [f"p:{i}00" for i in range(200)]
    with server.client() as r, server.client(db=1) as other:
        for name in names:
            r.set(name, name)
        if when == "before":
            r.config_set("aof-use-rdb-preamble", "yes")
            rewrite_aof(r)
        for name in names[::3]:
            r.append(name, " and more")
        stored = r.mget(names)
        r.execute_command("DEL", "ckv:0"), r.execute_command("RENAME", "ckv:1", "aside"), r.execute_command("MOVE", "ckv:2", 1)
        r.execute_command("COPY", "ckv:3", "ckv:3", "DB", 1), r.execute_command("PEXPIRE", "ckv:4", 1)
        wait_for(lambda: not r.exists("ckv:4"))
        if when == "behind":
            rewrite_aof(r)
        r.set("p:new", 1)
        before = r.mget(names), other.mget(names)
        assert 0 < other.execute_command("CDBSIZE") < r.execute_command("CDBSIZE") < 140
    server.kill()
    server.start()
    with server.client() as r, server.client(db=1) as other:
        assert before == (r.mget(names), other.mget(names)) and r.get("p:new") == b"1"
        r.rename("aside", "ckv:1")
        back = r.mget(names)
        assert back.count(None) < before[0].count(None) and all(now in (None, then) for now, then in zip(back, stored))


def aof_tail(server):
    """What an AOF has been told since it was rewritten."""
    with open(max(glob.glob(os.path.join(server.dir, "appendonlydir", "*.incr.aof"))), "rb") as f:
        return f.read()


@pytest.mark.parametrize("paused", (False, True))
def test_what_moves_out_is_told_of_its_databases_alone(own_server, paused):
    """All that have such a string: in a pause, and where the server does not tell who sends; else the sender's."""
    server = own_server({"ckv.prefixes": "*", "databases": 64, **ALWAYS})
    for db in (0, 3, 9, 40):
        with server.client(db) as r:
            r.set("key" if db in (3, 40) else "other", "value")
    with server.client(3) as r:
        rewrite_aof(r)
        if paused:
            r.execute_command("CLIENT", "PAUSE", 20000, "WRITE")
        assert r.getbit("key", 1) == 1
        r.execute_command("CLIENT", "UNPAUSE")
        r.getbit("key", 1)
        wait_for(lambda: b"CMOVEOUT" in aof_tail(server))
        r.rpush("list", "value")
        told = re.findall(rb"(SELECT|CMOVEOUT)\r\n\$\d\r\n(\w+)", aof_tail(server))
        everywhere = paused or r.info("server")["redis_version"].startswith("7.0")
        of_others = [(b"SELECT", b"40"), (b"CMOVEOUT", b"key"), (b"SELECT", b"3")] if everywhere else []
        assert told == [(b"SELECT", b"3"), (b"CMOVEOUT", b"key"), *of_others]
    server.kill()
    server.start()
    for db in (3, 40):
        with server.client(db) as r:
            r.set("key", "new") if db == 3 else r.append("key", "tail")
            assert r.get("key") == (b"new" if db == 3 else b"valuetail")




def test_a_rewrite_that_was_killed_has_changed_nothing(own_server):
    """What its status says is that of the one before."""
    server = own_server({"ckv.prefixes": "*", "auto-aof-rewrite-percentage": 0, "enable-protected-configs": "yes", **ALWAYS})
    with server.client() as r:
        for i in range(2000):
            r.set(f"k{i}", "AAAA")
        rewrite_aof(r)
        assert info(r)["records"] == 2000
        r.config_set("aof-use-rdb-preamble", "no")
        r.config_set("rdb-key-save-delay", 20000)
        r.bgrewriteaof()
        wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"])
        os.mkdir(os.path.join(server.dir, "folder"))
        r.config_set("dbfilename", "folder")  # where no file can be written
        assert "Errors trying to SHUTDOWN" in str(reply(r, "SHUTDOWN", "SAVE"))
        wait_for(lambda: not r.info("persistence")["aof_rewrite_in_progress"])
        r.config_set("rdb-key-save-delay", 0)
        r.append("k1", "BB"), r.setrange("k2", 2, "zz"), r.delete("k3"), r.expire("k4", 1000)
    server.kill()
    server.config["dbfilename"] = "dump.rdb"
    server.start()
    with server.client() as r:
        assert r.mget("k1", "k2", "k3") == [b"AAAABB", b"AAzz", None]
        assert r.ttl("k4") > 0


def test_what_is_sent_while_a_file_loads_moves_nothing(own_server):
    """It is refused, or WATCHes alone; but its records had left by then, and nobody could tell the AOF."""
    server = own_server(LOADS_SLOWLY)
    sent = ("GETBIT a 0", "SETBIT b 0 1", "RENAME c other", "WATCH d", "SORT list BY e*", "OBJECT FREQ f", "APPEND g x")
    with server.client() as r:
        for key in "abcdefg":
            r.set(key, 100, ex=100_000)
        write_what_loads_slowly(r)
    server.kill()
    s, said = start_and_send(server, sent)
    with s, server.client() as r:
        assert said.count(b"-LOADING") == len(sent) - 1
        assert [r.incr(key) for key in "abcdefg"] == [101] * 7
        before = r.mget("abcdefg")
    server.kill()
    server.config["key-load-delay"] = 0
    server.start()
    with server.client() as r:
        assert r.mget("abcdefg") == before
        assert all(r.ttl(key) > 0 for key in "abcdefg")


def test_what_is_watched_while_a_file_loads_expires(own_server):
    """EXEC asks the server, which is to have it when all is loaded."""
    server = own_server(LOADS_SLOWLY)
    with server.client() as r:
        write_what_loads_slowly(r)
        r.set("k", "v", px=3000)
        gone = time.time() + 3.1
    server.kill()
    s, _ = start_and_send(server, ("DEBUG SET-ACTIVE-EXPIRE 0", "WATCH k"))
    with s:
        time.sleep(max(0, gone - time.time()))
        s.sendall(b"MULTI\r\nPING\r\nEXEC\r\n")
        said = b""
        while said.count(b"\n") < 3:
            said += s.recv(1 << 16)
        assert said == b"+OK\r\n+QUEUED\r\n*-1\r\n"


def test_a_script_that_only_reads_what_has_moved_out_tells_it_once(own_server):
    """Each call told an AOF that begins with records of the move again, all of it kept until the script's end: 26 bytes a call and more."""
    server = own_server({"appendonly": "yes", "ckv.prefixes": "*"})
    with server.client() as r:
        r.set("k", "value")
        rewrite_aof(r)
        before = r.info("persistence")["aof_current_size"]
        r.eval("for i = 1, 1000 do redis.call('GETBIT', KEYS[1], 1) end return redis.call('SETBIT', KEYS[1], 9, 1)", 1, "k")
        wait_for(lambda: r.info("persistence")["aof_current_size"] > before)
        assert r.info("persistence")["aof_current_size"] < before + 1000
        value = r.get("k")
    server.kill()
    server.start()
    with server.client() as r:
        assert r.get("k") == value
