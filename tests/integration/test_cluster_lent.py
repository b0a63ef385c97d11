"""What a replica of a cluster lends to commands of its own clients: it is out while they run, and in its map else."""

import re
import signal
import threading
import time

import pytest

from cluster import Cluster, keys_of, map_name, move_slot, names_in, slot_of
from helpers import info, is_error, reply, wait_for, wait_for_replica


@pytest.fixture(scope="module")
def cluster(caller):
    with Cluster(primaries=2, replicas=1, config={"ckv.prefixes": '"*"', "loadmodule": caller, "save": "3600 1"}) as cluster:
        yield cluster


def pair_of(cluster, slot):
    source = cluster.owner(slot)
    return source, cluster.replica_of(source)


def send(client, *commands):
    """All at once, so that the server runs them in one round."""
    connection = client.connection
    connection.send_packed_command([b"".join(part for command in commands for part in connection.pack_command(*command))])
    return [connection.read_response() for _ in commands]


def wait_until_read(r, q):
    """A replica in a pause has all that its primary has told; it need not have run."""
    told = r.info("replication")["master_repl_offset"]
    wait_for(lambda: q.info("replication")["slave_read_repl_offset"] >= told, what="that it has come")


def test_what_moves_out_for_a_replicas_client_goes_with_its_slot(cluster):
    """Its primary knows nothing of that, and tells it to delete the map."""
    slot = slot_of(b"for a replica's client")
    key, kept = keys_of(slot, 2)
    source = cluster.owner(slot)
    replica = cluster.replica_of(source)
    with cluster.client() as rc, source.client() as r, replica.client() as q:
        for name in (key, kept):
            rc.execute_command("SET", name, b"v")
        wait_for_replica(r)
        q.execute_command("READONLY")
        records = info(q)["records"]
        assert q.bitcount(key) == 5
        for command in (("MULTI",), ("BITCOUNT", kept), ("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, kept), ("BITCOUNT", kept)):
            q.execute_command(*command)
        assert q.execute_command("EXEC") == [5, b"v", 5]
        wait_for(lambda: info(q)["records"] == records, what="that they are back")
        move_slot(cluster, slot)
        wait_for_replica(r)
        assert q.execute_command("KEYS", "*" + map_name(slot).decode()[4:]) == []
        assert [rc.execute_command("GET", name) for name in (key, kept)] == [b"v", b"v"]


def test_a_transaction_of_the_primary_that_needs_many(cluster):
    """A string that the primary has left to the server is a record at the replica."""
    keys = keys_of(slot_of(b"many"), 100)
    source, replica = pair_of(cluster, slot_of(keys[0]))
    with source.client() as r, source.client() as writer, replica.client() as q:
        for command in (("MULTI",), *(("SETBIT", key, 7, 1) for key in keys)):
            r.execute_command(*command)
        for key in keys:
            writer.set(key, b"hello")
        r.execute_command("EXEC")
        wait_for_replica(r)
        q.execute_command("READONLY")
        assert [q.get(key) for key in keys] == [r.get(key) for key in keys] == [b"iello"] * 100


def test_a_transaction_that_reads_many(cluster):
    """Others queue more, and the primary's end before it does."""
    keys = keys_of(slot_of(b"reads many"), 100)
    source, replica = pair_of(cluster, slot_of(keys[0]))
    with source.client() as r, replica.client() as q:
        for key in keys:
            r.set(key, "v")
        wait_for_replica(r)
        for command in (("READONLY",), ("MULTI",), *(("BITCOUNT", key) for key in keys)):
            q.execute_command(*command)
        for _ in range(3):
            for command in (("MULTI",), ("INCR", keys[0] + b"n"), ("EXEC",)):
                r.execute_command(*command)
            wait_for_replica(r)
        assert q.execute_command("EXEC") == [5] * 100


def test_a_replica_that_had_the_prefix_first(caller):
    """Its primary's strings are records there: what its transaction leaves out is written anew, and lost."""
    with Cluster(primaries=1, replicas=1) as cluster:
        keys = keys_of(slot_of(b"first"), 600)
        source, replica = pair_of(cluster, slot_of(keys[0]))
        replica.ask("CONFIG", "SET", "ckv.prefixes", "*")
        with source.client() as r, replica.client() as q:
            q.execute_command("READONLY")
            pipe = r.pipeline(transaction=False)
            for key in keys:
                pipe.set(key, b"hello")
            pipe.execute()
            wait_for_replica(r)
            pipe = r.pipeline(transaction=True)
            for key in keys:
                pipe.setbit(key, 7, 1)
            pipe.execute()
            wait_for_replica(r)
            assert {q.get(key) for key in keys} == {b"iello"}


def test_what_is_not_a_record_when_it_is_queued(cluster):
    """It is lent at that moment, or its primary makes it."""
    lent, later = keys_of(slot_of(b"not a record"), 2)
    source, replica = pair_of(cluster, slot_of(lent))
    with source.client() as r, replica.client() as q:
        r.set(lent, "v")
        wait_for_replica(r)
        q.execute_command("READONLY")
        send(q, ("BITCOUNT", lent), ("MULTI",), ("BITCOUNT", lent), ("BITCOUNT", later))
        r.set(later, "v")
        wait_for_replica(r)
        assert q.execute_command("EXEC") == [5, 5]


def test_another_module_calls_in_the_midst(cluster):
    """What the server has in hand stays where it is: LCS tells of a key that is not there while it holds the other one."""
    key, missing, third = keys_of(slot_of(b"in the midst"), 3)
    source, replica = pair_of(cluster, slot_of(key))
    text = b"".join(b"line %d\n" % i for i in range(500))
    with source.client() as r, replica.client() as q:
        r.set(key, text)
        r.set(third, text)
        wait_for_replica(r)
        q.execute_command("READONLY")
        try:
            for event in "keymiss", "new":
                q.execute_command("CALLER.ON", event, "GET", missing)
                for _ in range(5):
                    assert q.execute_command("LCS", key, missing, "LEN") == 0
                    assert q.execute_command("LCS", key, third, "LEN") == len(text)
                for command in (("MULTI",), ("STRLEN", key), ("LCS", key, third, "LEN"), ("LCS", third, key, "LEN")):
                    q.execute_command(*command)
                assert q.execute_command("EXEC") == [len(text)] * 3
        finally:
            q.execute_command("CALLER.ON")


def test_a_watched_record_expires(cluster):
    """The server asks for it when EXEC comes; no replica deletes it before its primary does."""
    key, second = keys_of(slot_of(b"watched"), 2)
    source, replica = pair_of(cluster, slot_of(key))
    with source.client() as r, replica.client() as q:
        if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")):
            pytest.skip("this server does not tell a filter who sends a command")
        in_time = False
        while not in_time:
            began = time.monotonic()
            r.set(key, "v", px=1000)
            r.set(second, "v")
            wait_for_replica(r)
            r.execute_command("CLIENT", "PAUSE", 5000, "WRITE")
            for command in (("READONLY",), ("WATCH", key), ("GET", second)):
                q.execute_command(*command)
            in_time = time.monotonic() - began < 1  # on a busy machine it may have expired before it was watched
            wait_for(lambda: q.get(key) is None, what="its expiry")
            q.execute_command("MULTI")
            q.execute_command("GET", second)
            answer = q.execute_command("EXEC")
            r.execute_command("CLIENT", "UNPAUSE")
        assert answer is None


def test_nothing_is_lent_when_a_file_is_written(cluster):
    """It would be a string of the server's own after a restart, which stays when the slot has left."""
    slot = slot_of(b"a file")
    keys = keys_of(slot, 20)
    source, replica = pair_of(cluster, slot)
    with source.client() as r:
        for key in keys:
            r.set(key, b"v")
        wait_for_replica(r)

    def read():
        try:
            with replica.client() as q:
                pipe = q.pipeline(transaction=False)
                for _ in range(10_000):
                    pipe.readonly()
                    for key in keys:
                        pipe.bitcount(key)
                    pipe.execute()
        except Exception:  # the server has gone
            pass

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    with replica.client() as q:
        wait_for(lambda: info(q)["moved_out"] > 500, what="what is lent")
    replica.process.send_signal(signal.SIGTERM)
    replica.process.wait(30)
    for reader in readers:
        reader.join()
    replica.start()
    with replica.client() as q:
        wait_for(lambda: q.info("replication").get("master_link_status") == "up", what="its primary")
        assert q.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100) == [map_name(slot)]


def test_nothing_is_lent_when_a_command_writes_a_file(cluster):
    """It comes in the very round in which something is."""
    key = keys_of(slot_of(b"a command's file"), 1)[0]
    source, replica = pair_of(cluster, slot_of(key))
    with source.client() as r, replica.client() as q:
        r.set(key, "v")
        wait_for_replica(r)
        q.execute_command("READONLY")
        send(q, ("BITCOUNT", key), ("SAVE",))
    replica.kill()
    replica.start()
    with replica.client() as q:
        wait_for(lambda: q.info("replication").get("master_link_status") == "up", what="its primary")
        assert q.execute_command("CLUSTER", "GETKEYSINSLOT", slot_of(key), 100) == [map_name(slot_of(key))]


def test_of_a_replicas_transactions_each_moves_its_own(cluster):
    """Names that others have queued, or it before, leave no more with its EXEC."""
    slot = slot_of(b"each its own")
    keys = keys_of(slot, 20)
    source = cluster.owner(slot)
    replica = cluster.replica_of(source)
    with cluster.client() as rc, source.client() as r, replica.client() as q, replica.client() as other_client:
        if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")):
            pytest.skip("this server does not tell a filter who sends a command")
        for key in keys:
            rc.execute_command("SET", key, b"v")
        wait_for_replica(r)
        for client in (q, other_client):
            client.execute_command("READONLY")
        for command in (("MULTI",), *(("BITCOUNT", key) for key in keys)):
            other_client.execute_command(*command)
        moved = info(q)["moved_out"]
        for key in keys:
            for command in (("MULTI",), ("STRLEN", key), ("GETBIT", key, 1), ("BITCOUNT", key)):
                q.execute_command(*command)
            assert q.execute_command("EXEC") == [1, 1, 5]
        assert info(q)["moved_out"] <= moved + 4 * len(keys) + len(keys)
        assert other_client.execute_command("EXEC") == [5] * len(keys)


def test_who_may_not_watch_has_nothing_kept(cluster):
    """Nor is a name of which there is nothing, apart from some megabytes of those that the mover leaves aside."""
    slot = slot_of(b"may not watch")
    _, replica = pair_of(cluster, slot)
    with replica.client() as q, replica.client() as stranger:
        q.execute_command("ACL", "SETUSER", "stranger", "on", "nopass", "+@all", "~nothing")
        stranger.execute_command("AUTH", "stranger", "")
        q.execute_command("READONLY")
        names = [name + b"x" * 100_000 for name in keys_of(slot, 500)]
        before = q.info("memory")["used_memory"]
        for name in names:
            assert is_error(reply(stranger, "WATCH", name))
        for name in names:
            q.execute_command("WATCH", name)
        q.execute_command("UNWATCH")
        assert q.info("memory")["used_memory"] < before + 35_000_000


def test_what_is_not_watched_any_more_is_forgotten(cluster):
    """It would move with each transaction of that client."""
    key, second = keys_of(slot_of(b"not watched any more"), 2)
    source, replica = pair_of(cluster, slot_of(key))
    with source.client() as r, replica.client() as q:
        if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")):
            pytest.skip("this server does not tell a filter who sends a command")
        r.set(key, "v", ex=1000)
        r.set(second, "v")
        wait_for_replica(r)
        records = info(q)["records"]
        for command in (("READONLY",), ("WATCH", key), ("UNWATCH",)):
            q.execute_command(*command)
        wait_for(lambda: info(q)["records"] == records, what="that it is back")
        before = info(q)["moved_out"]
        for command in (("MULTI",), ("GET", second)):
            q.execute_command(*command)
        assert q.execute_command("EXEC") == [b"v"]
        assert info(q)["moved_out"] == before


def test_many_names_that_a_transaction_needed_go_some_at_a_time(cluster):
    """To free them held up everybody for half a second: they are there when the next command is done, three times each."""
    names, slot = 20_000, slot_of(b"many names")
    tag = map_name(slot).decode()[4:]
    with pair_of(cluster, slot)[1].client() as q, pair_of(cluster, slot)[1].client() as other:
        if q.info("server")["redis_version"] < "7.2":
            pytest.skip("a replica is not told who sends a command: what is needed goes when none is in a transaction")
        q.execute_command("READONLY")
        queued = send(q, ("MULTI",), *(("GETBIT", tag + "%08x" % (i * 0x9E3779B1 % 2**32), 0) for i in range(names)))
        assert queued[-1] == b"QUEUED"
        at_once = send(q, ("DISCARD",), ("INFO", "memory"))[-1]
        at_once = int(re.search(rb"used_memory:(\d+)", at_once).group(1))
        wait_for(lambda: other.info("memory")["used_memory"] < at_once - 100 * names, what="that all are gone")


@pytest.mark.parametrize("lent", ("before", "behind"))
def test_a_map_that_goes_while_the_replica_is_paused(cluster, lent):
    """The pause holds that back, and it runs unseen: a key that is lent then would outlive it."""
    slot = slot_of(b"paused there")
    key, kept = keys_of(slot, 2)
    source, replica = pair_of(cluster, slot)
    with source.client() as r, replica.client() as q:
        for name in (key, kept):
            r.set(name, "v")
        wait_for_replica(r)
        q.execute_command("READONLY")
        q.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        if lent == "before":
            assert q.bitcount(key) == 5
        assert r.delete(map_name(slot)) == 1
        wait_until_read(r, q)
        if lent == "behind":
            assert q.bitcount(key) == 5
        q.execute_command("CLIENT", "UNPAUSE")
        wait_for_replica(r)
        wait_for(lambda: q.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10) == [], what="that all has gone")
        assert [q.get(name) for name in (key, kept)] == [None, None]


