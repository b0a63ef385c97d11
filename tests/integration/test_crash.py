"""kill -9 under load with appendfsync always: what was acknowledged is there, whole, and the server starts."""

import random
import threading
import time

import pytest
import redis

from helpers import LATE_MS, is_in_sync, late_by, now_ms, texts, wait_for
from traffic import Traffic, assert_same_records, records

VALUES = texts(500, seed=5)
LONGEST_TTL_MS = 1_000_000


class Writer(threading.Thread):
    """Writes records of its own one by one and remembers what was acknowledged, and what was under way."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.rng = server, number, random.Random(number)
        self.acknowledged, self.under_way = {}, None

    def run(self):
        try:
            with self.server.client() as r:
                while True:
                    key = f"w{self.number}:{self.rng.randrange(2000)}"
                    value = None if self.rng.random() < 0.2 else self.rng.choice(VALUES)
                    self.under_way = key, value
                    if value is None:
                        r.execute_command("CDEL", key)
                    else:
                        r.execute_command("CSET", key, value, "EX", 10_000)
                    self.acknowledged[key] = value
        except (redis.ConnectionError, redis.TimeoutError):
            pass


def one_round(server, seed):
    rng = random.Random(seed)
    writers = [Writer(server, seed * 100 + i) for i in range(8)]
    for w in writers:
        w.start()
    with server.client() as r:
        if rng.random() < 0.5:
            r.execute_command("BGREWRITEAOF")
    wait_for(lambda: all(w.acknowledged for w in writers), what="an answer to each")
    time.sleep(rng.uniform(0.05, 0.6))
    server.kill()
    for w in writers:
        w.join()
    server.start()
    with server.client() as r:
        for w in writers:
            assert w.acknowledged
            for key, value in w.acknowledged.items():
                possible = {value} | ({w.under_way[1]} if w.under_way[0] == key else set())
                assert r.execute_command("CGET", key) in possible
        assert all(value in VALUES for value, _ in records(r).values())


def crash_rounds(own_server, rounds, preamble):
    server = own_server({"appendonly": "yes", "appendfsync": "always", "aof-use-rdb-preamble": preamble})
    for i in range(rounds):
        one_round(server, i + 1)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_no_acknowledged_write_is_lost(own_server, preamble):
    crash_rounds(own_server, 2, preamble)


@pytest.mark.slow
def test_fifty_rounds(own_server):
    crash_rounds(own_server, 50, "yes")


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_rewrite_under_load(own_server, preamble):
    server = own_server({"appendonly": "yes", "appendfsync": "no", "aof-use-rdb-preamble": preamble})
    with Traffic(server):
        with server.client() as r:
            for _ in range(2):
                time.sleep(0.5)
                r.execute_command("BGREWRITEAOF")
                wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0)
            assert r.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    with server.client() as r:
        r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        before = records(r)
    server.stop()
    server.start()
    with server.client() as r:
        after = records(r)
        gone = before.keys() - after.keys()
        early = {k: before[k] for k in gone if not -1 < before[k][1] <= now_ms() + LATE_MS}
        assert not early, (len(early), len(gone), now_ms(), list(early.items())[:5])
        assert after.keys() <= before.keys()
        for key, (value, at) in after.items():
            assert value == before[key][0]
            # The AOF has the time that was asked for; seen from later it is stored more exactly.
            assert abs(at - before[key][1]) <= late_by(LONGEST_TTL_MS), key
    other = own_server({"replicaof": f"127.0.0.1 {server.port}"})
    with server.client() as r, other.client() as q:
        wait_for(lambda: is_in_sync(q))
        r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        assert_same_records(r, q)
