"""Atomic slot migration, where the server has it (Redis 8.4, Valkey 9)."""

import os
import re
import signal

import pytest
import redis

from atomic import Redis, ended, move, ranges, state, way_of
from cluster import SLOTS, Cluster, Writer, keys_of, map_name, slot_of
from helpers import PATIENCE_S, all_keys, is_error, now_ms, reply, texts, wait_for


@pytest.fixture(scope="module")
def cluster():
    with Cluster(primaries=2, replicas=1, config={"ckv.train-after": "64kb"}) as cluster:
        cluster.way = way_of(cluster.nodes[0])
        if not cluster.way:
            pytest.skip("the server has no atomic slot migration")
        yield cluster


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
            move(cluster, cluster.way, one, two, first, last)
        wait_for(lambda: one.ask("CDBSIZE") == 0, what="the deletion of what has left")
        half = SLOTS // 2
        move(cluster, cluster.way, two, one, 0, half - 1)
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
    cluster.way.halt(source, True)
    cluster.way.start(source, target, slot, slot)
    wait_for(lambda: state(cluster.way, target) == "arrived", what="the records' arrival")
    yield source, target, keys, before  # how many the target had
    cluster.way.halt(source, False)
    wait_for(lambda: ended(cluster.way, target))
    cluster.wait()
    for key in keys:
        cluster.owner(slot).ask("CDEL", key)


def scan(node):
    with node.client() as r:
        return all_keys(r)


def test_records_that_arrive_are_nobodys(cluster, halted):
    source, target, keys, before = halted
    replica = cluster.replica_of(target)
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
    cluster.way.halt(source, False)
    wait_for(lambda: state(cluster.way, target) == "done")
    cluster.wait()
    expected = [None, b"new", None] + [b"%d" % i for i in range(3, 100)]
    assert target.ask("CMGET", *keys) == expected
    assert set(scan(target)) >= set(keys[3:])
    wait_for(lambda: target.ask("CDBSIZE") == before + 98)
    wait_for(lambda: source.ask("CLUSTER", "COUNTKEYSINSLOT", slot_of(b"halted")) == 0)


def test_what_came_goes_when_a_migration_is_given_up(cluster, halted):
    source, target, keys, before = halted
    cluster.way.cancel(source, target)
    wait_for(lambda: target.ask("INFO", "ckv")["ckv_unserved_maps"] == 0)
    assert target.ask("CDBSIZE") == before
    assert source.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]
    cluster.way.halt(source, False)
    move(cluster, cluster.way, source, target, slot_of(b"halted"), slot_of(b"halted"))
    assert target.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]


def test_what_came_goes_in_a_restart(cluster, halted):
    source, target, keys, before = halted
    replica = cluster.replica_of(target)
    target.restart(save=True)
    wait_for(lambda: all(n.info()["cluster_state"] == "ok" for n in cluster.nodes))
    wait_for(lambda: target.ask("CDBSIZE") == before)
    assert target.ask("INFO", "ckv")["ckv_records"] == before
    assert source.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 100)]
    wait_for(lambda: replica.ask("CDBSIZE") == before)


def test_records_of_many_slots_expire_meanwhile(cluster, halted):
    """A server gives a migration up if a module tells replicas of several slots in one command."""
    source, target, keys, before = halted
    first, last = ranges(source)[0]
    others = [keys_of(slot, 1)[0] for slot in range(first, first + 20)]
    at = now_ms() + 1000
    for key in others:
        source.ask("CSET", key, "v", "PXAT", at)
    for key in keys[50:]:
        source.ask("CPEXPIREAT", key, at)
    wait_for(lambda: now_ms() > at and not any(source.ask("CEXISTS", key) for key in (*others, *keys[50:])))
    cluster.way.halt(source, False)
    wait_for(lambda: ended(cluster.way, target))
    assert state(cluster.way, target) == "done"
    cluster.wait()
    assert target.ask("CMGET", *keys[1:]) == [b"%d" % i for i in range(1, 50)] + [None] * 50


