"""Slots that hold both, records of a prefix and values of the server's own, move from node to node under plain commands."""

import random

import pytest
from redis.exceptions import ClusterCrossSlotError, MovedError, TryAgainError

from atomic import Redis, ended, move, state, way_of
from cluster import Cluster, Held, Writer, asking, end_move, is_try_again, keys_of, map_name, migrate, move_slot, names_in, other, slot_of, start_move
from helpers import info, is_error, now_ms, reply, wait_for, wait_for_replica
from server import ServerFailed


@pytest.fixture(scope="module")
def cluster():
    with Cluster(primaries=2, replicas=1, config={"ckv.prefixes": '"*"', "ckv.train-after": "64kb"}) as cluster:
        cluster.way = way_of(cluster.nodes[0])
        yield cluster


class PlainWriter(Writer):
    """Commands that are served from ckv, and others that only the server can run."""

    read = "GET"

    def step(self, n):
        key = self.random.choice(self.keys)
        kind = self.random.random()
        old = self.stored.get(key)
        if kind < 0.4:
            self.check(key)
        elif kind < 0.6:
            value = b"%s %d" % (key, n)
            self.expect(self.command("SET", key, value), True)
            self.stored[key] = value
        elif kind < 0.7:
            self.stored[key] = (old or b"") + b"+"
            self.expect(self.command("APPEND", key, "+"), len(self.stored[key]))
        elif kind < 0.8:  # moves out
            bits = bytearray(old or b"\0")
            bits[0] |= 1
            self.command("SETBIT", key, 7, 1)
            self.stored[key] = bytes(bits)
        elif kind < 0.9:
            self.expect(self.command("DEL", key), int(old is not None))
            self.stored.pop(key, None)
        else:
            self.command("HSET", b"hash:" + key, "field", n)
            self.expect(self.command("HGET", b"hash:" + key, "field"), b"%d" % n)

    def expect(self, got, wanted):
        if got != wanted:
            self.wrong.append((wanted, got))


def start_writers(cluster, slot):
    writers = [PlainWriter(cluster, keys_of(slot, 200)[i::2], i) for i in range(2)]
    for writer in writers:
        for key in writer.keys[::2]:
            writer.command("SET", key, b"first " * 20)
            writer.stored[key] = b"first " * 20
        writer.start()
    return writers


def finish(cluster, writers, node):
    """The node and its replica list what the writers know."""
    for writer in writers:
        writer.finish()
    assert not any(w.refused for w in writers)
    strings = {key for w in writers for key in w.stored}
    replica = cluster.replica_of(node)
    with node.client() as r:
        wait_for_replica(r)
    slot = slot_of(next(iter(strings)))
    for server in (node, replica):
        assert {key for key in server.ask("KEYS", "[0-9]*") if slot_of(key) == slot} == strings
        assert not [key for key in server.ask("KEYS", "*") if key.startswith(b"ckv:")]


def test_by_migrate(cluster):
    slot = slot_of(b"by migrate")
    writers = start_writers(cluster, slot)
    for _ in range(4):
        move_slot(cluster, slot)
    finish(cluster, writers, cluster.owner(slot))


def test_what_a_replica_holds_of_a_slot_whose_map_has_moved(cluster):
    """MIGRATE deletes the map by its name, on replicas too: what had moved out on the primary alone was lost there."""
    slot = slot_of(b"the map goes first")
    key, kept = keys_of(slot, 2)
    source = cluster.owner(slot)
    replica = cluster.replica_of(source)
    with cluster.client() as rc:
        for name in (key, kept):
            rc.execute_command("SET", name, b"v")
        rc.execute_command("BITCOUNT", key)
        with source.client() as r:
            start_move(source, other(cluster, source), slot)
            assert source.ask("MIGRATE", "127.0.0.1", other(cluster, source).port, map_name(slot), 0, 5000) == b"OK"
            wait_for_replica(r)
        with replica.client() as q:
            q.execute_command("READONLY")
            assert q.execute_command("GET", key) == b"v"
        migrate(source, other(cluster, source), slot)
        end_move(cluster, other(cluster, source), slot)
        cluster.wait()
        assert [rc.execute_command("GET", name) for name in (key, kept)] == [b"v", b"v"]


