"""Clients of a cluster with strings in ckv get what a plain server replies while their slots move, and each node holds what that server holds,
also when it has been started anew from its AOF."""

import random
import threading
import time

import pytest
from redis.exceptions import AskError, ClusterDownError, MovedError, TryAgainError

from atomic import move, way_of
from cluster import Cluster, fail_over, keys_of, move_slot, other, slot_of
from helpers import is_error, reply, wait_for, wait_for_replica
from server import Server

CLIENTS, SLOTS, KEYS = 4, 2, 60
SCRIPTS = (
    "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('APPEND', KEYS[2], 'z')",
    "return {redis.call('GETBIT', KEYS[1], 1), redis.call('STRLEN', KEYS[2])}",
)


def a_value(rng):
    kind = rng.random()
    if kind < 0.3:
        return b"%d" % rng.randrange(10 ** rng.randrange(1, 12))
    if kind < 0.9:
        return b"some text of %d " % rng.randrange(100) * rng.randrange(1, 12)
    if kind < 0.95:
        return rng.randbytes(rng.randrange(1, 200))
    return b"long %d " % rng.randrange(9) * rng.randrange(1, 3000)


def a_command(rng, keys):
    key, second, value = rng.choice(keys), rng.choice(keys), a_value(rng)
    return rng.choice((
        ("GET", key), ("MGET", key, second, key), ("STRLEN", key), ("GETRANGE", key, 1, -2), ("EXISTS", key, second), ("TYPE", key),
        ("SET", key, value), ("SET", key, value, "EX", 5000), ("SET", key, value, "KEEPTTL"), ("SET", key, value, "NX"),
        ("SET", key, value, "XX", "GET"), ("SETNX", key, value), ("GETSET", key, value), ("MSET", key, value, second, value[:9]),
        ("MSETNX", key, value, second, value), ("APPEND", key, value[:20]), ("SETRANGE", key, rng.randrange(30), value[:20]),
        ("INCR", key), ("INCRBY", key, 7), ("DECR", key), ("GETDEL", key), ("GETEX", key, "EX", 3000),
        ("DEL", key), ("DEL", key, second), ("UNLINK", key, second), ("EXPIRE", key, 4000), ("PERSIST", key),
        ("SETBIT", key, rng.randrange(200), 1), ("GETBIT", key, 3), ("BITCOUNT", key), ("BITOP", "OR", key, second, key),
        ("RENAME", key, second), ("COPY", key, second), ("COPY", key, second, "REPLACE"), ("LCS", key, second, "LEN"),
        ("SORT", key, "ALPHA", "STORE", second), ("PFADD", key, value[:9]), ("HSET", key, "field", value), ("RPUSH", key, value), ("LPOP", key),
        *(("EVAL", script, 2, key, second, value) for script in SCRIPTS),
    ))


class ClusterClient:
    """Goes where it is sent."""

    def __init__(self, cluster):
        self.nodes = {node.port: node.client() for node in cluster.nodes}
        self.at = cluster.primaries[0].port

    def ask(self, *command):
        """The reply. TRYAGAIN is one, as nothing was done; but of a script that is not sure."""
        port, ask, give_up = self.at, False, time.monotonic() + 60
        while time.monotonic() < give_up:
            if ask:
                self.nodes[port].execute_command("ASKING")
            answer = reply(self.nodes[port], *command)
            ask = isinstance(answer, AskError)
            if isinstance(answer, (AskError, MovedError)):
                port = answer.port
                self.at = self.at if ask else port
            elif isinstance(answer, ClusterDownError) or (isinstance(answer, TryAgainError) and command[0] == "EVAL"):
                port = self.at
                time.sleep(0.005)
            elif is_error(answer, "UNBLOCKED"):  # it was held when its node became a replica: nothing was done
                port = self.at
            else:
                return answer
        return answer


class Client(threading.Thread):
    """Sends commands about keys of its own to the cluster and to a plain server, until a reply is another one's."""

    def __init__(self, cluster, plain, keys, seed):
        super().__init__(daemon=True)
        self.cluster, self.plain = ClusterClient(cluster), plain.client()
        self.keys, self.rng = keys, random.Random(seed)
        self.history, self.failed = [], None
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.is_set() and not self.failed:
                command = a_command(self.rng, self.keys)
                ours = self.cluster.ask(*command)
                if isinstance(ours, TryAgainError):
                    continue
                theirs = reply(self.plain, *command)
                self.history.append((time.time(), command, ours, theirs))
                if ours != theirs and not (is_error(ours) and is_error(theirs) and str(ours)[:12] == str(theirs)[:12]):
                    self.failed = f"{command}: {ours!r} instead of {theirs!r}\n{self.about(*command[1:])}"
        except BaseException as error:
            self.failed = error

    def about(self, *keys):
        """What it has sent about some keys, for who looks for the reason."""
        named = {key for key in keys if key in self.keys}
        return "\n".join(f"{at:.6f} {str(command)[:150]} -> {str(ours)[:80]}" for at, command, ours, _ in self.history if named & set(command))


