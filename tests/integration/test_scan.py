"""CSCAN, CKEYS and CRANDOMKEY."""

import random
import time
from collections import Counter

import pytest

from helpers import cpu_seconds, is_error, load, map_keys, reply, texts


def scan(r, *options):
    """All keys of a whole iteration, as often as they come."""
    found, cursor = [], b"0"
    while True:
        cursor, keys = r.execute_command("CSCAN", cursor, *options)
        found += keys
        if cursor == b"0":
            return found


@pytest.mark.parametrize("count", [1, 10, 1000, 10**15])
def test_everything_once_while_nothing_changes(r, count):
    stored = load(r, texts(5000))
    found = scan(r, "COUNT", count)
    assert len(found) == len(stored) and set(found) == set(stored)


def test_an_empty_database(r):
    assert r.execute_command("CSCAN", 0) == [b"0", []]
    assert r.execute_command("CKEYS", "*") == []
    assert r.execute_command("CRANDOMKEY") is None


def test_keys_of_all_kinds(r):
    keys = {b"", b"\x00", b"\xff" * 5, b"long" * 500, b"000", b"00012", b"large", *(b"media:%d" % i for i in range(900, 1200))}
    for key in keys:
        r.execute_command("CSET", key, b"x" * 3000 if key == b"large" else b"v")
    assert set(scan(r)) == set(r.execute_command("CKEYS", "*")) == keys


def test_expired_records_are_not_found(r):
    load(r, texts(300))
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    for i in range(300, 600):
        r.execute_command("CSET", f"KEY:{i}", "v", "PX", 1)
    time.sleep(0.01)
    assert set(scan(r)) == set(r.execute_command("CKEYS", "*")) == {b"KEY:%d" % i for i in range(300)}
    assert {int(r.execute_command("CRANDOMKEY")[4:]) < 300 for _ in range(300)} == {True}


def test_expires_and_noexpires(r):
    lasting = load(r, texts(500))
    expiring = load(r, texts(500), first=1000, ttl=1000)
    assert set(scan(r, "EXPIRES")) == set(expiring)
    assert set(scan(r, "noexpires", "COUNT", 100)) == set(lasting)


PATTERNS = ["*", "", "a*", "*a", "*a*", "?", "??", "a?c", "[abc]", "[^abc]", "[a-c]*", "[c-a]*", r"\*", r"a\?c", "a**c", "*?*", "[",
            "[a", "[^", "[]", "a[bc", "[a-", "[-a]", r"[\]]", r"[\-]", r"a\\c", "a\\", "h[ae]llo", "*lo", "*.*.*", "[^]*", "*[0-9]*"]
TEXTS = ["", "a", "b", "-", "]", "*", "?", "ab", "abc", "a?c", "a*c", r"a\c", "aXc", "hello", "hallo", "hillo", "1.2.3", "a[bc",
         "[", "[a", "a-c", "a" * 300, "\\", "^", "z", "c", b"\x80", b"\xff"]


def test_patterns_are_those_of_keys(r):
    for text in TEXTS:
        r.execute_command("CSET", text, "v")
        r.execute_command("SET", text, "v")
    rng = random.Random(1)
    chance = [bytes(rng.choices(b"[]^-*?\\\\aabcz\x80\xff", k=rng.randrange(1, 9))) for _ in range(1000)]
    for pattern in [*PATTERNS, *chance]:
        ours = set(r.execute_command("CKEYS", pattern))
        assert ours == set(scan(r, "MATCH", pattern)), pattern
        assert ours == {k for k in r.execute_command("KEYS", pattern) if not k.startswith(b"ckv:")}, pattern


def test_a_pattern_that_takes_long(r):
    r.execute_command("CSET", "a" * 1000, "v")
    before = cpu_seconds(r)
    assert r.execute_command("CKEYS", "a*" * 200 + "b") == []
    assert cpu_seconds(r) - before < 1


@pytest.mark.parametrize("cursor", ["x", "1x", " 1", "18446744073709551616", "0.0"])
def test_invalid_cursors(r, cursor):
    assert is_error(reply(r, "CSCAN", cursor), "invalid cursor")


def test_cursors_from_elsewhere(r):
    load(r, texts(100))
    for cursor in (1, 2**31, 2**32, 12345678901234, 2**63, 2**64 - 1):
        after, keys = r.execute_command("CSCAN", cursor, "COUNT", 10**9)
        assert after == b"0" and len(keys) <= 100


