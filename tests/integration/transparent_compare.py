"""Runs the programs of transparent_programs on two servers, reply by reply, and cuts one that fails down to what is needed."""

import itertools
import os
import shutil
import time

import redis

from helpers import wait_for_replica
from server import Server
from transparent_programs import CLIENTS, DATABASES

SHRINK_RUNS = 2000  # at most: it takes a minute where nobody else has the processors
PIPELINE = 300
MOVING_SECONDS = 1
AOF = {"appendonly": "yes", "appendfsync": "no", "aof-use-rdb-preamble": "no"}
# Apart from these, replies are equal to the byte.
UNORDERED = {b"KEYS", b"SMEMBERS", b"SINTER", b"SUNION", b"SDIFF", b"HKEYS", b"HVALS", b"SPOP", b"SRANDMEMBER"}
SECONDS = {b"TTL": 0, b"EXPIRETIME": 1}
MILLISECONDS = {b"PTTL": 0, b"PEXPIRETIME": 1}


class Difference(AssertionError):
    def __init__(self, index, step, ours, theirs):
        super().__init__(f"{show(step)}\n    the server under test: {ours!r:.600}\n    a plain server:        {theirs!r:.600}")
        self.index = index


def show(step):
    """As one would type it. A client is a number."""
    if not isinstance(step[0], int):
        return " ".join(map(str, step))
    return f"client {step[0]}: " + " ".join(
        a.decode() if a.isascii() and a.decode().isprintable() and a and b" " not in a and len(a) < 60 else repr(a)[1:]
        for a in step[1:]
    )


# --- replies ---


class Time:
    """A time that a key has left, as one server told it: 0.1% early at most, never late, and the servers were asked one
    after the other. Compares equal with another's; `slack` are the ms since the program began."""

    def __init__(self, ms, slack):
        self.ms, self.slack = ms, slack

    def fits(self, theirs):
        if self.ms < 0 or theirs.ms < 0:
            return self.ms == theirs.ms
        return theirs.ms * 0.999 - theirs.slack <= self.ms <= theirs.ms + theirs.slack

    def __repr__(self):
        return f"{self.ms} ms left"


def pairs(flat):
    return sorted(zip(flat[::2], flat[1::2]))


def normal(reply, command, slack):
    """A reply in a form that is the same on both servers."""
    name = command[0].upper()
    if isinstance(reply, redis.RedisError):
        return f"error: {reply}"
    if name == b"EVAL" and isinstance(reply, list):
        return [normal(r, c, slack) for r, c in zip(reply, inner_commands(command[3:]))]
    if isinstance(reply, list):
        return normal_list(name, command, reply)
    if isinstance(reply, int):
        return normal_number(name, command, reply, slack)
    # The order of other types' elements, and RANDOMKEY's choice, are the server's own.
    if name == b"RANDOMKEY" or name == b"DUMP" and reply is not None and reply[0] != 0:
        return "something" if reply is not None else None
    return reply


def sorted_rows(reply, columns, nosort):
    """Of SORT BY: the first column is what it sorts by; where that is the same, the order is a set's own."""
    rows = list(zip(*[iter(reply)] * columns))
    return [] if nosort else [row[0] for row in rows], sorted(rows, key=repr)


def normal_list(name, command, reply):
    if name in UNORDERED:
        return sorted(reply, key=repr)
    if name == b"HGETALL":
        return pairs(reply)
    if name == b"HSCAN":
        return [reply[0], pairs(reply[1])]
    if name == b"SSCAN":
        return [reply[0], sorted(reply[1])]
    if b"BY" in command and b"GET" in command:
        return sorted_rows(reply, command.count(b"GET"), b"nosort" in command)
    return [f"error: {r}" if isinstance(r, redis.RedisError) else r for r in reply]


def normal_number(name, command, reply, slack):
    unit, absolute = (1000, SECONDS[name]) if name in SECONDS else (1, MILLISECONDS.get(name))
    if absolute is not None:
        now = time.time() * 1000 if absolute else 0
        return Time(reply * unit - now if reply >= 0 else reply, slack + 2 * unit)
    if name == b"OBJECT" and command[1].upper() in (b"REFCOUNT", b"IDLETIME") or name == b"MEMORY":
        return "a number"
    return reply


def inner_commands(args):
    """The commands that SCRIPT runs."""
    commands = []
    while args:
        n = int(args[0])
        commands.append(args[1 : n + 1])
        args = args[n + 1 :]
    return commands


def equal(ours, theirs):
    if isinstance(ours, Time) and isinstance(theirs, Time):
        return ours.fits(theirs)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(equal(ours[k], theirs[k]) for k in ours)
    return type(ours) is type(theirs) and ours == theirs


