"""The transparent mode with several databases, in which keys have the same names."""

import pytest

from helpers import info, is_error, reply, times_run

KEYS = [b"user:%d" % i for i in range(20)]


@pytest.fixture
def r(own_server):
    with own_server({"ckv.prefixes": "*", "ckv.maps": 16}).client() as r:
        for key in KEYS:
            r.set(key, b"v" + key)
        yield r


def select(r, db):
    assert r.execute_command("SELECT", db) == b"OK"


def test_a_command_in_one_database_leaves_the_strings_of_others(r):
    """They moved out, and with a full maxmemory went."""
    if r.info("server")["redis_version"].startswith("7.0"):
        pytest.skip("the server does not tell who sends a command")
    select(r, 1)
    for i, key in enumerate(KEYS):
        command = (("HSET", key, "f", "v"), ("HGET", key, "f"), ("BITCOUNT", key), ("RPUSH", key, "x"), ("SORT", key, "STORE", b"to" + key))[i % 5]
        r.execute_command(*command)
    assert (info(r)["records"], info(r)["moved_out"]) == (20, 0)
    select(r, 0)
    assert r.bitcount(KEYS[0]) > 0 and info(r)["moved_out"] == 1
    assert [r.get(key) for key in KEYS] == [b"v" + key for key in KEYS]


def test_a_command_that_names_another_database_finds_its_strings(r):
    select(r, 1)
    for key in KEYS[:4]:
        r.execute_command("SETBIT", key, 7, 1)
    assert r.execute_command("MOVE", KEYS[0], 0) == 0
    assert r.execute_command("COPY", KEYS[1], KEYS[1], "DB", 0) == 0
    assert r.execute_command("COPY", KEYS[2], KEYS[2], "DB", 0, "REPLACE") == 1
    select(r, 0)
    assert [r.get(key) for key in KEYS[:4]] == [b"v" + KEYS[0], b"v" + KEYS[1], b"\1", b"v" + KEYS[3]]


@pytest.mark.parametrize("command", (("BITCOUNT",), ("APPEND",), ("LLEN",), ("STRLEN",)), ids=lambda words: words[0])
def test_a_database_that_is_selected_on_the_way(r, command):
    """By a transaction, or a script: what it finds is what is there."""
    expected = {"BITCOUNT": r.bitcount(KEYS[0]), "APPEND": len(KEYS[0]) + 2, "LLEN": None, "STRLEN": len(KEYS[0]) + 1}[command[0]]
    words = [command[0], KEYS[0], *(["x"] if command[0] == "APPEND" else [])]
    select(r, 1)
    for line in (["MULTI"], ["SELECT", 0], words):
        r.execute_command(*line)
    answer = r.execute_command("EXEC")[1]
    script = "redis.call('SELECT', 0) return redis.pcall(unpack(ARGV))"
    select(r, 1)
    again = reply(r, "EVAL", script, 0, *words)
    for told in (answer, again):
        assert is_error(told, "WRONGTYPE") if expected is None else told in (expected, expected + 1)


def test_small_maps_are_saved_without_a_call_for_each(own_server):
    """Two for each, and a question, took longer than all the rest."""
    with own_server({"ckv.maps": 1024}).client() as r:
        for i in range(3000):
            r.execute_command("CSET", f"{i}:user", "value")
        asked = times_run(r, "config|get")
        r.save()
        assert times_run(r, "config|set") == 0 and times_run(r, "config|get") == asked
        r.execute_command("CMSET", *(word for i in range(40_000) for word in (f"key:{i}", f"{i} and some more text")))
        asked = times_run(r, "config|get")
        r.save()
        large = times_run(r, "config|set")
        assert large % 2 == 0 and large > 0 and times_run(r, "config|get") == asked + 1
        assert r.config_get("rdbcompression") == [b"rdbcompression", b"yes"]


def test_how_long_strings_are_in_many_databases(own_server):
    with own_server({"ckv.prefixes": "*", "ckv.maps": 16, "databases": 100}).client() as r:
        for db in range(100):
            select(r, db)
            r.mset({f"{db}:{i}": "x" * 20 for i in range(100)})
        told = r.execute_command("INFO", "keysizes")
        if not told:
            pytest.skip("the server does not tell")
        assert [told[f"db{db}_distrib_strings_sizes"] for db in range(100)] == [{"16": 100}] * 100
