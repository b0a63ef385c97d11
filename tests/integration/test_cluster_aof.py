"""What a node of a cluster has in its AOF of strings under a prefix: slots come and go by the names of their maps."""

import os
import pathlib
import signal
import time

import pytest

from atomic import Redis, ended, move, ranges, state, way_of
from cluster import Cluster, Held, asking, end_move, keys_of, map_name, migrate, move_slot, other, slot_of, start_move
from helpers import reply, wait_for, wait_for_replica
from loading import LOADS_SLOWLY, start_and_send, write_what_loads_slowly

PREAMBLES = pytest.mark.parametrize("preamble", ("yes", "no"), ids=("preamble", "plain"))


def start(primaries, preamble="yes", config=(), **options):
    config = {"ckv.prefixes": '"*"', "appendonly": "yes", "aof-use-rdb-preamble": preamble, **dict(config)}
    return Cluster(primaries, **options, config=config)


def rewrite(node):
    with node.client() as r:
        r.bgrewriteaof()
        wait_for(lambda: not r.info("persistence")["aof_rewrite_in_progress"], what="the rewrite")
        wait_for(lambda: r.info("persistence")["aof_rewrites"] > 0, what="the rewrite")


def there(rc, keys):
    def value(key):
        kind = rc.execute_command("TYPE", key)
        return rc.execute_command("GET", key) if kind in (b"string", b"none") else kind

    return [(value(key), rc.execute_command("TTL", key) > 0) for key in keys]


def check_restart(cluster, keys, *nodes):
    """All primaries start anew if none is given."""
    with cluster.client() as rc:
        state = there(rc, keys)
    for node in nodes or cluster.primaries:
        node.restart()
    cluster.wait()
    with cluster.client() as rc:
        assert there(rc, keys) == state
    return state


@pytest.mark.parametrize("rewritten", (False, True), ids=("from the start", "rewritten"))
def test_slots_that_came_and_went(rewritten):
    """They go by the name of a map, which in an AOF of plain commands held nothing, and come with one, which plain commands miss."""
    with start(2) as cluster:
        slot = slot_of(b"to and fro")
        keys = keys_of(slot, 8)
        first = cluster.owner(slot)
        second = other(cluster, first)
        with cluster.client() as rc:
            for i, key in enumerate(keys):
                rc.execute_command("SET", key, i, "EX", 1000)
        for node in cluster.primaries if rewritten else ():
            rewrite(node)
        changes = (("DEL", keys[0]), ("APPEND", keys[1], "x"), ("INCR", keys[2]), ("SETBIT", keys[3], 1, 1))
        for node, commands in ((second, changes), (first, (("DEL", keys[4]), ("APPEND", keys[5], "x")))):
            move_slot(cluster, slot)
            with cluster.client() as rc:
                for command in commands:
                    rc.execute_command(*command)
            check_restart(cluster, keys, node)
        assert sum(node.ask("DBSIZE") for node in cluster.primaries) == 6


@PREAMBLES
@pytest.mark.parametrize("way", ("GETBIT", "RENAME", "HSET", "rewrite"))
def test_commands_on_values_of_the_servers_own(preamble, way):
    """While the file is loaded the cluster is not up, and refuses what a command that is called would call itself."""
    with start(1, preamble) as cluster:
        keys = keys_of(slot_of(b"native"), 8)
        with cluster.client() as rc:
            for key in keys:
                rc.execute_command("SET", key, 1, "EX", 1000)
            for key in keys[:6]:
                if way == "GETBIT":
                    rc.execute_command("GETBIT", key, 0)
                elif way == "RENAME":
                    rc.execute_command("RENAME", key, key + b":"), rc.execute_command("RENAME", key + b":", key)
                elif way == "HSET":
                    rc.execute_command("DEL", key), rc.execute_command("HSET", key, "field", 1)
            if way == "rewrite":
                rewrite(cluster.primaries[0])
            rc.execute_command("DEL", keys[0])
            rc.execute_command("UNLINK", keys[1], keys[6])
            rc.execute_command("MSET", keys[2], 2, keys[7], 2)
            rc.execute_command("SET", keys[3], 3)
            if way != "HSET":
                rc.execute_command("APPEND", keys[4], 4)
                rc.execute_command("INCR", keys[5])
        state = check_restart(cluster, keys)
        assert [value for value, _ in state[:4]] == [None, None, b"2", b"3"] and state[6] == (None, False)


def test_what_is_sent_while_a_file_loads_takes_nothing_away():
    """The cluster is not up by then and refuses it, but a key that the file has yet to bring had been noted as the server's to write."""
    sent = ("GETBIT {t}a 0", "SETBIT {t}b 0 1", "SORT {t}c", "RENAME {t}d {t}e", "BITOP NOT {t}f {t}a", "LCS {t}g {t}a")
    keys = ["{t}" + key for key in "abcdefg"]
    with Cluster(1, config={**LOADS_SLOWLY, "ckv.prefixes": '"*"'}) as cluster:
        (node,) = cluster.primaries
        with node.client() as r:
            write_what_loads_slowly(r)
            for key in keys:
                r.set(key, 100, ex=100_000)
                r.incr(key)
        node.kill()
        s, said = start_and_send(node, sent)
        assert said.count(b"-CLUSTERDOWN") + said.count(b"-LOADING") == len(sent)
        s.close()
        cluster.wait()
        with node.client() as r:
            assert r.mget(keys) == [b"101"] * len(keys)
            assert all(r.ttl(key) > 0 for key in keys)


