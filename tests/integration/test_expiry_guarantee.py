"""The two bytes of an expiry: never early, never later than 0.1% and 2 ms, whatever becomes of the page."""

import random

import pytest

from helpers import info, is_in_sync, late_by, now_ms, texts, wait_for, wait_for_replica

COUNT = 100_000
YEAR_MS = 365 * 86400 * 1000


def random_ttl(rng):
    """5 ms to 100 years, as many of each order of magnitude."""
    return int(5 * (100 * YEAR_MS / 5) ** rng.random())


@pytest.fixture
def written(own_server):
    """A server with COUNT records, and for each the earliest and the latest time that it was asked to expire at, and its error, ms."""
    server = own_server({"enable-debug-command": "yes"})
    rng, values, bounds = random.Random(7), texts(1000), {}
    with server.client() as r:
        for start in range(0, COUNT, 1000):
            pipe = r.pipeline(transaction=False)
            ttls = [random_ttl(rng) for _ in range(1000)]
            for i, ttl in enumerate(ttls, start):
                pipe.execute_command("CSET", f"KEY:{i}", values[i % 1000], "PX", ttl)
            before = now_ms()
            pipe.execute()
            after = now_ms()
            for i, ttl in enumerate(ttls, start):
                bounds[f"KEY:{i}"] = (before + ttl, after + ttl, late_by(ttl))
    return server, bounds


def check(r, bounds):
    """Every record is there with a time within its bounds, or gone and not before its time."""
    names = list(bounds)
    for start in range(0, len(names), 1000):
        part = names[start : start + 1000]
        pipe = r.pipeline(transaction=False)
        for name in part:
            pipe.execute_command("CPEXPIRETIME", name)
        times, now = pipe.execute(), now_ms()
        for name, at in zip(part, times):
            earliest, latest, error = bounds[name]
            if at == -2:
                assert earliest <= now, f"{name} expired {earliest - now} ms early"
            else:
                assert earliest - error <= at <= latest, f"{name}: {at} is not in {earliest}-{error}..{latest}"


def rewrite(r, count):
    """Writes and deletes records between the others, so that pages are split and rewritten."""
    for start in range(0, count, 1000):
        pipe = r.pipeline(transaction=False)
        for i in range(start, start + 1000):
            pipe.execute_command("CSET", f"other:{i}", "x" * (i % 90), "PX", 1 + i % 5000)
            pipe.execute_command("CSETRANGE", f"KEY:{i % COUNT}", 0, "Y")
            if i % 3 == 0:
                pipe.execute_command("CDEL", f"other:{i - 500}")
        pipe.execute()


@pytest.mark.slow
def test_expiry_times_survive_everything(written, own_server):
    server, bounds = written
    with server.client() as r:
        check(r, bounds)
        replica = own_server({"replicaof": f"127.0.0.1 {server.port}"})
        with replica.client() as follower:
            wait_for(lambda: is_in_sync(follower))
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")
            assert info(r)["pages_to_reencode"] == 0
            check(r, bounds)
            # CSETRANGE makes a record anew whose time had come.
            alive = {k: b for k, b in bounds.items() if b[0] > now_ms() + 60_000}
            rewrite(r, 50_000)
            check(r, alive)
            wait_for_replica(r)
            check(follower, alive)
        r.execute_command("DEBUG", "RELOAD")
        check(r, alive)
    server.restart()
    with server.client() as r:
        check(r, alive)


def test_short_ttls_to_the_millisecond(r):
    """Polled until they are gone: served to the last moment, and never after."""
    rng = random.Random(3)
    for ttl in [rng.randrange(5, 200) for _ in range(100)]:
        before = now_ms()
        r.execute_command("CSET", "k", "v", "PX", ttl)
        after = now_ms()
        while True:
            asked = now_ms()
            value = r.execute_command("CGET", "k")
            answered = now_ms()
            if value is None:
                assert answered >= before + ttl
                break
            assert asked <= after + ttl + late_by(ttl)