def differing(ours, theirs):
    """What of two sets of keys is not the same."""
    keys = [k for k in {*ours, *theirs} if not equal(ours.get(k), theirs.get(k))]
    return {k: ours.get(k) for k in keys}, {k: theirs.get(k) for k in keys}


# --- a server and its three clients ---


def read(connection):
    try:
        return connection.read_response(disable_decoding=True)
    except redis.ResponseError as error:
        return error


READ_ALL = {
    b"string": (b"GET",),
    b"list": (b"LRANGE", b"0", b"-1"),
    b"hash": (b"HGETALL",),
    b"set": (b"SMEMBERS",),
    b"zset": (b"ZRANGE", b"0", b"-1", b"WITHSCORES"),
    b"stream": (b"XRANGE", b"-", b"+"),
}


class Side:
    def __init__(self, server):
        self.server = server
        self.clients = []

    def connect(self):
        for client in self.clients:
            client.close()
        self.clients = [self.server.client() for _ in range(CLIENTS + DATABASES)]
        for db, admin in enumerate(self.clients[CLIENTS:]):
            admin.execute_command("SELECT", db)

    def admin(self, db=0):
        return self.clients[CLIENTS + db]

    def ask(self, db, *command):
        try:
            return self.admin(db).execute_command(*command)
        except redis.ResponseError as error:
            return error

    def send(self, client, commands):
        connection = self.clients[client].connection
        connection.send_packed_command(connection.pack_commands(commands))

    def read(self, client, count):
        connection = self.clients[client].connection
        return [read(connection) for _ in range(count)]

    def batch(self, db, commands):
        connection = self.admin(db).connection
        connection.send_packed_command(connection.pack_commands(commands))
        return [read(connection) for _ in commands]

    def everything(self, slack):
        """{(db, key): (type, value, time)} of the server."""
        found = {}
        for db in range(DATABASES):
            keys = self.ask(db, "KEYS", "*")
            types = self.batch(db, [(b"TYPE", k) for k in keys])
            reads = [(READ_ALL[t][0], k, *READ_ALL[t][1:]) for k, t in zip(keys, types) if t != b"none"]
            times = self.batch(db, [(b"PTTL", k) for k in keys])
            values = self.batch(db, reads)
            for key, kind, command, value, left in zip(keys, types, reads, values, times):
                found[db, key] = kind, normal(value, command, slack), normal(left, (b"PTTL",), slack)
        return found

    def iterate(self, db, options):
        cursor, found = None, set()
        while cursor != b"0":
            cursor, keys = self.admin(db).execute_command("SCAN", cursor or "0", *options)
            found.update(keys)
        return sorted(found)


# --- a program on two servers ---


