"""Replicas follow under load: full and partial resynchronization, chains, failover, and nobody's own clock."""

import time

import pytest

from helpers import at_one_moment, is_in_sync, load, texts, wait_for, wait_for_replica
from traffic import Traffic, assert_same_records

LOAD_SECONDS = 1.0


def much_written(traffic):
    """For some time, and on a machine that is busy for as long as it takes."""
    time.sleep(LOAD_SECONDS)
    wait_for(lambda: traffic.count > 1000, "traffic")


def replica_of(own_server, server, **config):
    config = {name.replace("_", "-"): value for name, value in config.items()}
    return own_server({"replicaof": f"127.0.0.1 {server.port}", **config})


def in_step(primary, *replicas):
    """All writes have arrived. What expires from now on is the primary's to say, so nothing does."""
    primary.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")
    offset = primary.info("replication")["master_repl_offset"]
    for r in replicas:
        wait_for(lambda r=r: r.info("replication")["slave_repl_offset"] >= offset, what="the replica's offset")


def check_equal(primary, *replicas):
    in_step(primary, *replicas)
    for r in replicas:
        assert_same_records(primary, r)
        assert r.execute_command("DEBUG", "DIGEST") == primary.execute_command("DEBUG", "DIGEST")
    primary.execute_command("CLIENT", "UNPAUSE")


@pytest.mark.parametrize("diskless_load", ["disabled", "swapdb", "on-empty-db"])
@pytest.mark.parametrize("diskless_sync", ["yes", "no"])
def test_full_resync_under_load(own_server, diskless_sync, diskless_load):
    server = own_server({"repl-diskless-sync": diskless_sync})
    with server.client() as r:
        load(r, texts(20_000), ttl=5000, key=b"old:%d")
        with Traffic(server) as traffic:
            replica = replica_of(own_server, server, repl_diskless_load=diskless_load)
            with replica.client() as q:
                wait_for(lambda: is_in_sync(q))
                much_written(traffic)
        with replica.client() as q:
            check_equal(r, q)
            # And over what it has: records of another time go.
            q.execute_command("REPLICAOF", "NO", "ONE")
            q.execute_command("CSET", "stray", "v")
            q.execute_command("REPLICAOF", "127.0.0.1", server.port)
            wait_for(lambda: is_in_sync(q) and q.execute_command("CEXISTS", "stray") == 0)
            check_equal(r, q)


def test_partial_resync_after_a_cut(own_server):
    server = own_server({"repl-backlog-size": "64mb"})
    replica = replica_of(own_server, server)
    with server.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        with Traffic(server):
            for cuts in range(1, 4):
                time.sleep(0.3)
                r.execute_command("CLIENT", "KILL", "TYPE", "replica")
                wait_for(lambda cuts=cuts: r.info("stats")["sync_partial_ok"] >= cuts and is_in_sync(q))
        check_equal(r, q)


def test_a_replica_of_a_replica(own_server):
    server = own_server()
    first = replica_of(own_server, server)
    second = replica_of(own_server, first)
    with server.client() as r, first.client() as q, second.client() as s:
        wait_for(lambda: is_in_sync(q) and is_in_sync(s))
        with Traffic(server):
            time.sleep(LOAD_SECONDS)
        check_equal(r, q, s)


def test_failover_under_load(own_server):
    server = own_server()
    replica = replica_of(own_server, server)
    with server.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        with Traffic(server):
            time.sleep(LOAD_SECONDS)
            r.execute_command("FAILOVER")
            wait_for(lambda: q.info("replication")["role"] == "master")
        with Traffic(replica):
            wait_for(lambda: is_in_sync(r))
            time.sleep(LOAD_SECONDS)
        check_equal(q, r)


