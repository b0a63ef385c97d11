"""CKV MOVE: strings of an application that uses CSET and CGET itself move into ckv, or out; replicas and the AOF follow."""

import os
import signal

import pytest

from cluster import Cluster
from helpers import info, is_error, is_in_sync, late_by, reply, texts, wait_for, wait_for_replica
from mover_data import ask, moving, wait_moved

FAST = {"ckv.move-cpu": 100}
VALUES = {b"user:%d" % i: value for i, value in enumerate(texts(3000))}


def fill(r):
    ask(r, [("SET", *pair) for pair in VALUES.items()])
    r.execute_command("PEXPIRE", "user:7", 10**7)
    r.execute_command("HSET", "user:hash", "a", 1)
    r.execute_command("SET", "other", "here")


def move(r, way, prefix="user:"):
    assert r.execute_command("CKV", "MOVE", way, prefix) == b"OK"
    return wait_moved(r, way.lower().encode())


def assert_are(r, records):
    read, other = ("CGET", "GET") if records else ("GET", "CGET")
    assert ask(r, [(read, key) for key in VALUES]) == list(VALUES.values())
    assert ask(r, [(other, key) for key in VALUES]) == [None] * len(VALUES)
    left = r.execute_command("CPTTL" if records else "PTTL", "user:7")
    assert 10**7 - 60_000 - 2 * late_by(10**7) <= left <= 10**7
    assert r.execute_command("GET", "other") == b"here"
    assert r.execute_command("HGET", "user:hash", "a") == b"1"


def test_in_and_out(own_server):
    with own_server(FAST).client() as r:
        fill(r)
        assert move(r, "IN")["moved"] == len(VALUES)
        assert_are(r, records=True)
        assert move(r, "OUT")["moved"] == len(VALUES)
        assert_are(r, records=False)
        assert move(r, "IN", "*")["moved"] == len(VALUES) + 1
        assert move(r, "OUT", "*")["moved"] == len(VALUES) + 1
        assert_are(r, records=False)


def test_a_replica_follows(own_server):
    primary = own_server(FAST)
    replica = own_server({"replicaof": f"127.0.0.1 {primary.port}"})
    with primary.client() as r, replica.client() as second:
        wait_for(lambda: is_in_sync(second), what="the replica")
        fill(r)
        for way in "IN", "OUT":
            move(r, way)
            wait_for_replica(r)
            assert_are(second, records=way == "IN")
        assert is_error(reply(second, "CKV", "MOVE", "IN", "user:"), "read only replica")


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_an_aof_follows(own_server, preamble):
    server = own_server({"appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": preamble, **FAST})
    with server.client() as r:
        fill(r)
        move(r, "IN")
    for way in "OUT", "IN", "OUT":
        server.kill()
        server.start()
        with server.client() as r:
            assert_are(r, records=way == "OUT")
            move(r, way)


def test_who_replays_a_move_later_than_the_string_would_have_lived(own_server, faults):
    """A replica that lags, a restart from the AOF: what was kept behind the move is there."""
    outlasts = {"repl-timeout": 86_400}  # the step of the clock
    primary = own_server({**FAST, **outlasts, "appendonly": "yes", "aof-use-rdb-preamble": "no"}, env=faults.env)
    replica = own_server({**outlasts, "replicaof": f"127.0.0.1 {primary.port}"}, env=faults.env)
    with primary.client() as r, replica.client() as second:
        wait_for(lambda: is_in_sync(second), what="the replica")
        names = list(VALUES)[:100]
        ask(r, [("SET", name, VALUES[name], "EX", 600) for name in names])
        wait_for_replica(r)
        os.kill(replica.process.pid, signal.SIGSTOP)
        try:
            move(r, "IN")
            assert ask(r, [("CPERSIST", name) for name in names]) == [1] * len(names)
            faults.set(seconds=3600)
        finally:
            os.kill(replica.process.pid, signal.SIGCONT)
        wait_for_replica(r)
        kept = [VALUES[name] for name in names]
        assert ask(second, [("CGET", name) for name in names]) == kept
    primary.kill()
    primary.start()
    with primary.client() as r:
        assert ask(r, [("CGET", name) for name in names]) == kept


