"""Files that earlier versions have saved load for ever, and files of versions to come are refused.

The files, and how they were made: tests/golden/make.py."""

import glob
import gzip
import hashlib
import json
import os

import pytest

from cluster import SLOTS, Node, slot_of
from damage import seal
from helpers import all_keys, assert_stored, forget_exact_times, is_error, is_in_sync, late_by, load, map_keys, reply, texts, wait_for
from server import ROOT, ServerFailed

GOLDEN = os.path.join(ROOT, "tests", "golden")
MADE_AFTER_MS = 1_700_000_000_000


def manifests():
    """{"v1/plain.rdb": its entry in the manifest}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(GOLDEN, "v*", "manifest.json"))):
        with open(path) as f:
            version = os.path.basename(os.path.dirname(path))
            found |= {f"{version}/{name}": entry for name, entry in json.load(f).items()}
    return found


FILES = manifests()
RDB = [name for name in FILES if name.endswith(".rdb")]
STANDALONE = [name for name in RDB if "cluster-enabled" not in FILES[name]["config"]]
ONE_DATABASE = [name for name in RDB if len(FILES[name]["records"]) == 1]
CLUSTERED = [name for name in RDB if name not in STANDALONE]
AOF = [name for name in FILES if name.endswith(".aof")]
DUMPS = [name for name in FILES if name.endswith(".dump")]


def content(name):
    with gzip.open(os.path.join(GOLDEN, name + ".gz")) as f:
        return f.read()


def place_rdb(server, data):
    """Makes `data` what a stopped server starts with."""
    with open(server.rdb_path, "wb") as f:
        f.write(data)


def place_aof(server, data):
    folder = os.path.join(server.dir, "appendonlydir")
    os.mkdir(folder)
    with open(os.path.join(folder, "appendonly.aof.1.incr.aof"), "wb") as f:
        f.write(data)
    with open(os.path.join(folder, "appendonly.aof.manifest"), "w") as f:
        f.write("file appendonly.aof.1.incr.aof seq 1 type i\n")


def expected(name):
    """{database: {key: (length, hash, expiry)}}"""
    databases = FILES[name]["records"]
    return {int(db): {row[0].encode("latin-1"): tuple(row[1:]) for row in rows} for db, rows in databases.items()}


def records(r):
    """The same of the selected database, as it is now."""
    keys = all_keys(r)
    pipe = r.pipeline(transaction=False)
    for key in keys:
        pipe.execute_command("CGET", key)
        pipe.execute_command("CPEXPIRETIME", key)
    replies = pipe.execute()
    assert len(set(keys)) == len(keys)
    return {
        key: (len(value), hashlib.sha256(value).hexdigest()[:16], None if at_ms == -1 else at_ms)
        for key, value, at_ms in zip(keys, replies[::2], replies[1::2])
    }


def same(wanted, found):
    """The manifest has the moment of expiry, the upper end of what two bytes say; what is told is the lower end."""
    at_ms, told_ms = wanted[2], found[2]
    if wanted[:2] != found[:2] or (at_ms is None) != (told_ms is None):
        return False
    return at_ms is None or at_ms - late_by(at_ms - MADE_AFTER_MS) <= told_ms <= at_ms


def check(server, name, databases=16):
    wanted = expected(name)
    for db in range(databases):
        with server.client(db=db) as r:
            want, found = wanted.get(db, {}), records(r)
            assert found.keys() == want.keys()
            wrong = [(key, want[key], found[key]) for key in want if not same(want[key], found[key])]
            assert not wrong, f"{len(wrong)} of {len(want)} records differ, the first: {wrong[0]}"
            assert r.execute_command("CDBSIZE") == len(want)


def test_there_are_golden_files():
    assert STANDALONE and CLUSTERED and AOF and DUMPS
    assert all(entry["records"] for entry in FILES.values())


@pytest.mark.parametrize("maps", [None, 1024, 7])
@pytest.mark.parametrize("name", STANDALONE)
def test_a_file_loads(own_server, name, maps):
    """With the settings that it was saved with (None), and where records are placed otherwise."""
    server = own_server({**(FILES[name]["config"] if maps is None else {"ckv.maps": maps})}, start=False)
    place_rdb(server, content(name))
    server.start()
    check(server, name)
    # What is there can be written anew in every way, and is the same after it.
    with server.client() as r:
        r.execute_command("CKV", "OPTIMIZE")
    check(server, name)
    server.restart(save=True)
    check(server, name)


@pytest.mark.parametrize("name", STANDALONE)
def test_a_replica_is_given_a_file(own_server, name):
    """What was loaded reaches a replica, and the replica's own file has it."""
    primary = own_server(FILES[name]["config"], start=False)
    place_rdb(primary, content(name))
    primary.start()
    replica = own_server({"ckv.maps": 5, "replicaof": f"127.0.0.1 {primary.port}"})
    with replica.client() as r:
        # WAIT knows of no write: to Valkey 9.1 the replica is in step before it has loaded the file.
        wait_for(lambda: is_in_sync(r))
    check(replica, name)