GETS_BITS = "return redis.call('BITCOUNT', KEYS[1])"


def opened(cluster, text, count):
    """(source, target, slot, keys), of a slot that is open and whose records are still on the source."""
    slot = slot_of(text)
    keys = keys_of(slot, count)
    source = cluster.owner(slot)
    target = other(cluster, source)
    for key in keys:
        source.ask("SET", key, "a")
    start_move(source, target, slot)
    return source, target, slot, keys


def close(cluster, source, target, slot):
    migrate(source, target, slot)
    end_move(cluster, target, slot)
    cluster.wait()


def test_scripts_of_an_open_slot(cluster):
    """The server looked for their keys and sent them to the node where these were still to come, and where they found nothing."""
    source, target, slot, (first, second, third) = opened(cluster, b"scripts", 3)
    absent = first + b":"
    assert source.ask("EVAL", GETS_BITS, 1, first) == 3
    assert source.ask("EVAL", "return redis.call('MGET', KEYS[1], KEYS[2])", 2, first, second) == [b"a", b"a"]
    assert is_error(reply(source.client(), "EVAL", GETS_BITS, 1, absent), "%d 127.0.0.1:%d" % (slot, target.port))
    assert asking(target, "EVAL", GETS_BITS, 1, first) != 3
    assert source.ask("MIGRATE", "127.0.0.1", target.port, map_name(slot), 0, 5000) == b"OK"
    assert asking(target, "EVAL", GETS_BITS, 1, third) == 3
    close(cluster, source, target, slot)
    assert [target.ask("GET", key) for key in (first, second, third)] == 3 * [b"a"]
    assert target.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == 3


@pytest.mark.parametrize("command", ("SETBIT {k} 7 1", "GETBIT {k} 1", "HSET {k} f v", "EXPIRE {k} -1", "COPY {k} {k}:"))
def test_commands_of_a_script_wait_for_the_map(cluster, command):
    """They made a string beside the record that was to come, or missed it."""
    source, target, slot, (first, second) = opened(cluster, command.replace("{", "").encode(), 2)
    words = command.format(k=first.decode()).split()
    script = "return redis.call(%s)" % ", ".join(repr(word) for word in words)
    assert is_try_again(asking(target, "EVAL", script, 1, first))
    assert target.ask("CLUSTER", "GETKEYSINSLOT", slot, 10) == []
    close(cluster, source, target, slot)
    assert [target.ask("GET", key) for key in (first, second)] == [b"a", b"a"]
    assert asking(target, "EVAL", script, 1, first) in (0, 1, b"OK") or command.startswith("HSET")


def transaction(node, *commands, asks=False):
    with node.client() as r:
        if asks:
            r.execute_command("ASKING")
        r.execute_command("MULTI")
        queued = [reply(r, *command) for command in commands]
        assert queued == len(commands) * [b"QUEUED"]
        return r.execute_command("EXEC")


def test_transactions_of_an_open_slot(cluster):
    """The server found none of their keys on the source; on the target what only it runs made a string beside the record to come."""
    source, target, slot, (first, second, third) = opened(cluster, b"transactions", 3)
    commands = ("STRLEN", first), ("SETBIT", first, 7, 1), ("GETBIT", first, 1), ("GET", first)
    assert transaction(source, *commands) == [1, 1, 1, b"a"]
    assert transaction(source, ("MGET", first, second), ("APPEND", second, "b")) == [[b"a", b"a"], 2]
    assert all(is_try_again(answer) for answer in transaction(target, ("STRLEN", third), ("SETBIT", third, 6, 1), ("GETBIT", third, 1), asks=True))
    assert target.ask("CLUSTER", "GETKEYSINSLOT", slot, 10) == []
    assert source.ask("MIGRATE", "127.0.0.1", target.port, map_name(slot), 0, 5000) == b"OK"
    assert transaction(target, ("STRLEN", third), ("SETBIT", third, 6, 1), ("GET", third), asks=True) == [1, 0, b"c"]
    close(cluster, source, target, slot)
    assert [target.ask("GET", key) for key in (first, second, third)] == [b"a", b"ab", b"c"]


