"""CSET and CGET: every option, their conflicts, and the same answers as SET and GET."""

import pytest

from helpers import is_error, late_by, now_ms, reply, twin

BAD_OPTIONS = [
    ("NX", "XX"),
    ("XX", "NX"),
    ("EX", "10", "PX", "10"),
    ("PX", "10", "EX", "10"),
    ("EX", "10", "EXAT", "9999999999"),
    ("EX", "10", "KEEPTTL"),
    ("KEEPTTL", "EX", "10"),
    ("KEEPTTL", "PXAT", "9999999999999"),
    ("EX",),
    ("PX",),
    ("EXAT",),
    ("PXAT",),
    ("EX", "ten"),
    ("EX", "1.5"),
    ("EX", ""),
    ("EX", "0"),
    ("EX", "-1"),
    ("PX", "0"),
    ("PX", "-100"),
    ("PX", "abc"),
    ("EXAT", "0"),
    ("EXAT", "-5"),
    ("EXAT", "x"),
    ("PXAT", "0"),
    ("PXAT", "-1"),
    ("EX", "9223372036854775807"),
    ("EX", "9223372036854775"),
    ("EX", "9223372036854775808"),
    ("PX", "9223372036854775807"),
    ("EXAT", "9223372036854775807"),
    ("SOMETHING",),
    ("NX", "SOMETHING"),
    ("EX", "10", "10"),
    ("GET", "EX"),
]


def test_set_and_get(r):
    assert twin(r, "CSET", "k", "v") == b"OK"
    assert twin(r, "CGET", "k") == b"v"
    assert twin(r, "CGET", "another") is None


def test_overwrite(r):
    for value in ("first", "second, which is longer than the first", "3rd", ""):
        assert twin(r, "CSET", "k", value) == b"OK"
        assert twin(r, "CGET", "k") == value.encode()
    assert r.execute_command("CDBSIZE") == 1


def test_command_and_option_names_in_any_case(r):
    assert reply(r, "cSeT", "k", "v", "eX", "100", "gEt") is None
    assert reply(r, "cget", "k") == b"v"
    assert 95 <= reply(r, "cttl", "k") <= 100


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_bad_options_answer_as_set_does(r, options):
    twin(r, "CSET", "k", "before")
    answer = twin(r, "CSET", "k", "after", *options)
    assert is_error(answer)
    assert twin(r, "CGET", "k") == b"before"
    assert twin(r, "CTTL", "k") == -1


@pytest.mark.parametrize("args", [(), ("k",)], ids=["none", "key"])
def test_cset_arity(r, args):
    assert is_error(twin(r, "CSET", *args), "wrong number of arguments")


@pytest.mark.parametrize("args", [(), ("k", "extra")], ids=["none", "two"])
def test_cget_arity(r, args):
    assert is_error(twin(r, "CGET", *args), "wrong number of arguments")


def test_nx(r):
    assert twin(r, "CSET", "k", "1", "NX") == b"OK"
    assert twin(r, "CSET", "k", "2", "NX") is None
    assert twin(r, "CGET", "k") == b"1"


def test_xx(r):
    assert twin(r, "CSET", "k", "1", "XX") is None
    assert twin(r, "CEXISTS", "k") == 0
    assert twin(r, "CSET", "k", "1") == b"OK"
    assert twin(r, "CSET", "k", "2", "XX") == b"OK"
    assert twin(r, "CGET", "k") == b"2"


def test_get_returns_the_old_value(r):
    assert twin(r, "CSET", "k", "1", "GET") is None
    assert twin(r, "CSET", "k", "2", "GET") == b"1"
    assert twin(r, "CGET", "k") == b"2"


def test_get_with_nx_and_xx(r):
    assert twin(r, "CSET", "k", "1", "XX", "GET") is None
    assert twin(r, "CEXISTS", "k") == 0
    assert twin(r, "CSET", "k", "1", "NX", "GET") is None
    assert twin(r, "CSET", "k", "2", "NX", "GET") == b"1"
    assert twin(r, "CGET", "k") == b"1"
    assert twin(r, "CSET", "k", "2", "GET", "XX") == b"1"
    assert twin(r, "CGET", "k") == b"2"


@pytest.mark.parametrize("option, value, low, high", [
    ("EX", 100, 99_000, 100_000),
    ("PX", 100_000, 99_000, 100_000),
])
def test_relative_expiry(r, option, value, low, high):
    assert r.execute_command("CSET", "k", "v", option, value) == b"OK"
    assert low <= r.execute_command("CPTTL", "k") <= high


def test_absolute_expiry(r):
    at = now_ms() + 100_000
    assert r.execute_command("CSET", "k", "v", "PXAT", at) == b"OK"
    assert at - late_by(100_000) <= r.execute_command("CPEXPIRETIME", "k") <= at
    at = at // 1000 + 1
    assert r.execute_command("CSET", "k", "v", "EXAT", at) == b"OK"
    assert at * 1000 - late_by(101_000) <= r.execute_command("CPEXPIRETIME", "k") <= at * 1000


