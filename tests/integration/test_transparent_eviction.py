"""Under a prefix the server never evicts a map either, whatever a command takes before it runs."""

import os
import re
import time

import pytest

from helpers import PATIENCE_S, is_error, reply, wait_for

KB = 1 << 10
POLICY = "allkeys-random"


@pytest.fixture
def told(own_server):
    """A server with a prefix of every key, and a function that returns the names that have been told as evicted."""
    config = {"ckv.prefixes": "*", "ckv.train-after": "1gb", "notify-keyspace-events": "KEA", "maxmemory-policy": POLICY}
    server = own_server(config)
    with server.client() as r, server.client() as listening:
        listener = listening.pubsub(ignore_subscribe_messages=True)
        listener.subscribe("__keyevent@0__:evicted")
        listener.get_message(timeout=PATIENCE_S)

        def names():
            r.publish("__keyevent@0__:evicted", "the end")
            messages = iter(lambda: listener.get_message(timeout=PATIENCE_S)["data"], b"the end")
            return list(messages)

        yield server, r, names


def maxmemory(r):
    """As it stands; INFO tells what was asked for."""
    return r.info("ckv")["ckv_maxmemory_in_force"]


def above_used(r, above):
    """Odd: CONFIG REWRITE writes whole kilobytes as such."""
    return r.info("memory")["used_memory"] + above | 1


def limit(r, above):
    asked = above_used(r, above)
    r.config_set("maxmemory", asked)
    return asked


def is_settled(r):
    return r.execute_command("CKV", "OPTIMIZE") == b"OK"


def set_keys(r, count, value_len):
    pipe = r.pipeline(transaction=False)
    for i in range(count):
        pipe.set(f"key:{i}", os.urandom(value_len))
    pipe.execute()


def maps(names):
    return [name for name in names if name.startswith(b"ckv:")]


def test_what_moves_out_is_larger_than_it_was(told):
    """A string of zeros takes hundreds of bytes as a record, and a bit of it is set by the server's own command."""
    _, r, evicted = told
    set_keys(r, 20_000, 100)
    r.set("zeros", bytes(400 * KB))
    assert is_settled(r)
    limit(r, 100 * KB)
    assert r.setbit("zeros", 5, 1) == 0
    names = evicted()
    assert not maps(names)
    # Room is made by the commands and slices that follow: of these records for twice as much at most.
    wait_for(lambda: r.info("memory")["used_memory"] < maxmemory(r))
    r.config_set("maxmemory", 0)
    names += evicted()
    assert not maps(names) and len(names) < 2 * 400 * KB / 100
    assert r.dbsize() == 20_001 - len(set(names))


def connections_of(server, count):
    return [server.client().connection_pool.get_connection() for _ in range(count)]


def fill(r):
    set_keys(r, 20_000, 100)
    r.rpush("list", *(os.urandom(1000) for _ in range(500)))
    assert is_settled(r)


def raised(r, asked):
    """Where clients that are unblocked run without the filter."""
    return asked if r.info("server")["redis_version"].startswith("7.0.") else asked + (2 << 30)


def assert_records_went(told, connections, asked):
    """And no map, when all of these have been answered and the setting is what was asked for."""
    _, r, evicted = told
    for connection in connections:
        connection.read_response()
        connection.disconnect()
    wait_for(lambda: maxmemory(r) == asked)
    names = evicted()
    assert names and not maps(names)


HELD_BACK = {
    "what it brings": lambda i: ("SET", f"new:{i}", os.urandom(100 * KB)),
    "a copy": lambda i: ("COPY", "list", f"copy:{i}"),
    "what was queued": lambda i: ("EXEC",),
}


