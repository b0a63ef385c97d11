"""MULTI and WATCH, scripts and functions, paused clients, a full server: as with strings."""

import threading
import time

import pytest

from helpers import PATIENCE_S, at_one_moment, is_error, is_in_sync, map_keys, reply, wait_for, wait_for_replica

# What changes a record that exists, and what comes of it does not matter here.
WRITES = [
    ("CSET", "k", "new"),
    ("CSET", "k", "new", "XX"),
    ("CMSET", "k", "new"),
    ("CMSETEX", 1, "k", "new", "EX", 100),
    ("CGETSET", "k", "new"),
    ("CSETEX", "k", 100, "new"),
    ("CPSETEX", "k", 100_000, "new"),
    ("CAPPEND", "k", "x"),
    ("CSETRANGE", "k", 0, "x"),
    ("CINCR", "k"),
    ("CINCRBYFLOAT", "k", "1.5"),
    ("CGETDEL", "k"),
    ("CGETEX", "k", "EX", 100),
    ("CEXPIRE", "k", 100),
    ("CPERSIST", "k"),
    ("CDEL", "k"),
    ("CUNLINK", "k"),
    ("CDELEX", "k", "IFEQ", "7"),
]
READS = [("CGET", "k"), ("CMGET", "k"), ("CEXISTS", "k"), ("CTTL", "k"), ("CSTRLEN", "k"), ("CGETRANGE", "k", 0, 1),
         ("CSCAN", "0"), ("CKEYS", "*"), ("CDBSIZE",)]


@pytest.fixture
def other(shared):
    with shared.client() as client:
        yield client


def watched(r):
    """WATCH k, as it is: 7, to expire."""
    r.execute_command("CSET", "k", "7", "EX", 1000)
    r.execute_command("WATCH", "k")
    r.execute_command("MULTI")
    assert r.execute_command("CGET", "k") == b"QUEUED"


def test_exec_runs_all_or_nothing_is_queued_wrong(r):
    r.execute_command("MULTI")
    for command in [("CSET", "a", "1"), ("CINCR", "a"), ("CMGET", "a", "b")]:
        assert r.execute_command(*command) == b"QUEUED"
    assert r.execute_command("EXEC") == [b"OK", 2, [b"2", None]]
    r.execute_command("MULTI")
    assert is_error(reply(r, "CSET", "a"), "wrong number of arguments")
    assert is_error(reply(r, "EXEC"), "Transaction discarded")
    r.execute_command("MULTI")
    r.execute_command("CSET", "a", "3")
    assert r.execute_command("DISCARD") == b"OK" and r.execute_command("CGET", "a") == b"2"


@pytest.mark.parametrize("command", WRITES, ids=lambda c: " ".join(map(str, c)))
def test_watch_sees_every_write(r, other, command):
    watched(r)
    other.execute_command(*command)
    assert r.execute_command("EXEC") is None


@pytest.mark.parametrize("command", READS, ids=lambda c: c[0])
def test_watch_does_not_mind_reads(r, other, command):
    watched(r)
    other.execute_command(*command)
    assert r.execute_command("EXEC") == [b"7"]


@pytest.mark.parametrize("command", ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC", "SWAPDB 0 9", "SWAPDB 9 0", "DEL {map}", "UNLINK {map}",
                                     "RENAME {map} aside", "MOVE {map} 7", "RESTORE {map} 0 {payload} REPLACE", "SET {map} v"])
def test_watch_sees_a_map_go(r, other, command):
    """With its database, or by its name."""
    r.execute_command("CSET", "k", "7", "EX", 1000)
    (name,) = map_keys(r)
    payload = r.execute_command("DUMP", name)
    watched(r)
    words = {"{map}": name, "{payload}": payload}
    other.execute_command(*[words.get(word, word) for word in command.split()])
    assert r.execute_command("EXEC") is None


@pytest.mark.parametrize("command", ["FLUSHALL", "FLUSHDB", "SWAPDB 0 9"])
@pytest.mark.parametrize("in_multi", [False, True])
def test_watch_sees_a_map_go_after_resetstat(r, other, command, in_multi):
    """Which forgets that somebody watches, on servers that only count commands."""
    watched(r)
    pipe = other.pipeline(transaction=in_multi)
    pipe.execute_command("CONFIG", "RESETSTAT")
    pipe.execute_command(*command.split())
    pipe.execute()
    assert r.execute_command("EXEC") is None


@pytest.mark.parametrize("command", ["FLUSHDB", "SWAPDB 0 9", "DEL ckv:0"])
def test_watch_of_what_is_not_there_does_not_mind(r, other, command):
    r.execute_command("CMSET", *[x for i in range(50) for x in (f"k:{i}", "v")])
    r.execute_command("WATCH", "none")
    r.execute_command("MULTI")
    r.execute_command("CGET", "none")
    other.execute_command(*command.split())
    assert r.execute_command("EXEC") == [None]


