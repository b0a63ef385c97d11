"""Expiry: the commands that read and set it, and the moment when it comes."""

import time

import pytest

from helpers import at_one_moment, info, is_error, is_in_sync, late_by, load, now_ms, reply, texts, twin, wait_for, wait_for_replica

DAY = 86_400_000
YEAR = 365 * DAY


@pytest.mark.parametrize("command", ["CTTL", "CPTTL", "CEXPIRETIME", "CPEXPIRETIME"])
def test_without_a_record_and_without_an_expiry(r, command):
    assert twin(r, command, "k") == -2
    twin(r, "CSET", "k", "v")
    assert twin(r, command, "k") == -1
    assert is_error(twin(r, command))
    assert is_error(twin(r, command, "k", "more"))


@pytest.mark.parametrize("ttl", [
    1, 2, 3, 10, 99, 500, 999, 1000, 1001, 7_998, 7_999, 8_000, 8_001, 31_999, 32_000, 60_000, 127_968,
    3_600_000, DAY, 7 * DAY, 30 * DAY, YEAR, 10 * YEAR, 100 * YEAR, 250 * YEAR,
])
def test_stored_time_is_never_early_and_hardly_late(r, ttl):
    for option in ("CSET", "CPEXPIRE", "CPEXPIREAT"):
        before = now_ms()
        if option == "CSET":
            assert r.execute_command("CSET", "k", "v", "PX", ttl) == b"OK"
        else:
            r.execute_command("CSET", "k", "v")
            argument = before + ttl if option == "CPEXPIREAT" else ttl
            assert r.execute_command(option, "k", argument) == 1
        after = now_ms()
        at = r.execute_command("CPEXPIRETIME", "k")
        if at == -2:  # it has passed already
            assert now_ms() >= before + ttl
        else:
            assert before + ttl - late_by(ttl) <= at <= after + ttl


def test_forty_thousand_ttls(r):
    """The error holds for every TTL, not only for round ones; also in pages of mixed TTLs."""
    expected = {}
    ttl = 1500.0
    pipe = r.pipeline(transaction=False)
    base = now_ms()
    for i in range(40_000):
        at = base + int(ttl)
        expected[f"key:{i}"] = at
        pipe.execute_command("CSET", f"key:{i}", "v" * (i % 50), "PXAT", at)
        ttl *= 1.00055  # up to about 170 years
        if i % 1000 == 999:
            pipe.execute()
    for key, at in list(expected.items())[::7]:
        got = r.execute_command("CPEXPIRETIME", key)
        if got == -2:
            assert now_ms() >= at
        else:
            assert at - late_by(at - base) <= got <= at, key


@pytest.mark.parametrize("ttl", [30, 150, 700])
def test_expires_on_time(r, ttl):
    before = now_ms()
    r.execute_command("CSET", "k", "v", "PX", ttl)
    after = now_ms()
    while True:
        asked = now_ms()
        value = r.execute_command("CGET", "k")
        answered = now_ms()
        if value is None:
            assert answered >= before + ttl
            break
        assert asked <= after + ttl + late_by(ttl) + 1, "it outlives its TTL"
        time.sleep(0.001)
    for command, expected in [("CEXISTS", 0), ("CSTRLEN", 0), ("CTTL", -2), ("CPTTL", -2),
                              ("CEXPIRETIME", -2), ("CPERSIST", 0), ("CDEL", 0)]:
        assert r.execute_command(command, "k") == expected, command


@pytest.mark.parametrize("command, args, expected", [
    ("CGET", (), None),
    ("CEXISTS", (), 0),
    ("CSTRLEN", (), 0),
    ("CTTL", (), -2),
    ("CPTTL", (), -2),
    ("CEXPIRETIME", (), -2),
    ("CPEXPIRETIME", (), -2),
    ("CDEL", (), 0),
    ("CPERSIST", (), 0),
    ("CEXPIRE", (100,), 0),
    ("CPEXPIRE", (100,), 0),
    ("CMGET", (), [None]),
    ("CSET", ("new", "XX"), None),
    ("CSET", ("new", "GET"), None),
    ("CSET", ("new", "NX"), b"OK"),
])
def test_an_expired_record_is_not_there(r, command, args, expected):
    r.execute_command("CSET", "k", "v", "PX", 20)
    r.execute_command("SET", "k", "v", "PX", 20)
    time.sleep(0.03)
    assert twin(r, command, "k", *args) == expected