@PREAMBLES
def test_a_slot_that_has_left_stays_away(preamble):
    """Its map is deleted by name: whatever a served command takes in, or a rewrite writes, is to be in there."""
    with start(2, preamble) as cluster:
        slot = slot_of(b"stays away")
        keys = keys_of(slot, 4)
        source = cluster.owner(slot)
        with cluster.client() as rc:
            for key in keys:
                rc.execute_command("SET", key, "old")
            rc.execute_command("SETBIT", keys[1], 1, 1)
            rc.execute_command("SET", keys[1], "taken in")
            rewrite(source)
            rc.execute_command("SETBIT", keys[2], 1, 1)
            rc.execute_command("SET", keys[2], "taken in")
            move_slot(cluster, slot)
            rc.execute_command("DEL", *keys[:3])
        state = check_restart(cluster, keys)
        assert [value for value, _ in state] == [None, None, None, b"old"]
        assert source.ask("KEYS", "*") == []


WRITES = {  # over "a", of which SETBIT made "c"
    "APPEND {k} x": b"cx", "SET {k} v": b"v", "SETRANGE {k} 0 r": b"r", "GETSET {k} g": b"g", "SET {k} v KEEPTTL": b"v", "MSET {k} m": b"m",
    "SETEX {k} 1000 v": b"v", "SETBIT {k} 3 1": b"s",
}


@PREAMBLES
def test_the_map_comes_last(preamble):
    """What came before it is written meanwhile: where it moved in, on replicas and as the file was loaded, the map found another there."""
    with start(2, preamble, replicas=1) as cluster:
        slot = slot_of(b"the map comes last")
        *keys, kept = keys_of(slot, len(WRITES) + 1)
        source = cluster.owner(slot)
        target = other(cluster, source)
        with cluster.client() as rc:
            rc.execute_command("SET", kept, "kept")
            for key in keys:
                rc.execute_command("SET", key, "a")
                rc.execute_command("SETBIT", key, 6, 1)
        start_move(source, target, slot)
        assert source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys) == b"OK"
        for key, command in zip(keys, WRITES):
            asking(target, *command.format(k=key.decode()).split())
        migrate(source, target, slot)
        end_move(cluster, target, slot)
        cluster.wait()
        replica = cluster.replica_of(target)
        with target.client() as r:
            wait_for_replica(r)
        for node in (target, replica):
            assert sorted(node.ask("KEYS", "*")) == sorted((*keys, kept))
        state = check_restart(cluster, (*keys, kept), target)
        assert [value for value, _ in state] == [*WRITES.values(), b"kept"]


WHILE_IT_LEAVES = (
    "SET {k} 1 EX 1000", "APPEND {k} 2", "INCR {k}", "MSET {k} 4 {other} 5", "DEL {k} {other}", "SETRANGE {k} 1 2", "GETSET {k} 3",
    "EXPIRE {k} 500", "PERSIST {k}", "GETEX {k} EX 500", "GETDEL {k}", "MSETNX {k} 1 {other} 2", "UNLINK {k}", "SETNX {k} 1",
    "GETBIT {k} 1", "SET {k} 2", "SETEX {k} 1000 2", "EVAL return{{redis.call('set',KEYS[1],'1'),redis.call('append',KEYS[2],'2')}} 2 {k} {other}",
)


def test_slots_leave_atomically_while_an_aof_is_written():
    """Valkey 9.1 gave up: of a command without keys that a module tells it may think that its keys are in several slots."""
    with start(2) as cluster:
        way = way_of(cluster.nodes[0])
        if not way:
            pytest.skip("the server has no atomic slot migration")
        slot = slot_of(b"atomically")
        keys = keys_of(slot, 20)
        source = cluster.owner(slot)
        target = other(cluster, source)
        source.ask("SET", keys[0], "before")
        way.halt(source, True)
        way.start(source, target, slot, slot)
        wait_for(lambda: state(way, target) == "arrived", what="the records' arrival")
        with source.client() as r:
            for key in keys[1:]:
                for command in WHILE_IT_LEAVES:
                    r.execute_command(*command.format(k=key.decode(), other=keys[0].decode()).split())
        way.halt(source, False)
        wait_for(lambda: ended(way, source) and ended(way, target), "the end of the migration")
        assert state(way, target) == state(way, source) == "done", way.newest(source)
        cluster.wait()
        check_restart(cluster, keys)


