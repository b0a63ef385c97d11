"""Under a prefix the server never evicts a map either, whatever a command takes before it runs."""

import os
import re

import pytest

from helpers import wait_for

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
        listener.get_message(timeout=10)

        def names():
            r.publish("__keyevent@0__:evicted", "the end")
            messages = iter(lambda: listener.get_message(timeout=10)["data"], b"the end")
            return list(messages)

        yield server, r, names


def maxmemory(r):
    return int(r.execute_command("CONFIG", "GET", "maxmemory")[1])


def limit(r, above):
    asked = r.info("memory")["used_memory"] + above
    r.config_set("maxmemory", asked)
    return asked


def is_settled(r):
    return r.execute_command("CKV", "OPTIMIZE") == b"OK"


def maps(names):
    return [name for name in names if name.startswith(b"ckv:")]


def test_what_moves_out_is_larger_than_it_was(told):
    """A string of zeros takes hundreds of bytes as a record, and a bit of it is set by the server's own command."""
    _, r, evicted = told
    for i in range(20_000):
        r.set(f"key:{i}", os.urandom(100))
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
    for i in range(20_000):
        r.set(f"key:{i}", os.urandom(100))
    r.rpush("list", *(os.urandom(1000) for _ in range(500)))
    assert is_settled(r)


def setting(r):
    """Where it stands: what is shown outside of scripts is what was asked for."""
    if r.info("server")["redis_version"].startswith("7.0."):
        return maxmemory(r)
    return int(re.search(rb"\nmaxmemory:(\d+)", r.eval("return redis.call('INFO', 'memory')", 0)).group(1))


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
    r.execute_command("CLIENT", "PAUSE", 600_000 if ends == "by a command" else 5000, "WRITE")
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
    """Without the filter, too, behind a command that has taken memory, and behind who was shown the setting."""
    server, r, _ = told
    fill(r)
    asked = limit(r, 100 * KB)
    connections = connections_of(server, 12)
    for i, connection in enumerate(connections):
        connection.send_command("BLPOP", f"queue:{i}", 0)
    wait_for(lambda: r.info("clients")["blocked_clients"] == len(connections))
    pipe = r.pipeline(transaction=False).info("memory")
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
        for i in range(2000):
            r.set(f"key:{i}", os.urandom(100))
        r.set("zeros", bytes(70 * KB))
        limit(r, -800 * KB)
        wait_for(lambda: r.info("memory")["used_memory"] < maxmemory(r))
        assert r.dbsize() > 1800


def test_pages_that_are_written_anew_take_no_room(own_server):
    """Old ones are freed by the hundred, 1.6 MB of them: of a small limit that was a third, for which records went."""
    config = {"ckv.prefixes": "*", "ckv.train-after": "1gb", "maxmemory-policy": "allkeys-lru"}
    with own_server(config).client() as r:
        for i in range(14_000):
            r.set(f"key:{i}", os.urandom(200))
        limit(r, 1000 * KB)
        for _ in range(2):
            assert r.execute_command("CKV", "TRAIN") == b"OK" and is_settled(r)
        assert r.dbsize() == 14_000


def wait_limited(r, above):
    """It stands above what is used, until there is room."""
    asked = limit(r, above)
    wait_for(lambda: maxmemory(r) == asked)
    return asked


def test_who_is_unblocked_when_the_policy_is_set(told):
    """Who waits was there before anything might go."""
    server, r, evicted = told
    fill(r)
    r.config_set("maxmemory-policy", "noeviction")
    wait_limited(r, 100 * KB)
    (connection,) = connections_of(server, 1)
    connection.send_command("BLPOP", "queue", 0)
    wait_for(lambda: r.info("clients")["blocked_clients"] == 1)
    pipe = r.pipeline(transaction=False).config_set("maxmemory-policy", POLICY)
    pipe.lpush("queue", os.urandom(1000 * KB)).execute()
    connection.read_response()
    connection.disconnect()
    assert not maps(evicted())


def test_what_was_asked_for_is_shown(told):
    """From Redis 7.2 on the setting stands above that where little is free. Monitors compare memory with it, operators write it
    anew."""
    server, r, _ = told
    fill(r)
    asked = wait_limited(r, 100 * KB)
    above = 0 if r.info("server")["redis_version"].startswith("7.0.") else 256 << 20
    for _ in range(3):
        assert (setting(r), maxmemory(r)) == (asked + above, asked)
        assert (setting(r), r.info("memory")["maxmemory"]) == (asked + above, asked)
    assert r.pipeline().execute_command("CONFIG", "GET", "maxmemory").execute() == [[b"maxmemory", b"%d" % asked]]
    assert setting(r) == asked + above
    asked = limit(r, 2 << 30)
    wait_for(lambda: setting(r) == asked)


@pytest.mark.parametrize("queued", [False, True])
def test_the_file_of_settings_is_written_as_asked(told, queued):
    server, r, _ = told
    fill(r)
    asked = wait_limited(r, 100 * KB)
    if queued:
        (connection,) = connections_of(server, 1)
        for command in ("MULTI",), ("CONFIG", "REWRITE"):
            connection.send_command(*command)
            connection.read_response()
        wait_for(lambda: setting(r) > asked or r.info("server")["redis_version"].startswith("7.0."))
        connection.send_command("EXEC")
        assert connection.read_response() == [b"OK"]
        connection.disconnect()
    else:
        r.config_rewrite()
    with open(os.path.join(server.dir, "redis.conf")) as f:
        assert f"maxmemory {asked}\n" in f.read()