def test_nothing_moves_out_while_the_cluster_is_down():
    """It refuses whatever comes; each transaction that was tried again made records strings."""
    with Cluster(primaries=1, config={"ckv.prefixes": '"*"'}) as cluster:
        node = cluster.primaries[0]
        slot = slot_of(b"down")
        for key in keys_of(slot, 5):
            node.ask("SET", key, "a")
        node.ask("CLUSTER", "DELSLOTS", (slot + 1) % 16384)
        wait_for(lambda: node.info()["cluster_state"] == "fail", what="a cluster that is down")
        for key in keys_of(slot, 5):
            with node.client() as r:
                r.execute_command("MULTI")
                assert is_error(reply(r, "GET", key), "cluster is down")
            assert is_error(reply(node.client(), "EVAL", GETS_BITS, 1, key), "cluster is down")
        with node.client() as r:
            assert info(r)["moved_out"] == 0


@pytest.mark.parametrize("options", ("IFNE x", "IFNE x EX 1000", "IFDNE 0123456789abcdef EX 1000"))
def test_a_replica_holds_what_options_leave_to_the_server(cluster, options):
    """They are told SET k v, of which a replica made a record, in a map that the slot's own could not replace."""
    source, target, slot, (first, second) = opened(cluster, b"options " + options.encode(), 2)
    new = first + b":"
    if is_error(asking(target, "SET", new, "v", *options.split())):
        close(cluster, source, target, slot)
        pytest.skip("this server does not know it")
    close(cluster, source, target, slot)
    replica = cluster.replica_of(target)
    with target.client() as r:
        wait_for_replica(r)
    wait_for(lambda: sorted(replica.ask("KEYS", b"*" + first[first.index(b"{"):] + b"*")) == [first, new, second])
    wait_for(lambda: names_in(replica, slot) == names_in(target, slot))


def test_a_map_of_another_database_is_not_the_slots_own():
    """Valkey 9: records of another database were missed while they were on their way."""
    config = {"ckv.prefixes": '"*"', "cluster-databases": 2}
    try:
        started = Cluster(primaries=2, config=config)
    except ServerFailed:
        pytest.skip("the server has one database in a cluster")
    with started as cluster:
        slot = slot_of(b"databases")
        key, second = keys_of(slot, 2)
        source = cluster.owner(slot)
        target = other(cluster, source)
        for db in (0, 1):
            source.ask("SET", key, "in %d" % db, db=db)
        start_move(source, target, slot)
        assert source.ask("MIGRATE", "127.0.0.1", target.port, map_name(slot), 1, 5000, db=1) == b"OK"
        for command in (("GET", key), ("EXISTS", key), ("TYPE", key), ("EVAL", GETS_BITS, 1, key)):
            assert is_try_again(asking(target, *command)), command
        assert source.ask("MIGRATE", "127.0.0.1", target.port, map_name(slot), 0, 5000) == b"OK"
        end_move(cluster, target, slot)
        cluster.wait()
        assert [target.ask("GET", key, db=db) for db in (0, 1)] == [b"in 0", b"in 1"]


