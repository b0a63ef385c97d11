"""Under a prefix the server never evicts a map either, whatever a command takes before it runs."""

import os
import time

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
    r.config_set("maxmemory", r.info("memory")["used_memory"] + above)


def is_settled(r):
    return r.execute_command("CKV", "OPTIMIZE") == b"OK"


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
    assert not [name for name in names if name.startswith(b"ckv:")]
    # Room is made by the commands and slices that follow: of these records for twice as much at most.
    wait_for(lambda: r.info("memory")["used_memory"] < maxmemory(r))
    r.config_set("maxmemory", 0)
    names += evicted()
    assert not [name for name in names if name.startswith(b"ckv:")] and len(names) < 2 * 400 * KB / 100
    assert r.dbsize() == 20_001 - len(set(names))


@pytest.mark.parametrize("ends", ["by a command", "by itself"])
def test_what_a_pause_holds_back_runs_at_once(told, ends):
    """From Redis 7.2 on without the filter: each is looked at by the server alone. The limit may be set anew meanwhile."""
    server, r, evicted = told
    for i in range(200):
        r.set(f"key:{i}", os.urandom(100 * KB))
    limit(r, 300 * KB)
    asked = maxmemory(r)
    r.execute_command("CLIENT", "PAUSE", 600_000 if ends == "by a command" else 5000, "WRITE")
    clients = [server.client() for _ in range(40)]
    connections = [client.connection_pool.get_connection("SET") for client in clients]
    for i, connection in enumerate(connections):
        connection.send_command("SET", f"new:{i}", os.urandom(100 * KB))
    wait_for(lambda: r.execute_command("CLIENT", "LIST").count(b" flags=b ") == len(connections))
    if ends == "by a command":
        r.execute_command("CLIENT", "UNPAUSE")
    else:
        r.config_set("maxmemory", asked)
    assert [connection.read_response() for connection in connections] == [b"OK"] * len(connections)
    for client in clients:
        client.close()
    wait_for(lambda: maxmemory(r) == asked)
    names = evicted()
    assert names and not [name for name in names if name.startswith(b"ckv:")]
    assert r.dbsize() == 240 - len(names)


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