@pytest.fixture(params=["disabled", "swapdb"])
def to_sync(request, cluster):
    """The replica of the node that will be the target, which has nothing yet, with a way to load its primary's file."""
    source = cluster.owner(slot_of(b"halted"))
    target = next(p for p in cluster.primaries if p is not source)
    replica = cluster.replica_of(target)
    if request.param == "swapdb" and cluster.way is not Redis:
        pytest.skip("Valkey 9.1 ends in an assertion of its own (kvstore.c)")
    target.ask("FLUSHALL")
    wait_for(lambda: replica.ask("DBSIZE") == 0)
    replica.ask("CONFIG", "SET", "repl-diskless-load", request.param)
    yield replica
    replica.ask("CONFIG", "SET", "repl-diskless-load", "disabled")


def sync_anew(primary, replica):
    before = primary.ask("INFO")["sync_full"]
    primary.ask("DEBUG", "CHANGE-REPL-ID")
    primary.ask("CLIENT", "KILL", "TYPE", "replica")
    wait_for(lambda: primary.ask("INFO")["sync_full"] > before and replica.ask("INFO")["master_link_status"] == "up")


def test_a_replica_syncs_anew_meanwhile(cluster, to_sync, halted):
    """Redis does not tell it of the migration once more, which is in the file as before."""
    source, target, keys, _ = halted
    sync_anew(target, to_sync)
    assert target.ask("CDBSIZE") == to_sync.ask("CDBSIZE") == 0
    assert to_sync.ask("INFO", "ckv")["ckv_unserved_maps"] == 1
    cluster.way.halt(source, False)
    wait_for(lambda: state(cluster.way, target) == "done")
    cluster.wait()
    wait_for(lambda: to_sync.ask("CDBSIZE") == target.ask("CDBSIZE") >= 99)
    assert set(scan(to_sync)) >= set(keys[1:])


def test_an_import_fails_while_a_replica_is_away(cluster, to_sync, halted):
    """It hears of that as it loads the file, when it still has what had come of the slot."""
    source, target, keys, _ = halted
    pid = to_sync.ask("INFO", "server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        target.ask("CLIENT", "KILL", "TYPE", "replica")
        cluster.way.cancel(source, target)
        wait_for(lambda: target.ask("INFO", "ckv")["ckv_unserved_maps"] == 0)
        before = target.ask("INFO")["sync_full"]
        target.ask("DEBUG", "CHANGE-REPL-ID")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: target.ask("INFO")["sync_full"] > before and to_sync.ask("INFO")["master_link_status"] == "up")
    cluster.way.halt(source, False)
    wait_for(lambda: ended(cluster.way, source))
    move_by_hand(cluster, source, target, slot_of(keys[0]))
    assert target.ask("CDBSIZE") >= 99
    wait_for(lambda: to_sync.ask("CDBSIZE") == target.ask("CDBSIZE"))


def test_a_replica_restarts_from_an_aof_that_was_begun_meanwhile(cluster, halted):
    """What it begins with tells of an import, and nothing in it of its end; nor does the primary, as long as it is away."""
    source, target, keys, _ = halted
    replica = cluster.replica_of(target)
    wait_for(lambda: replica.ask("INFO", "ckv")["ckv_unserved_maps"] == 1)
    replica.ask("CONFIG", "SET", "appendonly", "yes")
    wait_for(lambda: not any(replica.ask("INFO", "persistence")[f"aof_rewrite_{what}"] for what in ("in_progress", "scheduled")))
    cluster.way.halt(source, False)
    wait_for(lambda: state(cluster.way, target) == "done")
    cluster.wait()
    target.ask("CSET", keys[1], "written since")
    count = target.ask("CDBSIZE")
    wait_for(lambda: replica.ask("CDBSIZE") == count)
    replica.kill()
    replica.config["appendonly"] = "yes"
    os.kill(target.process.pid, signal.SIGSTOP)
    try:
        replica.start()
        assert replica.ask("CDBSIZE") == count and keys[1] in scan(replica)
    finally:
        os.kill(target.process.pid, signal.SIGCONT)
        del replica.config["appendonly"]
        replica.ask("CONFIG", "SET", "appendonly", "no")
    cluster.wait()
    wait_for(lambda: replica.ask("INFO")["master_link_status"] == "up")