def test_what_moves_out_in_a_pause(cluster):
    """Nothing may be told then; replicas are when it is over."""
    slot = slot_of(b"in a pause")
    key = keys_of(slot, 1)[0]
    source = cluster.owner(slot)
    replica = cluster.replica_of(source)
    with source.client() as r, replica.client() as q:
        r.set(key, "value")
        wait_for_replica(r)
        before = info(q)["moved_out"]
        r.execute_command("CLIENT", "PAUSE", 1000, "WRITE")
        assert r.bitcount(key) == 21
        r.execute_command("CLIENT", "UNPAUSE")
        assert r.append(key, "s") == 6
        wait_for_replica(r)
        assert info(q)["moved_out"] > before
        assert replica.ask("CLUSTER", "GETKEYSINSLOT", slot, 10) == source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10) == [key]


@pytest.mark.parametrize("command", [
    "SET {k} v", "SETNX {k} v", "SET {k} v NX EX 1000", "SETEX {k} 1000 v", "PSETEX {k} 1000000 v", "GETSET {k} v", "APPEND {k} v",
    "SETRANGE {k} 1 v", "APPEND {k} {long}", "SETRANGE {k} 0 {long}", "INCR {k}", "DECRBY {k} 5",
    "INCRBYFLOAT {k} 5", "MSET {k} v", "MSETNX {k} v", "MSETEX 1 {k} v", "COPY {other} {k}", "RENAME {other} {k}", "BITOP OR {k} {other}",
])
def test_a_replica_holds_what_its_primary_leaves_to_the_server(cluster, command):
    """It is told a command of which it makes a record, and has not seen what is queued."""
    slot = slot_of(command.replace("{", ""))  # of its own
    key, other_key = keys_of(slot, 2)
    source = cluster.owner(slot)
    replica = cluster.replica_of(source)
    with source.client() as r, source.client() as writer:
        writer.set(other_key, "v")
        for queued in (("MULTI",), ("SETBIT", key, 7, 1)):
            r.execute_command(*queued)
        words = command.format(k=key.decode(), other=other_key.decode(), long=5000 * "v").split()
        if is_error(reply(writer, *words), "unknown command"):
            pytest.skip("this server does not know it")
        wait_for_replica(writer)
        here, there = names_in(source, slot), names_in(replica, slot)
        assert key in here and here == there
        assert "{other}" in command or here == sorted((key, map_name(slot)))
        r.execute_command("EXEC")


@pytest.mark.parametrize("command", ["SET {k} v", "MSET {k} v", "CMSETEX 1 {k} v", "CMSETEX 1 {k} v EX 1000"])
def test_a_replica_holds_what_is_written_over_another_type(cluster, command):
    """It was told of the string that moved in before it was told to write it."""
    slot = slot_of(b"over a list")
    key = keys_of(slot, 1)[0]
    source = cluster.owner(slot)
    replica = cluster.replica_of(source)
    with source.client() as r:
        r.delete(key)
        r.rpush(key, "a")
        r.execute_command(*command.format(k=key.decode()).split())
        wait_for_replica(r)
        here, there = (node.ask("CLUSTER", "GETKEYSINSLOT", slot, 10) for node in (source, replica))
        assert here == there


def test_what_is_there_at_the_start_moves_in_when_the_cluster_is_up():
    """A primary is down for two seconds behind its start, and does not know whose a slot is until then."""
    count = 3000
    with Cluster(primaries=2) as cluster:
        with cluster.client() as rc:
            for i in range(count):
                rc.set(f"k:{i}", f"value {i}")
        for node in cluster.primaries:
            node.config["ckv.prefixes"] = '"*"'
            node.restart(save=True)
        wait_for(lambda: sum(info(n.client())["records"] for n in cluster.primaries) == count, "that all have moved in")


def test_sort_into_another_slot(cluster):
    """Ours names the server what is sorted, and older servers don't look for the word STORE."""
    key = keys_of(slot_of(b"sorted"), 1)[0]
    with cluster.owner(slot_of(key)).client() as r:
        answer = reply(r, "SORT", key, "GET", b"%s*" % key, "STORE", keys_of(slot_of(b"elsewhere"), 1)[0])
        assert "same slot" in str(answer), answer