def test_a_replica_takes_over_when_the_primary_dies(own_server):
    server = own_server()
    replica = replica_of(own_server, server)
    with replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        with Traffic(server):
            time.sleep(LOAD_SECONDS)
            server.kill()
        q.execute_command("REPLICAOF", "NO", "ONE")
        with Traffic(replica) as traffic:
            much_written(traffic)
        server.start()
        with server.client() as r:
            r.execute_command("REPLICAOF", "127.0.0.1", replica.port)
            wait_for(lambda: is_in_sync(r))
            check_equal(q, r)


def test_a_replica_does_not_delete_by_its_own_clock(own_server, faults):
    config = {"repl-timeout": 86_400}  # the link outlasts the step of the clock
    server = own_server(config)
    replica = own_server({**config, "replicaof": f"127.0.0.1 {server.port}"}, env=faults.env)
    with server.client() as r, replica.client() as q:
        load(r, [b"v"] * 100, ttl=600)
        wait_for_replica(r)
        faults.set(seconds=3600)
        wait_for(lambda: q.execute_command("CMGET", *[f"KEY:{i}" for i in range(100)]) == [None] * 100)
        time.sleep(1)  # long enough for many passes
        assert q.execute_command("CDBSIZE") == 100
        assert q.execute_command("CEXISTS", "KEY:1") == 0 and q.execute_command("CTTL", "KEY:1") == -2
        assert q.execute_command("CSCAN", "0", "COUNT", 1000) == [b"0", []]
        assert q.execute_command("CDBSIZE") == 100
        for i in range(100):
            r.execute_command("CPEXPIRE", f"KEY:{i}", 1)
        wait_for(lambda: q.execute_command("CDBSIZE") == 0)


@pytest.mark.slow
def test_full_resync_of_a_million_records_under_load(own_server):
    server = own_server()
    with server.client() as r:
        load(r, texts(1_000_000), ttl=50_000, key=b"old:%d", batch=2000)
        with Traffic(server, keys=100_000):
            replica = replica_of(own_server, server)
            with replica.client() as q:
                wait_for(lambda: is_in_sync(q))
        with replica.client() as q:
            check_equal(r, q)
            assert q.execute_command("CDBSIZE") > 1_000_000


def test_cmset_of_keys_within_and_without_prefixes(own_server):
    """Who has no prefixes is told of the strings as of strings."""
    server = own_server({"ckv.prefixes": "a:"})
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}"})
    with server.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        q.config_set("ckv.prefixes", "")
        r.set("a:1", "old")
        assert r.execute_command("CMSET", "b:1", "record", "a:1", "new", "b:2", "record", "a:1", "newer") == b"OK"
        assert r.execute_command("CMSETNX", "a:2", "string", "b:3", "record") == 1
        wait_for_replica(r)
        assert q.mget("a:1", "a:2") == [b"newer", b"string"]
        assert q.execute_command("CMGET", "b:1", "b:2", "b:3") == [b"record"] * 3
        r.delete("a:1")
        wait_for_replica(r)
        assert q.get("a:1") is None and q.execute_command("CGET", "a:1") is None


def test_a_replicas_own_records_expire(own_server):
    """What clients have written to a replica its primary knows nothing of; what the primary has written is the primary's."""
    server = own_server()
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}", "replica-read-only": "no"})
    with server.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        for i in range(200):
            q.execute_command("CSET", f"own:{i}", "v", "PX", 50)
        q.execute_command("CSET", "other", "v")
        q.execute_command("CPEXPIRE", "other", 50)
        q.execute_command("CSET", "stays", "v", "EX", 1000)
        at_one_moment(q, ("CSET", "lasts", "v", "PX", 50), ("CPERSIST", "lasts"))
        r.execute_command("CSET", "theirs", "v", "EX", 1000)
        what_stays = [b"lasts", b"stays", b"theirs"]
        wait_for(lambda: sorted(q.execute_command("CKEYS", "*")) == what_stays, what="only what stays")
        wait_for(lambda: q.execute_command("CDBSIZE") == 3, what="the deletion of the others")