@pytest.mark.parametrize("command", ("DEL", "EXISTS"))
def test_what_an_aof_knows_to_be_lent_when_a_pause_begins(command):
    """It comes back for a command about the map, while nobody may be told; else it would be there twice, or outlive the map, after a restart."""
    with Cluster(primaries=1, replicas=1, config={"ckv.prefixes": '"*"', "appendonly": "yes", "appendfsync": "always"}) as cluster:
        slot = slot_of(b"pause and restart")
        key, kept = keys_of(slot, 2)
        source, replica = pair_of(cluster, slot)
        with source.client() as r, replica.client() as q:
            for name in (key, kept):
                r.set(name, "v")
            wait_for_replica(r)
            wait_for(lambda: not q.info("persistence")["aof_rewrite_in_progress"], what="an AOF")
            send(q, ("READONLY",), ("BITCOUNT", key), ("CLIENT", "PAUSE", 60_000, "WRITE"))
            (r if command == "DEL" else q).execute_command(command, map_name(slot))
            wait_until_read(r, q)
            q.execute_command("CLIENT", "UNPAUSE")
            wait_for_replica(r)
            wanted = [] if command == "DEL" else [map_name(slot)]
            in_slot = ("CLUSTER", "GETKEYSINSLOT", slot, 10)
            wait_for(lambda: q.execute_command(*in_slot) == wanted, what="the end of the pause")
        source.kill()  # or its replica would get all anew
        replica.kill()
        replica.start()
        assert replica.ask(*in_slot) == wanted


