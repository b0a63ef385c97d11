"""A replica in a cluster serves the prefixes that its primary serves, whatever its own setting: slots leave map by map."""

import pathlib

import pytest

from atomic import move, way_of
from cluster import Cluster, fail_over, keys_of, move_slot, names_in, other, slot_of
from helpers import info, is_error, reply, wait_for, wait_for_replica

FAST = {"ckv.move-cpu": 100}
SLOT = slot_of(b"as its primary does")
KEYS = keys_of(SLOT, 40)


def set_prefixes(nodes, text):
    for node in nodes:
        node.ask("CONFIG", "SET", "ckv.prefixes", text)
        node.config["ckv.prefixes"] = f'"{text}"'


def write(primary, stored, keys, value):
    with primary.client() as r:
        for key in keys:
            stored[key] = value + key
            r.set(key, stored[key])
        wait_for_replica(r)


def delete(primary, stored, key):
    primary.ask("DEL", key)
    del stored[key]


def wait_for_same(primary, replica, what):
    def same():
        counts = [node.ask("INFO", "ckv")["ckv_records"] for node in (primary, replica)]
        return counts[0] == counts[1] and names_in(primary, SLOT) == names_in(replica, SLOT)

    wait_for(same, what)


def assert_holds(node, stored):
    with node.client() as r:
        r.execute_command("READONLY")
        assert {key: r.get(key) for key in KEYS if r.get(key) is not None} == stored


def give(cluster, source, target):
    way = way_of(source)
    if way:
        move(cluster, way, source, target, SLOT, SLOT)
    else:
        move_slot(cluster, SLOT)


@pytest.fixture
def pair():
    """(cluster, the slot's primary, its replica); two primaries with a replica each, without a prefix."""
    with Cluster(primaries=2, replicas=1, config=FAST) as cluster:
        primary = cluster.owner(SLOT)
        yield cluster, primary, cluster.replica_of(primary)


def there_and_back(cluster, primary, replica, stored):
    """What was written on the other node is what the replica has when it is promoted."""
    target = other(cluster, primary)
    give(cluster, primary, target)
    wait_for(lambda: names_in(replica, SLOT) == [], what="a replica without the slot")
    write(target, stored, KEYS[:5], b"elsewhere")
    delete(target, stored, KEYS[6])
    give(cluster, target, primary)
    wait_for_same(primary, replica, "the slot to be back")
    assert_holds(primary, stored)
    assert_holds(replica, stored)
    fail_over(replica)
    assert_holds(replica, stored)


def test_a_primary_has_the_prefix_first(pair):
    cluster, primary, replica = pair
    stored = {}
    write(primary, stored, KEYS[:10], b"before")
    set_prefixes(cluster.primaries, "*")
    write(primary, stored, KEYS[10:20], b"behind")
    wait_for(lambda: info(primary.client())["records"] == 20, what="the primary's strings to move in")
    wait_for_same(primary, replica, "the replica's to move")
    assert replica.ask("INFO", "ckv")["ckv_prefixes"] == "*"
    assert replica.ask("CONFIG", "GET", "ckv.prefixes")[1] == b""
    there_and_back(cluster, primary, replica, stored)


