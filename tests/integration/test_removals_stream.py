"""What replicas are told of records that go by themselves: each removal is a command of its own, as the server's own
are, in the words that the settings ask for."""

import itertools
import os
import socket
import time

import pytest

from helpers import EAGER, PATIENCE_S, wait_for

MB = 1 << 20


class Stream:
    """A replica that has been brought into step and reads on."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.settimeout(PATIENCE_S)
        self.socket.sendall(b"SYNC\r\n")
        self.file = self.socket.makefile("rb")
        header = b"\n"
        while header == b"\n":  # a sign of life while the file is written
            header = self.file.readline()
        self.file.read(int(header[1:]))

    def command(self):
        line = self.file.readline()
        while line == b"\n":
            line = self.file.readline()
        return [self.file.read(int(self.file.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]

    def until(self, r, last=b"the end"):
        """The commands until now, without those that only say where and whether."""
        r.execute_command("CSET", last, "v")
        commands = []
        while (command := self.command())[:2] != [b"CSET", last]:
            if command[0].upper() not in (b"SELECT", b"PING", b"REPLCONF"):
                commands.append(command)
        return commands

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.fixture
def primary(own_server, faults):
    """A function that starts a server; returns a client and the stream to its replica. Its clock is that of `faults`."""
    opened = []

    def start(**config):
        config = {k.replace("_", "-"): v for k, v in config.items()}
        # The link outlasts the steps of the clock.
        server = own_server({"repl-diskless-sync": "no", "repl-timeout": 24 * HOUR, **EAGER, **config}, env=faults.env)
        opened.extend((server.client(), Stream(server)))
        return opened[-2:]

    yield start
    for one in opened:
        one.close()


def fill(r, count, *options, db=0, key=b"KEY:%d", size=10):
    pipe = r.pipeline(transaction=False)
    pipe.execute_command("SELECT", db)
    for i in range(count):
        pipe.execute_command("CSET", key % i, os.urandom(size), *options)
    pipe.execute_command("SELECT", 0)
    pipe.execute()


def removed(commands, *words):
    """The keys of the commands behind the writes; all of them have to be one of `words`."""
    rest = [c for c in commands if c[0].upper() not in (b"CSET", b"SET")]
    assert rest and {c[0] for c in rest} <= set(words), {c[0] for c in rest}
    return sorted(key for c in rest for key in c[1:])


HOUR = 3600


def an_hour_passes(r, faults, *reads):
    """What is read shortly before goes at its very moment (keyspace/due.h), the rest when it is found."""
    faults.set(seconds=HOUR - 1)
    pipe = r.pipeline(transaction=False)
    for command in reads:
        pipe.execute_command(*command)
    pipe.execute()
    faults.set(seconds=2 * HOUR)


def is_empty(r):
    return r.execute_command("CDBSIZE") == 0


@pytest.mark.parametrize("records, read", ((5000, 1000), (50, 50)), ids=("some due", "all due at one moment"))
def test_expiry_is_no_transaction(primary, faults, records, read):
    r, stream = primary()
    fill(r, records, "EX", HOUR)
    an_hour_passes(r, faults, *[("CGET", f"KEY:{i}") for i in range(read)])
    wait_for(lambda: is_empty(r))
    assert removed(stream.until(r), b"CDEL") == sorted(b"KEY:%d" % i for i in range(records))


def test_each_database_hears_of_its_own(primary, faults):
    r, stream = primary()
    for db in range(3):
        fill(r, 500, "EX", HOUR, db=db)
    fill(r, 500, db=3)
    reads = [(("SELECT", db), *[("CGET", f"KEY:{i}") for i in range(300)]) for db in (2, 1, 0)]
    an_hour_passes(r, faults, *itertools.chain(*reads))
    wait_for(lambda: r.info("ckv")["ckv_records"] == 500)
    gone = removed(stream.until(r), b"CDEL", b"MULTI", b"EXEC")
    assert gone == sorted(b"KEY:%d" % i for i in [*range(500)] * 3)


@pytest.mark.parametrize("limit", ["ckv.maxmemory", "maxmemory"])
def test_eviction_is_no_transaction(primary, limit):
    r, stream = primary(maxmemory_policy="allkeys-random")
    fill(r, 20_000, size=300)
    r.execute_command("CKV", "OPTIMIZE")  # what is young would only be encoded, to make room
    memory = r.info("memory")
    server_used = memory["used_memory"] - memory["mem_not_counted_for_evict"]
    used = server_used if limit == "maxmemory" else r.info("ckv")["ckv_page_bytes"]
    r.config_set(limit, used - MB)
    wait_for(lambda: r.info("ckv")["ckv_evicted_records"] > 2000)
    fill(r, 5000, key=b"more:%d", size=300)
    r.config_set("maxmemory-policy", "noeviction")
    r.config_set(limit, 0)
    gone = removed(stream.until(r), b"CDEL")
    assert len(gone) == r.info("ckv")["ckv_evicted_records"]


def units(commands):
    """The commands of each transaction, and each of the others by itself."""
    inside = None
    for command in commands:
        if command[0] == b"MULTI":
            inside = []
        elif command[0] == b"EXEC":
            yield inside
            inside = None
        elif inside is None:
            yield [command]
        else:
            inside.append(command)


def test_expired_keys_of_both_kinds_are_two_commands(primary, faults):
    r, stream = primary()
    r.config_set("ckv.prefixes", "a:")
    for i in range(100):
        fill(r, 1, "EX", HOUR, key=b"a:%d%%d" % i)
        fill(r, 1, "EX", HOUR, key=b"b:%d%%d" % i)
    an_hour_passes(r, faults, *[(command, f"{kind}:{i}0") for i in range(100) for command, kind in (("GET", "a"), ("CGET", "b"))])
    wait_for(lambda: is_empty(r))
    commands = stream.until(r)
    gone = removed(commands, b"DEL", b"CDEL", b"MULTI", b"EXEC")
    assert gone == sorted(b"%s:%d0" % (kind, i) for kind in (b"a", b"b") for i in range(100))
    assert all(c[0] == (b"DEL" if key[:1] == b"a" else b"CDEL") for c in commands for key in c[1:] if c[0].endswith(b"DEL"))
    assert all(len({c[0] for c in unit}) == len(unit) for unit in units(commands))


@pytest.mark.parametrize(("lazy", "word"), [("yes", b"CUNLINK"), ("no", b"CDEL")])
def test_lazy_expiry(primary, lazy, word):
    r, stream = primary(lazyfree_lazy_eviction="no" if lazy == "yes" else "yes", lazyfree_lazy_expire=lazy)
    fill(r, 200, "PX", 300)
    wait_for(lambda: is_empty(r))
    # One that is met, as well.
    r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    r.execute_command("CSET", "met", "v", "PX", 20)
    time.sleep(0.1)
    assert r.execute_command("CGET", "met") is None
    assert b"met" in removed(stream.until(r), word)


@pytest.mark.parametrize(("lazy", "word"), [("yes", b"CUNLINK"), ("no", b"CDEL")])
def test_lazy_eviction(primary, lazy, word):
    r, stream = primary(maxmemory_policy="allkeys-random")
    r.config_set("lazyfree-lazy-eviction", lazy)
    fill(r, 5000)
    r.config_set("ckv.maxmemory", r.info("ckv")["ckv_page_bytes"] // 2)
    wait_for(lambda: r.info("ckv")["ckv_evicted_records"] > 1000)
    assert removed(stream.until(r), word)
