"""kill -9 while strings move, under load, with appendfsync always: what was acknowledged is there once, and nothing else."""

import os
import random
import threading
import time

import pytest
import redis

from helpers import info, is_in_sync, texts, wait_for
from mover_data import assert_same, ask, state, wait_moved

ROUNDS = int(os.environ.get("CKV_MOVER_ROUNDS", 50))
ALWAYS = {"appendonly": "yes", "appendfsync": "always"}
KEYS = 4000
VALUES = texts(500, seed=3)


class Writer(threading.Thread):
    """Writes keys of its own one by one and remembers what was acknowledged, and what was under way."""

    def __init__(self, server, number, held):
        super().__init__()
        self.server, self.rng, self.held, self.under_way = server, random.Random(number), held, None
        self.keys = [key for key in held if key.endswith(b":%d" % (number % 4))]

    def run(self):
        try:
            with self.server.client() as r:
                while True:
                    key = self.rng.choice(self.keys)
                    command, value = self.change(key)
                    self.under_way = key, value
                    r.execute_command(*command)
                    self.held[key], self.under_way = value, None
        except (redis.ConnectionError, redis.TimeoutError):
            pass

    def change(self, key):
        """Of all ways that a command goes: served, the server's own, not served."""
        old, value = self.held[key], self.rng.choice(VALUES)
        kind = self.rng.randrange(6)
        if kind == 0:
            return ("DEL", key), None
        if kind == 1:
            return ("APPEND", key, "!"), (old or b"") + b"!"
        if kind == 2 and old:
            return ("SETBIT", key, 7, old[0] & 1 ^ 1), bytes([old[0] ^ 1]) + old[1:]
        return ("SET", key, value), value


def one_round(server, held, seed, prefixes):
    """Strings move one way or the other; it is killed some time, and started again."""
    rng = random.Random(seed)
    writers = [Writer(server, seed * 4 + n, held) for n in range(4)]
    with server.client() as r:
        for writer in writers:
            writer.start()
        r.execute_command("CONFIG", "SET", "ckv.prefixes", prefixes)
        if rng.random() < 0.4:
            r.execute_command("BGREWRITEAOF")
        time.sleep(rng.random() * 0.6)
    server.kill()
    for writer in writers:
        writer.join()
    server.config["ckv.prefixes"] = f'"{prefixes}"'
    server.start()
    for writer in writers:
        if writer.under_way:
            key, value = writer.under_way
            with server.client() as r:
                got = r.execute_command("GET", key)
            assert got in (held[key], value), key
            held[key] = got


def check(server, held):
    with server.client() as r:
        there = {key: value for key, value in held.items() if value is not None}
        assert dict(zip(held, ask(r, [("GET", key) for key in held]))) == held
        assert r.execute_command("DBSIZE") == len(there)
        assert sorted(r.execute_command("KEYS", "*")) == sorted(there)


def rounds(own_server, count, preamble):
    server = own_server({**ALWAYS, "aof-use-rdb-preamble": preamble, "ckv.move-cpu": 30})
    held = {b"user:%d:%d" % (i, i % 4): value for i, value in enumerate(texts(KEYS, seed=8))}
    with server.client() as r:
        ask(r, [("SET", *pair) for pair in held.items()])
    for seed in range(count):
        one_round(server, held, seed, "user:" if seed % 2 == 0 else "")
        check(server, held)
    with server.client() as r:  # which moves strings, if it is given the time
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        wait_for(lambda: info(r)["moved_in"] > 0)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_few_crashes(own_server, preamble):
    rounds(own_server, 4, preamble)


@pytest.mark.slow
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_many_crashes(own_server, preamble):
    rounds(own_server, ROUNDS, preamble)


def test_a_replica_is_promoted_under_load(own_server):
    """Of a move that both are in the middle of; the primary hands over (FAILOVER), and then it all moves back."""
    config = {"ckv.prefixes": '"user:"', "ckv.move-cpu": 5}
    primary = own_server(config)
    held = {b"user:%d:%d" % (i, i % 4): value for i, value in enumerate(texts(20_000, seed=8))}
    with primary.client() as r:
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
        ask(r, [("SET", *pair) for pair in held.items()])
        replica = own_server({**config, "replicaof": f"127.0.0.1 {primary.port}"})
        wait_for(lambda: r.execute_command("INFO", "replication")["connected_slaves"] == 1, what="the replica")
        with replica.client() as second:
            wait_for(lambda: is_in_sync(second), what="the link")
            writers = [Writer(primary, n, held) for n in range(4)]
            for writer in writers:
                writer.start()
            r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
            wait_for(lambda: info(r)["records"] > 1000 and info(second)["records"] > 1000, "records in both")
            r.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            for writer in writers:
                writer.join()
            r.execute_command("FAILOVER")
            wait_for(lambda: second.execute_command("INFO", "replication")["role"] == "master", what="the failover")
            before = state(second)
            for key in [w.under_way[0] for w in writers if w.under_way]:
                held[key] = before.get((0, key), (None, None))[1]
            assert {key: what[1] for (_, key), what in before.items()} == {k: v for k, v in held.items() if v is not None}
            for server in second, r:
                server.execute_command("CONFIG", "SET", "ckv.move-cpu", 100)
                server.execute_command("CONFIG", "SET", "ckv.prefixes", "")
                wait_moved(server, b"out")
                assert info(server)["records"] == 0
                assert_same(before, state(server))