def test_what_the_primary_moves_out_while_it_is_lent(cluster):
    """Both have it as a string then; else the replica loses it with the map."""
    slot = slot_of(b"moves out while lent")
    key, kept = keys_of(slot, 2)
    source, replica = pair_of(cluster, slot)
    with source.client() as r, replica.client() as q, replica.client() as sleeper:
        for name in (key, kept):
            r.set(name, "hello")
        wait_for_replica(r)
        q.execute_command("READONLY")
        threads = int(q.config_get("io-threads")[1])
        # Both commands come while the replica sleeps, and run in one round; with io-threads, which read what clients send and not what
        # the primary does, in either order.
        sleeper.connection.send_command("DEBUG", "SLEEP", 0.5)
        q.connection.send_command("BITCOUNT", key)
        r.setbit(key, 7, 1)
        assert [c.connection.read_response() for c in (sleeper, q)] in [[b"OK", count] for count in ([21] if threads == 1 else [21, 22])]
        wait_for_replica(r)
        in_slot = ("CLUSTER", "GETKEYSINSLOT", slot, 10)
        assert sorted(q.execute_command(*in_slot)) == sorted(r.execute_command(*in_slot)) == sorted([key, map_name(slot)])
        assert q.get(key) == r.get(key) == b"iello"


def test_what_leaves_while_a_replica_takes_over():
    """What has left the primary in a pause is told by nobody, and what a client of the replica has queued is there when it is a primary."""
    with Cluster(primaries=2, replicas=1, config={"ckv.prefixes": '"*"'}) as cluster:
        keys = keys_of(slot_of(b"take over"), 20)
        source = cluster.owner(slot_of(keys[0]))
        replica = cluster.replica_of(source)
        with cluster.client() as rc, source.client() as r, replica.client() as q:
            for key in keys:
                rc.execute_command("SET", key, b"v")
            wait_for_replica(r)
            for command in (("READONLY",), ("MULTI",), ("BITCOUNT", keys[0]), ("GET", keys[0])):
                q.execute_command(*command)
            r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
            assert [r.bitcount(key) for key in keys[1:]] == [5] * 19
            replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
            wait_for(lambda: source.ask("ROLE")[0] == b"slave", what="a new primary")
            assert q.execute_command("EXEC") == [5, b"v"]
            r.execute_command("CLIENT", "UNPAUSE")
            wait_for(lambda: info(r)["records"] >= 19 and source.ask("INFO")["master_link_status"] == "up", what="that they are back")


