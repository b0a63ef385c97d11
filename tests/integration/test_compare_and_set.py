"""CSET IFEQ and IFNE, CDELEX: writing only if the value is what is expected."""

import threading

import pytest

from helpers import is_error, reply


@pytest.mark.parametrize("value", ["", "1", "a longer value " * 3, "x" * 5000])
def test_ifeq(r, value):
    assert r.execute_command("CSET", "k", "new", "IFEQ", value) is None
    assert r.execute_command("CEXISTS", "k") == 0
    r.execute_command("CSET", "k", value)
    assert r.execute_command("CSET", "k", "new", "IFEQ", value + "?") is None
    assert r.execute_command("CGET", "k") == value.encode()
    assert r.execute_command("CSET", "k", "new", "ifeq", value) == b"OK"
    assert r.execute_command("CGET", "k") == b"new"


@pytest.mark.parametrize("value", ["", "1", "a longer value " * 3, "x" * 5000])
def test_ifne(r, value):
    assert r.execute_command("CSET", "k", value, "IFNE", value) == b"OK", "no record is not equal to anything"
    assert r.execute_command("CSET", "k", "new", "IFNE", value) is None
    assert r.execute_command("CSET", "k", "new", "IFNE", value + "?") == b"OK"
    assert r.execute_command("CGET", "k") == b"new"


def test_get_gives_the_old_value_either_way(r):
    assert r.execute_command("CSET", "k", "a", "IFEQ", "x", "GET") is None
    assert r.execute_command("CEXISTS", "k") == 0
    assert r.execute_command("CSET", "k", "a", "IFNE", "x", "GET") is None
    assert r.execute_command("CGET", "k") == b"a"
    assert r.execute_command("CSET", "k", "b", "GET", "IFEQ", "x") == b"a"
    assert r.execute_command("CGET", "k") == b"a"
    assert r.execute_command("CSET", "k", "b", "GET", "IFEQ", "a") == b"a"
    assert r.execute_command("CGET", "k") == b"b"


def test_with_an_expiry(r):
    r.execute_command("CSET", "k", "a", "EX", 1000)
    assert r.execute_command("CSET", "k", "b", "IFEQ", "x", "EX", 5) is None
    assert r.execute_command("CTTL", "k") > 900
    assert r.execute_command("CSET", "k", "b", "IFEQ", "a", "KEEPTTL") == b"OK"
    assert r.execute_command("CTTL", "k") > 900
    assert r.execute_command("CSET", "k", "c", "EX", 50, "IFEQ", "b") == b"OK"
    assert 0 < r.execute_command("CTTL", "k") <= 51
    assert r.execute_command("CSET", "k", "d", "IFEQ", "c") == b"OK"
    assert r.execute_command("CTTL", "k") == -1


@pytest.mark.parametrize("args", ["NX IFEQ a", "IFEQ a NX", "XX IFNE a", "IFEQ a IFNE b", "IFEQ a IFEQ a", "IFEQ", "IFNE",
                                  "GET IFEQ", "IFEQX a"])
def test_syntax(r, args):
    assert is_error(reply(r, "CSET", "k", "v", *args.split()), "syntax error")
    assert r.execute_command("CEXISTS", "k") == 0


def test_cdelex(r):
    assert r.execute_command("CDELEX", "k") == 0
    for condition in ("IFEQ", "IFNE"):
        assert r.execute_command("CDELEX", "k", condition, "") == 0
    r.execute_command("CMSET", "a", "1", "b", "2", "c", "3")
    assert r.execute_command("CDELEX", "a") == 1
    assert r.execute_command("CDELEX", "b", "IFEQ", "1") == 0
    assert r.execute_command("CDELEX", "b", "ifeq", "2") == 1
    assert r.execute_command("CDELEX", "c", "IFNE", "3") == 0
    assert r.execute_command("CDELEX", "c", "IFNE", "") == 1
    assert r.execute_command("CDBSIZE") == 0
    for bad in (("IFEQ",), ("IF", "3"), ("IFEQ", "3", "IFNE", "4")):
        assert is_error(reply(r, "CDELEX", "c", *bad), "syntax error")


def test_clients_that_compete(shared, r):
    """Each of them adds up by compare-and-set: no addition is lost."""
    r.execute_command("CSET", "sum", "0")

    def add(times):
        with shared.client() as client:
            while times:
                old = client.execute_command("CGET", "sum")
                if client.execute_command("CSET", "sum", int(old) + 1, "IFEQ", old) == b"OK":
                    times -= 1

    threads = [threading.Thread(target=add, args=(300,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.execute_command("CGET", "sum") == b"1200"


@pytest.fixture
def outside(own_server):
    """A server whose strings are under a prefix, and how one comes to be the server's own there: by a command that only it runs, or as it is long."""
    with own_server({"ckv.prefixes": "*"}).client() as r:
        yield r, {"by a command": lambda: [r.set("k", "a" * 50), r.getbit("k", 0)], "as it is long": lambda: [r.set("k", "a" * 2_000_000)]}


@pytest.mark.parametrize("how", ["by a command", "as it is long"])
def test_strings_of_the_servers_own_are_compared(outside, how):
    """Few servers know the words themselves."""
    r, make = outside
    make[how]()
    value = r.get("k")
    assert r.execute_command("CSET", "k", "new", "IFEQ", "b") is None
    assert r.execute_command("CSET", "k", "new", "IFNE", value) is None
    assert r.execute_command("CSET", "k", "new", "IFEQ", "b", "GET") == value == r.get("k")
    assert r.execute_command("CDELEX", "k", "IFEQ", "b") == r.execute_command("CDELEX", "k", "IFNE", value) == 0
    assert r.execute_command("CSET", "k", "new", "IFEQ", value, "GET", "EX", 100) == value
    assert (r.get("k"), r.ttl("k")) == (b"new", 100)
    make[how]()
    assert r.execute_command("CSET", "k", "new", "EX", 100, "IFNE", "b") == b"OK"
    assert (r.get("k"), r.ttl("k")) == (b"new", 100)
    make[how]()
    assert r.execute_command("CDELEX", "k", "IFEQ", value) == 1
    assert r.exists("k") == 0
    make[how]()
    assert r.execute_command("CDELEX", "k", "IFNE", "b") == 1


def test_other_types_are_not_compared(outside):
    r, _ = outside
    r.hset("k", "field", "value")
    for command in (("CSET", "k", "new", "IFEQ", "a"), ("CSET", "k", "new", "IFNE", "a", "GET"), ("CDELEX", "k", "IFNE", "a")):
        assert is_error(reply(r, *command), "WRONGTYPE")
    assert r.hgetall("k") == [b"field", b"value"]