@pytest.mark.parametrize("ends", ["by a command", "by itself"])
@pytest.mark.parametrize("takes", HELD_BACK)
def test_what_a_pause_holds_back_runs_at_once(told, ends, takes):
    """From Redis 7.2 on without the filter: each is looked at by the server alone. The limit may be set anew meanwhile."""
    server, r, _ = told
    fill(r)
    connections = connections_of(server, 12)
    for i, connection in enumerate(connections):
        if takes == "what was queued":
            connection.send_command("MULTI")
            connection.send_command("SETRANGE", f"queued:{i}", 400_000, "x")
            assert (connection.read_response(), connection.read_response()) == (b"OK", b"QUEUED")
    asked = limit(r, 100 * KB)
    r.execute_command("CLIENT", "PAUSE", 600_000 if ends == "by a command" else 20_000, "WRITE")
    for i, connection in enumerate(connections):
        connection.send_command(*HELD_BACK[takes](i))
    wait_for(lambda: len(re.findall(rb" flags=\w*b", r.execute_command("CLIENT", "LIST"))) == len(connections))
    if ends == "by a command":
        r.execute_command("CLIENT", "UNPAUSE")
    else:
        r.config_set("maxmemory", asked)
    assert_records_went(told, connections, asked)


UNBLOCKS = {
    "by a push": lambda pipe, i: pipe.lpush(f"queue:{i}", os.urandom(1000 * KB)),
    "by a script": lambda pipe, i: pipe.eval(
        "redis.call('SETRANGE', KEYS[1], 400000, 'x') redis.call('LPUSH', KEYS[2], 'x')", 2, f"big:{i}", f"queue:{i}"),
}


@pytest.mark.parametrize("how", UNBLOCKS)
def test_who_is_unblocked_runs_at_once(told, how):
    """Without the filter, too, and behind a command that has taken memory."""
    server, r, _ = told
    fill(r)
    asked = limit(r, 100 * KB)
    connections = connections_of(server, 12)
    for i, connection in enumerate(connections):
        connection.send_command("BLPOP", f"queue:{i}", 0)
    wait_for(lambda: r.info("clients")["blocked_clients"] == len(connections))
    wait_for(lambda: maxmemory(r) == raised(r, asked))
    pipe = r.pipeline(transaction=False)
    for i in range(len(connections)):
        UNBLOCKS[how](pipe, i)
    pipe.execute()
    assert_records_went(told, connections, asked)


@pytest.mark.parametrize("command", ["SUNION", "BLPOP"])
def test_what_is_noted_of_names_is_no_reason(told, command):
    """Of those of a transaction, and of who waits, on their way from the look of ours to the server's."""
    server, r, evicted = told
    fill(r)
    limit(r, 100 * KB)
    (connection,) = connections_of(server, 1)
    if command == "SUNION":
        connection.send_command("MULTI")
        connection.read_response()
    connection.send_command(command, *(f"name:{i}" for i in range(20_000)), *([0] if command == "BLPOP" else []))
    if command == "SUNION":
        assert connection.read_response() == b"QUEUED"
    else:
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1)
    connection.disconnect()
    assert not maps(evicted())


def test_strings_of_the_servers_own_are_counted(told):
    """What is too long for ckv is an application's key as any."""
    _, r, evicted = told
    limit(r, 30_000 * KB)
    for i in range(100):
        r.set(f"short:{i}", os.urandom(100))
        r.set(f"long:{i}", os.urandom(1500 * KB))
    names = evicted()
    assert len(names) > 50 and r.info("stats")["evicted_keys"] == len(names)


def test_room_to_compress_giants_is_given_back_first(own_server):
    """A megabyte, which zstd takes for values of over 64 KB that are encoded at once: of a small limit that was all."""
    config = {"ckv.prefixes": "*", "ckv.train-after": "1gb", "ckv.encode-threads": 0, "maxmemory-policy": "allkeys-lru"}
    with own_server(config).client() as r:
        set_keys(r, 2000, 100)
        r.set("zeros", bytes(70 * KB))
        limit(r, -800 * KB)
        wait_for(lambda: r.info("memory")["used_memory"] < maxmemory(r))
        assert r.dbsize() > 1800


