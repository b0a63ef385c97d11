"""Keys and values of every size, from nothing to what the protocol allows."""

import os
import random

import pytest

from helpers import assert_stored, info, noise, reply, twin, wait_for

SIZES = sorted({0, 1, 2, 15, 16, 31, 32, 63, 64, 127, 128,
                *range(190, 310, 7), 254, 255, 256, 257,
                *range(990, 1110, 9), 1023, 1024, 1025,
                2047, 2048, 2049, 4000, 4060, 4090, 4095, 4096, 4097, 5000, 8191, 8192,
                16383, 16384, 16385, 32767, 32768, 65535, 65536, 65537, 100_000, 1_000_000})


def available_mb():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable")) // 1024


def prose(size, seed=0):
    """Bytes that compress well."""
    return (b"all work and no play makes jack a dull boy, again and again %d " % seed * (size // 60 + 1))[:size]


@pytest.mark.parametrize("make", [noise, prose], ids=["noise", "prose"])
@pytest.mark.parametrize("key", [b"k", b"KEY:%d", b"user:%d:profile:with:a:longer:name" * 8], ids=["short", "digits", "long"])
def test_values_of_every_size(r, make, key):
    stored = {}
    for size in SIZES:
        name = (key % ((size,) * key.count(b"%d"))) if b"%d" in key else key + b"-%d" % size
        stored[name] = make(size)
        assert r.execute_command("CSET", name, stored[name]) == b"OK"
        assert r.execute_command("CSTRLEN", name) == size
    assert_stored(r, stored, batch=20)
    assert r.execute_command("CDEL", *stored) == len(stored)


def test_a_value_that_changes_its_size(r):
    """Through all sizes in random order, next to neighbours that must not notice."""
    neighbours = {b"user:3%02d" % i: noise(i) for i in range(1, 100)}
    r.execute_command("CMSET", *[x for pair in neighbours.items() for x in pair])
    order = SIZES[:]
    random.Random(5).shuffle(order)
    for i, size in enumerate(order):
        value = (noise if i % 2 else prose)(size, i)
        assert r.execute_command("CSET", b"user:300", value) == b"OK"
        assert r.execute_command("CGET", b"user:300") == value
    assert_stored(r, neighbours)


def test_an_expiry_at_every_size(r):
    for size in SIZES:
        r.execute_command("CSET", b"k%d" % size, noise(size), "PX", 1_000_000)
    for size in SIZES:
        assert r.execute_command("CGET", b"k%d" % size) == noise(size)
        assert 990_000 <= r.execute_command("CPTTL", b"k%d" % size) <= 1_000_000


@pytest.mark.parametrize("size", [0, 1, 2, 3, 99, 100, 254, 255, 256, 257, 300, 1000, 1024, 4095, 4096, 4097, 65535, 65536, 1 << 20])
@pytest.mark.parametrize("make", [
    lambda n: b"k" * n,
    lambda n: b"0" * n,
    lambda n: noise(n, 9),
    lambda n: b"x" * max(0, n - 5) + b"12345"[:n],
], ids=["letters", "digits", "noise", "number at the end"])
def test_keys_of_every_size(r, size, make):
    key = make(size)
    for value in (b"", b"v", noise(300), noise(5000)):
        assert twin(r, "CSET", key, value, "EX", 100) == b"OK"
        assert twin(r, "CGET", key) == value
        assert twin(r, "CEXISTS", key) == 1
    # One byte more or less is another record.
    assert twin(r, "CGET", key + b"0") is None
    if key:
        assert twin(r, "CGET", key[:-1]) is None
    assert twin(r, "CDEL", key) == 1
    assert twin(r, "CGET", key) is None


def test_long_keys_that_differ_in_one_byte(r):
    keys = [b"a" * i + b"b" + b"a" * (600 - i) for i in range(0, 601, 3)]
    stored = {key: b"value %d" % i for i, key in enumerate(keys)}
    r.execute_command("CMSET", *[x for pair in stored.items() for x in pair])
    assert_stored(r, stored)
    assert r.execute_command("CDBSIZE") == len(keys)


def test_incompressible_values(r):
    """Values that no codec makes smaller take their own size, not more."""
    stored = {b"KEY:%d" % i: os.urandom(200) for i in range(5000)}
    for i in range(0, 5000, 500):
        part = list(stored.items())[i : i + 500]
        r.execute_command("CMSET", *[x for pair in part for x in pair])
    r.execute_command("CKV", "TRAIN")
    r.execute_command("CKV", "OPTIMIZE")
    assert_stored(r, stored)
    fields = info(r)
    assert fields["page_bytes"] / fields["records"] < 200 + len("KEY:4999") + 12


def test_a_hundred_thousand_records_in_one_map(own_server):
    """All in the one map: groups of a hundred, and a map that has to grow all the while."""
    with own_server({"ckv.maps": 1}).client() as r:
        stored = {b"KEY:%d" % i: b"value of %d" % i for i in range(100_000)}
        keys = list(stored)
        for i in range(0, len(keys), 1000):
            r.execute_command("CMSET", *[x for k in keys[i : i + 1000] for x in (k, stored[k])])
        assert r.execute_command("CDBSIZE") == 100_000
        assert r.execute_command("DBSIZE") == 1
        assert_stored(r, stored, batch=1000)
        assert r.execute_command("CMGET", *[b"KEY:%d" % i for i in range(100_000, 101_000)]) == [None] * 1000
        for i in range(0, len(keys), 1000):
            assert r.execute_command("CDEL", *keys[i : i + 1000]) == 1000
        assert r.execute_command("DBSIZE") == 0


@pytest.mark.slow
def test_the_largest_value(own_server):
    """512 MB is the most that SET takes, by proto-max-bulk-len."""
    if available_mb() < 6000:
        pytest.skip("needs 6 GB of free memory")
    with own_server().client() as r:
        value = bytes(1 << 20) + noise(1 << 20) + prose(510 << 20)
        assert len(value) == 512 << 20
        assert r.execute_command("CSET", "k", value, "EX", 1000) == b"OK"
        assert r.execute_command("CSTRLEN", "k") == len(value)
        assert r.execute_command("CGET", "k") == value
        assert r.execute_command("CSET", "k", "small") == b"OK"
        assert r.execute_command("CGET", "k") == b"small"
        wait_for(lambda: r.info("memory")["used_memory"] < 100 << 20, what="the memory to be free again")
        assert r.execute_command("PING") == b"PONG"


def test_values_of_a_few_megabytes_survive_a_restart(own_server):
    server = own_server()
    stored = {b"k%d" % i: (noise if i % 2 else prose)(i * 700_001) for i in range(1, 8)}
    with server.client() as r:
        for key, value in stored.items():
            assert r.execute_command("CSET", key, value) == b"OK"
    server.restart()
    with server.client() as r:
        assert_stored(r, stored, batch=1)


def test_deleting_large_values_frees_them(own_server):
    with own_server().client() as r:
        r.execute_command("CSET", "first", "x")
        before = r.info("memory")["used_memory"]
        for i in range(50):
            r.execute_command("CSET", f"k{i}", noise(1_000_000, i))
        assert r.info("memory")["used_memory"] > before + 40_000_000
        for i in range(50):
            assert r.execute_command("CDEL", f"k{i}") == 1
        # A training that is under way holds a sample of them for a moment.
        wait_for(lambda: r.info("memory")["used_memory"] < before + 8_000_000, what="the memory to be free again")


@pytest.mark.parametrize("change", (("SETRANGE", "key", 600 << 20, "part"), ("SETRANGE", "none", 600 << 20, "part")))
def test_how_long_a_string_may_grow_is_the_servers_to_say(own_server, change):
    """By proto-max-bulk-len, which may be more than what it is by default; and so the record leaves for its answer."""
    with own_server({"ckv.prefixes": "*"}).client() as r:
        r.set("key", "value")
        assert "string exceeds maximum allowed size" in str(reply(r, *change))
        assert r.get("key") == b"value"
        assert info(r)["moved_out"] == (change[1] == "key")