def test_watch_does_not_mind_a_swap_of_a_database_with_itself(r, other):
    watched(r)
    assert other.execute_command("SWAPDB", 0, 0) == b"OK"
    assert r.execute_command("EXEC") == [b"7"]


def test_watch_sees_what_a_swap_brings(r, other):
    with_nine = other.execute_command("SELECT", 9) and other
    with_nine.execute_command("CSET", "there", "v")
    r.execute_command("WATCH", "there")
    r.execute_command("MULTI")
    r.execute_command("CGET", "there")
    other.execute_command("SWAPDB", 0, 9)
    assert r.execute_command("EXEC") is None


def test_watch_sees_an_expiry_that_was_put_off(r, other):
    """It was known when the record was due first, and is known again from then on."""
    in_time = False
    while not in_time:
        began = time.monotonic()
        at_one_moment(r, ("CSET", "w", "1", "PX", "700"), ("CPEXPIRE", "w", "5300"))  # too far ahead to be known, for now
        told = time.monotonic()
        r.execute_command("WATCH", "w")
        in_time = time.monotonic() - began < 5.3
        time.sleep(max(0, told + 5.4 - time.monotonic()))
        r.execute_command("MULTI")
        r.execute_command("CGET", "w")
        answer = r.execute_command("EXEC")
    assert answer is None


@pytest.mark.parametrize("prefix", ["C", ""])
@pytest.mark.parametrize("how", ["written", "read", "expire"])
def test_watch_sees_the_expiry(r, prefix, how):
    rounds = 0
    while rounds < 3:
        r.execute_command(prefix + "SET", "w", "1", "PX", 50_000)
        began = time.monotonic()
        if how == "written":
            r.execute_command(prefix + "SET", "w", "1", "PX", 200)
        else:
            r.execute_command(prefix + "PEXPIRE", "w", 200)
        told = time.monotonic()  # from some time between the two on it has 200 ms
        r.execute_command("WATCH", "w")
        if how == "read":
            r.execute_command(prefix + "GET", "w")
        in_time = time.monotonic() - began < 0.2
        time.sleep(max(0, told + 0.21 + rounds / 2000 - time.monotonic()))
        r.execute_command("MULTI")
        r.execute_command(prefix + "INCR", "w")
        answer = r.execute_command("EXEC")
        # On a busy machine it may have expired before it was watched.
        assert answer is None or not in_time
        rounds += in_time


@pytest.mark.parametrize("prefix", ["C", ""])
def test_watch_of_what_had_expired_does_not_refuse(r, prefix):
    for i in range(20):
        r.execute_command(prefix + "SET", "w", "1", "PX", 5)
        time.sleep(0.007 + i / 5000)
        r.execute_command("WATCH", "w")
        r.execute_command("MULTI")
        r.execute_command(prefix + "INCR", "w")
        time.sleep(0.02)
        assert r.execute_command("EXEC") == [1]


def test_watch_does_not_mind_neighbours(r, other):
    r.execute_command("CSET", "KEY:1000", "v")
    r.execute_command("WATCH", "KEY:1000", "KEY:1001")
    for i in range(1002, 1100):
        other.execute_command("CSET", f"KEY:{i}", "v" * i)
    other.execute_command("CDEL", "KEY:1050")
    r.execute_command("MULTI")
    r.execute_command("CGET", "KEY:1000")
    assert r.execute_command("EXEC") == [b"v"]
    r.execute_command("WATCH", "KEY:1001")
    other.execute_command("CSET", "KEY:1001", "made")
    r.execute_command("MULTI")
    assert r.execute_command("EXEC") is None


# --- scripts ---


def test_scripts(r):
    script = """
        redis.call('CSET', KEYS[1], ARGV[1], 'EX', 100)
        local missing = redis.call('CGET', 'none')
        local bad = redis.pcall('CINCR', KEYS[1])
        return {redis.call('CGET', KEYS[1]), tostring(missing), bad['err'], redis.call('CTTL', KEYS[1])}
    """
    value, missing, error, ttl = r.execute_command("EVAL", script, 1, "k", "text")
    assert value == b"text" and missing == b"false" and b"not an integer" in error and ttl == 100
    assert is_error(reply(r, "EVAL", "return redis.call('CINCR', KEYS[1])", 1, "k"), "not an integer")


