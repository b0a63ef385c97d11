"""What the fleet is loaded with: records in bulk, and clients that read and write while it changes."""

import array
import binascii
import collections
import random
import socket
import threading
import time
from typing import NamedTuple

import redis

from cluster import SLOTS

DEPTH = 500  # commands in a pipeline


class Store(NamedTuple):
    name: str
    set: str
    get: str
    count: str


STORES = {"ckv": Store("ckv", "CSET", "CGET", "CDBSIZE"), "strings": Store("strings", "SET", "GET", "DBSIZE")}


def slot_of(key):
    """Of a key without a hash tag: CRC-16 of XMODEM."""
    return binascii.crc_hqx(key, 0) % SLOTS


def keys_of_slots(slots, among):
    """Those of KEY:<n>, n below `among`, that lie in the first `slots` slots. A CRC is linear: that of a key is that of its
    first digits with zeros behind, xor that of its last four."""
    ends = collections.defaultdict(list)
    for n in range(10_000):
        ends[slot_of(b"%04d" % n)].append(b"%04d" % n)
    for n in range(1, among // 10_000):
        first = b"KEY:%d" % n
        base = slot_of(first + bytes(4))
        for slot in range(slots):
            for end in ends.get(base ^ slot, ()):
                yield first + end


def lines(path):
    with open(path, "rb") as f:
        return [line for line in f.read().split(b"\n") if line]


class Model:
    """What the cluster must hold: of each record the newest version that was sent, and that was acknowledged."""

    def __init__(self, values, records):
        self.values, self.records = values, records
        self.sent = array.array("L", [1]) * records
        self.acknowledged = array.array("L", [1]) * records

    @staticmethod
    def key(i):
        return b"KEY:%d" % i

    def value(self, i, version):
        return b"%d:%d %b" % (i, version, self.values[i % len(self.values)])

    def right(self, i, value, at_least):
        """Whether a value is one of those that may be found: not older than what was acknowledged before it was read."""
        version = value.split(b" ", 1)[0].split(b":")[-1]
        return version.isdigit() and at_least <= int(version) <= self.sent[i] and value == self.value(i, int(version))


def owners(cluster):
    """[the node that serves it] by slot."""
    by_port = {node.port: node for node in cluster.alive()}
    table = [None] * SLOTS
    for first, last, primary, *_ in cluster.alive()[0].ask("CLUSTER", "SLOTS"):
        table[first : last + 1] = [by_port.get(primary[1])] * (last + 1 - first)
    return table


class Bulk:
    """All records at once, in pipelines."""

    def __init__(self, cluster, store):
        self.store, self.owners, self.sockets = store, owners(cluster), {}

    def send(self, node, commands):
        """Their replies."""
        if node not in self.sockets:
            self.sockets[node] = socket.create_connection(("127.0.0.1", node.port), timeout=60).makefile("rwb")
        file, replies = self.sockets[node], []
        for start in range(0, len(commands), DEPTH):
            part = commands[start : start + DEPTH]
            for command in part:
                words = [word if isinstance(word, bytes) else word.encode() for word in command]
                file.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
            file.flush()
            replies += [self.reply(file) for _ in part]
        return replies

    @staticmethod
    def reply(file):
        """Of those that SET and GET have."""
        line = file.readline()
        if line == b"+OK\r\n" or line == b"$-1\r\n":
            return None
        assert line[:1] == b"$", line
        return file.read(int(line[1:]) + 2)[:-2]

    def each_node(self, model):
        """(node, some records of it), until all have been told."""
        for start in range(0, model.records, 50_000):
            found = collections.defaultdict(list)
            for i in range(start, min(start + 50_000, model.records)):
                found[self.owners[slot_of(model.key(i))]].append(i)
            yield from found.items()

    def fill(self, model):
        began = time.monotonic()
        for node, some in self.each_node(model):
            self.send(node, [(self.store.set, model.key(i), model.value(i, 1)) for i in some])
        return time.monotonic() - began

    def check(self, model):
        """How many are lost, how many wrong."""
        lost = wrong = 0
        for node, some in self.each_node(model):
            for i, value in zip(some, self.send(node, [(self.store.get, model.key(i)) for i in some])):
                lost += value is None
                wrong += value is not None and not model.right(i, value, model.acknowledged[i])
        return lost, wrong


class Load(threading.Thread):
    """A client that reads and writes its share of the records, and checks what it reads. Commands that the cluster sends
    elsewhere, or that fail with their node, are tried again until they are done."""

    def __init__(self, cluster, store, model, share, shares):
        super().__init__(daemon=True)
        self.cluster, self.store, self.model = cluster, store, model
        self.mine = range(share, model.records, shares)
        self.random = random.Random(share)
        self.owners, self.clients = owners(cluster), {}
        self.wait_for_replica = False  # only what WAIT 1 confirms is acknowledged
        self.operations, self.longest, self.wrong = 0, 0.0, []
        self.stopping, self.error = threading.Event(), None

    def client(self, node):
        if node not in self.clients:
            self.clients[node] = node.client(timeout=20)
        return self.clients[node]

    def once(self, i, commands, asked=None):
        pipe = self.client(asked or self.owners[slot_of(self.model.key(i))]).pipeline(transaction=False)
        for command in ([("ASKING",)] if asked else []) + commands:
            pipe.execute_command(*command)
        return pipe.execute()[1 if asked else 0 :]

    def call(self, i, *commands):
        """The replies, however often that takes."""
        began, asked = time.monotonic(), None
        while True:
            try:
                replies = self.once(i, list(commands), asked)
                break
            except redis.exceptions.AskError as error:
                asked = next((node for node in self.cluster.alive() if node.port == error.port), None)
            except (redis.RedisError, OSError, AttributeError):  # moved, on its way, or nobody serves the slot
                asked = None
                self.look_again()
            assert time.monotonic() - began < 300, f"no answer to {commands[0]} in 5 minutes"
        self.longest = max(self.longest, time.monotonic() - began)
        self.operations += 1
        return replies

    def look_again(self):
        time.sleep(0.02)
        self.clients.clear()
        try:
            self.owners = owners(self.cluster)
        except (redis.RedisError, OSError):
            pass  # whoever was asked is just ending

    def step(self, i):
        model, key = self.model, self.model.key(i)
        if self.random.random() < 0.5:
            value, = self.call(i, (self.store.get, key))
            if value is None or not model.right(i, value, model.acknowledged[i]):
                self.wrong.append((i, value, model.acknowledged[i], model.sent[i]))
            return
        model.sent[i] += 1
        commands = [(self.store.set, key, model.value(i, model.sent[i]))]
        if self.wait_for_replica:
            commands.append(("WAIT", 1, 1000))
        _, *replicas = self.call(i, *commands)
        if replicas != [0]:
            model.acknowledged[i] = model.sent[i]

    def run(self):
        try:
            while not self.stopping.is_set():
                self.step(self.random.choice(self.mine))
        except BaseException as error:
            self.error = error

    def take_longest(self):
        found, self.longest = self.longest, 0.0
        return found

    def finish(self):
        """How many operations it has done."""
        self.stopping.set()
        self.join(400)
        if self.error:
            raise self.error
        return self.operations
