"""In cluster mode a record lies in the map of its own slot."""

import random

import pytest
from redis.exceptions import ClusterCrossSlotError, MovedError

from cluster import SLOTS, Cluster, map_name, slot_of
from helpers import info, is_error, reply, texts, wait_for


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def rc(cluster):
    with cluster.client() as client:
        client.flushall(target_nodes="primaries")
        yield client


@pytest.fixture(scope="module")
def node():
    """A cluster of one."""
    with Cluster(primaries=1) as cluster:
        yield cluster.nodes[0]


def test_records_are_where_the_server_looks_for_their_keys(cluster, rc):
    for i in range(3000):
        assert rc.execute_command("CSET", f"key:{i}", f"value {i}") in (b"OK", True)
    for i in range(3000):
        assert rc.execute_command("CGET", f"key:{i}") == b"value %d" % i
    assert sum(node.ask("CDBSIZE") for node in cluster.primaries) == 3000
    for node in cluster.primaries:
        assert node.ask("CDBSIZE") > 800
        for name in node.ask("KEYS", "*"):
            assert cluster.owner(slot_of(name)) is node


def test_every_slot_has_a_map_of_its_own(node):
    with node.client() as r:
        r.execute_command("FLUSHALL")
        keys, n = {}, 0
        while len(keys) < SLOTS:
            keys.setdefault(slot_of(b"{%d}" % n), b"k{%d}" % n)
            n += 1
        pipe = r.pipeline(transaction=False)
        for key in keys.values():
            pipe.execute_command("CSET", key, key)
        assert set(pipe.execute()) == {b"OK"}
        names = r.execute_command("KEYS", "*")
        assert len(names) == len({slot_of(name) for name in names}) == SLOTS
        assert max(map(len, names)) <= len(b"ckv:{123456}")
        for slot in random.Random(1).sample(range(SLOTS), 20):
            assert r.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10) == [map_name(slot)]
        pipe = r.pipeline(transaction=False)
        for key in keys.values():
            pipe.execute_command("CGET", key)
        assert pipe.execute() == list(keys.values())
        pipe = r.pipeline(transaction=False)
        for key in keys.values():
            pipe.execute_command("CDEL", key)
        assert sum(pipe.execute()) == SLOTS
        assert r.execute_command("DBSIZE") == 0


def test_hash_tags(node):
    with node.client() as r:
        r.execute_command("FLUSHALL")
        keys = [b"{user1000}.following", b"{user1000}.followers", b"foo{user1000}", b"user1000"]
        for key in keys:
            assert r.execute_command("CSET", key, key) == b"OK"
        assert r.execute_command("CMGET", *keys) == keys
        assert r.execute_command("DBSIZE") == 1
        # What is no tag: empty braces, an open one, a second one.
        for key in (b"foo{}{bar}", b"foo{bar", b"foo{{bar}}zap", b"foo{bar}{zap}", b"}{", b"{}", b"{"):
            assert r.execute_command("CSET", key, key) == b"OK"
            assert r.execute_command("CGET", key) == key
            assert r.execute_command("CLUSTER", "KEYSLOT", key) == slot_of(key)
        assert {slot_of(n) for n in r.execute_command("KEYS", "ckv:*")} == {
            r.execute_command("CLUSTER", "KEYSLOT", k) for k in r.execute_command("CKEYS", "*")
        }


MANY = [
    ("CMGET", "a", "b"),
    ("CMSET", "a", "1", "b", "2"),
    ("CMSETNX", "a", "1", "b", "2"),
    ("CMSETEX", "2", "a", "1", "b", "2"),
    ("CDEL", "a", "b"),
    ("CUNLINK", "a", "b"),
    ("CEXISTS", "a", "b"),
    ("CTOUCH", "a", "b"),
]


@pytest.mark.parametrize("command", MANY, ids=lambda c: c[0])
def test_several_slots_in_one_command(node, command):
    with node.client() as r:
        answer = reply(r, *command)
        assert isinstance(answer, ClusterCrossSlotError)
        tagged = [f"{{t}}{word}" if word in "ab" else word for word in command]
        assert not is_error(reply(r, *tagged))


@pytest.mark.parametrize("command, prefixes", [("CMSETEX", ""), ("MSETEX", "*")])
def test_every_key_of_a_command_is_checked(command, prefixes):
    """Valkey knows the first of counted keys alone there."""
    with Cluster(primaries=1, config={"ckv.prefixes": f'"{prefixes}"'}) as cluster:
        with cluster.nodes[0].client() as r, cluster.nodes[0].client() as u:
            if is_error(reply(r, command, 1, "{t}secret", "v"), "unknown command"):
                pytest.skip(f"this server has no {command}")
            r.execute_command("ACL", "SETUSER", "some", "on", "nopass", "+@all", "~{t}a*")
            u.execute_command("AUTH", "some", "")
            assert is_error(reply(u, command, 2, "{t}a", "1", "{t}secret", "2"), "key")
            assert is_error(reply(u, command, 2, "{t}secret", "1", "{t}a", "2"), "key")
            assert isinstance(reply(r, command, 2, "{t}a", "1", "a", "2"), ClusterCrossSlotError)
            assert r.execute_command("CKEYS", "*") == [b"{t}secret"]
            assert u.execute_command(command, 2, "{t}a", "1", "{t}ab", "2") == 1


