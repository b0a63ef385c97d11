"""Clients of a cluster whose slots move, whose replicas take over and whose nodes end: what they write is applied to a plain
server first, which knows every value, and what they read has to be a value that the key has had."""

import collections
import random
import threading
import time

import redis

from server import BINARY, Server

BRIEF_MS = 2000
AGAIN = ("TRYAGAIN", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "EXECABORT", "UNBLOCKED")
# A transaction that has deleted a key of a slot that is leaving may not name it again (docs/operations.md).
DELETE = ("GETDEL", "DEL", "UNLINK", "RENAME", "RENAMENX", "HDEL", "LPOP", "LMOVE", "SORT", "BITOP")
# Their names tell: these expire any moment.
BRIEF = b"brief"


class Lost(Exception):
    """The connection is, and nobody knows whether the command ran."""


class Connections:
    """One thread's, one to each node. An error is a reply; a connection that was lost is not made anew unnoticed."""

    def __init__(self):
        self.open = {}

    def to(self, node):
        if node not in self.open:
            self.open[node] = redis.connection.Connection(
                host="127.0.0.1", port=node.port, socket_timeout=60, retry=None, protocol=2
            )
        return self.open[node]

    def send(self, node, *commands):
        connection = self.to(node)
        try:
            connection.send_packed_command([part for c in commands for part in connection.pack_command(*c)])
            return [self.answer(connection) for _ in commands]
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            connection.disconnect()
            del self.open[node]
            raise Lost() from error

    @staticmethod
    def answer(connection):
        try:
            return connection.read_response()
        except redis.exceptions.BusyLoadingError as error:  # a ConnectionError to redis-py, which hangs up
            raise Lost() from error
        except redis.ResponseError as error:
            return error


def refusal(answers):
    """The first word of the first error with which a cluster sends a command away."""
    kinds = {
        redis.exceptions.MovedError: "MOVED",
        redis.exceptions.AskError: "ASK",
        redis.exceptions.TryAgainError: "TRYAGAIN",
        redis.exceptions.ClusterDownError: "CLUSTERDOWN",
        redis.exceptions.MasterDownError: "MASTERDOWN",
        redis.exceptions.ReadOnlyError: "READONLY",
        redis.exceptions.ExecAbortError: "EXECABORT",
    }
    for answer in answers:
        if isinstance(answer, redis.ResponseError):
            word = kinds.get(type(answer)) or str(answer).split()[0]
            if word in AGAIN or word in ("MOVED", "ASK"):
                return word, answer
    return None, None


def comparable(answer):
    if isinstance(answer, list):
        return [comparable(a) for a in answer]
    return f"error: {answer}" if isinstance(answer, redis.ResponseError) else answer


def states(send, keys):
    """[(type, value)] of keys; `send` is given commands and tells their replies."""
    reads = {b"string": ("GET",), b"hash": ("HGETALL",), b"list": ("LRANGE", 0, -1)}
    found = []
    types = send(*(("TYPE", key) for key in keys))
    commands = [(reads[kind][0], key, *reads[kind][1:]) for kind, key in zip(types, keys) if kind in reads]
    values = iter(send(*commands) if commands else ())
    for kind in types:
        value = next(values) if kind in reads else None
        if kind == b"hash" and isinstance(value, list):
            value = sorted(zip(value[::2], value[1::2]))
        found.append((kind, value))
    return found


NOTHING = (b"none", None)


class Model:
    """A server without a cluster and without ckv, and every value that a key has had."""

    def __init__(self):
        self.server = Server(module=False, binary=BINARY)
        self.history = collections.defaultdict(lambda: [NOTHING])
        self.told = collections.defaultdict(lambda: collections.deque(maxlen=12))

    def close(self):
        self.server.close()

    def has_had(self, key, holds):
        return any(holds(state) for state in reversed(self.history[key]))


class World:
    """What clients share: who serves which slot, and when something happens to it."""

    def __init__(self, cluster, slots):
        self.cluster, self.model = cluster, Model()
        self.where = {slot: cluster.owner(slot) for slot in slots}
        self.by_port = {node.port: node for node in cluster.nodes}
        self.turns = 0  # odd: something is being done to a node or a slot
        self.moves = collections.Counter()  # of a slot; odd: it is on its way
        self.go = threading.Event()
        self.go.set()
        self.wrong = []

    def replica_of(self, node):
        return self.cluster.replica_of(node)

    def complain(self, who, *what):
        self.wrong.append(f"{time.time():.3f} {who.name}: " + " ".join(repr(w)[:600] for w in what))