def test_expiry_in_the_past(r):
    for options in (("EXAT", 1), ("PXAT", 1000)):
        assert twin(r, "CSET", "k", "v") == b"OK"
        assert twin(r, "CSET", "k", "v", *options) == b"OK"
        assert twin(r, "CGET", "k") is None
        assert twin(r, "CEXISTS", "k") == 0


def test_set_removes_the_expiry(r):
    twin(r, "CSET", "k", "1", "EX", 100)
    twin(r, "CSET", "k", "2")
    assert twin(r, "CTTL", "k") == -1


def test_keepttl(r):
    r.execute_command("CSET", "k", "1", "EX", 100)
    before = r.execute_command("CPEXPIRETIME", "k")
    for value in ("2", "a longer value " * 20, "v" * 5000, "3"):
        assert r.execute_command("CSET", "k", value, "KEEPTTL") == b"OK"
        assert r.execute_command("CGET", "k") == value.encode()
        assert r.execute_command("CPEXPIRETIME", "k") == before
    assert twin(r, "CSET", "new", "1", "KEEPTTL") == b"OK"
    assert twin(r, "CTTL", "new") == -1


def test_keepttl_rounds_once(r):
    """Many rewrites with KEEPTTL do not add up to a later expiry."""
    at = now_ms() + 1_000_000
    r.execute_command("CSET", "k", "1", "PXAT", at)
    for i in range(200):
        r.execute_command("CSET", "k", f"value {i}", "KEEPTTL")
    assert at - late_by(1_000_000) <= r.execute_command("CPEXPIRETIME", "k") <= at


def test_failed_nx_keeps_the_expiry(r):
    r.execute_command("CSET", "k", "1", "EX", 100)
    before = r.execute_command("CPEXPIRETIME", "k")
    assert r.execute_command("CSET", "k", "2", "NX", "EX", 1000) is None
    assert r.execute_command("CPEXPIRETIME", "k") == before


def test_any_bytes(r):
    everything = bytes(range(256))
    for key in (everything, b"", b"\x00", b"\r\n", b"a b", "schlüssel".encode(), everything * 2):
        for value in (everything, b"", b"\x00", b"\x00" * 100, b"\r\n$5\r\n", everything[::-1] * 3):
            assert twin(r, "CSET", key, value) == b"OK"
            assert twin(r, "CGET", key) == value


def test_keys_that_are_alike(r):
    """Keys that share a stem, or look as if they did, are different records."""
    keys = ["1", "01", "001", "0001", "00001", "100", "1000", "10000", "x100", "x0100", "x00100",
            "x1", "x01", "x001", "x", "x00", "x000", "KEY:12345", "KEY:12345 ", "KEY:1234", "KEY:123",
            "key:12345", "KEY:-12345", "KEY:123٣", "123456789012345678901234567890", "12345x", "99", "999"]
    for i, key in enumerate(keys):
        assert twin(r, "CSET", key, f"value {i}") == b"OK"
    assert r.execute_command("CDBSIZE") == len(keys)
    for i, key in enumerate(keys):
        assert twin(r, "CGET", key) == f"value {i}".encode()
    for i, key in enumerate(keys):
        assert twin(r, "CDEL", key) == 1
        assert r.execute_command("CDBSIZE") == len(keys) - 1 - i


def test_one_group_of_a_hundred(r):
    """All records of one stem, then every second one deleted."""
    for i in range(100):
        r.execute_command("CSET", f"user:115{i:02}", f"value of {i}")
    for i in range(0, 100, 2):
        assert r.execute_command("CDEL", f"user:115{i:02}") == 1
    for i in range(100):
        expected = None if i % 2 == 0 else f"value of {i}".encode()
        assert r.execute_command("CGET", f"user:115{i:02}") == expected


def test_strlen(r):
    assert twin(r, "CSTRLEN", "none") == 0
    for value in (b"", b"1", b"\x00" * 77, b"x" * 5000, b"abc" * 100_000):
        twin(r, "CSET", "k", value)
        assert twin(r, "CSTRLEN", "k") == len(value)
    twin(r, "CSTRLEN")
    twin(r, "CSTRLEN", "a", "b")


def test_inside_a_transaction(r):
    pipe = r.pipeline(transaction=True)
    pipe.execute_command("CSET", "a", "1")
    pipe.execute_command("CGET", "a")
    pipe.execute_command("CDEL", "a")
    pipe.execute_command("CGET", "a")
    assert pipe.execute() == [b"OK", b"1", 1, None]


def test_from_a_script(r):
    script = "redis.call('CSET', KEYS[1], ARGV[1], 'EX', 100); return redis.call('CGET', KEYS[1])"
    assert r.execute_command("EVAL", script, 1, "k", "v") == b"v"
    assert r.execute_command("CGET", "k") == b"v"