def test_what_is_lent_in_a_pause_by_a_replica_that_takes_over():
    """It comes back when its own replicas can be told, who may have been told in the meantime that it is out."""
    with Cluster(primaries=2, replicas=1, config={"ckv.prefixes": '"*"'}) as cluster:
        slot = slot_of(b"pause and take over")
        key, kept = keys_of(slot, 2)
        source, replica = pair_of(cluster, slot)
        with source.client() as r, replica.client() as q, replica.client() as writer:
            for name in (key, kept):
                r.set(name, "hello")
            wait_for_replica(r)
            q.execute_command("READONLY")
            q.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
            assert q.bitcount(key) == 21
            replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
            wait_for(lambda: source.ask("ROLE")[0] == b"slave", what="a new primary")
            for command in (("CLIENT", "UNPAUSE"), ("MULTI",), ("BITCOUNT", key)):
                q.execute_command(*command)
            writer.set(key, "other")
            writer.exists(map_name(slot))
            q.execute_command("DISCARD")
            wait_for(lambda: source.ask("INFO")["master_link_status"] == "up", what="a replica that follows")
            wait_for_replica(writer)
            wait_for(lambda: names_in(replica, slot) == names_in(source, slot), what="the same on both")


@pytest.mark.parametrize("command, wanted", (("RENAME {other} {key}", [b"new", None]), ("COPY {key} {other} REPLACE", [b"old", b"old"])))
def test_an_aof_of_what_is_lent_in_a_pause_by_a_replica_that_takes_over(command, wanted):
    """It is not back yet when the server's own commands write or read it: the AOF had a record of that name."""
    with Cluster(primaries=1, replicas=1, config={"ckv.prefixes": '"*"', "appendonly": "yes", "appendfsync": "always"}) as cluster:
        key, other_key = keys_of(slot_of(b"pause and rename"), 2)
        source, replica = pair_of(cluster, slot_of(key))
        with source.client() as r, replica.client() as q:
            r.mset({key: "old", other_key: "new"})
            wait_for_replica(r)
            wait_for(lambda: not q.info("persistence")["aof_rewrite_in_progress"], what="an AOF")
            send(q, ("READONLY",), ("CLIENT", "PAUSE", 60_000, "WRITE"), ("BITCOUNT", key), ("CLIENT", "UNPAUSE"))
            replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
            q.execute_command(*command.format(key=key.decode(), other=other_key.decode()).split())
        replica.kill()
        replica.start()
        cluster.wait()
        assert [replica.ask("GET", name) for name in (key, other_key)] == wanted
