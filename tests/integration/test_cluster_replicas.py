"""A replica in a cluster holds in its maps what its primary holds there: slots leave map by map, and it may be promoted in between."""

import os
import random
import signal
import time

import pytest
from redis.exceptions import MovedError

from atomic import Redis, ended, move, state, way_of
from cluster import Cluster, keys_of, map_name, names_in, other, slot_of
from helpers import is_error, is_in_sync, reply, wait_for, wait_for_replica
from mover_data import wait_moved

SLOT = slot_of(b"a replica holds")
CONFIG = {"ckv.prefixes": '"*"'}


@pytest.fixture
def atomic():
    """(cluster, source, target, the target's replica): the slot is about to go from one to the other."""
    with Cluster(primaries=2, replicas=1, config=CONFIG) as cluster:
        cluster.way = way_of(cluster.nodes[0])
        if not cluster.way:
            pytest.skip("the server has no atomic slot migration")
        source = cluster.owner(SLOT)
        target = other(cluster, source)
        yield cluster, source, target, cluster.replica_of(target)


def begin(cluster, source, target):
    """All has arrived; what is written is passed on."""
    cluster.way.halt(source, True)
    cluster.way.start(source, target, SLOT, SLOT)
    wait_for(lambda: state(cluster.way, target) == "arrived", what="the records' arrival")


def end(cluster, source, target):
    cluster.way.halt(source, False)
    wait_for(lambda: ended(cluster.way, source) and ended(cluster.way, target), what="the end of a migration")
    cluster.wait()


def test_a_name_that_is_queued_where_its_slot_arrives(atomic):
    """It was the primary's own, and a record to the replica, which lost it with the map."""
    cluster, source, target, replica = atomic
    keys = keys_of(SLOT, 40)
    for key in keys[:20]:
        source.ask("SET", key, b"v" + key)
    with target.client() as queueing:
        queueing.execute_command("MULTI")
        for key in keys:
            assert isinstance(reply(queueing, "BITCOUNT", key), MovedError)
        begin(cluster, source, target)
        for key in keys[20:]:
            source.ask("SET", key, b"v" + key)
        end(cluster, source, target)
        wait_for(lambda: names_in(target, SLOT) == names_in(replica, SLOT), what="a replica that holds the same")


def test_a_map_of_an_import_that_failed(atomic):
    """The replica keeps it (Redis 8 does not tell it otherwise), and refused the slot when that came at last."""
    cluster, source, target, replica = atomic
    if cluster.way is not Redis:
        pytest.skip("Valkey's replicas are told")
    stored = {key: b"first" for key in keys_of(SLOT, 50)}
    for key, value in stored.items():
        source.ask("SET", key, value)
    begin(cluster, source, target)
    target.stop(save=True)
    target.start()
    end(cluster, source, target)
    with replica.client() as q:
        wait_for(lambda: is_in_sync(q), what="the replica")
    for key in keys_of(SLOT, 30):
        stored[key] = b"second"
        source.ask("SET", key, b"second")
    move(cluster, cluster.way, source, target, SLOT, SLOT)
    with target.client() as r, replica.client() as q:
        wait_for_replica(r)
        q.execute_command("READONLY")
        assert {key: q.execute_command("GET", key) for key in stored} == stored


def test_a_replica_that_starts_anew_moves_nothing_by_itself():
    """Valkey says that it follows 100 ms after all is loaded: until then it took itself for a primary."""
    with Cluster(primaries=1, replicas=1, config={**CONFIG, "repl-backlog-size": "64mb"}) as cluster:
        primary, replica = cluster.primaries[0], cluster.replicas[0]
        keys = keys_of(SLOT, 1000)
        with primary.client() as r, primary.client() as queueing:
            for key in keys:
                r.set(key, b"v" + key)
            queueing.execute_command("MULTI")
            for key in keys[:20]:
                queueing.execute_command("BITCOUNT", key)  # are the server's as long as this is open
            wait_for_replica(r)
            held = names_in(primary, SLOT)
            assert names_in(replica, SLOT) == held
            replica.config["key-load-delay"] = 20_000  # us; the timers are late then
            replica.stop(save=True)
            replica.start()
            with replica.client() as q:
                wait_for(lambda: is_in_sync(q), what="the replica")
            wait_for_replica(r)
        assert "moving strings into" not in replica.log()
        assert names_in(replica, SLOT) == names_in(primary, SLOT) == held