def test_a_replica_sorts_by_strings(cluster):
    slot = slot_of(b"sorted by")
    sorted_key, weights = (b"%s:%s" % (name, keys_of(slot, 1)[0][2:]) for name in (b"list", b"weight"))
    owner = cluster.owner(slot)
    with owner.client() as r, cluster.replica_of(owner).client() as q:
        r.rpush(sorted_key, "x", "y")
        for element, weight in (b"x", 2), (b"y", 1):
            r.set(weights + b":" + element, weight)
        wait_for_replica(r)
        q.execute_command("READONLY")
        answer = reply(q, "SORT_RO", sorted_key, "BY", weights + b":*", "GET", "#", "GET", weights + b":*")
        if is_error(answer, "denied in"):
            pytest.skip("not in a cluster of this server")
        assert answer == [b"y", b"1", b"x", b"2"]


@pytest.mark.parametrize("command", ["DEL", "UNLINK", "TOUCH", "EXISTS", "MGET", "MSET", "MSETNX"])
def test_a_script_that_names_two_slots_is_told_so_of_its_own_command(cluster, command):
    owner = cluster.owner(slot_of(b"one"))
    two = next(key for key in (b"two:%d" % i for i in range(100)) if cluster.owner(slot_of(key)) is owner)
    args = (b"one", b"1", two, b"2") if command.startswith("MSET") else (b"one", two)
    with owner.client() as r:
        answer = reply(r, "EVAL", "return redis.call(unpack(ARGV))", 0, command, *args)
        assert is_error(answer) and "ckv." not in str(answer), answer
        assert r.get("one") is None


def test_what_is_asked_of_a_record_that_is_on_its_way(cluster):
    """DUMP and others found nothing where GET says that the records are being moved."""
    slot = slot_of(b"on its way")
    key = keys_of(slot, 1)[0]
    source = cluster.owner(slot)
    target = other(cluster, source)
    with source.client() as r, target.client() as q:
        r.set(key, "value")
        start_move(source, target, slot)
        for command in (("GET",), ("DUMP",), ("OBJECT", "ENCODING"), ("MEMORY", "USAGE"), ("TYPE",)):
            q.execute_command("ASKING")
            assert "being moved" in str(reply(q, *command, key)), command
        migrate(source, target, slot)
        end_move(cluster, target, slot)
        cluster.wait()
        assert (q.get(key), q.object("encoding", key), q.memory_usage(key) > 0, q.dump(key) is not None) == (b"value", b"embstr", True, True)


def test_who_was_held_does_not_miss_what_came_as_a_string(cluster):
    """It has moved out on the source, and comes before the map."""
    slot = slot_of(b"a record and strings")
    served = {("MGET",): [b"there"], ("EXISTS",): 1, ("TOUCH",): 1, ("DEL",): 1, ("UNLINK",): 1, ("MSET", "new"): b"OK", ("MSETNX", "new"): 0}
    record, *strings = keys_of(slot, 1 + len(served))
    source = cluster.owner(slot)
    target = other(cluster, source)
    with source.client() as r, target.client() as q:
        for key in (record, *strings):
            r.set(key, "there")
        for key in strings:
            r.getbit(key, 0)
        start_move(source, target, slot)
        held = [Held(target, command, key, *value) for (command, *value), key in zip(served, strings)]
        assert r.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *strings) == b"OK"
        migrate(source, target, slot)
        answers = [h.answer() for h in held]
        end_move(cluster, target, slot)
        cluster.wait()
        done = {("DEL",): None, ("UNLINK",): None, ("MSET", "new"): b"new"}
        for command, key, answer in zip(served, strings, answers):
            assert is_try_again(answer) or answer == served[command], command
            assert q.get(key) == (b"there" if is_try_again(answer) else done.get(command, b"there")), command