def back_and_forth(cluster, meanwhile):
    """Moves the slot of {told}:1 away, has something done there, and moves it back."""
    slot = slot_of(b"{told}:1")
    source = cluster.owner(slot)
    target = next(p for p in cluster.primaries if p is not source)
    move(cluster, cluster.way, source, target, slot, slot)
    meanwhile(target)
    move(cluster, cluster.way, target, source, slot, slot)


def test_who_watches_a_record_is_told_when_it_leaves(cluster):
    source = cluster.owner(slot_of(b"{told}:1"))
    source.ask("CSET", "{told}:1", "v")
    with source.client() as r, r.pipeline() as pipe:
        pipe.watch("{told}:1")
        back_and_forth(cluster, lambda there: there.ask("CSET", "{told}:1", "changed by another"))
        pipe.multi()
        pipe.execute_command("CSET", "{told}:1", "in vain")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert source.ask("CGET", "{told}:1") == b"changed by another"


def test_who_watches_a_record_is_told_as_its_slot_is_trimmed(cluster):
    """And who watches one of another slot is not, whether whole dictionaries go or key by key."""
    if cluster.way is not Redis:
        pytest.skip("the server deletes key by key")
    slot, other = slot_of(b"{told}"), slot_of(b"{stay}")
    source = cluster.owner(slot)
    target = next(p for p in cluster.primaries if p is not source)
    assert cluster.owner(other) is source
    for method in "bg", "active":
        source.ask("DEBUG", "ASM-TRIM-METHOD", method, *(() if method == "active" else ("0",)))
        for key in "{told}:1", "{stay}:1":
            source.ask("CSET", key, "v")
        with source.client() as r, source.client() as q, r.pipeline() as pipe, q.pipeline() as unmoved:
            pipe.watch("{told}:1")
            unmoved.watch("{stay}:1")
            move(cluster, Redis, source, target, slot, slot)
            wait_for(lambda: source.ask("INFO", "ckv")["ckv_unserved_maps"] == 0)
            for p in pipe, unmoved:
                p.multi()
                p.ping()
            with pytest.raises(redis.WatchError):
                pipe.execute()
            assert unmoved.execute() == [b"PONG"]
        move(cluster, Redis, target, source, slot, slot)
    source.ask("DEBUG", "ASM-TRIM-METHOD", "default")


def test_who_tracks_a_record_is_told_when_it_leaves(cluster):
    source = cluster.owner(slot_of(b"{told}:1"))
    source.ask("CSET", "{told}:1", "v")
    with source.socket() as tracker:
        tracker.settimeout(PATIENCE_S)
        tracker.sendall(b"HELLO 3\r\nCLIENT TRACKING ON\r\nCGET {told}:1\r\n")
        told = b""
        while not told.endswith(b"$1\r\nv\r\n"):
            told += tracker.recv(10_000)
        back_and_forth(cluster, lambda there: None)
        while b"invalidate" not in told:
            told += tracker.recv(10_000)
        assert b"{told}:1" in told


def test_what_is_the_servers_is_counted_meanwhile(cluster, halted):
    """The server leaves out maps of slots that are on their way to it."""
    _, target, _, before = halted
    own = keys_of(ranges(target)[0][0], 1)[0]
    target.ask("CONFIG", "SET", "ckv.prefixes", "p:")
    target.ask("HSET", own, "f", "v")
    assert target.ask("DBSIZE") == before + 1
    assert target.ask("INFO", "keyspace")["db0"]["keys"] == before + 1
    target.ask("DEL", own)
    target.ask("CONFIG", "SET", "ckv.prefixes", "")
    wait_for(lambda: not target.ask("INFO", "ckv")["ckv_prefixes_leaving"])