def test_what_came_by_a_move_is_under_a_prefix_later(own_server):
    """Commands on it are told so that they find the record when the AOF is loaded."""
    server = own_server({"appendonly": "yes", "appendfsync": "always", **FAST})
    with server.client() as r:
        r.execute_command("SET", "user:1", 41)
        move(r, "IN")
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        assert r.execute_command("INCR", "user:1") == 42
    server.config["ckv.prefixes"] = '"user:"'
    server.kill()
    server.start()
    with server.client() as r:
        assert r.execute_command("GET", "user:1") == b"42"


def test_the_way_back_at_any_time(own_server):
    with own_server(FAST).client() as r:
        fill(r)
        r.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
        r.execute_command("CKV", "MOVE", "IN", "user:")
        wait_for(lambda: moving(r, b"in")["waits_for"] == "a pause of writes", what="the wait")
        for words in "IN user:", "OUT other:":
            answer = reply(r, "CKV", "MOVE", *words.split())
            assert is_error(answer, "strings are moving already, see CKV MOVING"), answer
        assert r.execute_command("CKV", "MOVE", "OUT", "user:") == b"OK"
        r.execute_command("CLIENT", "UNPAUSE")
        assert wait_moved(r, b"in")["moved"] == 0
        wait_moved(r, b"out")
        assert_are(r, records=False)


@pytest.mark.parametrize(
    "words, error",
    [
        ("MOVE", "wrong number of arguments"),
        ("MOVE IN", "wrong number of arguments"),
        ("MOVE IN a b", "wrong number of arguments"),
        ("MOVE UP a", "syntax error"),
        ("MOVE IN ckv:1", "keys under 'ckv:' are ckv's own"),
        ("MOVE IN served:", "the prefix is in ckv.prefixes, which says where its strings are"),
        ("MOVE OUT served:more:", "the prefix is in ckv.prefixes, which says where its strings are"),
        ("MOVING x", "wrong number of arguments"),
    ],
)
def test_errors(own_server, words, error):
    with own_server({"ckv.prefixes": '"served:"'}).client() as r:
        answer = reply(r, "CKV", *words.split())
        assert is_error(answer, error), answer
        assert is_error(reply(r, "CKV", "MOVE", "IN", ""), "a prefix can't be empty; '*' is every key")
        assert is_error(reply(r, "CKV", "MOVE", "IN", b"a\0b"), "a prefix can't hold a zero byte")
        assert moving(r, b"out")["prefix"] == ""


def test_it_takes_permission_to_write_all(own_server):
    server = own_server()
    with server.client() as r, server.client() as user:
        for rules, may in (("%R~*", False), ("~user:*", False), ("%W~*", True), ("~*", True)):
            r.execute_command("ACL", "SETUSER", "some", "reset", "on", "nopass", "+ckv", *rules.split())
            user.execute_command("AUTH", "some", "")
            answer = reply(user, "CKV", "MOVE", "IN", f"none:{may}")
            assert answer == b"OK" if may else is_error(answer, "permissions"), (rules, answer)
            wait_for(lambda: moving(r, b"in")["prefix"] == "", what="its end")


def test_a_cluster_primary_tells_its_replicas():
    """Slots leave map by map, so a replica holds in its maps what its primary does."""
    with Cluster(primaries=1, replicas=1, config=FAST) as cluster:
        with cluster.primaries[0].client() as r, cluster.replicas[0].client() as second:
            second.execute_command("READONLY")
            ask(r, [("SET", *pair) for pair in VALUES.items()])
            second.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
            for prefixes, count in (("user:", len(VALUES)), ("", 0)):
                r.execute_command("CONFIG", "SET", "ckv.prefixes", prefixes)
                wait_moved(r, b"in" if prefixes else b"out")
                wait_for_replica(r)
                assert info(r)["records"] == info(second)["records"] == count
                assert ask(second, [("GET", key) for key in VALUES]) == list(VALUES.values())
