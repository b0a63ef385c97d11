"""Databases: SELECT, FLUSHDB, FLUSHALL, SWAPDB, and CDBSIZE."""

import pytest

from helpers import assert_stored, info, load, reply, texts, is_error


@pytest.fixture
def dbs(shared):
    """Clients of the databases 0 to 3."""
    clients = [shared.client(db=i) for i in range(4)]
    yield clients
    for client in clients:
        client.close()


def sizes(dbs):
    return [r.execute_command("CDBSIZE") for r in dbs]


def test_each_database_has_its_own_records(dbs):
    for i, r in enumerate(dbs):
        r.execute_command("CSET", "k", f"of database {i}")
        load(r, texts(100 * i))
    assert sizes(dbs) == [1, 101, 201, 301]
    for i, r in enumerate(dbs):
        assert r.execute_command("CGET", "k") == f"of database {i}".encode()
    dbs[1].execute_command("CDEL", "k")
    assert [r.execute_command("CEXISTS", "k") for r in dbs] == [1, 0, 1, 1]


def test_select(dbs):
    r = dbs[0]
    r.execute_command("CSET", "k", "zero")
    r.execute_command("SELECT", 2)
    assert r.execute_command("CGET", "k") is None
    assert r.execute_command("CDBSIZE") == 0
    r.execute_command("CSET", "k", "two")
    r.execute_command("SELECT", 0)
    assert r.execute_command("CGET", "k") == b"zero"
    assert sizes(dbs) == [1, 0, 1, 0]


@pytest.mark.parametrize("mode", [(), ("SYNC",), ("ASYNC",)], ids=["plain", "sync", "async"])
def test_flushdb(dbs, mode):
    stored = [load(r, texts(2000, seed=i), ttl=1000) for i, r in enumerate(dbs)]
    dbs[1].execute_command("FLUSHDB", *mode)
    assert sizes(dbs) == [2000, 0, 2000, 2000]
    assert info(dbs[0])["records"] == 6000
    assert info(dbs[0])["records_with_expiry"] == 6000
    for i in (0, 2, 3):
        assert_stored(dbs[i], stored[i])
    again = load(dbs[1], texts(100))
    assert_stored(dbs[1], again)
    assert sizes(dbs) == [2000, 100, 2000, 2000]


@pytest.mark.parametrize("mode", [(), ("SYNC",), ("ASYNC",)], ids=["plain", "sync", "async"])
def test_flushall(dbs, mode):
    for r in dbs:
        load(r, texts(2000), ttl=1000)
    dbs[3].execute_command("FLUSHALL", *mode)
    assert sizes(dbs) == [0, 0, 0, 0]
    fields = info(dbs[0])
    assert fields["records"] == fields["records_with_expiry"] == fields["raw_value_bytes"] == 0
    stored = load(dbs[0], texts(1000))
    assert_stored(dbs[0], stored)
    assert sizes(dbs) == [1000, 0, 0, 0]


def test_swapdb(dbs):
    one = load(dbs[0], texts(300, seed=1))
    two = load(dbs[1], texts(500, seed=2))
    dbs[3].execute_command("SWAPDB", 0, 1)
    assert sizes(dbs) == [500, 300, 0, 0]
    assert_stored(dbs[0], two)
    assert_stored(dbs[1], one)
    dbs[0].execute_command("CDEL", *two)
    assert sizes(dbs) == [0, 300, 0, 0]
    dbs[0].execute_command("SWAPDB", 0, 2)
    dbs[1].execute_command("FLUSHDB")
    assert sizes(dbs) == [0, 0, 0, 0]


def test_size_counts_records_not_maps(dbs):
    r = dbs[0]
    r.execute_command("SET", "native", "1")
    load(r, texts(5000))
    assert r.execute_command("CDBSIZE") == 5000
    load(r, texts(5000, seed=2))  # the same keys
    assert r.execute_command("CDBSIZE") == 5000
    r.execute_command("CDEL", *[b"KEY:%d" % i for i in range(0, 5000, 2)])
    assert r.execute_command("CDBSIZE") == 2500


def test_size_after_a_failed_write(dbs):
    r = dbs[0]
    r.execute_command("CSET", "a", "1")
    r.execute_command("CSET", "a", "1", "NX")
    r.execute_command("CSET", "b", "1", "XX")
    assert is_error(reply(r, "CSET", "c", "1", "EX", "0"))
    assert sizes(dbs) == [1, 0, 0, 0]
