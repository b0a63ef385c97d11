"""Every command that has a native counterpart gives its replies and errors, and leaves the same value and TTL."""

import random

import pytest

from helpers import NATIVE, comparable, is_error, now_ms, reply, texts

VALUES = ["", "0", "1", "-1", "007", " 7", "7 ", "1.5", "-0", "1e3", "nan", "inf", "text", "9223372036854775807",
          "-9223372036854775808", "9223372036854775808", "3.0e3", "x" * 300, "0x10", "+5"]


def state(r, prefix, key):
    """The record or the native key: its value, and whether and when it expires, in ms."""
    return [r.execute_command(name, key) for name in {"C": ("CGET", "CPTTL"), "": ("GET", "PTTL")}[prefix]]


def alike(state, other):
    """Both expire at about the same time, which is told to 0.1% and asked one after the other, or neither does."""
    (value, ttl), (other_value, other_ttl) = state, other
    return value == other_value and (ttl == other_ttl or min(ttl, other_ttl) > 0 and abs(ttl - other_ttl) < 5000)


def both(r, command, *args, key=None):
    """Runs a command and its counterpart on the same key: replies and what they leave agree."""
    ours, theirs = reply(r, command, *args), reply(r, NATIVE[command], *args)
    assert comparable(ours, command) == comparable(theirs, NATIVE[command]), f"{command} {args!r:.300}"
    key = key or (args[0] if args else None)
    if key is not None:
        ours_now, theirs_now = state(r, "C", key), state(r, "", key)
        assert alike(ours_now, theirs_now), f"after {command} {args!r:.300}: {ours_now!r:.300}, {theirs_now!r:.300}"
    return ours


def start(r, key, value, ttl=None):
    """Both have this value; None: neither is there."""
    r.execute_command("CDEL", key)
    r.execute_command("DEL", key)
    if value is not None:
        for name in ("CSET", "SET"):
            r.execute_command(name, key, value, *(("PX", ttl) if ttl else ()))


@pytest.mark.parametrize("command, args", [
    ("CINCR", ()), ("CDECR", ()), ("CINCRBY", ("5",)), ("CINCRBY", ("-5",)), ("CINCRBY", ("x",)), ("CINCRBY", ("1.5",)),
    ("CINCRBY", ("9223372036854775807",)), ("CDECRBY", ("5",)), ("CDECRBY", ("-9223372036854775808",)),
    ("CDECRBY", ("9223372036854775807",)), ("CINCRBYFLOAT", ("1",)), ("CINCRBYFLOAT", ("-1.5",)), ("CINCRBYFLOAT", ("3e5",)),
    ("CINCRBYFLOAT", ("x",)), ("CINCRBYFLOAT", ("inf",)), ("CINCRBYFLOAT", ("0.1",)), ("CINCRBYFLOAT", (" 1",)),
])
def test_counters(r, command, args):
    for value in [None, *VALUES]:
        for ttl in (None, 1_000_000):
            start(r, "k", value, ttl)
            both(r, command, "k", *args)


def test_a_counter_counts(r):
    for i in range(1, 2001):
        assert r.execute_command("CINCR", "n") == i
    for i in range(20):
        both(r, "CINCRBYFLOAT", "f", "0.1")
    both(r, "CINCRBYFLOAT", "f", "1e4000")
    both(r, "CINCRBYFLOAT", "f", "1e4931")


@pytest.mark.parametrize("value", [None, "", "x", "Hello World", "\x00\xff" * 700])
def test_ranges(r, value):
    edges = [-(2**63), -1000000, -12, -5, -1, 0, 1, 5, 11, 1000000, 2**63 - 1]
    start(r, "k", value)
    for first in edges:
        for last in edges:
            both(r, "CGETRANGE", "k", first, last)
    for bad in ("", "x", "1.5", 2**63):
        both(r, "CGETRANGE", "k", bad, 1)
        both(r, "CGETRANGE", "k", 1, bad)


@pytest.mark.parametrize("value", [None, "", "Hello World", "x" * 5000])
def test_setrange_and_append(r, value):
    for offset in (0, 1, 5, 11, 12, 300, 6000, -1, "x", 2**29 - 3, 2**29, 2**63 - 1):
        for part in ("", "part", "y" * 2000):
            if isinstance(offset, int) and 100_000 < offset and offset + len(part) <= 2**29:
                continue  # half a gigabyte, see test_the_longest_value
            start(r, "k", value, 1_000_000)
            both(r, "CSETRANGE", "k", offset, part)
    start(r, "k", value, 1_000_000)
    for part in ("", "a", "b" * 1000, "c" * 3000, b"\x00\xff"):
        both(r, "CAPPEND", "k", part)


@pytest.mark.slow
def test_the_longest_value(own_server):
    with own_server().client() as r:
        assert r.execute_command("CSETRANGE", "k", 2**29 - 3, "end") == 2**29
        assert is_error(reply(r, "CAPPEND", "k", "x"), "string exceeds maximum allowed size (proto-max-bulk-len)")
        assert is_error(reply(r, "CSETRANGE", "k", 2**29, "x"), "string exceeds maximum allowed size")
        assert r.execute_command("CGETRANGE", "k", -4, -1) == b"\0end"
        assert r.execute_command("CSTRLEN", "k") == 2**29