@pytest.fixture
def cluster_node():
    """A node with all slots, stopped."""
    with Node() as node:
        node.ask("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        wait_for(lambda: node.info()["cluster_state"] == "ok")
        node.stop()
        yield node


@pytest.mark.parametrize("name", ONE_DATABASE)  # as a cluster has
def test_a_file_loads_in_a_cluster(cluster_node, name):
    place_rdb(cluster_node, content(name))
    cluster_node.start()
    wait_for(lambda: cluster_node.info()["cluster_state"] == "ok")
    check(cluster_node, name, databases=1)
    with cluster_node.client() as r:
        assert {slot_of(m) for m in map_keys(r)} == {slot_of(key) for key in expected(name)[0]}


@pytest.mark.parametrize("name", CLUSTERED)
def test_a_file_of_a_cluster_loads_without_one(own_server, name):
    server = own_server(start=False)
    place_rdb(server, content(name))
    server.start()
    check(server, name)


@pytest.mark.parametrize("name", AOF)
def test_commands_are_replayed(own_server, name):
    server = own_server({**FILES[name]["config"], "appendonly": "yes"}, start=False)
    place_aof(server, content(name))
    server.start()
    with server.client(db=15) as r:
        forget_exact_times(r)
    check(server, name)


@pytest.mark.parametrize("name", DUMPS)
def test_a_payload_is_restored(own_server, name):
    server = own_server({"ckv.maps": 1})
    with server.client() as r:
        assert r.execute_command("RESTORE", "ckv:0", 0, content(name)) == b"OK"
    check(server, name)


# --- newer versions ---

OPCODE_AUX, OPCODE_UINT, TYPE_MODULE = 0xF7, 2, 7
TYPE_NAME = b"ckv-map-1"
ID_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def type_id():
    """How a file names ckv's type, the version apart."""
    number = 0
    for character in TYPE_NAME:
        number = number << 6 | ID_CHARACTERS.index(character)
    return number << 10


def type_ids(data):
    """Where in `data` the type is named: the places of the eight bytes."""
    start, found = b"\x81" + type_id().to_bytes(8, "big")[:6], []
    at = data.find(start)
    while at >= 0:
        found.append(at + 1)
        at = data.find(start, at + 1)
    return found


def without_checksum(data):
    """A file says by zeros that it has none."""
    return bytes(data[:-8]) + bytes(8)


def newer_format(data):
    """The version of the format, the first thing in the auxiliary data."""
    data, at = bytearray(data), type_ids(data)[0]
    assert data[at - 2] == OPCODE_AUX
    version = at + 8 + 2 + 1  # behind the moment, which is a number as well
    assert data[at + 8] == data[version - 1] == OPCODE_UINT and data[version] < 63
    data[version] = 63  # the most that one byte holds
    return without_checksum(data)


def newer_type(data, which):
    """The version of the type, where it is named for the time `which`: 0 is the auxiliary data."""
    data = bytearray(data)
    at = type_ids(data)[which]
    data[at + 7] = 255
    return without_checksum(data)


NEWER = {
    "format": newer_format,
    "auxiliary data": lambda data: newer_type(data, 0),
    "first map": lambda data: newer_type(data, 1),
    "last map": lambda data: newer_type(data, -2),
}


@pytest.mark.parametrize("what", NEWER)
@pytest.mark.parametrize("name", ["v1/two_codecs.rdb", "v1/three_maps.rdb"])
def test_a_newer_file_is_refused(own_server, name, what):
    """The server says why and ends. It does not start with a part of the data, and leaves the file alone."""
    data = content(name)
    newer = NEWER[what](data)
    assert newer != without_checksum(data)
    server = own_server(FILES[name]["config"], start=False)
    place_rdb(server, newer)
    with pytest.raises(ServerFailed, match="saved by a newer ckv") as failed:
        server.start()
    assert failed.value.returncode is not None and failed.value.returncode >= 0, "ended by a signal"
    assert "Ready to accept connections" not in failed.value.log
    with open(server.rdb_path, "rb") as f:
        assert f.read() == newer
    # It is the number that was refused: without it the same bytes load.
    place_rdb(server, without_checksum(data))
    server.start()
    check(server, name)


@pytest.mark.parametrize("name", DUMPS)
def test_a_newer_payload_is_refused(own_server, name):
    data = content(name)
    assert data[0] == TYPE_MODULE and type_ids(data) == [2]
    body = bytearray(data[:-8])
    assert seal(body) == data
    body[2 + 7] = 255
    newer = seal(body)
    server = own_server({"ckv.maps": 1})
    with server.client() as r:
        assert is_error(reply(r, "RESTORE", "ckv:0", 0, newer), "Bad data format")
        assert map_keys(r) == [] and r.execute_command("CDBSIZE") == 0
        # Nor is anything lost that was there.
        stored = load(r, texts(300))
        assert is_error(reply(r, "RESTORE", "ckv:0", 0, newer, "REPLACE"), "Bad data format")
        assert_stored(r, stored)
        assert sorted(records(r)) == sorted(stored)
    assert "saved by a newer ckv" in server.log()


@pytest.mark.parametrize("name", [name for name in DUMPS if "whole" in name])
def test_a_newer_format_of_a_payload_is_refused(own_server, name):
    """That of the dictionaries in it, behind the kind of payload."""
    body = bytearray(content(name)[:-8])
    assert body[10:13] == b"\x02\x03\x02" and 1 <= body[13] <= 4
    body[13] = 63
    server = own_server({"ckv.maps": 1})
    with server.client() as r:
        assert is_error(reply(r, "RESTORE", "ckv:0", 0, seal(body)), "Bad data format")
        assert map_keys(r) == []
    assert "a map was saved by a newer ckv (version 1, format 63)" in server.log()


# --- where records lie ---

# Files, replicas and other servers agree on it, so it is the same for ever.
PLACES_OF_1024 = {
    b"": 687, b"k": 807, b"7": 307, b"99": 635, b"100": 409, b"user:7": 261, b"user:42": 125, b"user:123": 509,
    b"user:199": 509, b"user:1155315": 986, b"media:1155315": 779, b"abc12": 241, b"abc123": 835, b"{tag}:1000": 789,
    b"session:8f14e45f": 983, b"sixteen bytes..": 358, b"sixteen bytes...": 388, b"\x00\xff": 978, b"00000000": 663,
    b"k" * 300: 833,
}


def test_places(own_server):
    with own_server({"ckv.maps": 1024}).client() as r:
        for key, place in PLACES_OF_1024.items():
            r.execute_command("CSET", key, "v")
            assert map_keys(r) == [b"ckv:%d" % place], key
            r.execute_command("FLUSHALL")
