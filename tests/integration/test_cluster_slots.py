"""What tells of the keys of a slot: CLUSTER COUNTKEYSINSLOT, and Valkey's CLUSTERSCAN, which goes from slot to slot and node to node."""

import pytest

from cluster import Cluster, keys_of, map_name, move_slot, slot_of
from helpers import is_error, reply


@pytest.fixture(scope="module")
def cluster():
    with Cluster(primaries=2, config={"ckv.prefixes": '"*"'}) as cluster:
        yield cluster


@pytest.fixture
def full(cluster):
    """Strings that are records, a slot of three thousand, strings of the server's own and other values; {key: type}."""
    keys = {b"user:%d" % i: b"string" for i in range(3000)}
    keys |= {key: b"string" for key in keys_of(slot_of(b"big"), 3000)}
    keys |= {b"list:%d" % i: b"list" for i in range(300)}
    with cluster.client() as r:
        for node in cluster.primaries:
            node.ask("FLUSHALL")
        for key, kind in keys.items():
            r.execute_command(*(("SET", key, "value") if kind == b"string" else ("RPUSH", key, "value")))
        for i in range(0, 3000, 7):
            r.execute_command("SETBIT", b"user:%d" % i, 100, 1)
    return keys


def scan(cluster, *options, between=lambda: None):
    """All that a scan tells, call by call."""
    told, cursor = [], b"0"
    for _ in range(100_000):
        node = cluster.owner(slot_of(cursor))
        cursor, keys = node.ask("CLUSTERSCAN", cursor, *options)
        told.append(keys)
        if cursor == b"0":
            return told
        between()
    raise AssertionError("it does not end")


@pytest.fixture
def scans(cluster):
    with cluster.owner(slot_of(b"0")).client() as r:
        unknown = "unknown command" in str(reply(r, "CLUSTERSCAN", "0"))
    if unknown:
        pytest.skip("the server has no CLUSTERSCAN")


def test_keys_of_a_slot_are_counted(cluster, full):
    by_slot = {}
    for key in full:
        by_slot.setdefault(slot_of(key), []).append(key)
    for slot in [slot_of(b"big"), slot_of(b"list:1"), slot_of(b"user:7"), *range(0, 16384, 50)]:
        assert cluster.owner(slot).ask("CLUSTER", "COUNTKEYSINSLOT", slot) == len(by_slot.get(slot, []))
    with cluster.primaries[0].client() as r:
        assert is_error(reply(r, "CLUSTER", "COUNTKEYSINSLOT", "16384"), "Invalid slot")
        assert is_error(reply(r, "CLUSTER", "COUNTKEYSINSLOT"), "wrong number of arguments")
    slot = slot_of(b"big")
    assert cluster.owner(slot).ask("CLUSTER", "GETKEYSINSLOT", slot, 10) == [map_name(slot)]


@pytest.mark.parametrize("options", [(), ("COUNT", "1000"), ("COUNT", "100000"), ("TYPE", "string"), ("TYPE", "list"), ("MATCH", "user:1*", "COUNT", 50)])
def test_a_scan_tells_every_key_once(cluster, full, scans, options):
    wanted = set(full)
    if "TYPE" in options:
        wanted = {key for key in full if full[key] == options[1].encode()}
    if "MATCH" in options:
        wanted = {key for key in full if key.startswith(b"user:1")}
    told = [key for keys in scan(cluster, *options) for key in keys]
    assert set(told) == wanted and len(told) == len(wanted)


def test_a_scan_of_one_slot(cluster, full, scans):
    slot = slot_of(b"big")
    wanted = {key for key in full if slot_of(key) == slot}
    for options in (("SLOT", slot), ("SLOT", slot, "COUNT", 10_000), ("MATCH", b"[0-9]*", "SLOT", slot)):
        told = [key for keys in scan(cluster, *options) for key in keys]
        assert set(told) == {key for key in wanted if b"MATCH" not in options or key.isdigit()} and len(told) == len(set(told)), options
    with cluster.client() as r:
        for i in range(50):
            r.execute_command("SET", b"{tag}:%d" % i, "value")
    calls = scan(cluster, "MATCH", "{tag}:*")
    assert len(calls) < 50 and {key for keys in calls for key in keys} == {b"{tag}:%d" % i for i in range(50)}


def test_a_call_tells_little(cluster, full, scans):
    """Of a slot of three thousand keys a call tells about as many as it is asked for: a bucket of records more at most."""
    assert max(len(keys) for keys in scan(cluster)) < 1000


def test_what_is_wrong_is_said(cluster, full, scans):
    slot = slot_of(b"big")
    with cluster.owner(slot).client() as r:
        cursor = b"0-{%s}-0" % map_name(slot).split(b"{")[1][:-1]
        cursor, _ = r.execute_command("CLUSTERSCAN", cursor)
        for options in (("COUNT", 0), ("TYPE", "none such"), ("SLOT", (slot + 1) % 16384), ("WORD",)):
            assert is_error(reply(r, "CLUSTERSCAN", cursor, *options)), options


def test_no_key_is_missed_while_strings_move_out_and_in(cluster, full, scans):
    """What SETBIT moves out becomes a key of the server's where the scan may have been already."""
    keys = keys_of(slot_of(b"big"), 1000)
    with cluster.client() as r:
        rest = iter(keys)

        def move():
            for key in [next(rest, None) for _ in range(20)]:
                if key:
                    r.execute_command("SETBIT", key, 100, 1)

        told = {key for called in scan(cluster, between=move) for key in called}
    assert told == set(full)


def test_no_key_is_missed_while_its_slot_moves(cluster, full, scans):
    slot = slot_of(b"big")
    moves = iter([None, None, "move"])

    def between():
        if next(moves, None):
            move_slot(cluster, slot)

    told = {key for keys in scan(cluster, "SLOT", slot, between=between) for key in keys}
    assert told == {key for key in full if slot_of(key) == slot}