class Client(threading.Thread):
    def __init__(self, world, name, seed):
        super().__init__(name=name, daemon=True)
        self.world, self.random = world, random.Random(f"{name} {seed}")
        self.connections = Connections()
        self.lock = threading.Lock()
        self.stopping, self.error, self.done = False, None, 0

    def run(self):
        try:
            while not self.stopping:
                self.world.go.wait()
                with self.lock:
                    self.step()
                    self.done += 1
                time.sleep(0.001)
        except BaseException as error:
            self.error = error

    def finish(self):
        self.stopping = True
        self.join(60)
        assert not self.is_alive(), f"{self.name} hangs"
        if self.error:
            raise self.error


class Writer(Client):
    """Its keys are its own."""

    def __init__(self, world, name, seed, keys):
        super().__init__(world, name, seed)
        self.keys = keys  # {slot: names}
        self.slots = sorted(keys)
        self.twin, self.other = Connections(), Connections()
        self.aborted = 0

    # ---- what is written ----

    def text(self):
        rng = self.random
        kind = rng.random()
        if kind < 0.25:
            return b"%d" % rng.randrange(-1000, 1_000_000)
        if kind < 0.9:
            return b"%s says something to %d" % (self.name.encode(), rng.randrange(1000)) * rng.choice((1, 1, 1, 2, 30))
        return rng.randbytes(rng.choice((1, 40, 9000)))

    def command(self, keys):
        rng = self.random
        a, b, c = rng.sample(keys, 3)
        if a.startswith(BRIEF) or b.startswith(BRIEF) or c.startswith(BRIEF):
            brief = next(key for key in (a, b, c) if key.startswith(BRIEF))
            return ("SET", brief, self.text(), "PX", rng.randrange(50, BRIEF_MS))
        at = int(time.time() * 1000) + rng.randrange(10_000_000, 100_000_000)
        if rng.random() < 0.3:
            return ("SET", a, self.text())
        return rng.choice(
            (
                ("SET", a, self.text(), "EX", rng.randrange(10_000, 100_000)),
                ("SET", a, self.text(), "PXAT", at),
                ("SET", a, self.text(), "KEEPTTL"),
                ("SET", a, self.text(), rng.choice(("XX", "NX")), "GET"),
                ("SETNX", a, self.text()),
                ("APPEND", a, b"+%d" % rng.randrange(100)),
                ("INCR", a),
                ("INCRBY", a, 12),
                ("INCRBYFLOAT", a, "0.5"),
                ("SETBIT", a, rng.randrange(400), rng.randrange(2)),
                ("BITFIELD", a, "INCRBY", "u8", rng.randrange(100), 3),
                ("PFADD", a, rng.randrange(50)),
                ("PFCOUNT", a),
                ("PFMERGE", a, b),
                ("GETSET", a, self.text()),
                ("GETDEL", a),
                ("GETEX", a, "PXAT", at),
                ("SETRANGE", a, rng.randrange(60), "range"),
                ("BITOP", rng.choice(("AND", "OR", "XOR")), a, b, c),
                ("MSET", a, self.text(), b, self.text()),
                ("MSETNX", a, self.text(), b, self.text()),
                ("MGET", a, b, c),
                ("DEL", a),
                ("DEL", a, b),
                ("UNLINK", a),
                ("RENAME", a, b),
                ("RENAMENX", a, b),
                ("COPY", a, b, "REPLACE"),
                ("COPY", a, b),
                ("PEXPIREAT", a, at),
                ("PERSIST", a),
                ("HSET", a, rng.randrange(4), self.text()),
                ("HDEL", a, rng.randrange(4)),
                ("RPUSH", a, rng.randrange(100)),
                ("LPOP", a),
                ("LMOVE", a, b, "LEFT", "RIGHT"),
                ("SORT", a, "STORE", b),
                ("EVAL", "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('APPEND', KEYS[2], ARGV[1])", 2, a, b, self.text()),
                ("EVAL", "return {redis.call('BITCOUNT', KEYS[1]), redis.call('GET', KEYS[1])}", 1, a),
                ("BITCOUNT", a),
                ("GETBIT", a, rng.randrange(100)),
                ("STRLEN", a),
                ("LCS", a, b, "LEN"),
                ("GETRANGE", a, 2, 9),
                ("GET", a),
                ("TYPE", a),
                ("EXISTS", a, b),
                ("RESTORE", a, 0, self.dump(b), "REPLACE"),
            )
        )

    def dump(self, key):
        return self.twin.send(self.world.model.server, ("DUMP", key))[0] or b"not a dump"

    # ---- how it is sent ----

    def sent(self, slot, commands, transaction=False, watch=None):
        """The answers. Lost: perhaps it ran."""
        while True:
            node = self.world.where[slot]
            answers = self.attempt(node, commands, transaction, watch)
            word, error = refusal(answers)
            if word == "MOVED":
                self.world.where[slot] = self.world.by_port[error.port]
                time.sleep(0.005)
            elif word == "ASK" and not transaction:
                target = self.world.by_port[error.port]
                answers = [self.connections.send(target, ("ASKING",), command)[1] for command in commands]
                word, _ = refusal(answers)
            if not word and (not transaction or answers[-1] is not None):
                return answers[-1] if transaction else answers
            if not word:
                self.aborted += 1
            time.sleep(0.01)

    def attempt(self, node, commands, transaction, watch):
        if not transaction:
            return self.connections.send(node, *commands)
        turn, slot_turn = self.world.turns, dict(self.world.moves)
        first = self.connections.send(node, *((("WATCH", watch),) if watch else ()), ("MULTI",))
        if refusal(first)[0]:
            self.connections.send(node, ("DISCARD",), ("UNWATCH",))
            return first
        answers = self.connections.send(node, *commands, ("EXEC",))
        if answers[-1] is None and turn == self.world.turns and turn % 2 == 0 and slot_turn == dict(self.world.moves):
            self.world.complain(self, "EXEC failed though nobody touched", watch, commands)
        return answers

    def now(self, slot, keys):
        while True:
            try:
                return states(lambda *commands: self.sent(slot, commands), keys)
            except Lost:
                time.sleep(0.02)

    def apply(self, slot, commands, transaction=False, watch=None):
        """To the model, which tells what the value may be from now on, and to the cluster, once."""
        model = self.world.model
        keys = sorted({part for c in commands for part in c if part in self.keys[slot]})
        ask = lambda *commands: self.twin.send(model.server, *commands)
        before = [model.history[key][-1] for key in keys]
        wanted = ask(("MULTI",), *commands, ("EXEC",))[-1] if transaction else ask(*commands)
        after = states(ask, keys)
        for key, state in zip(keys, after):
            model.told[key].append((round(time.time(), 3), transaction, commands, wanted))
            if state != model.history[key][-1]:
                model.history[key].append(state)
        brief = any(key.startswith(BRIEF) for key in keys)
        unknown = False
        while True:
            try:
                got = self.sent(slot, commands, transaction, watch)
            except Lost:
                time.sleep(0.02)
                unknown = True
                found = self.now(slot, keys)
                if found == after or brief:
                    return
                if found == before:
                    continue
                return self.world.complain(self, "neither before nor after", commands, keys, before, after, found)
            if not unknown and not brief and comparable(got) != comparable(wanted):
                self.world.complain(self, "answer", transaction, commands, "wanted", wanted, "got", got)
            return

    def abort(self, slot):
        """Another client writes what is watched."""
        key = next(key for key in self.keys[slot] if not key.startswith(BRIEF))
        try:
            node = self.world.where[slot]
            if self.connections.send(node, ("WATCH", key)) != [b"OK"]:
                return
            self.connections, self.other = self.other, self.connections
            try:
                self.apply(slot, [("SET", key, self.text() + b"watched")])
            finally:
                self.connections, self.other = self.other, self.connections
            if node not in self.connections.open:
                return
            answers = self.connections.send(node, ("MULTI",), ("SET", key, "never"), ("GET", key), ("EXEC",))
            if isinstance(answers[-1], list):
                self.world.complain(self, "EXEC did not see a write", key, answers)
        except Lost:
            pass

    def step(self):
        slot = self.random.choice(self.slots)
        keys = self.keys[slot]
        kind = self.random.random()
        if kind < 0.03:
            self.abort(slot)
        elif kind < 0.2:
            lasting = [key for key in keys if not key.startswith(BRIEF)]
            commands = [self.command(lasting) for _ in range(self.random.randrange(1, 7))]
            commands = [command for command in commands if command[0] not in DELETE] or [("GET", lasting[0])]
            self.apply(slot, commands, True, self.random.choice((None, lasting[0])))
        else:
            self.apply(slot, [self.command(keys)])


