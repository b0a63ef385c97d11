"""CMSETEX, and that a command of several records is carried out for all of them or for none."""

import pytest

from helpers import is_error, now_ms, reply


def ttls(r, *keys):
    return [r.execute_command("CTTL", key) for key in keys]


def test_one_expiry_for_all(r):
    assert r.execute_command("CMSETEX", 2, "a", 1, "b", 2, "EX", 100) == 1
    assert r.execute_command("CMGET", "a", "b") == [b"1", b"2"]
    assert ttls(r, "a", "b") == [100, 100]
    assert r.execute_command("CMSETEX", 2, "a", 1, "b", 2, "PX", 50_000) == 1
    assert ttls(r, "a", "b") == [50, 50]
    at = now_ms() // 1000 + 1000
    assert r.execute_command("CMSETEX", 1, "a", 1, "EXAT", at) == 1
    assert r.execute_command("CMSETEX", 1, "b", 1, "pxat", at * 1000) == 1
    assert at - 1 <= r.execute_command("CEXPIRETIME", "a") == r.execute_command("CEXPIRETIME", "b") <= at
    assert r.execute_command("CMSETEX", 2, "a", 3, "c", 4, "KEEPTTL") == 1
    assert 990 <= ttls(r, "a")[0] <= 1000 and ttls(r, "c") == [-1]
    assert r.execute_command("CMSETEX", 2, "a", 3, "c", 4) == 1
    assert ttls(r, "a", "c") == [-1, -1]


def test_conditions(r):
    assert r.execute_command("CMSETEX", 2, "a", 1, "b", 2, "XX") == 0
    assert r.execute_command("CDBSIZE") == 0
    assert r.execute_command("CMSETEX", 1, "a", 1, "NX", "EX", 100) == 1
    assert r.execute_command("CMSETEX", 2, "a", 5, "b", 2, "EX", 100, "XX") == 0
    assert r.execute_command("CMSETEX", 2, "b", 5, "a", 2, "NX") == 0
    assert r.execute_command("CMGET", "a", "b") == [b"1", None]
    assert r.execute_command("CMSETEX", 2, "a", 5, "a", 6, "XX") == 1
    assert r.execute_command("CMGET", "a", "b") == [b"6", None]


@pytest.mark.parametrize("args, error", [
    ("0 a 1", "invalid numkeys value"), ("-1 a 1", "invalid numkeys value"), ("x a 1", "invalid numkeys value"),
    ("9223372036854775807 a 1", "invalid numkeys value"), ("2147483647 a 1", "wrong number of key-value pairs"),
    ("2 a 1", "wrong number of key-value pairs"), ("2 a 1 b", "wrong number of key-value pairs"),
    ("1 a 1 b", "syntax error"), ("1 a 1 NX XX", "syntax error"), ("1 a 1 EX 1 PX 1", "syntax error"),
    ("1 a 1 KEEPTTL EX 1", "syntax error"), ("1 a 1 EX", "syntax error"), ("1 a 1 EX x", "value is not an integer"),
    ("1 a 1 EX 0", "invalid expire time in 'cmsetex' command"), ("1 a", "wrong number of arguments"),
])
def test_errors(r, args, error):
    assert is_error(reply(r, "CMSETEX", *args.split()), error)
    assert r.execute_command("CDBSIZE") == 0


@pytest.mark.parametrize("command", [("CMSET",), ("CMSETNX",), ("CMSETEX", 200)])
def test_all_or_none(r, command):
    """A native key stands where one of the maps belongs: nothing is written to the others."""
    r.execute_command("SET", "ckv:7", "not a map")
    keys = (f"some:{i}:key" for i in range(100_000))
    bad = next(key for key in keys if is_error(reply(r, "CGET", key), "WRONGTYPE"))
    pairs = [x for i in range(200) for x in (bad if i == 150 else f"some:{i}:key", "v")]
    assert is_error(reply(r, *command, *pairs), "WRONGTYPE")
    assert r.execute_command("CDBSIZE") == 0