READ = {b"string": ("GET", ()), b"hash": ("HGETALL", ()), b"list": ("LRANGE", (0, -1))}


def contents(r, keys):
    """{key: (type, value, whether it expires)} of those that are there."""
    kinds = {key: r.execute_command("TYPE", key) for key in keys}
    return {
        key: (kind, r.execute_command(READ[kind][0], key, *READ[kind][1]), r.execute_command("TTL", key) > 0)
        for key, kind in kinds.items()
        if kind != b"none"
    }


def check_nodes(cluster, plain, clients, when):
    keys = [key for client in clients for key in client.keys]
    with plain.client() as r:
        wanted = contents(r, keys)
    for i, primary in enumerate(cluster.primaries):
        for node in (primary, cluster.replicas[i]):
            with node.client() as r:
                r.execute_command("READONLY")
                here = [key for key in keys if cluster.owner(slot_of(key)) is primary]
                there = contents(r, here)
                listed = set(r.execute_command("KEYS", "*"))
            wrong = [key for key in here if there.get(key) != wanted.get(key)] + sorted(listed ^ there.keys())
            about = "\n".join(client.about(*wrong[:1]) for client in clients if wrong)
            assert not wrong, f"{when}, node {node.port}: {wrong[0]} is {there.get(wrong[0])!r:.300}, not {wanted.get(wrong[0])!r:.300}\n{about}"


def settle(cluster):
    cluster.wait()
    for node in cluster.nodes:
        wait_for(lambda node=node: not node.ask("INFO")["aof_rewrite_in_progress"], "the rewrite")
    for node in cluster.replicas:
        wait_for(lambda node=node: node.ask("INFO")["master_link_status"] == "up", "a replica that follows")
    for node in cluster.primaries:
        with node.client() as r:
            wait_for_replica(r)


def hand_over(cluster, primary):
    """To its replica, in agreement with it; nothing is lost."""
    at = cluster.primaries.index(primary)
    replica = cluster.replicas[at]
    fail_over(replica)
    cluster.primaries[at], cluster.replicas[at] = replica, primary
    cluster.wait()
    wait_for(lambda: primary.ask("INFO")["master_link_status"] == "up", "a replica that follows")


def move_slots(cluster, way, slots, rng):
    for i in range(rng.choice((1, 2, 3))):
        for slot in slots:
            if way:
                move(cluster, way, cluster.owner(slot), other(cluster, cluster.owner(slot)), slot, slot)
            else:
                move_slot(cluster, slot, at_once=rng.choice((5, 10)), pause=rng.choice((0, 0.01)))
        if rng.random() < 0.3:
            cluster.owner(slots[0]).ask("BGREWRITEAOF")
        if i == 0 and rng.random() < 0.7:  # only once: for so long nobody votes for the same one again
            hand_over(cluster, cluster.owner(slots[0]))
        time.sleep(rng.random())


@pytest.mark.parametrize("atomically", (False, True), ids=("by MIGRATE", "atomically"))
@pytest.mark.parametrize("prefixes", ('"*"', '"0: 2:"'), ids=("all", "some"))
def test_slots_move_under_clients(prefixes, atomically):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    config = {"ckv.prefixes": prefixes, "ckv.train-after": "64kb", "appendonly": "yes", "aof-use-rdb-preamble": rng.choice(("yes", "no"))}
    with Server(module=False) as plain, Cluster(primaries=2, replicas=1, config=config) as cluster:
        way = way_of(cluster.nodes[0]) if atomically else None
        if atomically and not way:
            pytest.skip("the server has no atomic slot migration")
        slots = [rng.randrange(16384) for _ in range(SLOTS)]
        clients = [Client(cluster, plain, [b"%d:" % i + key for key in keys_of(slots[i % SLOTS], KEYS)], rng.random()) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        move_slots(cluster, way, slots, rng)
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join(100)
            assert not client.failed, client.failed
        settle(cluster)
        check_nodes(cluster, plain, clients, "as they are")
        for node in cluster.primaries:
            if rng.random() < 0.5:
                node.kill()
                node.start()
            else:
                node.restart(save=False)
        settle(cluster)
        check_nodes(cluster, plain, clients, "primaries anew")
        for node in cluster.replicas:
            node.restart(save=False)
        settle(cluster)
        check_nodes(cluster, plain, clients, "replicas anew")