def test_read_only_scripts(r):
    r.execute_command("CSET", "k", "v")
    for read in ["CGET", "CMGET", "CEXISTS", "CTTL", "CSTRLEN"]:
        r.execute_command("EVAL_RO", f"return redis.call('{read}', KEYS[1])", 1, "k")
    for write in ["'CSET', KEYS[1], 'x'", "'CDEL', KEYS[1]", "'CGETDEL', KEYS[1]", "'CEXPIRE', KEYS[1], 1"]:
        assert is_error(reply(r, "EVAL_RO", f"return redis.call({write})", 1, "k"), "Write commands are not allowed")
        script = f"#!lua flags=no-writes\nreturn redis.call({write})"
        assert is_error(reply(r, "EVAL", script, 1, "k"), "Write commands are not allowed")
    assert r.execute_command("CGET", "k") == b"v"


def test_functions(r):
    library = """#!lua name=mylib
        redis.register_function('put', function(keys, args) return redis.call('CSET', keys[1], args[1]) end)
        redis.register_function{function_name='get', flags={'no-writes'},
                                callback=function(keys) return redis.call('CGET', keys[1]) end}
    """
    r.execute_command("FUNCTION", "LOAD", "REPLACE", library)
    assert r.execute_command("FCALL", "put", 1, "k", "v") == b"OK"
    assert r.execute_command("FCALL_RO", "get", 1, "k") == b"v"
    assert is_error(reply(r, "FCALL_RO", "put", 1, "k", "w"))
    r.execute_command("FUNCTION", "FLUSH")


def test_a_scripts_effects_are_replicated(own_server):
    server = own_server()
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}"})
    with server.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        r.execute_command("EVAL", "redis.call('CSET', KEYS[1], math.random(), 'PX', 50000)", 1, "k")
        r.execute_command("EVAL", "redis.call('CINCR', 'n') redis.call('CAPPEND', 'a', 'x') redis.call('SET', 's', 1)", 0)
        wait_for_replica(r)
        for command in [("CGET", "k"), ("CGET", "n"), ("CGET", "a"), ("GET", "s")]:
            assert q.execute_command(*command) == r.execute_command(*command) is not None
        assert abs(q.execute_command("CPEXPIRETIME", "k") - r.execute_command("CPEXPIRETIME", "k")) <= 52


# --- paused clients ---


def test_pause_holds_writes_and_not_reads(r, other, shared):
    r.execute_command("CSET", "k", "old")
    at_one_moment(r, ("CSET", "due", "v", "PX", 100), ("CLIENT", "PAUSE", 600_000, "WRITE"))
    done = threading.Event()

    def write():
        with shared.client() as w:
            w.execute_command("CSET", "k", "new")
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.4)
    assert not done.is_set() and other.execute_command("CGET", "k") == b"old"
    # It has expired, and stays where it is.
    assert other.execute_command("CGET", "due") is None and other.execute_command("CDBSIZE") == 2
    other.execute_command("CLIENT", "UNPAUSE")
    assert done.wait(60)
    writer.join()
    assert r.execute_command("CGET", "k") == b"new"
    wait_for(lambda: other.execute_command("CDBSIZE") == 1)


# --- a full server ---


def test_out_of_memory(r):
    r.execute_command("CSET", "k", "7")
    r.set("native", "7")
    try:
        r.config_set("maxmemory-policy", "noeviction")
        r.config_set("maxmemory", 1)
        expected = str(reply(r, "SET", "native", "8"))
        assert "OOM" in expected or "used memory > 'maxmemory'" in expected
        flags = {}
        for command in WRITES:
            flags[command[0]] = b"denyoom" in r.execute_command("COMMAND", "INFO", command[0])[0][2]
            if flags[command[0]]:
                assert str(reply(r, *command)) == expected, command
                assert r.execute_command("CGET", "k") == b"7"
        assert {c for c, denied in flags.items() if not denied} == {"CGETDEL", "CGETEX", "CEXPIRE", "CPERSIST", "CDEL",
                                                                    "CUNLINK", "CDELEX"}
        assert r.execute_command("CEXPIRE", "k", 100) == 1 and r.execute_command("CTTL", "k") == 100
        assert r.execute_command("CGETDEL", "k") == b"7"
    finally:
        r.config_set("maxmemory", 0)


# --- client-side caching ---


@pytest.fixture
def tracking(shared):
    """A RESP3 client that tracks, and the function that waits for its next invalidation."""
    with shared.socket() as s:
        f = s.makefile("rb")

        def read():
            line = f.readline()
            kind, rest = line[:1], line[1:-2]
            if kind in b"*>%~":
                return [read() for _ in range(int(rest) * (2 if kind == b"%" else 1))]
            if kind == b"$":
                return f.read(int(rest) + 2)[:-2]
            return None if kind == b"_" else rest

        def call(*words):
            s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return read()

        def invalidated(timeout=PATIENCE_S):
            s.settimeout(timeout)
            try:
                name, keys = read()
            except TimeoutError:
                return None
            finally:
                s.settimeout(PATIENCE_S)
            assert name == b"invalidate"
            return keys

        call(b"HELLO", b"3")
        yield call, invalidated


