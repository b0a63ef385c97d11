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