def test_pages_that_are_written_anew_take_no_room(own_server):
    """Old ones are freed by the hundred, 1.6 MB of them: of a small limit that was a third, for which records went."""
    config = {"ckv.prefixes": "*", "ckv.train-after": "1gb", "maxmemory-policy": "allkeys-lru"}
    with own_server(config).client() as r:
        set_keys(r, 14_000, 200)
        limit(r, 1000 * KB)
        for _ in range(2):
            assert r.execute_command("CKV", "TRAIN") == b"OK" and is_settled(r)
        assert r.dbsize() == 14_000


def wait_limited(r, above):
    """It stands above what is used, until there is room."""
    asked = limit(r, above)
    wait_for(lambda: maxmemory(r) == asked)
    return asked


def wait_blocked(server):
    (connection,) = connections_of(server, 1)
    connection.send_command("XREAD", "COUNT", 1, "BLOCK", 0, "STREAMS", "stream", "$")
    with server.client() as r:
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1)
    return connection


SETS = {
    "the policy": lambda r, asked: ("CONFIG", "SET", "maxmemory-policy", POLICY),
    "the limit": lambda r, asked: ("CONFIG", "SET", "maxmemory", asked),
    "the role": lambda r, asked: ("REPLICAOF", "NO", "ONE"),
}


@pytest.mark.parametrize("what", SETS)
def test_who_waited_before_anything_might_go_is_unblocked(told, what):
    """He is looked for as that changes, not a tenth of a second later."""
    server, r, evicted = told
    fill(r)
    asked = wait_limited(r, 100 * KB)
    if what == "the policy":
        r.config_set("maxmemory-policy", "noeviction")
    elif what == "the limit":
        r.config_set("maxmemory", 0)
    else:
        r.config_set("replica-read-only", "no")
        r.replicaof("127.0.0.1", 1)
    connection = wait_blocked(server)
    pipe = r.pipeline(transaction=False).execute_command(*SETS[what](r, asked))
    pipe.xadd("stream", {"field": os.urandom(1000 * KB)}).execute()
    connection.read_response()
    connection.disconnect()
    assert not maps(evicted())


def test_nothing_that_may_go_raises_nothing(told):
    """Writes are refused then as by a plain server."""
    server, r, _ = told
    fill(r)
    r.config_set("maxmemory-policy", "volatile-lru")
    asked = wait_limited(r, 1000 * KB)
    connection = wait_blocked(server)
    pipe = r.pipeline(transaction=False)
    for i in range(40):
        pipe.setbit(f"new:{i}", 8 * 500 * KB, 1)
    replies = pipe.execute(raise_on_error=False)
    assert sum(reply == 0 for reply in replies) <= 3
    assert maxmemory(r) == asked
    connection.disconnect()


def test_it_is_not_raised_once_nothing_may_go(told):
    """At once: from then on the server alone says what is too much."""
    server, r, _ = told
    fill(r)
    asked = wait_limited(r, 1000 * KB)  # clients that come take some dozen KB each
    connection = wait_blocked(server)
    assert maxmemory(r) == raised(r, asked)
    assert r.pipeline(transaction=False).config_set("maxmemory-policy", "noeviction").info("ckv").execute()[1]["ckv_maxmemory_in_force"] == asked
    connection.disconnect()


@pytest.mark.parametrize("how", ["alone", "queued", "behind a change", "both queued"])
def test_the_file_of_settings_is_written_as_asked(told, how):
    """While clients wait for keys the setting stands above what was asked for."""
    server, r, _ = told
    fill(r)
    asked = wait_limited(r, 1000 * KB)  # clients that come take some dozen KB each
    connection = wait_blocked(server)
    assert maxmemory(r) == raised(r, asked)
    with r.pipeline(transaction="queued" in how) as pipe:
        if how in ("behind a change", "both queued"):
            asked += 500 * KB  # there is room: it is not held above what is used
            pipe.config_set("maxmemory", asked)
        pipe.config_rewrite().execute()
    with open(os.path.join(server.dir, "redis.conf")) as f:
        assert f"maxmemory {asked}\n" in f.read()
    wait_for(lambda: maxmemory(r) == raised(r, asked))
    connection.disconnect()
    wait_for(lambda: maxmemory(r) == asked)


