"""Keys of all kinds for the tests of the mover, and what is compared of them."""

import random
import time

from helpers import late_by, texts, wait_for

DATABASES = (0, 3)
# What two moves may take from a TTL: each stores what it may tell.
ROUNDINGS = 2


def contents(count, seed=1):
    """[commands] that make keys under `user:` and others, of all types, some with an expiry."""
    rng = random.Random(seed)
    values = texts(count, seed=seed)
    for i, value in enumerate(values):
        kind = rng.random()
        if kind < 0.6:
            yield ("SET", f"user:{i}", value)
        elif kind < 0.8:
            yield ("SET", f"user:{i}", value, "PX", rng.randrange(10**7, 10**9))
        elif kind < 0.9:
            yield ("SET", f"user:{i}:visits", rng.randrange(10**rng.randrange(1, 12)))
        elif kind < 0.93:
            yield ("SET", f"other:{i}", value)
        elif kind < 0.96:
            yield ("HSET", f"user:{i}:fields", "name", value)
        elif kind < 0.98:
            yield ("RPUSH", f"user:{i}:list", value, value)
        else:
            yield ("SET", f"user:{i}:photo", rng.randbytes(3000))
    yield ("SET", "user:long", b" ".join(values[:1000])[:60_000])
    yield ("SET", "user:longer", b" ".join(values * 4)[:300_000])
    yield ("SET", "user:empty", "")
    yield ("SET", "user:zeros", bytes(5000))


def fill(r, count, seed=1):
    for db in DATABASES:
        r.execute_command("SELECT", db)
        ask(r, list(contents(count // (db + 1), seed + db)))
    r.execute_command("SELECT", 0)


READ = {b"string": ("GET",), b"hash": ("HGETALL",), b"list": ("LRANGE", 0, -1)}


def state(r, but=None):
    """{(db, key): (type, value, expiry time)} of the server, as any client sees it; but for keys that others change."""
    found = {}
    for db in DATABASES:
        r.execute_command("SELECT", db)
        keys = sorted(key for key in r.execute_command("KEYS", "*") if not but or not key.startswith(but))
        assert but or len(keys) == r.execute_command("DBSIZE")
        types = ask(r, [("TYPE", k) for k in keys])
        values = ask(r, [(READ[t][0], k, *READ[t][1:]) for k, t in zip(keys, types)])
        times = ask(r, [("PEXPIRETIME", k) for k in keys])
        found.update({(db, k): (t, v, at) for k, t, v, at in zip(keys, types, values, times)})
    r.execute_command("SELECT", 0)
    return found


def ask(r, commands, batch=2000):
    """In pipelines, on the connection whose database is selected: redis-py's have one of their own."""
    replies = []
    for start in range(0, len(commands), batch):
        part = commands[start : start + batch]
        r.connection.send_packed_command(r.connection.pack_commands(part))
        replies += [r.connection.read_response(disable_decoding=True) for _ in part]
    return replies


def assert_same(before, after):
    """Key by key; times as documented: never later than they were."""
    now = time.time() * 1000
    assert before.keys() == after.keys(), sorted(before.keys() ^ after.keys())[:5]
    for key, (kind, value, at) in before.items():
        assert after[key][:2] == (kind, value), key
        assert (after[key][2] == -1) == (at == -1), key
        if at != -1:
            assert 0 <= at - after[key][2] <= ROUNDINGS * late_by(int(at - now) + 60_000), key


def moving(r, way):
    """CKV MOVING, of one way."""
    ways = r.execute_command("CKV", "MOVING")
    flat = ways[ways.index(way) + 1]
    return {k.decode(): v.decode() if isinstance(v, bytes) else v for k, v in zip(flat[::2], flat[1::2])}


def wait_moved(r, way):
    """Until a walk has ended, and no other is to begin."""
    wait_for(lambda: moving(r, way)["state"] == "done", f"{way}: {moving(r, way)}")
    return moving(r, way)


def move_in(r, prefixes="user:"):
    r.execute_command("CONFIG", "SET", "ckv.prefixes", prefixes)
    return wait_moved(r, b"in")


def move_out(r):
    r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
    return wait_moved(r, b"out")
