"""Writes of every kind from a thread of their own, and the comparison of all records of two servers."""

import random
import threading

import redis

from helpers import late_by, now_ms, texts, wait_for

VALUES = texts(2000, seed=11)


def some_writes(rng, keys):
    """One pipeline of writes: what clients do, on `keys` different keys."""
    commands = []
    for _ in range(50):
        key, value = f"KEY:{rng.randrange(keys)}", rng.choice(VALUES)
        commands.append(
            rng.choice(
                [
                    ("CSET", key, value),
                    ("CSET", key, value, "EX", 1000),
                    ("CSET", key, value, "PX", rng.randrange(1, 3000)),
                    ("CSET", key, value, "KEEPTTL"),
                    ("CSET", key, value, "XX", "GET"),
                    ("CSETNX", key, value),
                    ("CMSET", key, value, key + "x", value),
                    ("CMSETEX", 2, key, value, key + "y", value, "EX", 500),
                    ("CAPPEND", f"log:{rng.randrange(50)}", "more"),
                    ("CSETRANGE", key, 3, "xyz"),
                    ("CINCRBY", f"count:{rng.randrange(50)}", 7),
                    ("CINCRBYFLOAT", f"sum:{rng.randrange(50)}", "0.1"),
                    ("CGETDEL", key),
                    ("CGETEX", key, "EX", 700),
                    ("CEXPIRE", key, rng.randrange(1, 100)),
                    ("CPERSIST", key),
                    ("CDEL", key, key + "x"),
                    ("CDELEX", key, "IFEQ", value),
                    ("CGET", key),
                ]
            )
        )
    return commands


class Traffic:
    """Writes until it is stopped; goes on when the connection is lost."""

    def __init__(self, server, keys=5000, seed=1):
        self.server, self.keys, self.rng = server, keys, random.Random(seed)
        self.count = 0
        self.failed = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.is_set():
            try:
                with self.server.client() as r:
                    while not self._stop.is_set():
                        pipe = r.pipeline(transaction=self.rng.random() < 0.1)
                        for command in some_writes(self.rng, self.keys):
                            pipe.execute_command(*command)
                        self.count += len(pipe.execute(raise_on_error=False))
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError):
                self._stop.wait(0.05)
            except Exception as error:  # is told where the test can see it
                self.failed = error
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        assert self.failed is None, self.failed


def records(r, batch=2000):
    """{key: (value, expiry time)} of the selected database, from what CSCAN lists."""
    found, cursor = {}, "0"
    while True:
        cursor, keys = r.execute_command("CSCAN", cursor, "COUNT", batch)
        if keys:
            pipe = r.pipeline(transaction=False)
            pipe.execute_command("CMGET", *keys)
            for key in keys:
                pipe.execute_command("CPEXPIRETIME", key)
            values, *times = pipe.execute()
            found.update({k: (v, t) for k, v, t in zip(keys, values, times) if v is not None and t != -2})
        if cursor == b"0":
            return found


def is_expiring(key, at, a, b):
    """Whether it has just expired on one of the two, by the time that the other one tells."""
    if at == -1 or at - now_ms() > late_by(60_000):
        return False
    wait_for(lambda: {r.execute_command("CGET", key) for r in (a, b)} == {None}, what=f"that {key} expires")
    return True


def is_same_record(key, a, b):
    """Its times may differ by what is lost in storing them."""
    (value, at), (other, time) = ((r.execute_command("CGET", key), r.execute_command("CPEXPIRETIME", key)) for r in (a, b))
    if value != other and None in (value, other):
        return is_expiring(key, at if other is None else time, a, b)
    close = at == time or min(at, time) > 0 and abs(at - time) <= late_by(max(at, time) - now_ms() + 60_000)
    return value == other and (value is None or close or -2 in (at, time))


def assert_same_records(a, b):
    """Both servers' clients see the same records, but for one that expires in between."""
    first, second = records(a), records(b)
    wrong = {k for k in first.keys() | second.keys() if first.get(k) != second.get(k)}
    wrong = {k for k in wrong if not is_same_record(k, a, b)}
    assert not wrong, [(k, first.get(k), second.get(k)) for k in sorted(wrong)[:5]]
    assert first
