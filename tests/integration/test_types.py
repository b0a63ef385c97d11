"""ckv's records and Redis' own keys: two name spaces that meet only in the maps' keys."""

import pytest

from helpers import assert_stored, is_error, load, map_keys, reply, texts, twin

WRITES = [("CSET", "k", "v"), ("CSET", "k", "v", "NX"), ("CSET", "k", "v", "GET"), ("CMSET", "k", "v"),
          ("CDEL", "k"), ("CEXPIRE", "k", "10"), ("CPERSIST", "k")]
READS = [("CGET", "k"), ("CMGET", "k"), ("CEXISTS", "k"), ("CSTRLEN", "k"), ("CTTL", "k"), ("CPTTL", "k"),
         ("CEXPIRETIME", "k"), ("CPEXPIRETIME", "k")]


def test_two_name_spaces(r):
    r.execute_command("SET", "k", "native")
    r.execute_command("CSET", "k", "compressed")
    assert r.execute_command("GET", "k") == b"native"
    assert r.execute_command("CGET", "k") == b"compressed"
    r.execute_command("DEL", "k")
    assert r.execute_command("CGET", "k") == b"compressed"
    r.execute_command("CDEL", "k")
    assert r.execute_command("CGET", "k") is None


def test_native_keys_of_any_type_do_not_matter(r):
    r.execute_command("RPUSH", "list", "a")
    r.execute_command("HSET", "hash", "f", "v")
    for key in ("list", "hash"):
        assert r.execute_command("CGET", key) is None
        assert r.execute_command("CSET", key, "v") == b"OK"
        assert r.execute_command("CGET", key) == b"v"
    assert r.execute_command("TYPE", "list") == b"list"


def test_native_commands_on_a_map(r):
    stored = load(r, texts(50))
    for key in map_keys(r):
        for command in (("GET", key), ("APPEND", key, "x"), ("INCR", key), ("LPUSH", key, "x"),
                        ("HGET", key, "f"), ("SADD", key, "x"), ("STRLEN", key)):
            assert is_error(reply(r, *command), "WRONGTYPE") or "WRONGTYPE" in repr(reply(r, *command)), command
    assert_stored(r, stored)


def test_type_of_a_map(r):
    load(r, texts(5))
    for key in map_keys(r):
        name = r.execute_command("TYPE", key)
        assert len(name) == 9
        assert r.execute_command("OBJECT", "ENCODING", key) == b"raw"


@pytest.mark.parametrize("args", READS + WRITES, ids=" ".join)
def test_a_foreign_key_in_the_place_of_a_map(own_server, args):
    with own_server({"ckv.maps": 1}).client() as r:
        r.execute_command("SET", "ckv:0", "not a map")
        answer = reply(r, *args)
        # Those that name many keys pass over it, as MGET does over keys of another type.
        if args[0] not in ("CMGET", "CEXISTS", "CDEL") or answer not in ([None], 0):
            assert "WRONGTYPE" in repr(answer), answer
        assert r.execute_command("GET", "ckv:0") == b"not a map"
        assert r.execute_command("PING") == b"PONG"


def test_a_map_overwritten_by_a_native_command(own_server):
    """SET on the map's key takes the records with it; counters follow, and the place can be used again."""
    with own_server({"ckv.maps": 1}).client() as r:
        load(r, texts(500), ttl=1000)
        assert r.execute_command("SET", "ckv:0", "x") == b"OK"
        assert r.execute_command("CDBSIZE") == 0
        assert r.execute_command("INFO", "ckv")["ckv_records"] == 0
        r.execute_command("DEL", "ckv:0")
        stored = load(r, texts(500))
        assert r.execute_command("CDBSIZE") == 500
        assert_stored(r, stored)


@pytest.mark.parametrize("command", ["DEL", "UNLINK"])
def test_a_map_deleted_by_its_key(own_server, command):
    with own_server({"ckv.maps": 1}).client() as r:
        load(r, texts(5000), ttl=1000)
        assert r.execute_command(command, "ckv:0") == 1
        assert r.execute_command("CDBSIZE") == 0
        assert r.execute_command("CGET", "KEY:1") is None
        fields = r.execute_command("INFO", "ckv")
        assert fields["ckv_records"] == fields["ckv_maps"] == fields["ckv_records_with_expiry"] == 0


def test_memory_usage_of_a_map(own_server):
    with own_server({"ckv.maps": 1}).client() as r:
        load(r, texts(5000))
        usage = r.execute_command("MEMORY", "USAGE", "ckv:0")
        assert 5000 * 20 < usage < 5000 * 300


def test_a_record_named_as_a_map(r):
    """Record keys are free: one may be called like a map."""
    for key in ("ckv:0", "ckv:1", "ckv:{x}"):
        assert twin(r, "CSET", key + ":twin", "v") == b"OK"
        assert r.execute_command("CSET", key, "v") == b"OK"
        assert r.execute_command("CGET", key) == b"v"


def test_number_of_maps(own_server):
    for maps in (1, 7, 256):
        with own_server({"ckv.maps": maps}).client() as r:
            stored = load(r, texts(5000))
            keys = map_keys(r)
            assert len(keys) <= maps
            assert len(keys) >= maps * 0.1
            assert all(0 <= int(key.split(b":")[1]) < maps for key in keys)
            assert_stored(r, stored)