@pytest.mark.parametrize("options, error", [
    ("COUNT", "syntax"), ("COUNT 0", "syntax"), ("COUNT -5", "syntax"), ("COUNT x", "not an integer"), ("MATCH", "syntax"),
    ("EXPIRES NOEXPIRES", "syntax"), ("TYPE", "syntax"), ("WHAT", "syntax"),
])
def test_errors(r, options, error):
    assert is_error(reply(r, "CSCAN", 0, *options.split()), error)


@pytest.mark.parametrize("maps", [1, 16])
def test_while_the_maps_grow_and_shrink(own_server, maps):
    """Thousands of records come and go between two steps; those that stay are all returned."""
    rng = random.Random(maps)
    with own_server({"ckv.maps": maps, "ckv.train-after": "64kb"}).client() as r:
        staying = load(r, texts(10_000), key=b"stay:%d", ttl=1000)
        for round in range(6):
            found, cursor, steps = set(), b"0", 0
            growing = round % 2 == 0
            while True:
                cursor, keys = r.execute_command("CSCAN", cursor, "COUNT", rng.choice([1, 50, 300]))
                found.update(keys)
                steps += 1
                if cursor == b"0":
                    break
                some = [b"pass:%d" % rng.randrange(60_000) for _ in range(800)]
                if growing:
                    value = rng.choice(texts(20, seed=steps))
                    r.execute_command("CMSET", *[x for key in some for x in (key, value)])
                else:
                    r.execute_command("CDEL", *some)
                if steps % 7 == 0:
                    again = rng.sample(sorted(staying), 100)
                    r.execute_command("CMSET", *[x for key in again for x in (key, staying[key])])
            assert staying.keys() <= found, f"round {round}: {len(staying.keys() - found)} were missed"
            assert steps > 10


def test_over_a_reload_and_a_training(r):
    stored = load(r, texts(4000))
    found, cursor, steps = set(), b"0", 0
    while cursor != b"0" or steps == 0:
        cursor, keys = r.execute_command("CSCAN", cursor, "COUNT", 200)
        found.update(keys)
        steps += 1
        if steps == 5:
            r.execute_command("DEBUG", "RELOAD")
        if steps == 8:
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")
    assert found == set(stored) and steps > 10


def test_databases(shared):
    with shared.client(db=0) as r0, shared.client(db=3) as r3:
        one, two = load(r0, texts(200)), load(r3, texts(300), first=1000)
        assert set(scan(r0)) == set(one) and set(scan(r3)) == set(two)
        assert r3.execute_command("CRANDOMKEY") in two
        r0.execute_command("SWAPDB", 0, 3)
        assert set(scan(r0)) == set(two) and set(scan(r3)) == set(one)


def test_a_map_under_another_name(r):
    """What no look-up finds is not listed either."""
    load(r, texts(500))
    name = map_keys(r)[0]
    r.execute_command("RENAME", name, "aside")
    found = scan(r)
    assert set(found) == set(r.execute_command("CKEYS", "*"))
    assert 0 < len(found) < 500
    assert all(r.execute_command("CMGET", *found))
    assert all(r.execute_command("CEXISTS", r.execute_command("CRANDOMKEY")) for _ in range(200))
    r.execute_command("RENAME", "aside", name)
    assert len(scan(r)) == 500


def test_random_keys(r):
    stored = load(r, texts(1000))
    pipe = r.pipeline(transaction=False)
    for _ in range(10_000):
        pipe.execute_command("CRANDOMKEY")
    picked = Counter(pipe.execute())
    assert set(picked) <= set(stored)
    assert len(picked) > 950
    assert max(picked.values()) < 100


def test_a_count_bounds_the_time(own_server):
    """Keys with no stem in common, not encoded: a bucket, which is scanned whole, holds some 250 of them at most."""
    with own_server({"ckv.maps": 1, "ckv.train-after": "1gb"}).client() as r:
        load(r, texts(50_000), key=b"KEY%d:x")
        cursor, keys = r.execute_command("CSCAN", 0)
        assert 0 < len(keys) < 1000
        cursor, keys = r.execute_command("CSCAN", cursor, "COUNT", 2000)
        assert 2000 <= len(keys) < 3000