class Run:
    """One program on two servers that hold nothing. `ours` may have a `replica`, a Side as well."""

    def __init__(self, ours, theirs, replica=None, counts=None):
        self.sides = self.ours, self.theirs = ours, theirs
        self.replica = replica
        self.counts = counts
        self.queued = [None] * CLIENTS
        self.began = time.monotonic()

    def slack(self):
        return (time.monotonic() - self.began) * 1000 + 1000

    def program(self, steps):
        self.at = 0
        try:
            self.steps(steps)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise Difference(min(self.at + PIPELINE, len(steps)) - 1, steps[self.at], f"no reply: {error}", "a reply") from error

    def steps(self, steps):
        for side in self.sides:
            if not side.server.alive():
                side.server.start()
            side.connect()
            side.ask(0, "FLUSHALL")
        self.event_prefixes("*")
        while self.at < len(steps):
            at, end = self.at, self.at + 1
            if isinstance(steps[at][0], int):
                while end < min(len(steps), at + PIPELINE) and steps[end][0] == steps[at][0]:
                    end += 1
                self.commands(at, steps[at:end])
            else:
                self.step = steps[at]
                getattr(self, f"event_{self.step[0]}")(*self.step[1:])
            self.at = end

    def commands(self, at, steps):
        """One client's, in a pipeline."""
        client = steps[0][0]
        for side in self.sides:
            side.send(client, [step[1:] for step in steps])
        replies = [side.read(client, len(steps)) for side in self.sides]
        for index, (step, ours, theirs) in enumerate(zip(steps, *replies), at):
            self.reply(index, step, ours, theirs)

    def reply(self, index, step, ours, theirs):
        command, queued, slack = step[1:], self.queued[step[0]], self.slack()
        if command[0] == b"EXEC" and isinstance(ours, list) and isinstance(theirs, list) and queued is not None:
            normals = [[normal(r, c, slack) for r, c in zip(replies, queued)] for replies in (ours, theirs)]
        else:
            normals = [normal(r, command, slack) for r in (ours, theirs)]
        if not equal(*normals):
            raise Difference(index, step, *normals)
        if command[0] == b"MULTI" and theirs == b"OK":
            self.queued[step[0]] = []
        elif command[0] in (b"EXEC", b"DISCARD"):
            self.queued[step[0]] = None
        elif theirs == b"QUEUED" and queued is not None:
            queued.append(command)
        if self.counts is not None:
            self.counts[command[0], isinstance(theirs, redis.RedisError)] += 1

    # --- steps that are no commands of a client ---

    def same(self, ours, theirs):
        if not equal(ours, theirs):
            raise Difference(self.at, self.step, ours, theirs)

    def event_prefixes(self, prefixes):
        """Nothing to a server that has no such setting."""
        if self.ours.ask(0, "CONFIG", "GET", "ckv.prefixes"):
            assert self.ours.ask(0, "CONFIG", "SET", "ckv.prefixes", prefixes) == b"OK"
            if self.at % 2:
                self.let_strings_move()

    def let_strings_move(self):
        """Until they have, or a transaction that is open keeps them from it; else the next commands come in the middle of it."""
        until = time.monotonic() + MOVING_SECONDS
        while time.monotonic() < until and any(b"working" in way for way in self.ours.ask(0, "CKV", "MOVING")[1::2]):
            time.sleep(0.01)

    def event_dump(self, db, key, to):
        """Each server takes what the other gives out."""
        payloads = [side.ask(db, "DUMP", key) for side in self.sides]
        self.same(*[normal(p, (b"DUMP",), 0) for p in payloads])
        if payloads[0] is not None:
            self.same(*[side.ask(db, "RESTORE", to, 0, p, "REPLACE") for side, p in zip(self.sides, payloads[::-1])])

    def event_scan(self, db, *options):
        self.same(*[side.iterate(db, options) for side in self.sides])

    def event_random(self, db):
        ours, theirs = (side.ask(db, "RANDOMKEY") for side in self.sides)
        self.same(*[normal(r, (b"RANDOMKEY",), 0) for r in (ours, theirs)])
        if ours is not None:
            self.same(1, self.theirs.ask(db, "EXISTS", ours))

    def event_expire(self, db, key, value):
        for side in self.sides:
            side.ask(db, "SET", key, value, "PX", 5)
        time.sleep(0.02)
        self.same(*[side.ask(db, "EXISTS", key) for side in self.sides])

    def event_compare(self):
        slack = self.slack()
        self.same(*differing(*[side.everything(slack) for side in self.sides]))
        self.same(*[[side.ask(db, "DBSIZE") for db in range(DATABASES)] for side in self.sides])

    def event_rewrite(self):
        for side in self.sides:
            side.ask(0, "BGREWRITEAOF")
            while side.admin().info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(0.01)

    def event_restart(self):
        for side in self.sides:
            side.server.restart(save=side.server.config.get("appendonly") != "yes")
            side.connect()
        self.queued = [None] * CLIENTS
        if self.replica:
            self.replica.connect()
            self.replica.ask(0, "REPLICAOF", "127.0.0.1", self.ours.server.port)
        self.event_compare()

    def event_replica(self):
        if not self.replica:
            return
        self.replica.connect()
        wait_for_replica(self.ours.admin())
        slack = self.slack()
        self.same(*differing(self.replica.everything(slack), self.theirs.everything(slack)))

    def event_load_aof(self):
        """A server without the module loads the file and has the same."""
        with Server(AOF, module=False, start=False) as server:
            shutil.copytree(os.path.join(self.ours.server.dir, "appendonlydir"), os.path.join(server.dir, "appendonlydir"))
            other = Side(server.start())
            other.connect()
            slack = self.slack()
            self.same(*differing(other.everything(slack), self.theirs.everything(slack)))

    def event_ours(self, *command):
        self.ours.ask(0, *command)


# --- making it short ---


def first_difference(run, steps):
    try:
        run().program(steps)
    except Difference as difference:
        return difference
    return None


def shrink(run, steps, difference):
    """The shortest program found that still shows a difference, and that. `run` makes a new Run."""
    runs = itertools.count()
    steps = steps[: difference.index + 1]
    size = len(steps) // 2
    while size and next(runs) < SHRINK_RUNS:
        at, removed = 0, False
        while at < len(steps) and next(runs) < SHRINK_RUNS:
            fewer = steps[:at] + steps[at + size :]
            found = first_difference(run, fewer) if fewer else None
            if found:
                steps, difference, removed = fewer[: found.index + 1], found, True
            else:
                at += size
        if not removed or size > 1:
            size //= 2
    return steps, difference


def check(run, steps):
    """Runs a program; when the servers differ, says how to see it with few commands."""
    difference = first_difference(run, steps)
    if difference:
        steps, difference = shrink(run, steps, difference)
        raise AssertionError("\n".join(["the servers differ after", *map(show, steps[:-1]), str(difference)]))
