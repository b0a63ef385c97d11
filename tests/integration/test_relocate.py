"""Files of servers that place records otherwise: another ckv.maps, a cluster, no cluster."""

import shutil
import time

import pytest

from cluster import SLOTS, Node, slot_of
from helpers import all_keys, assert_stored, load, map_keys, now_ms, texts, wait_for, wait_for_replica
from server import ServerFailed


def fill(r):
    """3,000 records, some of them large, some with an expiry; returns {key: value}."""
    stored = load(r, texts(3000))
    stored |= load(r, [b"x" * 5000, b"y" * 200000, b""], key=b"large:%d")
    for i in range(0, 3000, 7):
        r.execute_command("CPEXPIREAT", b"KEY:%d" % i, now_ms() + 3600_000)
    r.execute_command("CKV", "TRAIN")
    return stored


def check(r, stored, expiries):
    assert_stored_one_by_one(r, stored)
    assert r.execute_command("CDBSIZE") == len(stored)
    assert set(all_keys(r)) == set(stored)  # one may come twice where buckets are split meanwhile
    for key, at_ms in expiries.items():
        assert abs(r.execute_command("CPEXPIRETIME", key) - at_ms) <= 3600_000 / 1024 + 2


def assert_stored_one_by_one(r, stored):
    pipe = r.pipeline(transaction=False)
    for key in stored:
        pipe.execute_command("CGET", key)
    assert dict(zip(stored, pipe.execute())) == stored


def expiries_of(r, stored):
    return {k: r.execute_command("CPEXPIRETIME", k) for k in list(stored)[::7]}


def test_another_number_of_maps(own_server):
    server = own_server({"ckv.maps": 64, "ckv.train-after": "64kb"})
    with server.client() as r:
        stored = fill(r)
        expiries = expiries_of(r, stored)
    for maps in (16, 1, 1024, 1000, 64):
        server.stop(save=True)
        server.config["ckv.maps"] = maps
        server.start()
        with server.client() as r:
            check(r, stored, expiries)
            assert len(map_keys(r)) <= maps
            # Nothing is left where it was.
            assert r.execute_command("INFO", "ckv")["ckv_maps"] == len(map_keys(r))


def test_a_map_that_has_expired(own_server):
    """Of a file of another layout: its key had a time, and the server drops it while it loads."""
    server = own_server({"ckv.maps": 64})
    with server.client() as r:
        stored = fill(r)
        name = map_keys(r)[0]
        r.pexpire(name, 300)
        r.save()
    server.kill()
    server.config["ckv.maps"] = 16
    time.sleep(0.4)
    server.start()
    with server.client() as r:
        assert 0 < len(all_keys(r)) < len(stored)


def test_commands_behind_a_file_of_another_layout(own_server):
    """The AOF's base is an RDB file; the commands behind it meet its records."""
    server = own_server({"ckv.maps": 64, "appendonly": "yes"})
    with server.client() as r:
        stored = fill(r)
        r.execute_command("BGREWRITEAOF")
        wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0
                 and r.info("persistence")["aof_rewrite_scheduled"] == 0)
        for i in range(500):
            r.execute_command("CAPPEND", b"KEY:%d" % i, "!")
            stored[b"KEY:%d" % i] += b"!"
        for i in range(500, 1000):
            r.execute_command("CDEL", b"KEY:%d" % i)
            del stored[b"KEY:%d" % i]
    server.config["ckv.maps"] = 5
    server.restart(save=False)
    with server.client() as r:
        check(r, stored, {})


def test_a_replica_of_another_layout(own_server):
    primary = own_server({"ckv.maps": 64})
    with primary.client() as r:
        stored = fill(r)
        replica = own_server({"ckv.maps": 7, "replicaof": f"127.0.0.1 {primary.port}"})
        r.execute_command("CSET", "later", "v")
        r.execute_command("CDEL", "KEY:1")
        wait_for_replica(r)
    stored[b"later"] = b"v"
    del stored[b"KEY:1"]
    with replica.client() as r:
        check(r, stored, {})


def test_a_copy_under_another_name_stays_one(own_server):
    server = own_server({"ckv.maps": 1})
    with server.client() as r:
        r.execute_command("CSET", "k", "old")
        r.execute_command("COPY", "ckv:0", "backup")
        r.execute_command("CSET", "k", "new")
    server.config["ckv.maps"] = 3
    server.restart(save=True)
    with server.client() as r:
        assert r.execute_command("CGET", "k") == b"new"
        assert r.execute_command("EXISTS", "backup") == 1
        assert r.execute_command("CDBSIZE") == 1


def test_a_name_that_is_taken(own_server):
    """A string stands where a map belongs: the server says so and does not start with half of the data."""
    server = own_server({"ckv.maps": 1})
    with server.client() as r:
        load(r, texts(200))
        r.execute_command("SET", "ckv:2", "a string")
    server.stop(save=True)
    server.config["ckv.maps"] = 3
    with pytest.raises(ServerFailed, match="holds something else"):
        server.start()
    server.config["ckv.maps"] = 1
    server.start()
    with server.client() as r:
        assert r.execute_command("CDBSIZE") == 200


@pytest.fixture
def cluster_node():
    with Node() as node:
        node.ask("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        wait_for(lambda: node.info()["cluster_state"] == "ok")
        yield node


def test_from_a_stand_alone_server_to_a_cluster_and_back(own_server, cluster_node):
    server = own_server({"ckv.maps": 64, "ckv.train-after": "64kb"})
    with server.client() as r:
        stored = fill(r)
        expiries = expiries_of(r, stored)
    server.stop(save=True)
    cluster_node.stop()
    shutil.copy(server.rdb_path, cluster_node.rdb_path)
    cluster_node.start()
    wait_for(lambda: cluster_node.info()["cluster_state"] == "ok")
    with cluster_node.client() as r:
        check(r, stored, expiries)
        for name in map_keys(r):
            keys = [k for k in stored if slot_of(k) == slot_of(name)]
            assert r.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot_of(name)) == 1
            assert keys
    cluster_node.stop(save=True)
    shutil.copy(cluster_node.rdb_path, server.rdb_path)
    server.start()
    with server.client() as r:
        check(r, stored, expiries)
        assert_stored(r, stored)
        assert all(b"{" not in name for name in map_keys(r))
