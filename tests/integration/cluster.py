"""A cluster of the tests' own: servers with cluster-enabled, joined, with all slots spread over them."""

import random
import threading
import time

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.crc import key_slot
from redis.exceptions import ClusterError, TryAgainError

from helpers import reply, wait_for
from server import PATIENCE_S, Server, free_port

SLOTS = 16384
NODE_TIMEOUT_MS = 15_000  # nobody is taken for dead because the machine stood still


class Node(Server):
    standard = {
        "cluster-enabled": "yes",
        "cluster-node-timeout": NODE_TIMEOUT_MS,
        # A primary that has given away its last slot stays one.
        "cluster-allow-replica-migration": "no",
    }

    def __init__(self, config=None, **options):
        super().__init__({**self.standard, **(config or {})}, **options)

    def start(self):
        super().start()
        self.config["port"] = self.port  # the others find it again where it was
        return self

    def _spawn(self):
        # The cluster's own port is the server's + 10,000 if it is not given, and that may be too large.
        if "port" not in self.config:
            self.config["cluster-port"] = free_port()
        self.port = self.config.get("port", self.port)
        super()._spawn()

    @property
    def bus_port(self):
        return self.config["cluster-port"]

    def ask(self, *args, **options):
        """One command over a connection of its own."""
        with self.client(**options) as r:
            return r.execute_command(*args)

    @property
    def id(self):
        return self.ask("CLUSTER", "MYID").decode()

    def meet(self, other):
        self.ask("CLUSTER", "MEET", "127.0.0.1", other.port, other.bus_port)

    def knows(self):
        """{node id: fields of CLUSTER NODES}"""
        lines = self.ask("CLUSTER", "NODES").decode().splitlines()
        return {line.split()[0]: line.split() for line in lines}

    def info(self):
        lines = self.ask("CLUSTER", "INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines)


class Cluster:
    """`primaries` nodes that share the slots, and `replicas` replicas of each; `options` as of Server."""

    def __init__(self, primaries=3, replicas=0, config=None, **options):
        self.config, self.options = dict(config or {}), options
        self.nodes = []
        try:
            self.primaries = [self._node() for _ in range(primaries)]
            share = SLOTS / primaries
            for i, node in enumerate(self.primaries):
                node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
                node.ask("CLUSTER", "ADDSLOTSRANGE", round(i * share), round((i + 1) * share) - 1)
            for node in self.primaries[1:]:
                node.meet(self.primaries[0])
            self.wait()
            self.replicas = [self.add_replica(p) for p in self.primaries for _ in range(replicas)]
            self.wait()
            # Who does not know yet that it shares a shard with its replica does not follow it when that takes over (Valkey).
            wait_for(lambda: all(len(shard[3]) == 1 + replicas for n in self.nodes for shard in n.ask("CLUSTER", "SHARDS")), what="shards")
        except BaseException:
            self.close()
            raise

    def _node(self):
        node = Node(self.config, **self.options)
        self.nodes.append(node)
        return node

    def add_node(self):
        """A primary without slots."""
        node = self._node()
        node.meet(self.primaries[0])
        self.primaries.append(node)
        self.wait()
        return node

    def add_replica(self, primary):
        node = self._node()
        node.meet(primary)
        wait_for(lambda: primary.id in node.knows(), what="an introduction")
        node.ask("CLUSTER", "REPLICATE", primary.id)
        self.wait()
        wait_for(lambda: node.ask("INFO")["master_link_status"] == "up", what="a replica that follows")
        return node

    def alive(self):
        return [n for n in self.nodes if n.alive()]

    def wait(self):
        """Until all living nodes agree about all slots and have met."""
        alive = self.alive()

        def agreed():
            infos = [n.info() for n in alive]
            return all(
                i["cluster_state"] == "ok"
                and i["cluster_slots_assigned"] == str(SLOTS)
                and int(i["cluster_known_nodes"]) >= len(alive)
                for i in infos
            ) and len({self._owners(n) for n in alive}) == 1

        wait_for(agreed, "a cluster that is up")

    @staticmethod
    def _owners(node):
        slots = {}
        for fields in node.knows().values():
            if "master" in fields[2]:
                slots[fields[0]] = tuple(f for f in fields[8:] if not f.startswith("["))
        return frozenset((k, v) for k, v in slots.items() if v)

    def client(self, **options):
        return RedisCluster(
            startup_nodes=[ClusterNode("127.0.0.1", n.port) for n in self.alive()], **options
        )

    def owner(self, slot):
        """The primary that serves a slot."""
        for node in self.alive():
            for fields in node.knows().values():
                if "myself" not in fields[2] or "master" not in fields[2]:
                    continue
                for part in fields[8:]:
                    if part.startswith("["):
                        continue
                    first, _, last = part.partition("-")
                    if int(first) <= slot <= int(last or first):
                        return node
        raise AssertionError(f"nobody serves slot {slot}")

    def replica_of(self, primary):
        return self.replicas[self.primaries.index(primary)]

    def by_id(self, node_id):
        return next(n for n in self.alive() if n.id == node_id)

    def close(self):
        errors = []
        for node in self.nodes:
            try:
                node.close()
            except AssertionError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def slot_of(key):
    return key_slot(key if isinstance(key, bytes) else key.encode())


def map_name(slot):
    """The Redis key of a slot's map."""
    n = 0
    while slot_of(b"%d" % n) != slot:
        n += 1
    return b"ckv:{%d}" % n


def keys_of(slot, count):
    tag = map_name(slot)[len(b"ckv:") :]
    return [b"%d:%s" % (i, tag) for i in range(count)]


def asking(node, *command):
    with node.client() as r:
        r.execute_command("ASKING")
        return reply(r, *command)


def is_try_again(answer):
    return isinstance(answer, TryAgainError)


class Held:
    """A command on its way to the target, which has not answered it."""

    def __init__(self, node, *command, setup=()):
        self.r = node.client()
        for first in (*setup, ("ASKING",)):
            self.r.execute_command(*first)
        self.r.connection.send_command(*command)

    def answered(self):
        return self.r.connection.can_read(timeout=0)

    def answer(self):
        try:
            return self.r.connection.read_response()
        except redis.ResponseError as error:
            return error
        finally:
            self.r.close()


def names_in(node, slot):
    """Of the server's keys, which are maps and what is stored outside of them."""
    return sorted(node.ask("CLUSTER", "GETKEYSINSLOT", slot, 10_000))


def start_move(source, target, slot):
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)


