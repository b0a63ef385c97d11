"""The rest of the string commands, each next to Redis' own with the same arguments."""

import pytest

from helpers import NATIVE, reply, twin

STRINGS = ["GETDEL", "GETEX", "GETSET", "SETNX", "SETEX", "PSETEX", "APPEND", "GETRANGE", "SETRANGE", "INCR", "DECR",
           "INCRBY", "DECRBY", "INCRBYFLOAT", "UNLINK", "TOUCH"]
NATIVE.update({"C" + name: name for name in STRINGS})


def both(r, *value_and_options):
    r.execute_command("CSET", "k", *value_and_options)
    r.execute_command("SET", "k", *value_and_options)


@pytest.mark.parametrize("name", STRINGS)
def test_arity(r, name):
    for count in (0, 1, 2, 3, 4, 5):
        native = reply(r, name, *["x"] * count)
        if "wrong number of arguments" in str(native):
            assert "wrong number of arguments" in str(reply(r, "C" + name, *["x"] * count))


def test_get_and_change(r):
    twin(r, "CGETDEL", "k")
    twin(r, "CGETSET", "k", "new")
    twin(r, "CGETSET", "k", "newer")
    twin(r, "CSETNX", "k", "no")
    twin(r, "CGETDEL", "k")
    twin(r, "CSETNX", "k", "yes")
    assert r.execute_command("CGET", "k") == b"yes"
    both(r, "v", "EX", "100")
    twin(r, "CGETSET", "k", "w")
    assert r.execute_command("CTTL", "k") == -1
    assert twin(r, "CTOUCH", "k", "nothing", "k") == 2
    assert twin(r, "CUNLINK", "k", "nothing") == 1


@pytest.mark.parametrize("command", ["CSETEX", "CPSETEX"])
@pytest.mark.parametrize("ttl", ["100000", "0", "-1", "x", "", "9223372036854775807", "1.5"])
def test_set_with_expiry(r, command, ttl):
    twin(r, command, "k", ttl, "v")
    assert (r.execute_command("CPTTL", "k") > 0) == (ttl == "100000")


@pytest.mark.parametrize("options", [
    (), ("EX", "100"), ("PX", "100000"), ("PERSIST",), ("EX", "0"), ("PX", "-5"), ("EX", "x"), ("EX",), ("BAD",),
    ("PERSIST", "EX"), ("EXAT", "1"), ("KEEPTTL",), ("PX", "9223372036854775807"),
])
def test_getex(r, options):
    both(r, "v", "EX", "1000")
    twin(r, "CGETEX", "k", *options)
    twin(r, "CEXISTS", "k") if "CEXISTS" in NATIVE else None
    ours, theirs = r.execute_command("CTTL", "k"), r.execute_command("TTL", "k")
    assert abs(ours - theirs) <= 1
    twin(r, "CGETEX", "nothing", *options)


def test_append_and_ranges(r):
    twin(r, "CAPPEND", "k", "hello")
    twin(r, "CAPPEND", "k", b" \x00world")
    for start in (-100, -12, -3, 0, 2, 11, 12, 100):
        for end in (-100, -12, -3, 0, 2, 11, 12, 100):
            twin(r, "CGETRANGE", "k", start, end)
    twin(r, "CGETRANGE", "nothing", 0, -1)
    twin(r, "CGETRANGE", "k", "x", 1)
    twin(r, "CSETRANGE", "k", 2, "LL")
    twin(r, "CSETRANGE", "k", 20, "beyond")
    twin(r, "CSETRANGE", "k", 3, "")
    twin(r, "CSETRANGE", "nothing", 0, "")
    twin(r, "CSETRANGE", "k", -1, "x")
    twin(r, "CSETRANGE", "k", "x", "x")
    twin(r, "CSETRANGE", "k", 536870912, "x")
    assert r.execute_command("CGET", "k") == r.execute_command("GET", "k")
    both(r, "v", "EX", "1000")
    twin(r, "CAPPEND", "k", "w")
    assert r.execute_command("CTTL", "k") > 900


@pytest.mark.parametrize("value", ["10", "-1", "9223372036854775807", "-9223372036854775808", "", "x", " 1", "1.5", "01"])
@pytest.mark.parametrize("change", [
    ("CINCR",), ("CDECR",), ("CINCRBY", "5"), ("CDECRBY", "5"), ("CINCRBY", "-9223372036854775808"),
    ("CDECRBY", "-9223372036854775808"), ("CINCRBY", "x"), ("CDECRBY", "1.5"), ("CINCRBYFLOAT", "0.1"),
    ("CINCRBYFLOAT", "-1e10"), ("CINCRBYFLOAT", "x"), ("CINCRBYFLOAT", "inf"), ("CINCRBYFLOAT", "3.0e3"),
])
def test_counters(r, value, change):
    both(r, value, "EX", "1000")
    command, *by = change
    twin(r, command, "k", *by)
    assert r.execute_command("CGET", "k") == r.execute_command("GET", "k")
    assert r.execute_command("CTTL", "k") > 900
    r.execute_command("DEL", "new")
    r.execute_command("CDEL", "new")
    twin(r, command, "new", *by)


def test_events(r):
    r.config_set("notify-keyspace-events", "KEA")
    try:
        listener = r.pubsub()
        listener.psubscribe("__keyevent@0__:*")
        listener.get_message(timeout=5)
        for command in (("CSETEX", "k", 100, "1"), ("CINCR", "k"), ("CDECRBY", "k", 2), ("CINCRBYFLOAT", "k", 1),
                        ("CAPPEND", "k", "0"), ("CSETRANGE", "k", 0, "9"), ("CGETEX", "k", "PERSIST"), ("CGETDEL", "k")):
            r.execute_command(*command)
        seen = []
        while (message := listener.get_message(timeout=0.5)) is not None:
            assert message["data"] == b"k"
            seen.append(message["channel"].decode().split(":")[1])
        assert seen == ["set", "expire", "incrby", "decrby", "incrbyfloat", "append", "setrange", "persist", "del"]
    finally:
        r.config_set("notify-keyspace-events", "")