def test_tracking_invalidates_by_the_records_key(tracking, r):
    call, invalidated = tracking
    call(b"CLIENT", b"TRACKING", b"on")
    for command in [c for c in WRITES]:
        r.execute_command("CSET", "k", "7", "EX", 1000)
        call(b"CGET", b"k")
        r.execute_command(*command)
        assert invalidated() == [b"k"], command
    answer = None
    while answer is None:  # it had expired before it was asked for
        r.execute_command("CSET", "due", "v", "PX", 100)
        answer = call(b"CGET", b"due")
    assert invalidated() == [b"due"]
    call(b"CGET", b"none")
    r.execute_command("CSET", "none", "v")
    assert invalidated() == [b"none"]
    call(b"CGET", b"none")
    r.execute_command("FLUSHALL")
    # While somebody watches, or has on 7.0, each record is told of before all of them are.
    seen = [invalidated()]
    while seen[-1] is not None:
        seen.append(invalidated())
    assert seen in ([None], [[b"none"], None])


def test_tracking_broadcasts_no_names_of_maps(tracking, r):
    call, invalidated = tracking
    call(b"CLIENT", b"TRACKING", b"on", b"BCAST")
    r.execute_command("CSET", "KEY:1", "v")
    assert invalidated() == [b"KEY:1"]
    r.execute_command("CDEL", "KEY:1")  # and with it its map
    assert invalidated() == [b"KEY:1"]
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    r.execute_command("CSET", "KEY:2", "v", "PX", 50)
    assert invalidated() == [b"KEY:2"]
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert invalidated() == [b"KEY:2"]
    assert map_keys(r) == []
    call(b"CSET", b"KEY:3", b"v")
    assert invalidated() == [b"KEY:3"]




# --- time ---


def until_in_time(seen):
    """What seen() tells of a record with some 30 ms to live; again if it was None because the machine stood still for them."""
    return wait_for(seen, what="that it is asked for in time")


@pytest.mark.parametrize("prefix", ["C", ""])
def test_time_stands_still_in_a_transaction(r, prefix):
    """What had not expired when EXEC came is there to its end, and gone after it."""

    def seen():
        pipe = r.pipeline(transaction=False)
        for command in [(prefix + "SET", "k", "v", "PX", 30), ("MULTI",), (prefix + "GET", "k"), ("DEBUG", "SLEEP", "0.06"),
                        (prefix + "GET", "k"), ("EXEC",)]:
            pipe.execute_command(*command)
        before, _, after = pipe.execute()[-1]
        assert before == after
        return before

    assert until_in_time(seen) == b"v"
    time.sleep(0.002)
    for command in [("MULTI",), (prefix + "GET", "k")]:
        r.execute_command(*command)
    assert r.execute_command("EXEC") == [None]


@pytest.mark.parametrize("prefix", ["C", ""])
def test_time_stands_still_in_a_script(r, prefix):
    script = """
        local before = redis.call(ARGV[1] .. 'GET', 'k')
        for i = 1, 30000000 do end -- some 100 ms
        return {tostring(before), tostring(redis.call(ARGV[1] .. 'GET', 'k'))}
    """

    def seen():
        pipe = r.pipeline(transaction=False)
        pipe.execute_command(prefix + "SET", "k", "v", "PX", 30)
        pipe.execute_command("EVAL", script, 0, prefix)
        before, after = pipe.execute()[-1]
        assert before == after
        return before if before == b"v" else None

    assert until_in_time(seen) == b"v"
    time.sleep(0.002)
    assert r.execute_command("EVAL", script, 0, prefix) == [b"false", b"false"]


@pytest.mark.parametrize("prefix", [b"C", b""])
def test_tracking_without_ones_own_changes_tells_of_expiry(shared, prefix):
    """That a record has expired is nobody's change, also if its own client meets it."""
    with shared.client(protocol=3) as c:
        pushed = []
        c.connection.connect()
        c.connection._parser.set_invalidation_push_handler(lambda message: pushed.append(message[1]))
        c.execute_command("CLIENT", "TRACKING", "on", "BCAST", "NOLOOP")
        for i in range(10):
            for command in [(prefix + b"SET", f"k:{i}", "v", "PX", 5), ("DEBUG", "SLEEP", "0.01"), (prefix + b"GET", f"k:{i}")]:
                answer = c.execute_command(*command)
            assert answer is None
        for _ in range(3):
            c.execute_command("PING")
        assert sorted(key for keys in pushed for key in keys) == [b"k:%d" % i for i in range(10)]
