"""CLIENT NO-TOUCH: some servers crash where a module looks for a key before a command of such a client (server/no_touch.h)."""

import time

import pytest
import redis

from helpers import is_error, noise, reply

ON = ("CLIENT", "NO-TOUCH", "ON")


def crashes_for_who_does_not_touch(r):
    """Where a module looks for a key before a command of such a client."""
    told = r.info("server")
    name, fixed = ("valkey_version", (9, 1)) if "valkey_version" in told else ("redis_version", (8, 6))
    return tuple(map(int, told[name].split(".")[:2])) < fixed


@pytest.mark.parametrize("since", ["before the prefix", "behind it"])
def test_clients_that_do_not_touch(own_server, since):
    """They are as any other, but where a server would crash the connections that were there before are closed."""
    with own_server() as server, server.client() as r, server.client() as other:
        if since == "behind it":
            other.config_set("ckv.prefixes", "*")
        if is_error(reply(r, "CLIENT", "NO-TOUCH", "ON")):
            pytest.skip("the server has none")
        other.config_set("ckv.prefixes", "*")
        if since == "before the prefix" and crashes_for_who_does_not_touch(other):
            with pytest.raises(redis.ConnectionError):
                r.ping()
            assert "is disconnected: this server crashes" in server.log()
            return
        r.rpush("list", 2, 1)
        r.set("weight:1", 5)
        r.set("weight:2", 7)
        assert r.execute_command("SORT", "list", "BY", "weight:*", "GET", "weight:*") == [b"5", b"7"]
        assert r.getbit("weight:1", 0) == 0


def filled(own_server, **config):
    """A server, a client of it, and a limit that what is written soon reaches: from then on the filter looks for keys."""
    server = own_server({"maxmemory-policy": "allkeys-lru", **config})
    r = server.client()
    for i in range(3000):
        r.set(f"key:{i}", noise(1000, i))
    return server, r, r.info("memory")["used_memory"] + 200_000


def write_past_the_limit(r):
    for i in range(3000):
        r.set(f"new:{i}", noise(1000, i))


def skip_where_unknown(r):
    if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")):
        pytest.skip("the server has none")


@pytest.mark.parametrize("what", [ON, ("GET", "key:1")], ids=lambda what: what[0])
def test_what_was_queued_before_the_filter_looks_for_keys(own_server, what):
    """Nobody has seen it: who does not touch from EXEC on is disconnected before the next look, and nobody else."""
    server, other, limit = filled(own_server)
    with other, server.client() as r:
        skip_where_unknown(r)
        r.execute_command("MULTI")
        r.execute_command(*what)
        other.config_set("maxmemory", limit)
        other.execute_command("CSET", "record", "value")
        assert len(r.execute_command("EXEC")) == 1
        closed = what == ON and crashes_for_who_does_not_touch(other)
        if closed:
            with pytest.raises(redis.ResponseError, match="CLIENT NO-TOUCH is not allowed on this server"):
                r.set("key:1", "value")
            with pytest.raises(redis.ConnectionError):
                r.ping()
            assert other.get("key:1") != b"value"
        else:
            write_past_the_limit(r)
        assert other.ping() and server.log().count("is disconnected") == closed


def test_what_was_queued_by_who_subscribes(own_server):
    """He may send few commands then, and is let go by the one of them that ends it."""
    server, other, limit = filled(own_server)
    with other, server.client() as r:
        skip_where_unknown(r)
        r.execute_command("MULTI")
        r.execute_command(*ON)
        r.execute_command("SUBSCRIBE", "channel")
        other.config_set("maxmemory", limit)
        other.execute_command("CSET", "record", "value")
        connection = r.connection
        connection.send_command("EXEC")
        assert len(connection.read_response()) == 2
        connection.send_command("PING")
        if crashes_for_who_does_not_touch(other):
            assert connection.read_response() == b"OK"
            with pytest.raises(redis.ConnectionError):
                connection.read_response()
            assert server.log().count("is disconnected") == 1
        else:
            assert connection.read_response() == [b"pong", b""]
        write_past_the_limit(other)


def test_what_was_held_back_before_the_filter_looks_for_keys(own_server):
    """By a pause, behind what makes it look: servers ask the filter once about a command."""
    server, other, limit = filled(own_server)
    with other, server.client() as r, server.client() as setting:
        skip_where_unknown(r)
        other.execute_command("CLIENT", "PAUSE", 3000, "ALL")
        setting.connection.send_command("CONFIG", "SET", "maxmemory", limit)
        time.sleep(0.2)
        r.connection.send_command(*ON)
        assert (setting.connection.read_response(), r.connection.read_response()) == (b"OK", b"OK")
        other.execute_command("CSET", "record", "value")
        try:
            write_past_the_limit(r)
        except redis.RedisError:
            assert "is disconnected" in server.log()
        assert other.ping()


def test_under_another_name(own_server):
    """It is known by what is sent. (Who has it before can't be asked for: the log says so.)"""
    server, other, limit = filled(own_server, **{"rename-command": "CLIENT kunde"})
    with other, server.client() as r:
        if is_error(reply(r, "KUNDE", "NO-TOUCH", "OFF")):
            pytest.skip("the server has none")
        other.config_set("maxmemory", limit)
        other.execute_command("CSET", "record", "value")
        assert r.execute_command("KUNDE", "NO-TOUCH", "ON") == b"OK"
        write_past_the_limit(r)
        assert other.ping()
        assert ("CLIENT goes by a name that is not known" in server.log()) == crashes_for_who_does_not_touch(other)