def move_by_hand(cluster, source, target, slot):
    """Redis does not let a slot move so that the node still means to migrate."""
    if cluster.way is Redis:
        source.ask("CLUSTER", "MIGRATION", "CANCEL", "ALL")
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    assert source.ask("MIGRATE", "127.0.0.1", target.port, map_name(slot), 0, 5000) == b"OK"
    for node in (target, source):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    cluster.wait()


@pytest.mark.parametrize("flush", ["FLUSHDB", "FLUSHALL"])
def test_a_slot_is_not_hidden_for_good_by_a_flush(cluster, halted, flush):
    """Which ends the import, and what would have been trimmed is gone."""
    source, target, keys, _ = halted
    target.ask(flush)
    wait_for(lambda: ended(cluster.way, target))
    cluster.way.halt(source, False)
    wait_for(lambda: ended(cluster.way, source))
    move_by_hand(cluster, source, target, slot_of(keys[0]))
    assert target.ask("CDBSIZE") >= 99
    assert set(target.ask("CKEYS", "*")) >= set(keys[1:])


def test_what_has_left_is_not_counted(cluster):
    """Redis takes it out later."""
    slot = slot_of(b"left")
    source = cluster.owner(slot)
    target = next(p for p in cluster.primaries if p is not source)
    keys, before = keys_of(slot, 100), source.ask("CDBSIZE")
    for key in keys:
        source.ask("CSET", key, "v")
    source.ask("CSET", keys[0], "v", "PX", 1500)
    source.ask("COPY", map_name(slot), b"aside:" + map_name(slot))
    if cluster.way is Redis:
        source.ask("DEBUG", "ASM-TRIM-METHOD", "none", "0")
    move(cluster, cluster.way, source, target, slot, slot)
    assert source.ask("CDBSIZE") == before
    assert not set(scan(source)) & set(keys)
    wait_for(lambda: target.ask("CEXISTS", keys[0]) == 0, what="expiry")
    if cluster.way is Redis:
        assert source.ask("INFO", "ckv")["ckv_unserved_maps"] == 2
        source.ask("DEBUG", "ASM-TRIM-METHOD", "default", "0")
    wait_for(lambda: source.ask("INFO", "ckv")["ckv_unserved_maps"] == 0)
    # The slot is not hidden for good, however it comes back.
    target.ask("DEL", b"aside:" + map_name(slot))
    move_by_hand(cluster, target, source, slot)
    assert source.ask("CDBSIZE") == before + 99
    assert source.ask("CMGET", *keys[1:]) == [b"v"] * 99


def test_replicas_are_told_what_goes_while_a_slot_comes():
    """Memory is full: within a command of the import servers tell replicas of nothing else."""
    with Cluster(primaries=2, replicas=1, config={"ckv.prefixes": "*", "maxmemory-policy": "allkeys-lru"}) as cluster:
        way = way_of(cluster.nodes[0])
        if not way:
            pytest.skip("the server has no atomic slot migration")
        source, target = cluster.primaries
        (here, _), (comes, _) = ranges(target)[0], ranges(source)[0]
        for node, slot, count in (target, here, 6000), (source, comes, 1500):
            with node.client() as r:
                for key in keys_of(slot, count):
                    r.set(key, os.urandom(100))
        target.ask("CONFIG", "SET", "maxmemory", target.ask("INFO", "memory")["used_memory"] + 20_000)
        move(cluster, way, source, target, comes, comes)
        target.ask("CONFIG", "SET", "maxmemory", 0)
        replica = cluster.replicas[1]
        replica.ask("CONFIG", "SET", "maxmemory", 0)
        offsets = ("slave_repl_offset", replica), ("master_repl_offset", target)
        wait_for(lambda: len({node.ask("INFO", "replication")[name] for name, node in offsets}) == 1)
        assert target.ask("INFO", "stats")["evicted_keys"] > 0
        for slot in here, comes:
            assert replica.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == target.ask("CLUSTER", "COUNTKEYSINSLOT", slot)