def test_another_node_answers_moved(cluster):
    slot = slot_of(b"k")
    owner = cluster.owner(slot)
    for node in cluster.primaries:
        for command in (("CSET", "k", "v"), ("CGET", "k"), ("CTTL", "k"), ("CDEL", "k"), ("CMSETEX", "1", "k", "v")):
            with node.client() as r:
                answer = reply(r, *command)
            if node is owner:
                assert not is_error(answer)
            else:
                assert is_error(answer) and isinstance(answer, MovedError)


def test_transaction_and_script(node):
    with node.client() as r:
        r.execute_command("FLUSHALL")
        r.execute_command("CMSET", "{a}1", "x", "{a}2", "y")
        r.execute_command("MULTI")
        r.execute_command("CGET", "{a}1")
        r.execute_command("CDEL", "{a}1", "{a}2")
        r.execute_command("CSET", "{a}3", "z")
        r.execute_command("CSET", "another", "v")
        answer = reply(r, "EXEC")
        assert is_error(answer) or answer == [b"x", 2, b"OK", b"OK"]
        script = "redis.call('CSET', KEYS[1], ARGV[1]) return redis.call('CGET', KEYS[1])"
        assert r.execute_command("EVAL", script, 1, "s", "value") == b"value"


def test_a_script_that_names_two_slots_stops_nobody(node):
    """Valkey 9.1 refuses what is called by the same client from then on, as if its key were another node's."""
    own, plain = ("CGET", "CSET"), ("GET", "SET")
    with node.client() as r:
        def in_script(*command):
            return reply(r, "EVAL", "return redis.call(unpack(ARGV))", 0, *command)

        def check(names, ask):
            assert is_error(in_script("MGET", "one", "another"))
            for get, put in names:
                assert ask(get, f"{get}:1") is None
                assert ask(put, f"{get}:2", "value") == b"OK"
                assert ask(get, f"{get}:2") == b"value"
            r.execute_command("FLUSHALL")

        for prefixes, names in ("", [own]), ("*", [plain, own]), ("", [own]):
            r.execute_command("CONFIG", "SET", "ckv.prefixes", prefixes)
            wait_for(lambda: not info(r)["prefixes_leaving"], what="that the prefix is forgotten")
            check(names, r.execute_command)
            if prefixes:
                check(names, in_script)


def test_records_expire_in_their_slots(node):
    with node.client() as r:
        r.execute_command("FLUSHALL")
        pipe = r.pipeline(transaction=False)
        for i in range(2000):
            pipe.execute_command("CSET", f"e{i}", "v", "PX", 50)
        pipe.execute_command("CSET", "stays", "v")
        pipe.execute()
        wait_for(lambda: r.execute_command("CDBSIZE") == 1, what="what has expired is deleted")
        wait_for(lambda: r.execute_command("DBSIZE") == 1, what="maps without records are deleted")
        assert r.execute_command("CGET", "stays") == b"v"
        assert info(r)["expired_records"] >= 2000


def test_restart(node):
    with node.client() as r:
        r.execute_command("FLUSHALL")
        stored = {b"k%d" % i: v for i, v in enumerate(texts(5000))}
        pipe = r.pipeline(transaction=False)
        for key, value in stored.items():
            pipe.execute_command("CSET", key, value)
        pipe.execute()
    node.restart(save=True)
    wait_for(lambda: node.info()["cluster_state"] == "ok")
    with node.client() as r:
        pipe = r.pipeline(transaction=False)
        for key in stored:
            pipe.execute_command("CGET", key)
        assert pipe.execute() == list(stored.values())


def test_eviction_takes_records_and_no_maps(cluster, rc):
    """On each node by itself, from all of its slots. Redis 8.0 takes 2.5 KB for each slot that holds any key at all."""
    batch, batches, size = 1000, 90, 1600
    rng = random.Random(4)
    clients = [node.client() for node in cluster.primaries]
    try:
        for r in clients:
            r.config_set("maxmemory-policy", "allkeys-lru")
            r.config_set("maxmemory", r.info("memory")["used_memory"] + (32 << 20))
        for first in range(0, batch * batches, batch):
            pipe = rc.pipeline()
            for i in range(first, first + batch):
                pipe.execute_command("CSET", f"key:{i}", b"%d " % i + rng.randbytes(size))
            assert all(pipe.execute())
            for r in clients:
                memory = r.info("memory")
                assert memory["used_memory"] <= memory["maxmemory"]
        for r in clients:
            assert info(r)["evicted_records"] > 0 and r.info("stats")["evicted_keys"] == 0
        kept = [(i, rc.execute_command("CGET", f"key:{i}")) for i in range(0, batch * batches, 37)]
        assert all(value.startswith(b"%d " % i) for i, value in kept if value is not None)
        assert 0.3 < sum(value is not None for _, value in kept) / len(kept) < 0.95
    finally:
        for r in clients:
            r.config_set("maxmemory", 0)
            r.config_set("maxmemory-policy", "noeviction")
            r.close()