def test_keepttl_of_an_expired_record_is_none(r):
    r.execute_command("CSET", "k", "v", "PX", 20)
    time.sleep(0.03)
    r.execute_command("CSET", "k", "v", "KEEPTTL")
    assert r.execute_command("CPTTL", "k") == -1


def test_ttl_rounds_as_redis_does(r):
    """TTL is in seconds, rounded to the nearest."""
    assert at_one_moment(r, ("CSET", "k", "v", "PX", 10_900), ("CTTL", "k")) == [b"OK", 11]
    at = r.execute_command("CPEXPIRETIME", "k")
    assert r.execute_command("CEXPIRETIME", "k") == (at + 500) // 1000


@pytest.mark.parametrize("command", ["CEXPIRE", "CPEXPIRE", "CEXPIREAT", "CPEXPIREAT"])
@pytest.mark.parametrize("args", [
    (),
    ("k",),
    ("k", "abc"),
    ("k", "1.5"),
    ("k", ""),
    ("k", "9223372036854775807"),
    ("k", "-9223372036854775808"),
    ("k", "9223372036854775808"),
    ("k", "100", "ZZ"),
    ("k", "100", "NX", "XX"),
    ("k", "100", "NX", "GT"),
    ("k", "100", "NX", "LT"),
    ("k", "100", "GT", "LT"),
    ("k", "100", "NX", "NX", "XX"),
    ("k", "100", "XX", "ZZ"),
], ids=lambda args: " ".join(args) or "none")
def test_bad_arguments(r, command, args):
    twin(r, "CSET", "k", "v")
    if command in ("CPEXPIREAT",) and args[1:] in (("9223372036854775807",),):
        assert twin(r, command, *args) == 1 and r.execute_command("CTTL", "k") > 271 * 365 * 86400
        return
    elif args[1:] == ("-9223372036854775808",) and command in ("CPEXPIREAT", "CPEXPIRE"):
        twin(r, command, *args)
        return
    else:
        assert is_error(twin(r, command, *args))
    assert r.execute_command("CGET", "k") == b"v"
    assert r.execute_command("CTTL", "k") == -1


