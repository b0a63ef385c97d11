"""Atomic slot migration, where the server has it (Valkey 9)."""

import pytest

from cluster import SLOTS, Cluster, Writer, keys_of, slot_of
from helpers import is_error, reply, texts, wait_for


@pytest.fixture(scope="module")
def cluster():
    with Cluster(primaries=2, replicas=1, config={"ckv.train-after": "64kb"}) as cluster:
        if is_error(reply(cluster.nodes[0].client(), "CLUSTER", "GETSLOTMIGRATIONS")):
            pytest.skip("the server has no atomic slot migration")
        yield cluster


def ranges(node):
    fields = node.knows()[node.id]
    return [tuple(map(int, (f.split("-") * 2)[:2])) for f in fields[8:] if not f.startswith("[")]


def state(node):
    newest = node.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]
    return dict(zip(newest[::2], newest[1::2]))[b"state"]


def start(source, target, first, last):
    command = ("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, last, "NODE", target.id)
    assert source.ask(*command) == b"OK"


def move(cluster, source, target, first, last):
    start(source, target, first, last)
    wait_for(lambda: state(source) in (b"success", b"failed", b"cancelled"), 60)
    assert state(source) == b"success"
    cluster.wait()


def test_slots_move_while_clients_read_and_write(cluster):
    one, two = cluster.primaries
    writers = [Writer(cluster, [b"k%d-%d" % (n, i) for i in range(3000)], n) for n in range(2)]
    with cluster.client() as rc:
        # Some of them are there before, and compressed.
        for writer in writers:
            for key, value in zip(writer.keys[:1500], texts(1500)):
                rc.execute_command("CSET", key, value)
                writer.stored[key] = value
    for writer in writers:
        writer.start()
    for _ in range(2):
        for first, last in ranges(one):
            move(cluster, one, two, first, last)
        wait_for(lambda: one.ask("CDBSIZE") == 0, what="the deletion of what has left")
        half = SLOTS // 2
        move(cluster, two, one, 0, half - 1)
    for writer in writers:
        writer.finish()
    print(f"{sum(w.done for w in writers)} commands, {sum(w.refused for w in writers)} refused")
    stored = sum(len(w.stored) for w in writers)
    assert one.ask("CDBSIZE") + two.ask("CDBSIZE") == stored
    for node, replica in zip(cluster.primaries, cluster.replicas):
        wait_for(lambda: replica.ask("CDBSIZE") == node.ask("CDBSIZE"))
        assert replica.ask("DBSIZE") == node.ask("DBSIZE")


@pytest.fixture
def halted(cluster):
    """(source, target, keys) of a migration that has sent its snapshot and is not allowed to finish;
    the first key expires after a second."""
    slot = slot_of(b"halted")
    source = cluster.owner(slot)
    target = next(p for p in cluster.primaries if p is not source)
    keys = keys_of(slot, 100)
    for i, key in enumerate(keys):
        source.ask("CSET", key, b"%d" % i, *(("PX", 1000) if i == 0 else ()))
    before = target.ask("CDBSIZE")
    source.ask("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
    start(source, target, slot, slot)
    wait_for(lambda: target.ask("INFO", "ckv")["ckv_records"] >= before + 99, what="the records' arrival")
    yield source, target, keys, before  # how many the target had
    source.ask("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0")
    wait_for(lambda: state(source) in (b"success", b"failed", b"cancelled"), 60)
    cluster.wait()
    for key in keys:
        cluster.owner(slot).ask("CDEL", key)


def scan(node):
    cursor, found = b"0", []
    while True:
        cursor, keys = node.ask("CSCAN", cursor, "COUNT", 1000)
        found += keys
        if cursor == b"0":
            return found


def test_records_that_arrive_are_nobodys(cluster, halted):
    source, target, keys, before = halted
    replica = cluster.replicas[cluster.primaries.index(target)]
    assert source.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]
    # What is written meanwhile follows.
    source.ask("CSET", keys[1], "new")
    source.ask("CDEL", keys[2])
    wait_for(lambda: source.ask("CGET", keys[0]) is None, what="expiry")
    for node in (target, replica):
        assert node.ask("CDBSIZE") == before
        assert not set(scan(node)) & set(keys)
        assert not set(node.ask("CKEYS", "*")) & set(keys)
        assert node.ask("CRANDOMKEY") not in keys
        assert is_error(reply(node.client(), "CGET", keys[1]))
    source.ask("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0")
    wait_for(lambda: state(source) == b"success", 60)
    cluster.wait()
    expected = [None, b"new", None] + [b"%d" % i for i in range(3, 100)]
    assert target.ask("CMGET", *keys) == expected
    assert set(scan(target)) >= set(keys[3:])
    wait_for(lambda: target.ask("CDBSIZE") == before + 98)
    wait_for(lambda: source.ask("CLUSTER", "COUNTKEYSINSLOT", slot_of(b"halted")) == 0)


def test_what_came_goes_when_a_migration_is_given_up(cluster, halted):
    source, target, keys, before = halted
    records = target.ask("INFO", "ckv")["ckv_records"]
    assert source.ask("CLUSTER", "CANCELSLOTMIGRATIONS") == b"OK"
    wait_for(lambda: target.ask("INFO", "ckv")["ckv_records"] <= records - 99)
    assert target.ask("CDBSIZE") == before
    assert source.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]
    source.ask("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "0")
    move(cluster, source, target, slot_of(b"halted"), slot_of(b"halted"))
    assert target.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]


def test_what_came_goes_in_a_restart(cluster, halted):
    source, target, keys, before = halted
    replica = cluster.replicas[cluster.primaries.index(target)]
    target.restart(save=True)
    wait_for(lambda: all(n.info()["cluster_state"] == "ok" for n in cluster.nodes), 60)
    wait_for(lambda: target.ask("CDBSIZE") == before)
    assert target.ask("INFO", "ckv")["ckv_records"] == before
    assert source.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]
    wait_for(lambda: replica.ask("CDBSIZE") == before)
