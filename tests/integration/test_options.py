"""Options in every combination: what Redis takes and refuses, ckv takes and refuses."""

import itertools
import random

import pytest

from helpers import NATIVE, comparable, is_error, reply

FUTURE_S = 4_000_000_000
WORDS = ["NX", "XX", "GET", "KEEPTTL", "PERSIST", "EX 10", "PX 10000", f"EXAT {FUTURE_S}", f"PXAT {FUTURE_S}000", "EX 20", "EX",
         "ex 10", "EX 0", "PX -1", "EX x", "10", "EX 9223372036854775807", "PXAT 9223372036854775807"]
CONDITIONS = ["NX", "XX", "GT", "LT", "nx", "ZZ", "10"]


def combinations(words, seed):
    """All of up to two, and some of three and four."""
    rng = random.Random(seed)
    yield from itertools.chain.from_iterable(itertools.product(words, repeat=n) for n in range(3))
    for n in (3, 3, 3, 4):
        for _ in range(80):
            yield [rng.choice(words) for _ in range(n)]


def kind(answer, command):
    """A reply as far as it can be compared: times are as exact as they can be."""
    answer = comparable(answer, command)
    return "a time" if isinstance(answer, int) and answer > 1 else answer


def ask_both(r, there, command, *args):
    """A command and its counterpart, on a record that is there or not; what becomes of the record as well."""
    answers = []
    for name in (command, NATIVE[command]):
        prefix = "C" if name == command else ""
        r.execute_command(prefix + "DEL", "k")
        if there is not None:
            r.execute_command(prefix + "SET", "k", "v", *there)
        answer = reply(r, name, *args)
        answers.append((kind(answer, name), reply(r, prefix + "GET", "k"), kind(r.execute_command(prefix + "PTTL", "k"), "")))
    assert answers[0] == answers[1], f"{command} {args} on {there}: ckv {answers[0]}, redis {answers[1]}"


@pytest.mark.parametrize("there", [(), ("EX", 1000), None], ids=["lasting", "expiring", "missing"])
def test_set(r, there):
    for words in combinations(WORDS, 1):
        ask_both(r, there, "CSET", "k", "new", *" ".join(words).split())


@pytest.mark.parametrize("there", [(), ("EX", 1000), None], ids=["lasting", "expiring", "missing"])
def test_getex(r, there):
    if there is None and is_error(reply(r, "GETEX", "none", "EX", 0)):
        pytest.skip("Valkey looks at the time before it looks for the key")
    for words in combinations(WORDS, 2):
        ask_both(r, there, "CGETEX", "k", *" ".join(words).split())


@pytest.mark.parametrize("there", [(), ("EX", 1000), None], ids=["lasting", "expiring", "missing"])
@pytest.mark.parametrize("command, number", [("CEXPIRE", 10), ("CPEXPIRE", 3_000_000), ("CEXPIREAT", FUTURE_S), ("CPEXPIREAT", 1)])
def test_expire(r, there, command, number):
    for words in combinations(CONDITIONS, 3):
        ask_both(r, there, command, "k", number, *" ".join(words).split())


def test_msetex(r):
    if is_error(reply(r, "MSETEX", 1, "k", "v")):
        pytest.skip("this server has no MSETEX")
    for there in [("EX", 1000), None]:
        for words in combinations([w for w in WORDS if w != "GET"], 4):
            ask_both(r, there, "CMSETEX", 1, "k", "new", *" ".join(words).split())


SCAN_WORDS = ["MATCH *", "MATCH k*", "COUNT 5", "COUNT 0", "COUNT x", "COUNT", "MATCH", "TYPE string", "TYPE hash", "TYPE STRING", "ZZ",
              "TYPE", "COUNT 9223372036854775807"]


def test_scan(r):
    r.execute_command("CMSET", "k", "v", "other", "v")
    r.execute_command("MSET", "k", "v", "other", "v")
    for words in combinations(SCAN_WORDS, 5):
        args = " ".join(words).split()
        ours, theirs = reply(r, "CSCAN", 0, *args), reply(r, "SCAN", 0, *args)
        if isinstance(ours, list) and isinstance(theirs, list):
            # Beside the two strings there are the maps of the two records; few are looked at with a small count.
            everything = "5" not in args
            keys = {key for key in theirs[1] if not key.startswith(b"ckv:")}
            assert set(ours[1]) == keys or not everything, args
        elif not is_error(theirs, "unknown type name"):  # as Valkey says
            assert comparable(ours, "CSCAN") == comparable(theirs, "SCAN"), args


@pytest.mark.parametrize("cursor", ["-1", "-0", "+1", "00", " 0", "0 ", "", "x", "1x", "18446744073709551615", "18446744073709551616", "1e3"])
def test_cursors(r, cursor):
    r.execute_command("CSET", "k", "v")
    r.execute_command("SET", "k", "v")
    if cursor in ("-1", "", " 0") and is_error(reply(r, "SCAN", "-1")):
        pytest.skip("newer servers read cursors in another way")
    ours, theirs = reply(r, "CSCAN", cursor), reply(r, "SCAN", cursor)
    assert is_error(ours) == is_error(theirs)
    if is_error(theirs):
        assert str(ours) == str(theirs)