@pytest.mark.parametrize("command", ["MSET {k} w", "MSETEX 1 {k} w"])
def test_a_replica_holds_the_record_that_is_written_over(command):
    """While any name may be queued: the prefix was away for a moment, and its records are there."""
    with Cluster(primaries=1, replicas=1, config=CONFIG) as cluster:
        slot = slot_of(b"written over")
        key = keys_of(slot, 1)[0]
        source, replica = cluster.primaries[0], cluster.replicas[0]
        with source.client() as r:
            r.set(key, "v")
            pipe = r.pipeline(transaction=False)
            pipe.config_set("ckv.prefixes", "").config_set("ckv.prefixes", "*").execute_command(*command.format(k=key.decode()).split())
            if is_error(pipe.execute(raise_on_error=False)[2], "unknown command"):
                pytest.skip("this server does not know it")
            wait_for_replica(r)
            assert names_in(source, slot) == names_in(replica, slot) == [map_name(slot)]


@pytest.mark.parametrize("command", ["SET {k} v PX 100", "SETEX {k} 1 v", "PSETEX {k} 100 v", "MSETEX 1 {k} v PX 100", "GETEX {k} PX 100", "PEXPIRE {k} 100"])
def test_a_late_replica_holds_what_has_expired_when_it_comes(command):
    """It is told when that is to expire, and makes a record of it as its primary did."""
    with Cluster(primaries=1, replicas=1, config=CONFIG) as cluster:
        slot = slot_of(b"late")
        key, second = keys_of(slot, 2)
        source, replica = cluster.primaries[0], cluster.replicas[0]
        with source.client() as r:
            r.set(second, "v")
            wait_for_replica(r)
            os.kill(replica.process.pid, signal.SIGSTOP)
            try:
                if command.startswith(("GETEX", "PEXPIRE")):
                    r.set(key, "v")
                if is_error(reply(r, *command.format(k=key.decode()).split()), "unknown command"):
                    pytest.skip("this server does not know it")
                lives = r.pttl(key)
                r.set(key, "w")
                time.sleep(lives / 1000 + 0.1)
            finally:
                os.kill(replica.process.pid, signal.SIGCONT)
            wait_for_replica(r)
            assert names_in(source, slot) == names_in(replica, slot) == [map_name(slot)]


@pytest.mark.parametrize("follows", ("", "SETBIT {k} 800000 1"), ids=("left", "aside"))
def test_a_replica_holds_what_the_mover_leaves(follows):
    """It had the prefix first, and has made records of what its primary wrote until then, in a transaction at last."""
    with Cluster(primaries=1, replicas=1) as cluster:
        slot = slot_of(b"the mover leaves")
        key, second = keys_of(slot, 2)
        source, replica = cluster.primaries[0], cluster.replicas[0]
        no_smaller = random.Random(1).randbytes(100_000)
        replica.ask("CONFIG", "SET", "ckv.prefixes", "*")
        with source.client() as r, source.client() as other_client:
            r.set(key, no_smaller)
            other_client.execute_command("MULTI")
            other_client.execute_command("SET", second, no_smaller)
            r.config_set("ckv.prefixes", "*")
            other_client.execute_command("EXEC")
            for name in (key, second) if follows else ():
                r.execute_command(*follows.format(k=name.decode()).split())
            assert wait_moved(r, b"in")["left"] == 2
            wait_for_replica(r)
            assert names_in(source, slot) == names_in(replica, slot) == [key, second]