def test_a_queued_name_waits_for_its_record(cluster):
    """It is left to the server, which has nothing of the name as long as the map is on its way."""
    slot = slot_of(b"a queued name")
    key = keys_of(slot, 1)[0]
    source = cluster.owner(slot)
    target = other(cluster, source)
    with cluster.client() as rc, target.client() as r, target.client() as q:
        rc.execute_command("SET", key, "old")
        r.execute_command("MULTI")
        assert isinstance(reply(r, "BITCOUNT", key), MovedError)
        start_move(source, target, slot)
        q.execute_command("ASKING")
        assert isinstance(reply(q, "APPEND", key, "+"), TryAgainError)
        migrate(source, target, slot)
        end_move(cluster, target, slot)
        cluster.wait()
        r.execute_command("DISCARD")
        assert rc.execute_command("APPEND", key, "+") == 4


@pytest.mark.parametrize("rules", ("", "~* +get"), ids=("all may all", "one may get"))
def test_who_asks_the_wrong_node_is_sent_to_the_other(cluster, rules):
    """Newer servers look for the keys of a command before it is called, and rules for single commands have it called otherwise."""
    here, there = cluster.primaries
    key = next(b"%d" % n for n in range(100) if cluster.owner(slot_of(b"%d" % n)) is there)
    mine = next(b"%d" % n for n in range(100) if cluster.owner(slot_of(b"%d" % n)) is here)
    with here.client() as r:
        if rules:
            r.execute_command("ACL", "SETUSER", "single", "on", "nopass", *rules.split())
        try:
            for command in (("GET", key), ("SET", key, "v"), ("TTL", key), ("OBJECT", "ENCODING", key), ("DUMP", key)):
                assert isinstance(reply(r, *command), MovedError), command
            for command in (("MGET", mine, key), ("DEL", mine, key), ("MSET", mine, 1, key, 2)):
                assert isinstance(reply(r, *command), ClusterCrossSlotError), command
        finally:
            r.execute_command("ACL", "DELUSER", "single")


def test_a_map_comes_to_a_node_that_has_forgotten_its_prefixes():
    """Both nodes are told to let the prefix go. The one without records has done when a slot of the other one comes."""
    with Cluster(primaries=2, config={"ckv.prefixes": '"p:"', "ckv.move-cpu": 1}) as cluster:
        slot = slot_of(b"forgotten")
        keys = [b"p:" + key for key in keys_of(slot, 100)]
        source = cluster.owner(slot)
        target = other(cluster, source)
        with cluster.client() as rc:
            for key in keys:
                rc.execute_command("SET", key, b"value of " + key)
            with source.client() as r:
                r.config_set("maxmemory", r.info("memory")["used_memory"] + 500_000)  # its strings can't move out
            for node in cluster.primaries:
                node.ask("CONFIG", "SET", "ckv.prefixes", "")
            with target.client() as r:
                wait_for(lambda: not info(r)["prefixes_leaving"], what="that the prefix is forgotten")
            move_slot(cluster, slot)
            assert [rc.execute_command("GET", key) for key in keys] == [b"value of " + key for key in keys]
            with target.client() as r:
                wait_for(lambda: not info(r)["prefixes_leaving"] and info(r)["records"] == 0, what="the end of moving out")
            assert [rc.execute_command("GET", key) for key in keys] == [b"value of " + key for key in keys]


def test_few_of_many_that_come_are_under_a_prefix_that_is_forgotten():
    """Those that come first need none."""
    with Cluster(primaries=2, config={"ckv.prefixes": '"a: b:"'}) as cluster:
        slot = slot_of(b"few of many")
        names = keys_of(slot, 2000)
        source = cluster.owner(slot)
        target = other(cluster, source)
        target.ask("CONFIG", "SET", "ckv.prefixes", "a:")
        with source.client() as r, target.client() as q:
            wait_for(lambda: not info(q)["prefixes_leaving"], what="that the prefix is forgotten")
            for name in names:
                r.set(b"a:" + name, "value")
            r.set(b"b:" + names[0], "of few")
            move_slot(cluster, slot)
            assert q.setnx(b"b:" + names[0], "another") == 0 and q.get(b"b:" + names[0]) == b"of few"


