"""CMSET, CMGET, CDEL, CEXISTS: many records at once."""

from helpers import is_error, twin


def test_mset_and_mget(r):
    assert twin(r, "CMSET", "a", "1", "b", "2", "c", "3") == b"OK"
    assert twin(r, "CMGET", "a", "b", "none", "c", "a") == [b"1", b"2", None, b"3", b"1"]
    assert r.execute_command("CDBSIZE") == 3


def test_mset_overwrites_and_removes_expiries(r):
    twin(r, "CSET", "a", "old", "EX", 100)
    assert twin(r, "CMSET", "a", "new", "b", "2") == b"OK"
    assert twin(r, "CGET", "a") == b"new"
    assert twin(r, "CTTL", "a") == -1


def test_mset_with_a_key_twice(r):
    assert twin(r, "CMSET", "a", "first", "b", "2", "a", "last") == b"OK"
    assert twin(r, "CGET", "a") == b"last"
    assert r.execute_command("CDBSIZE") == 2


def test_arity(r):
    for args in [(), ("a",), ("a", "1", "b"), ("a", "1", "b", "2", "c")]:
        assert is_error(twin(r, "CMSET", *args), "wrong number of arguments")
    for command in ("CMGET", "CDEL", "CEXISTS"):
        assert is_error(twin(r, command), "wrong number of arguments")
    assert r.execute_command("CDBSIZE") == 0


def test_del_and_exists_count(r):
    twin(r, "CMSET", "a", "1", "b", "2", "c", "3")
    assert twin(r, "CEXISTS", "a", "b", "none", "a", "a") == 4
    assert twin(r, "CDEL", "a", "none", "c", "a") == 2
    assert twin(r, "CEXISTS", "a", "b", "c") == 1
    assert twin(r, "CDEL", "a") == 0
    assert twin(r, "CMGET", "a", "b", "c") == [None, b"2", None]


def test_thousands_in_one_command(r):
    pairs = {b"key:%d" % i: b"value %d " % i * (i % 7) for i in range(20_000)}
    assert twin(r, "CMSET", *[x for pair in pairs.items() for x in pair]) == b"OK"
    assert twin(r, "CMGET", *pairs) == list(pairs.values())
    assert r.execute_command("CDBSIZE") == len(pairs)
    assert twin(r, "CEXISTS", *pairs) == len(pairs)
    gone = list(pairs)[::3]
    assert twin(r, "CDEL", *gone) == len(gone)
    assert r.execute_command("CDBSIZE") == len(pairs) - len(gone)
    gone = set(gone)
    assert twin(r, "CMGET", *pairs) == [None if k in gone else v for k, v in pairs.items()]


def test_everything_deleted_leaves_nothing(r):
    keys = [b"key:%d" % i for i in range(5000)]
    r.execute_command("CMSET", *[x for k in keys for x in (k, b"v" * 60)])
    assert r.execute_command("CDEL", *keys) == len(keys)
    assert r.execute_command("CDBSIZE") == 0
    # Like a hash without fields, a map without records is gone.
    assert r.execute_command("DBSIZE") == 0


def test_any_bytes(r):
    pairs = {bytes([i, j]): bytes([j]) * i for i in range(0, 256, 5) for j in (0, 10, 13, 255)}
    twin(r, "CMSET", *[x for pair in pairs.items() for x in pair])
    assert twin(r, "CMGET", *pairs) == list(pairs.values())