def test_config_is_called_by_its_name(own_server):
    config = {"ckv.prefixes": "*", "ckv.train-after": "1gb", "maxmemory-policy": POLICY, "rename-command": "CONFIG settings"}
    with own_server(config) as server, server.client() as r:
        fill(r)
        asked = above_used(r, 100 * KB)
        assert r.execute_command("settings", "SET", "maxmemory", asked) == b"OK"
        connection = wait_blocked(server)
        wait_for(lambda: maxmemory(r) == raised(r, asked))
        assert r.execute_command("settings", "REWRITE") == b"OK"
        with open(os.path.join(server.dir, "redis.conf")) as f:
            assert f"maxmemory {asked}\n" in f.read()
        connection.disconnect()


def test_info_tells_the_limit_as_it_was_asked_for(told):
    server, r, _ = told
    fill(r)
    r.config_set("maxmemory", 1 << 30)
    connection = wait_blocked(server)
    wait_for(lambda: maxmemory(r) == raised(r, 1 << 30))
    memory = r.info("memory")
    assert (memory["maxmemory"], memory["maxmemory_human"], memory["maxmemory_policy"]) == (1 << 30, "1.00G", POLICY)
    connection.disconnect()


def test_one_turn_that_takes_much(told):
    """400 MB within a transaction behind which a client that waited runs, with no look of ours between."""
    server, r, evicted = told
    fill(r)
    limit(r, 30_000 * KB)
    (connection,) = connections_of(server, 1)
    connection.send_command("BLPOP", "queue", 0)
    wait_for(lambda: r.info("clients")["blocked_clients"] == 1)
    with r.pipeline(transaction=True) as pipe:
        pipe.setrange("big", 400_000_000, "x").lpush("queue", "job").execute()
    assert connection.read_response() == [b"queue", b"job"]
    connection.disconnect()
    r.unlink("big")
    assert not maps(evicted())


NO_USES = {"of who does not touch": ("allkeys-lru", "ON"), "where only writes count": ("allkeys-lrm", "OFF")}


def evicted_while_some_are_read(r, evicted, no_touch):
    """The kinds of strings that go, of which one is read all the time."""
    r.flushall()
    evicted()
    pipe = r.pipeline(transaction=False)
    for i in range(1000):
        pipe.set(f"read:{i}", os.urandom(1 * KB)).set(f"unread:{i}", os.urandom(1 * KB))
    pipe.execute()
    for i in range(2000):
        pipe.execute_command("CLIENT", "NO-TOUCH", no_touch)
        for k in range(i % 10, 1000, 10):
            pipe.get(f"read:{k}")
        pipe.set(f"new:{i}", os.urandom(1 * KB)).execute()
    kinds = [name.split(b":")[0] for name in evicted()]
    return kinds.count(b"read"), kinds.count(b"unread")


@pytest.mark.parametrize("of", NO_USES)
def test_reads_that_are_no_uses(told, of):
    """What is read all the time goes like all else then; where reads are uses it stays."""
    policy, no_touch = NO_USES[of]
    _, r, evicted = told
    if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")) or is_error(reply(r, "CONFIG", "SET", "maxmemory-policy", policy)):
        pytest.skip("the server knows no such reads")
    r.config_set("maxmemory", r.info("memory")["used_memory"] + 3000 * KB)
    read, unread = evicted_while_some_are_read(r, evicted, no_touch)
    assert read > unread / 2 > 150
    r.config_set("maxmemory-policy", "allkeys-lru")
    read, unread = evicted_while_some_are_read(r, evicted, "OFF")
    assert read < unread / 2 > 150


