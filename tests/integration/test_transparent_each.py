"""Every command on a key of every kind, beside a plain server: what it replies, counts and announces."""

import time

import pytest

from helpers import EAGER, PATIENCE_S, comparable, reply

KINDS = {
    "missing": [("SET", "k", "1"), ("DEL", "k")],
    "text": [("SET", "k", "hello")],
    "number": [("SET", "k", "123")],
    "list": [("RPUSH", "k", "a")],
    "expiring": [("SET", "k", "7", "EX", "100")],
    "expired": [("SET", "k", "7", "PX", "5")],
    "expired list": [("RPUSH", "k", "a"), ("PEXPIRE", "k", "5")],
}
EXPIRED_S = 0.015  # when what expires after 5 ms has expired, late as a record may be

COMMANDS = [
    line.split()
    for line in """
    TYPE k|TTL k|PERSIST k|EXPIRE k 10|EXPIRE k 10 NX XX|EXPIRE k x|EXPIRE k 10 foo|EXPIRE k -1|EXPIRE k 9223372036854775807
    EXISTS k|EXISTS k k seen|TOUCH k|DEL k|UNLINK k|MOVE k 1|MOVE k 0|COPY k z|COPY k z DB 99|RENAME k z|RESTORE k 0 xx
    GET k|GETDEL k|GETEX k|GETEX k EX 10|GETEX k foo|GETRANGE k 0 1|GETRANGE k x y|SUBSTR k 0 1|SUBSTR k 0|STRLEN k|MGET k seen k
    GETSET k v|SET k v|SET k v GET|SET k v XX GET|SET k v NX GET|SET k v XX|SET k v NX XX|SET k v KEEPTTL EX 10|SET k v EX 0|SET k v EX x
    SET k v foo|SET k v PXAT 1|SET k v EX 9223372036854775807|SETEX k 0 v|SETEX k x v|PSETEX k -1 v|SETNX k v
    SETRANGE k 0 x|SETRANGE k -1 x|APPEND k x|INCR k|INCRBY k x|INCRBY k 9223372036854775807|DECRBY k -9223372036854775808
    INCRBYFLOAT k 1|INCRBYFLOAT k x|MSET k v seen v|MSET k|MSETNX k v other v|GETBIT k 1|BITCOUNT k|LCS k seen|SORT k
    OBJECT ENCODING k|OBJECT ENCODING k x|OBJECT FREQ k|OBJECT USAGE k|OBJECT foo k|MEMORY ENCODING k|MEMORY FREQ k|MEMORY foo k
    SCAN x|SCAN 0 COUNT 0|SCAN 0 MATCH|KEYS|TYPE|DBSIZE x|TOUCH|MGET|GET
    """.strip()
    .replace("\n", "|")
    .split("|")
]

# Of servers that have them.
NEWER = [
    line.split()
    for line in """
    MSETEX 1 k v EX 10|MSETEX 1 k v XX|MSETEX 1 k v EX|MSETEX x k v|MSETEX 2 k v|MSETEX 2 k v seen v PX 10000
    DELEX k|DELEX k IFEQ hello|DELEX k IFEQ|DIGEST k|SET k v IFEQ hello|SET k v IFEQ hello GET|SET k v IFNE hello|SET k v IFNE
    """.strip()
    .replace("\n", "|")
    .split("|")
]


def known(r, commands):
    names = sorted({command[0] for command in commands})
    there = {name for name, entry in zip(names, r.execute_command("COMMAND", "INFO", *names)) if entry}
    return [command for command in commands if command[0] in there]


class Listener:
    """Every event between two marks."""

    def __init__(self, r):
        self.r = r
        classes = "KEAmnoc" if r.info("server")["redis_version"] >= "8.2" else "KEAmn"
        if "valkey_version" in r.info("server"):
            classes = "KEAmn"
        r.config_set("notify-keyspace-events", classes)
        self.pubsub = r.pubsub()
        self.pubsub.psubscribe("__keyevent@*", "mark")
        self.pubsub.get_message(timeout=PATIENCE_S)
        self.pubsub.get_message(timeout=PATIENCE_S)

    def take(self):
        self.r.publish("mark", "")
        events = []
        while (message := self.pubsub.get_message(timeout=PATIENCE_S))["channel"] != b"mark":
            events.append((message["channel"], message["data"]))
        return events


def observe(r, listener, kind, command):
    r.flushall()
    for step in [("SET", "seen", "1"), *KINDS[kind]]:
        r.execute_command(*step)
    if kind.startswith("expired"):
        time.sleep(EXPIRED_S)
    listener.take()
    before = r.info("stats")
    replied = comparable(reply(r, *command), command[0])
    after = r.info("stats")
    counted = [after[name] - before[name] for name in ("keyspace_hits", "keyspace_misses", "expired_keys")]
    return replied, counted, listener.take()


@pytest.mark.parametrize("kind", KINDS)
def test_as_a_plain_server(own_server, kind):
    ours, plain = own_server({"ckv.prefixes": "*", **EAGER}), own_server(EAGER, module=False)
    with ours.client() as a, plain.client() as b:
        heard, expected = Listener(a), Listener(b)
        for r in (a, b):
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        for command in known(b, COMMANDS + NEWER):
            assert observe(a, heard, kind, command) == observe(b, expected, kind, command), (kind, command)