def migrate(source, target, slot, at_once=10, pause=0):
    """As redis-cli does it, so many keys at once, with a pause (seconds) behind them; the names of what was moved."""
    moved = []
    while names := source.ask("CLUSTER", "GETKEYSINSLOT", slot, at_once):
        assert source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 1000 * PATIENCE_S, "KEYS", *names) in (b"OK", b"NOKEY")
        moved += names
        time.sleep(pause)
    return moved


def end_move(cluster, target, slot):
    target.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    for node in cluster.primaries:
        if node is not target:
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)


def move_slot(cluster, slot, **how):
    """To the other one of two primaries, key by key."""
    source = cluster.owner(slot)
    target = other(cluster, source)
    start_move(source, target, slot)
    migrate(source, target, slot, **how)
    end_move(cluster, target, slot)
    cluster.wait()


def other(cluster, node):
    return next(n for n in cluster.primaries if n is not node)


def fail_over(replica):
    """The server gives up after 5 s if the others don't agree, and wants to be asked again."""

    def promoted():
        return replica.ask("ROLE")[0] == b"master"

    began = time.monotonic()
    while not promoted():
        assert time.monotonic() - began < PATIENCE_S, "no failover"
        with replica.client() as r:
            reply(r, "CLUSTER", "FAILOVER")
        again = time.monotonic() + 6
        while time.monotonic() < again and not promoted():
            time.sleep(0.05)


class Writer(threading.Thread):
    """Reads, writes and deletes records of its own over a cluster client, and checks every answer
    against what it knows. A command that the cluster sends away for too long is tried again."""

    read = "CGET"

    def __init__(self, cluster, keys, seed, rate=None):
        super().__init__(daemon=True)
        self.client = cluster.client()
        self.keys, self.random, self.rate = keys, random.Random(seed), rate
        self.stored, self.wrong, self.done, self.refused = {}, [], 0, 0
        self.stopping = threading.Event()
        self.error = None

    def command(self, *args):
        while True:
            try:
                self.done += 1
                return self.client.execute_command(*args)
            except (ClusterError, redis.ConnectionError, redis.TimeoutError):
                # Nothing of ours: the client gave up. What it did is done again, so it must not matter.
                self.refused += 1
                if self.stopping.is_set() and self.refused > 10000:
                    raise
            except AttributeError as error:
                # redis-py was sent (ASK) to a node that it has not heard of: one that came or went just now.
                if error.name != "redis_connection":
                    raise
                self.refused += 1

    def check(self, key):
        got = self.command(self.read, key)
        if got != self.stored.get(key):
            self.wrong.append((key, self.stored.get(key), got))

    def step(self, n):
        key = self.random.choice(self.keys)
        kind = self.random.random()
        if kind < 0.5:
            self.check(key)
        elif kind < 0.8:
            value = b"%s %d" % (key, n)
            self.command("CSET", key, value)
            self.stored[key] = value
        elif kind < 0.9:
            value = b"%s kept %d" % (key, n)
            self.command("CSET", key, value, "EX", 3600, "XX")
            if key in self.stored:
                self.stored[key] = value
        else:
            self.command("CDEL", key)
            self.stored.pop(key, None)

    def run(self):
        try:
            start, n = time.monotonic(), 0
            while not self.stopping.is_set():
                self.step(n)
                n += 1
                if self.rate:
                    time.sleep(max(0, start + n / self.rate - time.monotonic()))
        except BaseException as error:
            self.error = error

    def finish(self):
        """Ends, looks at every record once more, and fails if anything was wrong."""
        self.stopping.set()
        self.join(120)
        assert not self.is_alive()
        if self.error:
            raise self.error
        for key in self.keys:
            self.check(key)
        self.client.close()
        assert not self.wrong, f"{len(self.wrong)} wrong answers, the first: {self.wrong[0]}"