def hold_back(node, keys):
    """Commands of the server's own on records, which wait for the end of a pause."""
    commands = (("SETBIT", keys[0], 7, 1), ("BITFIELD", keys[1], "SET", "u8", 0, 64), ("BITOP", "NOT", keys[2], keys[3]))
    held = [Held(node, *command) for command in commands]
    time.sleep(0.1)
    return held


MADE = [b"1123456789", b"@123456789", bytes(255 - b for b in b"0123456789"), b"0123456789"]


def check_kept(cluster, node, held, keys):
    """The AOF was told that a record has moved out before it was told what became of the string."""
    assert [h.answer() for h in held] == [0, [48], 10]
    assert [node.ask("GET", key) for key in keys] == MADE
    node.kill()
    node.start()
    cluster.wait()
    assert [node.ask("GET", key) for key in keys] == MADE


def held_back_in_time(cluster, way, source, target, given_up):
    """While a slot is handed over, which is given up if it takes long. True: it had not been done before."""
    slot, keys = slot_of(b"handed over"), keys_of(ranges(source)[-1][1], 4)
    for key in keys:
        source.ask("SET", key, "0123456789")
    with way.paused(source, target, slot, slot):
        held = hold_back(source, keys)
        in_time = not ended(way, source) and not any(h.answered() for h in held)
        wait_for(lambda: not given_up or ended(way, source), "the end of the pause")
    wait_for(lambda: all(h.answered() for h in held) and ended(way, source) and ended(way, target), "the end of the migration")
    cluster.wait()
    check_kept(cluster, source, held, keys)
    if cluster.owner(slot) is not source:
        move(cluster, way, target, source, slot, slot)
    return in_time


@pytest.mark.parametrize("given_up", (False, True), ids=("done", "given up"))
def test_what_is_held_back_while_a_slot_is_handed_over(given_up):
    with start(2) as cluster:
        way = way_of(cluster.nodes[0])
        if not way or (given_up and way is not Redis):
            pytest.skip("the server has no atomic slot migration, or ends a pause where others see it")
        source = cluster.owner(slot_of(b"handed over"))
        target = other(cluster, source)
        if given_up:
            source.config["cluster-slot-migration-write-pause-timeout"] = 1000
            source.restart()
            cluster.wait()
        for _ in range(30):
            if held_back_in_time(cluster, way, source, target, given_up):
                return
        pytest.skip("the machine is too slow to be in time")


def test_what_is_held_back_until_a_shutdown_is_given_up():
    """By a command that a thread of the server's has read, where it has such."""
    with start(1, config={"io-threads": 3}, replicas=1) as cluster:
        node, replica = cluster.primaries[0], cluster.replicas[0]
        keys = keys_of(slot_of(b"shut down"), 4)
        for key in keys:
            node.ask("SET", key, "0123456789")
        with node.client() as leaves, node.client() as stays:
            for setting in (("io-threads-always-active", "yes"), ("events-per-io-thread", 0)):
                reply(stays, "CONFIG", "SET", *setting)  # Valkey's, by its version
            os.kill(replica.process.pid, signal.SIGSTOP)
            try:
                node.ask("SET", keys[0], "0123456789")
                leaves.ping()
                leaves.connection.send_command("SHUTDOWN", "NOSAVE")
                wait_for(lambda: "Waiting for replicas" in node.log(), "the pause")
                held = hold_back(node, keys)
                assert not any(h.answered() for h in held)
                assert stays.execute_command("SHUTDOWN", "ABORT") == b"OK"
                wait_for(lambda: all(h.answered() for h in held), "the end of the pause")
            finally:
                os.kill(replica.process.pid, signal.SIGCONT)
        check_kept(cluster, node, held, keys)


@PREAMBLES
def test_the_setting_is_forgotten(preamble):
    """No record is out of reach: an AOF that begins anew names the prefixes, or is told them."""
    with start(1, preamble) as cluster:
        node = cluster.primaries[0]
        keys = keys_of(slot_of(b"forgotten"), 3)
        with cluster.client() as rc:
            for key in keys:
                rc.execute_command("SET", key, "old")
            rewrite(node)
            rc.execute_command("APPEND", keys[1], " new")
        del node.config["ckv.prefixes"]
        node.restart()
        cluster.wait()
        with cluster.client() as rc:
            assert [rc.execute_command("GET", key) for key in keys] == [b"old", b"old new", b"old"]


def test_an_inert_map_is_in_the_plain_aof_of_a_replica():
    """The server sends whoever reads there to the primary, unless he has said READONLY."""
    slot = slot_of(b"inert")
    with start(2, "no", replicas=1) as cluster:
        owner = cluster.owner(slot)
        replica = cluster.replica_of(owner)
        with owner.client() as r:
            r.set(keys_of(slot, 1)[0], "value")
            assert r.copy(map_name(slot), b"aside:" + map_name(slot))
            wait_for_replica(r)
        rewrite(replica)
        base = next(pathlib.Path(replica.dir).glob("appendonlydir/*.base.aof")).read_bytes()
        assert b"RESTORE" in base and b"aside:" + map_name(slot) in base
