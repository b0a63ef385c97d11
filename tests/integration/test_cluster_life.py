"""A cluster's life under load: resharding with redis-cli, failover, nodes that come and go, restarts."""

import os
import shutil
import subprocess
import time

import pytest

import server
from atomic import ended, move, state, way_of
from cluster import NODE_TIMEOUT_MS, SLOTS, Cluster, Writer, fail_over, keys_of, names_in, other, slot_of
from helpers import PATIENCE_S, texts, wait_for


def cli(node, *arguments):
    """redis-cli --cluster, of the server under test if it has one beside it."""
    beside = os.path.dirname(shutil.which(server.BINARY) or server.BINARY)
    names = [os.path.join(beside, name) for name in ("redis-cli", "valkey-cli")] + ["redis-cli"]
    binary = next((n for n in names if shutil.which(n)), None)
    if not binary:
        pytest.skip("there is no redis-cli")
    at = f"127.0.0.1:{node.port}"
    command = [binary, "--cluster", arguments[0], *(a or at for a in arguments[1:]), "--cluster-yes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and "[ERR]" not in done.stdout, (done.stdout + done.stderr)[-3000:]
    return done.stdout


HERE = None  # where cli() puts the address of its node


def reshard(cluster, source, target, slots):
    if slots == 0:
        return
    cli(source, "reshard", HERE, "--cluster-from", source.id, "--cluster-to", target.id, "--cluster-slots", str(slots))
    cluster.wait()


def test_import_from_a_server_that_is_no_cluster(own_server):
    """redis-cli keeps the cursor of SCAN in 31 bits, and took the first page for all: of 8000 strings 1012 came."""
    with own_server({"ckv.prefixes": "*"}) as source, Cluster(1, module=False) as cluster:
        target = cluster.primaries[0]
        with source.client() as r:
            r.mset({f"user:{i}": f"some value {i}" for i in range(3000)})
            cli(target, "import", HERE, "--cluster-from", f"127.0.0.1:{source.port}")
            assert (target.ask("DBSIZE"), r.dbsize()) == (3000, 0)


def slots_of(node):
    count = 0
    for part in node.knows()[node.id][8:]:
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def start_writers(cluster, count, rate, records):
    writers = [Writer(cluster, [b"w%d-%d" % (n, i) for i in range(records)], n, rate) for n in range(count)]
    with cluster.client() as rc:
        for writer in writers:
            for key, value in zip(writer.keys[: records // 2], texts(records // 2)):
                rc.execute_command("CSET", key, value)
                writer.stored[key] = value
    for writer in writers:
        writer.start()
    return writers


def finish(cluster, writers, what):
    for writer in writers:
        writer.finish()
    stored = sum(len(w.stored) for w in writers)
    done, refused = sum(w.done for w in writers), sum(w.refused for w in writers)
    print(f"\n{what}: {done} commands, {refused} refused by the client, 0 wrong, 0 of {stored} records lost")
    assert sum(p.ask("CDBSIZE") for p in cluster.primaries if p.alive()) == stored


def test_reshard_under_load():
    with Cluster() as cluster:
        a, b, c = cluster.primaries
        writers = start_writers(cluster, 2, 300, 1000)
        reshard(cluster, a, b, 400)
        reshard(cluster, b, c, 800)
        reshard(cluster, c, a, 400)
        finish(cluster, writers, "1,600 slots moved")


@pytest.mark.slow
def test_reshard_everything_twice_under_load():
    with Cluster() as cluster:
        a, b, c = cluster.primaries
        share = slots_of(a)
        writers = start_writers(cluster, 4, 500, 5000)
        moved = 0
        for _ in range(2):
            for source, target in ((a, b), (b, c), (c, a)):
                moved += slots_of(source)
                reshard(cluster, source, target, slots_of(source))
            for target in (b, c):
                moved += share
                reshard(cluster, a, target, share)
        assert moved > 4 * SLOTS
        finish(cluster, writers, f"{moved} slots moved")


def test_failover_under_load():
    """Asked for, a failover loses nothing; the new primary goes on where the old one was."""
    with Cluster(replicas=1) as cluster:
        writers = start_writers(cluster, 2, 300, 1000)
        for primary, replica in zip(list(cluster.primaries), list(cluster.replicas)):
            fail_over(replica)
            wait_for(lambda: primary.ask("ROLE")[0] == b"slave")
            cluster.primaries[cluster.primaries.index(primary)] = replica
        cluster.wait()
        finish(cluster, writers, "three failovers")
        # The old primaries follow.
        for old in cluster.nodes:
            if old not in cluster.primaries:
                new = cluster.by_id(old.knows()[old.id][3])
                wait_for(lambda: old.ask("CDBSIZE") == new.ask("CDBSIZE"))


@pytest.mark.parametrize("command", ("COPY {k} {k}:", "BITOP NOT {k} {k}", "SETBIT {k} 7 1"))
def test_failover_of_a_primary_that_a_slot_is_on_its_way_to(command):
    """The import is given up, and nothing of it is to stay on the old primary, not even what had moved out of a map meanwhile."""
    with Cluster(2, replicas=1, config={"ckv.prefixes": '"*"'}) as cluster:
        way = way_of(cluster.nodes[0])
        if not way:
            pytest.skip("the server has no atomic slot migration")
        slot = slot_of(b"on its way")
        key, second = keys_of(slot, 2)
        source = cluster.owner(slot)
        target = other(cluster, source)
        replica = cluster.replica_of(target)
        for name in (key, second):
            source.ask("SET", name, "a")
        source.ask("BITCOUNT", key)
        way.halt(source, True)
        try:
            way.start(source, target, slot, slot)
            wait_for(lambda: state(way, target) == "arrived", what="the records' arrival")
            source.ask(*command.format(k=key.decode()).split())
            time.sleep(0.2)  # it passes on what it is told
            fail_over(replica)
        finally:
            way.halt(source, False)
        cluster.primaries[cluster.primaries.index(target)] = replica
        wait_for(lambda: target.ask("INFO")["master_link_status"] == "up")
        wait_for(lambda: ended(way, source))
        cluster.wait()
        wait_for(lambda: names_in(target, slot) == names_in(replica, slot) == [], what="nothing of the slot")
        move(cluster, way, source, replica, slot, slot)
        wait_for(lambda: names_in(target, slot) == names_in(replica, slot) != [], what="the slot")
        assert replica.ask("GET", second) == b"a" and replica.ask("EXISTS", key) == 1


def test_a_primary_is_killed():
    with Cluster(replicas=1) as cluster:
        primary, replica = cluster.primaries[0], cluster.replicas[0]
        writers = start_writers(cluster, 2, 300, 1000)
        for writer in writers:
            writer.finish()
        before = primary.ask("CDBSIZE")
        wait_for(lambda: replica.ask("CDBSIZE") == before)
        for node in cluster.nodes:
            node.ask("CONFIG", "SET", "cluster-node-timeout", 2000)
        primary.kill()
        wait_for(lambda: replica.ask("ROLE")[0] == b"master")
        for node in cluster.alive():  # nobody is to be taken for dead who has no processor for a while
            node.ask("CONFIG", "SET", "cluster-node-timeout", NODE_TIMEOUT_MS)
        wait_for(lambda: all(node.info()["cluster_state"] == "ok" for node in cluster.alive()))
        cluster.primaries[0] = replica
        assert replica.ask("CDBSIZE") == before
        with cluster.client() as rc:
            for writer in writers:
                for key, value in list(writer.stored.items())[::5]:
                    assert rc.execute_command("CGET", key) == value
                    rc.execute_command("CSET", key, b"after " + value)
                    writer.stored[key] = b"after " + value
        # It comes back with the file it does not have, and follows.
        primary.start()
        wait_for(lambda: primary.ask("ROLE")[0] == b"slave")
        wait_for(lambda: primary.ask("CDBSIZE") == replica.ask("CDBSIZE"))


def test_a_node_comes_and_goes():
    with Cluster() as cluster:
        writers = start_writers(cluster, 2, 300, 1000)
        node = cluster.add_node()
        reshard(cluster, cluster.primaries[0], node, 300)
        assert slots_of(node) == 300
        reshard(cluster, node, cluster.primaries[1], 300)
        cluster.primaries.remove(node)
        cli(cluster.primaries[0], "del-node", HERE, node.id)
        finish(cluster, writers, "a node came and went")
        assert node.ask("CDBSIZE") == 0


@pytest.mark.parametrize("aof", ("no", "yes"))
def test_the_whole_cluster_restarts(aof):
    with Cluster(config={"appendonly": aof}) as cluster:
        writers = start_writers(cluster, 2, 300, 1000)
        for writer in writers:
            writer.finish()
        for node in cluster.primaries:
            node.stop(save=aof == "no")
        for node in cluster.primaries:
            node.start()
        cluster.wait()
        with cluster.client() as rc:
            for writer in writers:
                for key in writer.keys:
                    assert rc.execute_command("CGET", key) == writer.stored.get(key)
