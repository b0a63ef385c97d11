"""The module of the last release and this one's beside each other, as in a rolling upgrade.

`make test-upgrade` builds the old one and names it in CKV_OLD_MODULE."""

import os
import threading

import pytest
import redis

import atomic
from cluster import SLOTS, Cluster, Writer, keys_of, slot_of
from exchange import FILES, Kind, assert_agree, assert_holds, following
from helpers import assert_stored, is_error, load, reply, texts, wait_for
from server import ServerFailed
from test_cluster_move import end_move, migrate, start_move
from traffic import Traffic

OLD, NEW = Kind(module=os.environ["CKV_OLD_MODULE"]), Kind()
LEARNING = {"ckv.train-after": "64kb"}
REFUSED = "the file was saved by a newer ckv"


@pytest.fixture
def start(own_server):
    return lambda kind, config=None, **options: kind.start(own_server, {**LEARNING, **(config or {})}, **options)


def assert_refused(failed):
    """The server said why and ended, not by a signal, and nobody was served."""
    assert REFUSED in failed.log and "Ready to accept connections" not in failed.log
    assert failed.returncode is not None and failed.returncode >= 0


def change_module(server, kind):
    server.stop(save=True)
    server.config["loadmodule"] = kind.module
    server.start()


# --- a primary and its replica ---


class Client(threading.Thread):
    """Writes to whichever of the servers takes writes. Remembers what was acknowledged."""

    def __init__(self, *servers):
        super().__init__(daemon=True)
        self.servers, self.stored, self.stopping = list(servers), {}, threading.Event()

    def run(self):
        n = 0
        while not self.stopping.is_set():
            key, value = b"client:%d" % (n % 5000), b"value %d" % n
            try:
                with self.servers[0].client() as r:
                    while not self.stopping.is_set():
                        r.execute_command("CSET", key, value)
                        self.stored[key] = value
                        n += 1
                        key, value = b"client:%d" % (n % 5000), b"value %d" % n
            except (redis.ConnectionError, redis.ReadOnlyError):
                self.servers.reverse()  # the write that failed is done again

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


def test_the_steps_of_a_rolling_upgrade(start):
    """A new replica, a failover to it, the old primary upgraded; clients write all the while."""
    one = start(OLD)
    with one.client() as r:
        load(r, texts(3000))
    two = start(NEW, following(one))
    with Traffic(one) as traffic:
        wait_for(lambda: traffic.count > 3000)
    assert_agree(one, two)

    with Client(one, two) as client:
        wait_for(lambda: len(client.stored) > 500)
        with one.client() as r:
            assert r.execute_command("FAILOVER", "TO", "127.0.0.1", two.port) == b"OK"
            wait_for(lambda: r.info("replication")["role"] == "slave", what="the failover")
        before = len(client.stored)
        wait_for(lambda: len(client.stored) > before + 500)
    with two.client() as r:
        assert_stored(r, client.stored)
    with Traffic(two, seed=2) as traffic:  # the old one follows the new one meanwhile
        wait_for(lambda: traffic.count > 3000)
    assert_agree(two, one)

    one.config.update(following(two))
    with Traffic(two, seed=3) as traffic:
        change_module(one, NEW)
        wait_for(lambda: traffic.count > 3000)
    assert_agree(two, one)


def test_an_old_replica_of_a_new_primary(start):
    """Not a step of an upgrade, but what a replica that lost its link during one sees: it reads the file of a newer
    module as long as that holds nothing that is new."""
    primary = start(NEW)
    with primary.client() as r:
        load(r, texts(3000), ttl=1000)
    replica = start(OLD, following(primary))
    assert_agree(primary, replica)
    with Traffic(primary) as traffic:
        wait_for(lambda: traffic.count > 3000)
    assert_agree(primary, replica)


# --- a cluster ---


def test_slots_move_between_old_and_new(start):
    """Into the node that was upgraded and back into the old one, while clients read and write."""
    with Cluster(primaries=2, config={"loadmodule": OLD.module, **LEARNING}, module=False) as cluster:
        slots = [slot_of(b"upgrade %d" % i) for i in range(4)]
        writers = [Writer(cluster, [key for slot in slots for key in keys_of(slot, 400)[i::2]], i) for i in range(2)]
        for writer in writers:
            for i, key in enumerate(writer.keys):
                writer.command("CSET", key, b"first %d" % i)
                writer.stored[key] = b"first %d" % i
        one, two = cluster.primaries
        change_module(two, NEW)
        cluster.wait()
        for writer in writers:
            writer.start()
        for source, target in ((one, two), (two, one), (one, two)):
            for slot in slots:
                if cluster.owner(slot) is source:
                    start_move(source, target, slot)
                    assert migrate(source, target, slot)
                    end_move(cluster, target, slot)
            cluster.wait()
        assert all(cluster.owner(slot) is two for slot in slots)
        for writer in writers:
            writer.finish()