@pytest.mark.parametrize("years", [280, 1000, 100_000])
def test_the_longest_ttl(r, years):
    """272 years is the longest TTL; what is longer is kept as that."""
    seconds = years * 365 * 86400
    now = int(time.time())
    for args in [("CSET", "k", "new", "EX", seconds), ("CSET", "k", "new", "PX", seconds * 1000),
                 ("CSET", "k", "new", "EXAT", now + seconds), ("CSET", "k", "new", "PXAT", (now + seconds) * 1000),
                 ("CEXPIRE", "k", seconds), ("CPEXPIRE", "k", seconds * 1000),
                 ("CEXPIREAT", "k", now + seconds), ("CPEXPIREAT", "k", (now + seconds) * 1000)]:
        r.execute_command("CSET", "k", "v")
        assert twin(r, *args) in (b"OK", 1), args
        assert 271 * YEAR < r.execute_command("CPTTL", "k") <= 272.3 * YEAR, args
    longest = 2**63 - 1
    for args in [("CSET", "k", "v", "PXAT", longest), ("CPEXPIREAT", "k", longest), ("CSETEX", "k", longest // 2000, "v"),
                 ("CMSETEX", 1, "k", "v", "PXAT", longest), ("CGETEX", "k", "PXAT", longest)]:
        r.execute_command("CSET", "k", "v")
        assert not is_error(reply(r, *args)), args
        assert 271 * YEAR < r.execute_command("CPTTL", "k") <= 272.3 * YEAR, args


@pytest.mark.parametrize("command", ["CEXPIRE", "CPEXPIRE", "CEXPIREAT", "CPEXPIREAT"])
def test_no_such_record(r, command):
    assert twin(r, command, "none", now_ms() + 100_000 if command == "CPEXPIREAT" else 5_000_000_000 if command == "CEXPIREAT" else 100) == 0


@pytest.mark.parametrize("command, argument", [
    ("CEXPIRE", 0), ("CEXPIRE", -1), ("CPEXPIRE", 0), ("CPEXPIRE", -1000),
    ("CEXPIREAT", 0), ("CEXPIREAT", 1), ("CEXPIREAT", -1), ("CPEXPIREAT", 1000),
])
def test_a_time_that_has_passed_deletes(r, command, argument):
    twin(r, "CSET", "k", "v")
    assert twin(r, command, "k", argument) == 1
    assert twin(r, "CGET", "k") is None
    assert twin(r, "CEXISTS", "k") == 0
    assert r.execute_command("CDBSIZE") == 0


@pytest.mark.parametrize("old", [None, 1000, 100_000])
@pytest.mark.parametrize("new", [60, 5000, 1_000_000])
@pytest.mark.parametrize("condition", ["NX", "XX", "GT", "LT", "nx", "XX GT", "XX LT"])
def test_conditions(r, old, new, condition):
    for command, factor in [("CEXPIRE", 1), ("CPEXPIRE", 1000), ("CEXPIREAT", 1), ("CPEXPIREAT", 1000)]:
        before = now_ms() // 1000 * 1000  # as exact as CEXPIREAT
        base = before // 1000 * factor if command.endswith("AT") else 0
        twin(r, "CSET", "k", "v", *(("EX", old) if old else ()))
        answer = twin(r, command, "k", base + new * factor, *condition.split())
        at, after = r.execute_command("CPEXPIRETIME", "k"), now_ms()
        expected = (new if answer else old or 0) * 1000
        assert before + expected - late_by(expected) <= at <= after + expected if expected else at == -1


def test_a_condition_that_holds_deletes_when_the_time_has_passed(r):
    for old, condition in [(None, "NX"), (100, "XX"), (100, "LT"), (None, "LT"), (100, "GT"), (None, "GT")]:
        twin(r, "CSET", "k", "v", *(("EX", old) if old else ()))
        twin(r, "CEXPIRE", "k", -1, condition)
        twin(r, "CEXISTS", "k")


@pytest.mark.parametrize("ttl", [1, 10, 100, 5000, 10_000, 100_000, 10**6, 10**8, 10**10, 10**12])
def test_never_more_is_told_than_was_asked(r, ttl):
    asked_at = now_ms() + ttl
    for args in [("CSET", "k", "v", "PX", ttl), ("CPEXPIRE", "k", ttl), ("CGETEX", "k", "PX", ttl),
                 ("CSET", "k", "v", "PXAT", asked_at), ("CPSETEX", "k", ttl, "v")]:
        r.execute_command("CSET", "k", "v")
        earliest = asked_at if "PXAT" in args else now_ms() + ttl
        r.execute_command(*args)
        left, now, at = r.execute_command("CPTTL", "k"), now_ms(), r.execute_command("CPEXPIRETIME", "k")
        assert now >= earliest if left == -2 else earliest - now - late_by(ttl) <= left <= ttl, args
        assert at == -2 or at <= (asked_at if "PXAT" in args else now_ms() + ttl), args
        assert r.execute_command("CEXPIRETIME", "k") in (-2, (at + 500) // 1000)


def test_something_is_left_of_a_live_record(r):
    """It lives on to the upper end of what two bytes say, of which the lower is told."""

    def lived():
        asked = now_ms() + 100
        told = []
        r.execute_command("CSET", "k", "v", "PXAT", asked + 60_000)
        r.execute_command("CPEXPIREAT", "k", asked)
        while not told or told[-1] != -2:
            told.append(r.execute_command("CPTTL", "k"))
        assert now_ms() >= asked and min(told[:-1], default=1) > 0
        return told[0] > 0

    wait_for(lived, what="that it is asked for in time")


def test_a_time_is_neither_greater_nor_less_than_itself(r):
    """Set again later it is stored more exactly, which is no other time."""
    times = [now_ms() + ttl for ttl in (60_000, 3_600_000, DAY, 30 * DAY, 100 * YEAR)]
    for at in times:
        r.execute_command("CSET", at, "v", "PXAT", at)
    for _ in range(20):
        time.sleep(0.01)
        for at in times:
            assert r.execute_command("CPEXPIREAT", at, at, "GT") == 0
            assert r.execute_command("CPEXPIREAT", at, at, "LT") == 0
            assert r.execute_command("CPEXPIREAT", at, at, "XX") == 1


def test_a_ttl_that_is_asked_for_again_reaches_further(r):
    """However little time has passed: that is how a session is kept alive."""
    for seconds in 60, 3600, 86_400, 30 * 86_400:
        r.execute_command("CSET", seconds, "v", "EX", seconds)
        for _ in range(5):
            time.sleep(0.005)
            asked = now_ms() + 1000 * seconds
            assert r.execute_command("CEXPIRE", seconds, seconds, "GT") == 1
            assert r.execute_command("CEXPIRE", seconds, seconds * 9 // 10, "GT") == 0
            assert 0 <= asked + 5000 - r.execute_command("CPEXPIRETIME", seconds) < seconds + 10_000


def test_a_replica_tells_no_more_either(own_server):
    server = own_server()
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}"})
    with server.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        asked = {f"k:{i}": now_ms() + int(60_000 * 1.4**i) for i in range(40)}
        for i, (key, at) in enumerate(asked.items()):
            if i % 2:
                r.execute_command("CSET", key, "v", "PXAT", at)
            else:
                r.execute_command("CSET", key, "v")
                r.execute_command("CPEXPIREAT", key, at)
            r.execute_command("CSET", key, "w", "KEEPTTL")
        wait_for_replica(r)
        for key, at in asked.items():
            assert at - late_by(at - now_ms() + 60_000) <= q.execute_command("CPEXPIRETIME", key) <= at, key


def test_persist(r):
    assert twin(r, "CPERSIST", "none") == 0
    twin(r, "CSET", "k", "v")
    assert twin(r, "CPERSIST", "k") == 0
    twin(r, "CSET", "k", "v", "EX", 100)
    assert twin(r, "CPERSIST", "k") == 1
    assert twin(r, "CTTL", "k") == -1
    assert twin(r, "CGET", "k") == b"v"
    assert is_error(twin(r, "CPERSIST"))
    assert is_error(twin(r, "CPERSIST", "k", "k"))


def test_expire_of_a_large_value(r):
    value = b"0123456789" * 5000
    r.execute_command("CSET", "k", value)
    made, read, ttl = at_one_moment(r, ("CEXPIRE", "k", 100), ("CGET", "k"), ("CTTL", "k"))
    assert made == 1 and read == value and 99 <= ttl <= 101
    assert r.execute_command("CPERSIST", "k") == 1
    assert r.execute_command("CGET", "k") == value
    assert r.execute_command("CPEXPIRE", "k", 20) == 1
    time.sleep(0.03)
    assert r.execute_command("CGET", "k") is None


def test_neighbours_with_and_without_expiry(r):
    """Records of one page expire each on its own."""
    began = time.monotonic()
    for i in range(100):
        options = {0: (), 1: ("PX", 40), 2: ("EX", 1000), 3: ("EX", 10_000_000)}[i % 4]
        r.execute_command("CSET", f"user:5{i:02}", f"value {i}", *options)
    time.sleep(0.06)
    for i in range(100):
        value = r.execute_command("CGET", f"user:5{i:02}")
        assert value == (None if i % 4 == 1 else f"value {i}".encode())
        ttl = r.execute_command("CTTL", f"user:5{i:02}")
        passed = int(time.monotonic() - began)
        low, high = {0: (-1, -1), 1: (-2, -2), 2: (998 - passed, 1002), 3: (9_990_000 - passed, 10_000_000)}[i % 4]
        assert low <= ttl <= high


def test_rewriting_a_page_does_not_move_expiries(r):
    """A neighbour's writes and expiries over a while do not push a record's expiry."""
    at = {}
    for i in range(50):
        at[i] = now_ms() + 50_000 * (i + 1)
        r.execute_command("CSET", f"user:7{i:02}", "x" * i, "PXAT", at[i])
    end = time.monotonic() + 1.5
    n = 0
    while time.monotonic() < end:
        n += 1
        r.execute_command("CSET", f"user:7{50 + n % 50:02}", "y" * (n % 90), "PX", 2 + n % 30)
    for i in range(50):
        got = r.execute_command("CPEXPIRETIME", f"user:7{i:02}")
        assert at[i] - late_by(50_000 * (i + 1)) <= got <= at[i]


def test_counted_as_expired(r):
    before = info(r)["expired_records"]
    values = texts(2000)
    stored = load(r, values)
    pipe = r.pipeline(transaction=False)
    for key in stored:
        pipe.execute_command("CPEXPIRE", key, 30)
    pipe.execute()
    time.sleep(0.05)
    assert r.execute_command("CMGET", *stored) == [None] * len(stored)
    wait_for(lambda: info(r)["expired_records"] - before >= len(stored), what="expired_records to count them")
    load(r, values, ttl=1000)
    assert r.execute_command("CMGET", *stored) == values


def test_mass_expiry_frees_the_memory(r):
    """Records that have expired go when their page is written to, at the latest."""
    values = texts(5000)
    load(r, values, ttl=1)
    time.sleep(1.1)
    load(r, values, ttl=1000)
    fields = info(r)
    assert fields["records"] == len(values)
    assert fields["records_with_expiry"] == len(values)