WRONG_TYPE = "an error, of which each command has its own"


def reads_of(rng, key):
    """Commands, and what each answers of a state; None instead of that: any answer."""
    bit = rng.randrange(100)

    def string(nothing, answer):
        return lambda state: nothing if state is NOTHING or state == NOTHING else answer(state[1]) if state[0] == b"string" else WRONG_TYPE

    count = lambda value: sum(byte.bit_count() for byte in value)
    at = lambda value: value[bit // 8] >> (7 - bit % 8) & 1 if bit // 8 < len(value) else 0
    script = "return {redis.call('BITCOUNT', KEYS[1]), redis.call('GET', KEYS[1]), redis.call('STRLEN', KEYS[1])}"
    all_reads = [
        (("GET", key), string(None, lambda value: value)),
        (("STRLEN", key), string(0, len)),
        (("BITCOUNT", key), string(0, count)),
        (("GETBIT", key, bit), string(0, at)),
        (("TYPE", key), lambda state: state[0]),
        (("EXISTS", key), lambda state: int(state != NOTHING)),
        (("OBJECT", "ENCODING", key), None),
        (("DUMP", key), None),
    ]
    scripted = (("EVAL_RO", script, 1, key), string([0, None, 0], lambda value: [count(value), value, len(value)]))
    compared = (("LCS", key, key, "LEN"), string(0, len))
    return all_reads, scripted, compared


class Reader(Client):
    """Of replicas."""

    def __init__(self, world, name, seed, keys):
        super().__init__(world, name, seed)
        self.keys = keys
        self.slots = sorted(keys)

    def some(self, key):
        reads, scripted, compared = reads_of(self.random, key)
        chosen = self.random.choices(reads, k=self.random.randrange(1, 5))
        state = self.world.model.history[key][-1]
        if state[0] == b"string" and len(state[1]) < 1000:
            chosen.append(compared)
        if state[0] in (b"string", b"none"):
            chosen.append(scripted)
        return chosen

    def step(self):
        slot = self.random.choice(self.slots)
        keys = self.random.sample(self.keys[slot], 2)
        node = self.world.where[slot]
        if node not in self.world.cluster.primaries:
            return
        replica = self.world.replica_of(node)
        moved = self.world.moves[slot]
        try:
            if self.random.random() < 0.5:
                self.single(slot, replica, keys[0], moved)
            else:
                self.transaction(slot, replica, keys, moved)
        except Lost:
            time.sleep(0.02)

    def check(self, slot, moved, key, pairs, got):
        """There is one state that answers so, unless the slot is on its way."""
        loose = key.startswith(BRIEF) or moved % 2 == 1 or moved != self.world.moves[slot]
        answers = [(holds, answer) for (_, holds), answer in zip(pairs, got) if holds]

        def told(state):
            return all(holds(state) == (WRONG_TYPE if isinstance(answer, redis.ResponseError) else answer) for holds, answer in answers)

        if key.startswith(BRIEF):  # it expires between two commands
            if len(answers) > 1:
                for pair, answer in zip(pairs, got):
                    self.check(slot, moved, key, [pair], [answer])
                return
            answers = [(holds, answer) for holds, answer in answers if not isinstance(answer, list)]
        if loose and told(NOTHING):
            return
        if not self.world.model.has_had(key, told):
            self.world.complain(self, "read what never was", key, [c for c, _ in pairs], got, self.world.model.history[key][-3:])

    def single(self, slot, node, key, moved):
        for pair in self.some(key):
            got = self.connections.send(node, ("READONLY",), pair[0])[1:]
            if not refusal(got)[0]:
                self.check(slot, moved, key, [pair], got)

    def transaction(self, slot, node, keys, moved):
        pairs = [self.some(key) for key in keys for _ in range(2)]
        watch = self.random.random() < 0.5
        turn = self.world.turns
        before = self.connections.send(node, ("READONLY",), *((("WATCH", keys[0]), ("GET", keys[0])) if watch else ()), ("MULTI",))
        if refusal(before)[0]:
            self.connections.send(node, ("DISCARD",), ("UNWATCH",))
            return
        commands = [("GET", keys[0]), *(command for part in pairs for command, _ in part)]
        answers = self.connections.send(node, *commands, ("EXEC",))[-1]
        if not isinstance(answers, list):
            return
        if watch and turn == self.world.turns and comparable(before[2]) != comparable(answers[0]):
            if not keys[0].startswith(BRIEF):
                self.world.complain(self, "EXEC did not see a change", keys[0], before[2], answers[0])
        rest = answers[1:]
        both = {key: ([], []) for key in keys}
        for key, part in zip((keys[0], keys[0], keys[1], keys[1]), pairs):
            both[key][0].extend(part)
            both[key][1].extend(rest[: len(part)])
            rest = rest[len(part) :]
        for key, (asked, got) in both.items():
            self.check(slot, moved, key, asked, got)