def fill_slot(r, slot):
    """With more than goes as plain records."""
    names, stored = keys_of(slot, 80_000), {}
    for i in range(0, len(names), 5000):
        part = dict(zip(names[i:], texts(5000, seed=i)))
        r.execute_command("CMSET", *(text for pair in part.items() for text in pair))
        stored |= part
    return stored


def test_a_large_slot_waits_for_the_upgrade(start):
    """It goes with its dictionaries, which the old module refuses: nothing is lost, and it goes when both are new."""
    with Cluster(primaries=2, config={"loadmodule": OLD.module}, module=False) as cluster:
        one, two = cluster.primaries
        slot = SLOTS - 1
        change_module(two, NEW)
        cluster.wait()
        with two.client() as r:
            stored = fill_slot(r, slot)
        start_move(two, one, slot)
        moved = two.ask("CLUSTER", "GETKEYSINSLOT", slot, 10)
        with two.client() as r:
            assert is_error(reply(r, "MIGRATE", "127.0.0.1", one.port, "", 0, 60_000, "KEYS", *moved), "Bad data format")
        assert one.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == 0 and "a map is damaged, or was cut out" in one.log()
        for node in one, two:
            node.ask("CLUSTER", "SETSLOT", slot, "STABLE")
        with two.client() as r:
            assert_stored(r, stored)

        change_module(one, NEW)
        cluster.wait()
        start_move(two, one, slot)
        assert migrate(two, one, slot)
        end_move(cluster, one, slot)
        with one.client() as r:
            assert_stored(r, stored)


def test_atomic_migration_of_a_large_slot_to_the_old(start):
    """Redis does not notice when what it sends is refused there, and the old module does not say that it is one: the slot
    stays, and goes by MIGRATE."""
    with Cluster(primaries=2, config={"loadmodule": OLD.module}, module=False) as cluster:
        one, two = cluster.primaries
        way = atomic.way_of(one)
        if not way:
            pytest.skip("this server has no atomic migration")
        change_module(two, NEW)
        cluster.wait()
        with two.client() as r:
            stored = fill_slot(r, SLOTS - 1)
        if way is atomic.Redis:
            way.start(two, one, SLOTS - 1, SLOTS - 1)
            wait_for(lambda: two.ask("INFO", "ckv")["ckv_migrations_refused"] > 0, "a refusal")
            way.cancel(two, one)
            holder = two
        else:
            atomic.move(cluster, way, two, one, SLOTS - 1, SLOTS - 1)
            holder = one
        with holder.client() as r:
            assert_stored(r, stored)
            assert r.execute_command("CDBSIZE") == len(stored)


# --- files and payloads ---


@pytest.mark.parametrize("name", FILES)
def test_old_files_load(own_server, name):
    data, records = OLD.write(name)
    server = NEW.load(own_server, name, data)
    assert_holds(server, records)
    server.restart(save=True)
    assert_holds(server, records)


@pytest.mark.parametrize("name", FILES)
def test_new_files_load_in_the_old_one_or_are_refused(own_server, name):
    """The way back, of what is not new: all of a file, or a line in the log and no server; of a payload an error."""
    data, records = NEW.write(name)
    try:
        server = OLD.load(own_server, name, data)
    except ServerFailed as failed:
        assert_refused(failed)
        return
    except redis.ResponseError as refused:
        assert name == "whole.dump" and "Bad data format" in str(refused)
        return
    assert_holds(server, records)


def fill_prefixed(server):
    stored = {b"KEY:%d" % i: text for i, text in enumerate(texts(2000))}
    with server.client() as r:
        r.mset(stored)
    return stored


@pytest.mark.parametrize("aof", ["no", "yes"])
def test_a_file_with_prefixes_is_refused(start, aof):
    """It is of a newer format: the old one ends, and leaves it as it is for the new one."""
    server = start(NEW, {"ckv.prefixes": '"*"', "appendonly": aof})
    stored = fill_prefixed(server)
    with server.client() as r:
        if aof == "yes":
            r.execute_command("BGREWRITEAOF")
            wait_for(lambda: not r.info("persistence")["aof_rewrite_in_progress"])
    server.stop(save=aof == "no")
    prefixes = server.config.pop("ckv.prefixes")
    server.config["loadmodule"] = OLD.module
    with pytest.raises(ServerFailed) as failed:
        server.start()
    assert_refused(failed.value)
    server.config.update({"loadmodule": NEW.module, "ckv.prefixes": prefixes})
    server.start()
    with server.client() as r:
        assert r.mget(stored) == list(stored.values())


def test_an_old_replica_refuses_what_it_does_not_know(start):
    """It says so and ends, as with a file of its own, and serves nothing of it. The primary goes on."""
    primary = start(NEW, {"ckv.prefixes": '"*"'})
    stored = fill_prefixed(primary)
    replica = start(OLD, following(primary), start=False)
    try:
        replica.start()
    except ServerFailed:
        pass  # it may have got as far as that before it was ready
    wait_for(lambda: not replica.alive(), what="the end of the replica")
    assert REFUSED in replica.log() and "Finished with success" not in replica.log()
    with primary.client() as r:
        assert r.mget(stored) == list(stored.values())