@pytest.mark.parametrize("saved", (True, False), ids=("goes on", "begins anew"))
def test_a_replica_starts_without_the_prefix(pair, saved):
    cluster, primary, replica = pair
    stored = {}
    set_prefixes(cluster.nodes, "*")
    write(primary, stored, KEYS[:10], b"before")
    replica.config["ckv.prefixes"] = '""'
    replica.restart(save=saved)
    wait_for(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up", what="the replica")
    write(primary, stored, KEYS[5:20], b"behind")
    wait_for_same(primary, replica, "the replica's to be the primary's")
    assert "ckv.prefixes are not those of this replica" in replica.log()
    there_and_back(cluster, primary, replica, stored)


def test_promoted_it_goes_by_its_own_setting(pair):
    """And whoever follows it then, by that."""
    cluster, primary, replica = pair
    stored = {}
    set_prefixes(cluster.primaries, "*")
    write(primary, stored, KEYS, b"v")
    wait_for_same(primary, replica, "a replica that follows")
    fail_over(replica)
    wait_for(lambda: replica.ask("INFO", "ckv")["ckv_records"] == 0, what="its strings to move out")
    assert "by its own ckv.prefixes" in replica.log()
    write(replica, stored, KEYS[:20], b"new")
    wait_for_same(replica, primary, "the one that was the primary")
    assert (names_in(replica, SLOT), primary.ask("INFO", "ckv")["ckv_prefixes"]) == (sorted(KEYS), "")
    fail_over(primary)
    assert_holds(primary, stored)
    wait_for(lambda: primary.ask("INFO", "ckv")["ckv_records"] == len(KEYS), what="its strings to move in")
    wait_for_same(primary, replica, "a replica that follows again")


def test_a_primary_gives_the_prefix_up_first(pair):
    cluster, primary, replica = pair
    stored = {}
    set_prefixes(cluster.nodes, "*")
    write(primary, stored, KEYS[:20], b"before")
    set_prefixes(cluster.primaries, "")
    write(primary, stored, KEYS[10:], b"behind")
    wait_for(lambda: primary.ask("INFO", "ckv")["ckv_records"] == 0, what="strings to move out")
    wait_for_same(primary, replica, "the replica's to move out")
    assert names_in(replica, SLOT) == sorted(KEYS)
    there_and_back(cluster, primary, replica, stored)


def test_set_in_a_pause_and_in_a_transaction(pair):
    """While writes are paused nobody may be told anything; what the pause holds back comes behind."""
    _, primary, replica = pair
    with primary.client() as r, primary.client() as held:
        r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        held.connection.send_command("SET", KEYS[0], b"held")
        wait_for(lambda: int(r.info("clients")["blocked_clients"]) == 1, what="a write that is held back")
        r.config_set("ckv.prefixes", "*")
        r.execute_command("CLIENT", "UNPAUSE")
        assert held.connection.read_response() == b"OK"
        wait_for_replica(r)
        wait_for_same(primary, replica, "what was held back")
        for command in (("MULTI",), ("CONFIG", "SET", "ckv.prefixes", "1: 2:")):
            r.execute_command(*command)
        assert is_error(reply(r, "EXEC")[0], "in a cluster can't be changed in MULTI")
    assert_holds(replica, {KEYS[0]: b"held"})


def test_a_primary_is_deposed_in_the_pause_in_which_it_was_set(pair):
    """Nobody was told, and the new one serves what it did."""
    cluster, primary, replica = pair
    stored = {}
    set_prefixes(cluster.nodes, "*")
    write(primary, stored, KEYS[:10], b"before")
    primary.ask("CLIENT", "PAUSE", 600_000, "WRITE")
    primary.ask("CONFIG", "SET", "ckv.prefixes", "")
    fail_over(replica)
    primary.ask("CLIENT", "UNPAUSE")
    write(replica, stored, KEYS[5:20], b"behind")
    wait_for_same(replica, primary, "the one that was the primary")
    assert names_in(primary, SLOT) == names_in(replica, SLOT) and primary.ask("INFO", "ckv")["ckv_records"] == 20
    assert_holds(primary, stored)


def test_a_primary_starts_with_another_setting(pair):
    """Its replica goes on behind what it has."""
    cluster, primary, replica = pair
    stored = {}
    set_prefixes(cluster.nodes, "0: 1:")
    write(primary, stored, KEYS[:10], b"before")
    set_prefixes([other(cluster, primary)], "*")
    primary.config["ckv.prefixes"] = '"*"'
    primary.restart(save=True)
    cluster.wait()
    wait_for(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up", what="the replica")
    write(primary, stored, KEYS[5:20], b"behind")
    wait_for(lambda: primary.ask("INFO", "ckv")["ckv_records"] == 20, what="strings to move in")
    wait_for_same(primary, replica, "the replica's")
    there_and_back(cluster, primary, replica, stored)


@pytest.mark.parametrize("prefixes", ("", "x:"))
def test_an_aof_is_told_only_where_there_are_prefixes(prefixes):
    with Cluster(primaries=1, config={"appendonly": "yes", "ckv.prefixes": f'"{prefixes}"'}) as cluster:
        node = cluster.primaries[0]
        node.ask("SET", "y:1", "v")
        aof = b"".join(path.read_bytes() for path in pathlib.Path(node.dir).rglob("*.aof"))
        assert b"y:1" in aof and (b"CPREFIXES" in aof.upper()) == bool(prefixes)


def test_nobody_else_may_tell(pair):
    _, primary, replica = pair
    for node in pair[1:]:
        with node.client() as r:
            assert is_error(reply(r, "CPREFIXES", "*"))
    assert primary.ask("INFO", "ckv")["ckv_prefixes"] == replica.ask("INFO", "ckv")["ckv_prefixes"] == ""
