"""Transactions under prefixes: several clients, and everything that may come between queueing and EXEC."""

import time

import pytest

from helpers import reply


@pytest.fixture
def three(own_server):
    server = own_server({"ckv.prefixes": '"*"'})
    clients = [server.client() for _ in range(3)]
    yield clients
    for client in clients:
        client.close()


BETWEEN = [
    [("EXEC",)],
    [("DISCARD",)],
    [("EXEC", "too", "many")],
    [("EVAL", "return redis.pcall('exec')", 0)],
    [("MULTI",), ("DISCARD",)],
    [("MULTI",), ("SET", "other", 1), ("EXEC",)],
    [("EXEC",), ("MULTI",), ("DISCARD",), ("MULTI",), ("EXEC",)],
    [("MULTI",), ("RESET",)],
    [("CONFIG", "SET", "ckv.prefixes", "k"), ("CONFIG", "SET", "ckv.prefixes", "*")],
]


@pytest.mark.parametrize("wait", [0, 2.5], ids=["at-once", "after-a-count"])
@pytest.mark.parametrize("between", range(len(BETWEEN)))
def test_another_client_does_not_end_a_transaction(three, between, wait):
    a, b, c = three
    assert reply(a, "MULTI") == b"OK"
    assert reply(a, "SETBIT", "k", 0, 1) == reply(a, "GET", "k") == b"QUEUED"
    for command in BETWEEN[between]:
        reply(b, *command)
    time.sleep(wait)
    assert reply(c, "SET", "k", "hello") == b"OK"
    assert reply(a, "EXEC") == [0, b"\xe8ello"]
    assert reply(c, "GET", "k") == b"\xe8ello"


def test_a_string_moves_unnoticed(three):
    """Neither WATCH nor an event tells that a record has moved out, and is in ckv again."""
    a, b, listener = three
    b.execute_command("CONFIG", "SET", "notify-keyspace-events", "KEAn")
    b.execute_command("SET", "k", "v", "EX", 1000)
    listener.connection.send_command("PSUBSCRIBE", "__key*__:*")
    listener.connection.read_response()
    a.execute_command("WATCH", "k")
    for command in (("OBJECT", "ENCODING", "k"), ("DUMP", "k"), ("GETBIT", "k", 1), ("GET", "k"), ("MEMORY", "USAGE", "k"), ("BITCOUNT", "k"), ("SORT", "list", "BY", "k*")):
        reply(b, *command)
    assert [reply(a, *c) for c in (("MULTI",), ("GET", "k"), ("EXEC",))][-1] == [b"v"]
    b.execute_command("SET", "last", "1")
    heard = [listener.connection.read_response()[2:] for _ in range(4)]
    assert heard == [[b"__keyspace@0__:last", b"new"], [b"__keyevent@0__:new", b"last"], [b"__keyspace@0__:last", b"set"], [b"__keyevent@0__:set", b"last"]]


def test_an_idle_transaction_does_not_keep_the_strings_of_others_out(three):
    a, b, _ = three
    reply(a, "MULTI")
    for i in range(50):
        b.execute_command("SET", f"k{i}", "v")
        b.execute_command("GETBIT", f"k{i}", 0)
    reply(a, "DISCARD")
    time.sleep(2.5)
    for i in range(50):
        b.execute_command("SET", f"k{i}", "v")
    assert int(b.info("ckv")["ckv_records"]) == 50