def test_who_tracks_is_told_of_nobody_elses_keys(told):
    """What other keys take is asked of the server, who takes them for read by the client whose command makes room."""
    server, r, evicted = told
    pipe = r.pipeline(transaction=False)
    for i in range(3000):
        pipe.hset(f"other:{i}", "field", os.urandom(1 * KB))
    pipe.execute()
    limit(r, 100 * KB)
    with server.client(protocol=3) as tracking:
        told_of = []
        tracking.connection._parser.set_invalidation_push_handler(lambda push: told_of.extend(push[1] or []))
        assert tracking.execute_command("CLIENT", "TRACKING", "ON") in (b"OK", "OK")
        for i in range(2000):
            tracking.set(f"mine:{i}", os.urandom(1 * KB))
        names = evicted()
        tracking.ping()
    assert sum(name.startswith(b"other:") for name in names) > 100
    assert not [name for name in told_of if name.startswith(b"other:")]


# ---- strings that are the server's for a while -------------------------------------------------------------------------------

STRINGS, STRING = 10_000, b'{"id":%d,"name":"someone","mail":"someone@example.com","city":"somewhere","level":3}' * 5


def compressed(r, above):
    """Strings in ckv, which take several times as much outside, and `above` bytes of memory besides."""
    pipe = r.pipeline(transaction=False)
    for i in range(STRINGS):
        pipe.set(f"key:{i}", STRING % ((i,) * 5))
    pipe.execute()
    assert r.execute_command("CKV", "TRAIN") == b"OK"
    assert is_settled(r)
    limit(r, above)


def read_all(r):
    """By a command that only the server can run."""
    for first in range(0, STRINGS, 100):
        pipe = r.pipeline(transaction=False)
        for i in range(first, first + 100):
            pipe.bitcount(f"key:{i}")
        pipe.execute()


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random"])
def test_nothing_is_evicted_for_what_is_only_read(own_server, policy):
    server = own_server({"ckv.prefixes": "*", "maxmemory-policy": policy})
    with server.client() as r:
        compressed(r, 2000 * KB)
        read_all(r)
        assert r.dbsize() >= STRINGS * 0.95, r.info("stats")["evicted_keys"]
        assert r.info("ckv")["ckv_moved_out"] >= STRINGS * 0.95


def test_writes_are_allowed_again_soon(own_server):
    """Long before the minute that strings stay outside for where there is memory."""
    server = own_server({"ckv.prefixes": "*", "maxmemory-policy": "noeviction"})
    with server.client() as r:
        compressed(r, 1500 * KB)
        read_all(r)
        began = time.monotonic()
        wait_for(lambda: not is_error(reply(r, "SET", "new", "x")))
        assert time.monotonic() - began < 60
        assert r.dbsize() == STRINGS + 1


def test_what_is_watched_stays_where_its_expiry_is_seen(own_server, faults):
    server = own_server({"ckv.prefixes": "*", "maxmemory-policy": "allkeys-lru"}, env=faults.env)
    with server.client() as r, server.client() as watching:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)  # which would tell who watches
        compressed(r, 2000 * KB)
        r.set("a watched", STRING, ex=10_000)  # the first of all names
        watching.execute_command("WATCH", "a watched")
        read_all(r)
        faults.set(seconds=20_000)
        r.ping()
        watching.execute_command("MULTI")
        watching.execute_command("SET", "not", "done")
        assert watching.execute_command("EXEC") is None


def test_what_is_kept_comes_back_when_it_is_due(own_server, faults):
    """Where memory is short all the time, too, and others come back early all the time."""
    server = own_server({"ckv.prefixes": "*", "maxmemory-policy": "noeviction"}, env=faults.env)
    with server.client() as r:
        r.set("long", STRING * 20)
        compressed(r, 500 * KB)
        assert r.bitcount("long") > 0
        assert r.execute_command("CKEYS", "long") == []
        for minute in range(1, 4):
            read_all(r)
            faults.set(passed=61 * minute)
        wait_for(lambda: r.execute_command("CKEYS", "long"), what="the long one")