@pytest.fixture
def atomic(cluster):
    if not cluster.way:
        pytest.skip("the server has no atomic slot migration")
    return cluster


def test_what_moves_out_while_its_slot_arrives(atomic):
    """The node that the slot comes to is sent SETBIT and APPEND of strings that it has as records."""
    slot = slot_of(b"moves out")
    keys = keys_of(slot, 2000)
    source = atomic.owner(slot)
    with atomic.client() as rc:
        for key in keys:
            rc.execute_command("SET", key, b"first " * 20)

        def change():
            for key in keys:
                rc.execute_command("SETBIT", key, 7, 1)
                rc.execute_command("APPEND", key, "+")

        move(atomic, atomic.way, source, other(atomic, source), slot, slot, meanwhile=change)
        wanted = b"girst " + b"first " * 19 + b"+"
        assert [key for key in keys if rc.execute_command("GET", key) != wanted] == []


@pytest.mark.parametrize("command", ("SETBIT {k} 7 1", "COPY {k} {k}:", "BITOP NOT {k} {k}", "APPEND {k} x", "GETBIT {k} 1"))
def test_a_replica_holds_what_moves_out_while_its_slot_arrives(atomic, command):
    """The server drops what replicas are told besides what it passes on, as it came."""
    slot = slot_of(b"arrives " + command.replace("{", "").encode())
    key, second = keys_of(slot, 2)
    source = atomic.owner(slot)
    target = other(atomic, source)
    replica = atomic.replica_of(target)
    for name in (key, second):
        source.ask("SET", name, "a")
    source.ask("BITCOUNT", key)
    atomic.way.halt(source, True)
    try:
        atomic.way.start(source, target, slot, slot)
        wait_for(lambda: state(atomic.way, target) == "arrived", what="the records' arrival")
        source.ask(*command.format(k=key.decode()).split())
    finally:
        atomic.way.halt(source, False)
    wait_for(lambda: ended(atomic.way, source) and ended(atomic.way, target))
    assert state(atomic.way, target) == "done"
    atomic.wait()
    wait_for(lambda: names_in(target, slot) == names_in(replica, slot), what="the same on both")
    assert len(target.ask("KEYS", b"*" + key[key.index(b"{"):] + b"*")) == (3 if command.startswith("COPY") else 2)


def test_what_arrives_expires_where_it_comes_from(atomic):
    """The node that the slot comes to does not know whether the other one has prolonged what it is told of too late."""
    if atomic.way is Redis:
        pytest.skip("it counts no keys of slots that are on their way")
    slot = slot_of(b"expires there")
    source = atomic.owner(slot)
    target = other(atomic, source)
    keys = keys_of(slot, 100)
    count = lambda: target.ask("CLUSTER", "COUNTKEYSINSLOT", slot)
    at = now_ms() + 2000
    for key in keys[:50]:
        source.ask("SET", key, "v", "PXAT", at)
    source.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    atomic.way.halt(source, True)
    try:
        atomic.way.start(source, target, slot, slot)
        wait_for(lambda: state(atomic.way, target) == "arrived", what="the records' arrival")
        for key in keys[50:]:
            source.ask("SET", key, "v", "PXAT", at)
        wait_for(lambda: count() == 100)
        wait_for(lambda: now_ms() > at + 1000)
        assert count() == 100
        source.ask("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        wait_for(lambda: count() == 0, what="expiry")
    finally:
        source.ask("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        atomic.way.halt(source, False)
    wait_for(lambda: state(atomic.way, target) == "done")
    atomic.wait()


def test_atomically(atomic):
    cluster = atomic
    slot = slot_of(b"atomically")
    writers = start_writers(cluster, slot)
    for _ in range(4):
        source = cluster.owner(slot)
        target = other(cluster, source)
        move(cluster, cluster.way, source, target, slot, slot)
    finish(cluster, writers, cluster.owner(slot))