def test_slots_do_not_go_to_a_node_without_the_module():
    """Redis: what is sent would be refused there, and nobody would know. Once it has the module, they do."""
    with Cluster(primaries=1) as cluster:
        (source,) = cluster.primaries
        if way_of(source) is not Redis:
            pytest.skip("the server has no atomic slot migration, or notices by itself that it failed")
        slot = slot_of(b"stays")
        cluster.options["module"] = False
        target = cluster.add_node()
        source.ask("CSET", "stays", "v")
        Redis.start(source, target, slot, slot)
        wait_for(lambda: source.ask("INFO", "ckv")["ckv_migrations_refused"] >= 2)  # it tries again
        assert source.ask("CGET", "stays") == b"v"
        assert len(re.findall(f"slots do not go to node {target.id}: ", source.log())) == 1
        target.module = True
        target.stop(save=True)
        target.start()
        cluster.wait()
        move(cluster, Redis, source, target, slot, slot)
        assert target.ask("CGET", "stays") == b"v"


def test_slots_go_to_a_node_without_the_module_where_no_records_are():
    with Cluster(primaries=1) as cluster:
        (source,) = cluster.primaries
        if way_of(source) is not Redis:
            pytest.skip("the server has no atomic slot migration, or notices by itself that it failed")
        cluster.options["module"] = False
        target = cluster.add_node()
        source.ask("SET", "goes", "v")
        slot = slot_of(b"goes")
        move(cluster, Redis, source, target, slot, slot)
        assert target.ask("GET", "goes") == b"v"


def refill(node, slots, count, seed):
    """Records of all kinds of age; they train, and some expire soon. {key: value} of the others."""
    stored = {}
    with node.client() as r:
        for slot in slots:
            pipe = r.pipeline(transaction=False)
            for i, (key, value) in enumerate(zip(keys_of(slot, count), texts(count, seed=seed + slot))):
                soon = i % 3 == 0
                pipe.execute_command("CSET", key, value, *(("PX", 300 + i % 2000) if soon else ()))
                if not soon:
                    stored[key] = value
            pipe.execute()
    return stored


@pytest.mark.slow
def test_maps_leave_while_timers_walk_them(cluster):
    """Training, re-encoding and expiry go over all maps while the server takes slots out; the same slots come
    back at once. Says most with AddressSanitizer."""
    slot = slot_of(b"timers")
    source = cluster.owner(slot)
    target = next(p for p in cluster.primaries if p is not source)
    first = next(f for f, last in ranges(source) if f <= slot <= last)
    slots = range(first, first + 4)
    if cluster.way is Redis:
        for node in cluster.primaries:
            node.ask("DEBUG", "ASM-TRIM-METHOD", "bg", "0")
    stored = refill(source, slots, 3000, seed=1)
    for turn in range(8):
        with source.client() as r, target.client() as q:
            for client in (r, q):
                client.connection.send_command("CKV", "TRAIN" if turn % 2 else "OPTIMIZE")
            move(cluster, cluster.way, source, target, slots[0], slots[-1])
        source, target = target, source
        stored.update(refill(source, slots[turn % 4 :][:1], 3000, seed=turn))
    for slot in slots:
        keys = [key for key in stored if slot_of(key) == slot]
        assert source.ask("CMGET", *keys) == [stored[key] for key in keys]
    wait_for(lambda: target.ask("INFO", "ckv")["ckv_unserved_maps"] == 0)
    for slot in slots:
        source.ask("DEL", map_name(slot))