@pytest.mark.parametrize("ttl", [None, 1_000_000])
@pytest.mark.parametrize("value", [None, "", "old", "x" * 5000])
def test_the_short_forms(r, value, ttl):
    at = now_ms() + 500_000
    # Valkey 9 looks at the time before it looks for the key.
    time_first = is_error(reply(r, "GETEX", "missing", "EX", 0))
    for command, *args in [
        ("CGETDEL",), ("CGETSET", "new"), ("CSETNX", "new"), ("CSETEX", 100, "new"), ("CPSETEX", 100_000, "new"),
        ("CSETEX", 0, "new"), ("CSETEX", -1, "new"), ("CSETEX", "x", "new"), ("CPSETEX", 2**63 - 1, "new"),
        ("CGETEX",), ("CGETEX", "EX", 100), ("CGETEX", "PX", 100_000), ("CGETEX", "EXAT", at // 1000),
        ("CGETEX", "PXAT", at), ("CGETEX", "PERSIST"), ("CGETEX", "persist", "EX", 5), ("CGETEX", "EX"),
        ("CGETEX", "EX", 0), ("CGETEX", "EX", "x"), ("CGETEX", "PXAT", 1), ("CGETEX", "KEEPTTL"), ("CGETEX", "EX", 1, "PX", 1),
        ("CGETEX", "NX"),
        ("CDEL",), ("CUNLINK",), ("CEXISTS",), ("CTOUCH",),
        ("CPERSIST",), ("CSTRLEN",), ("CGET",),
    ]:
        if value is None and time_first and (command, *args[:1]) == ("CGETEX", "EX") and args[1:] in ([0], ["x"]):
            continue
        start(r, "k", value, ttl)
        both(r, command, "k", *args)


def test_many(r):
    for keys in (["a"], ["a", "b"], ["a", "b", "a"]):
        for there in (None, "a", "b"):
            for key in ("a", "b"):
                start(r, key, "old" if key == there else None, 1_000_000)
            pairs = [x for i, key in enumerate(keys) for x in (key, f"new {i}")]
            both(r, "CMSETNX", *pairs, key="a")
            both(r, "CMGET", *keys)
            both(r, "CMSET", *pairs, key="a")
            both(r, "CMGET", *keys)


@pytest.mark.parametrize("command", sorted(NATIVE))
def test_wrong_number_of_arguments(r, command):
    if is_error(reply(r, "COMMAND", "GETKEYS", NATIVE[command]), "Invalid command specified"):
        return  # newer than this server
    info = r.execute_command("COMMAND", "INFO", command)[0]
    least = abs(info[1]) - 1
    if least:
        assert is_error(reply(r, command, *["1"] * (least - 1)), f"wrong number of arguments for '{command.lower()}' command")
    if info[1] > 0:
        assert is_error(reply(r, command, *["1"] * (least + 1)), "wrong number of arguments")


def test_odd_pairs(r):
    for command in ("CMSET", "CMSETNX"):
        both(r, command, "a", "1", "b", key="a")


def test_changed_values_are_stored_like_others(r):
    """A long walk over values of all sizes, some of them large, with a dictionary."""
    rng = random.Random(3)
    for i, text in enumerate(texts(2000)):
        r.execute_command("CSET", b"KEY:%d" % i, text)
    reply(r, "CKV", "TRAIN")
    for i in range(30):
        start(r, f"KEY:{i}", texts(1, seed=i)[0], 1_000_000)
    for step in range(1500):
        key = f"KEY:{rng.randrange(30)}"
        command, *args = rng.choice([
            ("CAPPEND", texts(1, seed=step)[0] * rng.choice([1, 1, 1, 20])),
            ("CSETRANGE", rng.randrange(2000), texts(1, seed=step)[0]),
            ("CGETRANGE", rng.randrange(-3000, 3000), rng.randrange(-3000, 3000)),
            ("CGETSET", texts(1, seed=step)[0]),
            ("CINCR",), ("CGETDEL",), ("CSETNX", "1"), ("CSTRLEN",), ("CGETEX", "PERSIST"), ("CGETEX", "EX", 1000),
        ])
        both(r, command, key, *args)


def test_what_is_too_long_for_a_number_is_not_decoded(own_server):
    """Of 17 MB, to read all takes as long as thousands of refusals."""
    server = own_server()
    with server.client() as r:
        r.execute_command("CSET", "text", b"".join(b"%d bottles of beer on the wall, " % i for i in range(500_000)))
        r.execute_command("CKV", "OPTIMIZE")
        for command, error in (("CINCR text", "not an integer"), ("CINCRBYFLOAT text 1", "not a valid float"), ("CDECRBY text 5", "not an integer")):
            assert all(error in str(reply(r, *command.split())) for _ in range(20))
        assert len(r.execute_command("CGET", "text")) == r.execute_command("CSTRLEN", "text")
        took = {name: line["usec"] for name, line in r.info("commandstats").items()}
        for name in ("cincr", "cincrbyfloat", "cdecrby"):
            assert took[f"cmdstat_{name}"] < took["cmdstat_cget"]
