"""DUMP and RESTORE of a map that is large: it goes as it is stored, with the dictionaries that its pages name."""

import os
import random
import time

import pytest

from damage import exercise, flipped, seal
from helpers import assert_stored, expiries, forget_exact_times, info, is_in_sync, load, noise, reply, texts, wait_for, wait_for_replica

SEED = int(os.environ.get("CKV_SEED", "1"))
KIND = slice(10, 12)  # behind the type and its name: a number, of one byte
RECORDS, WHOLE = b"\x02\x02", b"\x02\x03"
CONFIG = {"ckv.maps": 1, "ckv.train-after": "1gb"}


def fill(r, seed=1):
    """More than 4 MB of which little is left; returns what is stored."""
    stored = load(r, [text * 40 for text in texts(1500, seed)], key=b"long:%d")
    stored |= load(r, texts(1000, seed), ttl=100_000)
    r.execute_command("CKV", "TRAIN")
    r.execute_command("CKV", "OPTIMIZE")
    # What is young, large, nothing, and written with a dictionary only lately.
    odd = {b"young": noise(5000), b"large": noise(30_000), b"larger": b"abc" * 500_000, b"": b"", b"k" * 3000: b"v"}
    for key, value in odd.items():
        r.execute_command("CSET", key, value)
    return stored | odd | load(r, texts(100, seed + 1), key=b"later:%d")


@pytest.fixture
def servers(own_server):
    return own_server(CONFIG), own_server(CONFIG)


def sums(r):
    return {name: info(r)[name] for name in ("records", "raw_key_bytes", "raw_value_bytes", "records_with_expiry")}


def test_small_maps_go_as_records(servers):
    """Older modules read them."""
    with servers[0].client() as r:
        load(r, texts(1000))
        assert r.execute_command("DUMP", "ckv:0")[KIND] == RECORDS


def test_it_comes_with_what_was_learned(servers):
    """Who has learned nothing yet goes on with that."""
    one, two = servers
    with one.client() as a, two.client() as b:
        stored = fill(a)
        payload = a.execute_command("DUMP", "ckv:0")
        assert payload[KIND] == WHOLE
        assert b.execute_command("RESTORE", "ckv:0", 0, payload) == b"OK"
        assert_stored(b, stored)
        assert sums(b) == sums(a) and info(b)["dictionaries"] == 1
        forget_exact_times(a)
        times = expiries(a, stored)
        assert expiries(b, stored) == times
        stored |= load(b, texts(1000, seed=3), key=b"written here:%d")
        assert b.execute_command("CKV", "OPTIMIZE") == b"OK"
        assert info(b)["dictionaries"] == 1
        # And back: it is the same dictionary.
        payload = b.execute_command("DUMP", "ckv:0")
        assert a.execute_command("RESTORE", "ckv:0", 0, payload, "REPLACE") == b"OK"
        assert_stored(a, stored)
        assert info(a)["dictionaries"] == 1


def test_who_has_learned_otherwise_writes_it_anew(servers):
    one, two = servers
    with one.client() as a, two.client() as b:
        stored = fill(a)
        load(b, [noise(80, seed).hex().encode() for seed in range(3000)])
        b.execute_command("CKV", "TRAIN")
        b.execute_command("FLUSHALL")
        load(b, [b"kept"], key=b"kept:%d")
        payload = a.execute_command("DUMP", "ckv:0")
        # One that is refused leaves nothing behind, nor does one that is deleted.
        assert reply(b, "RESTORE", "ckv:0", 0, payload).args[0].startswith("BUSYKEY")
        b.execute_command("RESTORE", "elsewhere", 0, payload)
        assert b.execute_command("CDBSIZE") == 1
        b.execute_command("DEL", "elsewhere")
        assert b.execute_command("RESTORE", "ckv:0", 0, payload, "REPLACE") == b"OK"
        assert_stored(b, stored)
        b.execute_command("CKV", "OPTIMIZE")
        assert info(b)["dictionaries"] == 1
        assert_stored(b, stored)
    two.restart()
    with two.client() as b:
        assert_stored(b, stored)


def test_what_was_stored_as_it_is_goes_on_with_what_came(own_server):
    """A node that is filled with slots: too little is its own to learn from."""
    one, two = own_server(CONFIG), own_server({**CONFIG, "ckv.maps": 2})
    with one.client() as a, two.client() as b:
        fill(a)
        own = load(b, texts(3000, seed=5), key=b"own:%d")
        before = info(b)["page_bytes"]
        b.execute_command("RESTORE", "elsewhere", 0, a.execute_command("DUMP", "ckv:0"))
        wait_for(lambda: info(b)["dictionaries"] == 1 and info(b)["page_bytes"] < before / 2, what="compression")
        assert_stored(b, own)


def test_under_a_prefix_it_is_found(own_server):
    """Its keys are of shapes that the server has not had yet. A replica and a restart know them, too."""
    one, two = own_server(CONFIG), own_server({**CONFIG, "ckv.prefixes": "*"})
    replica = own_server({**CONFIG, "ckv.prefixes": "*", "replicaof": f"127.0.0.1 {two.port}"})
    with one.client() as a, two.client() as b, replica.client() as q:
        stored = fill(a)
        wait_for(lambda: is_in_sync(q))
        b.execute_command("RESTORE", "ckv:0", 0, a.execute_command("DUMP", "ckv:0"))
        names = [name for name in stored if len(name) < 100]
        wanted = [stored[name] for name in names]
        assert b.mget(names) == wanted and b.exists(*names) == len(names)
        wait_for_replica(b)
        assert q.mget(names) == wanted
    two.restart()
    with two.client() as b:
        assert b.mget(names) == wanted and b.delete(*names) == len(names)


def test_a_refused_payload_leaves_nothing(servers):
    one, two = servers
    with one.client() as a, two.client() as b:
        fill(a)
        body = bytearray(a.execute_command("DUMP", "ckv:0")[:-8])
        assert body[-3] == 0  # the end of a module's value, which the server looks at behind us
        body[-3] = 2
        load(b, texts(500))
        assert "Bad data format" in str(reply(b, "RESTORE", "elsewhere", 0, seal(body)))
        time.sleep(0.5)
        assert info(b)["dictionaries"] == 0 and info(b)["trainings"] == 0


def test_replicas_and_an_aof_have_it(own_server):
    one = own_server(CONFIG)
    two = own_server({**CONFIG, "appendonly": "yes", "aof-use-rdb-preamble": "no"})
    replica = own_server({**CONFIG, "replicaof": f"127.0.0.1 {two.port}"})
    with one.client() as a, two.client() as b:
        stored = fill(a)
        b.execute_command("RESTORE", "ckv:0", 0, a.execute_command("DUMP", "ckv:0"))
        assert b.execute_command("WAIT", 1, 60_000) == 1
    with replica.client() as r:
        assert_stored(r, stored)
    two.restart(save=False)
    with two.client() as b:
        assert_stored(b, stored)


def test_damage(servers):
    """An error, or a map that survives whatever is done to it."""
    one, two = servers
    with one.client() as a, two.client() as b:
        stored = fill(a)
        body = a.execute_command("DUMP", "ckv:0")[:-8]
        rng = random.Random(SEED)
        taken = 0
        for round in range(40):
            end = len(body) if round % 2 else 1000  # most bits are of values; where the dictionaries begin they count
            answer = reply(b, "RESTORE", "ckv:0", 0, seal(flipped(rng, body, end=end)), "REPLACE")
            assert answer == b"OK" or "Bad data format" in str(answer), answer
            if answer == b"OK":
                taken += 1
                exercise(b, stored, round)
        assert 0 < taken < 40
        for end in sorted(rng.randrange(12, len(body)) for _ in range(20)):
            assert "Bad data format" in str(reply(b, "RESTORE", "ckv:0", 0, seal(body[:end] + body[-2:])))
        assert b.execute_command("RESTORE", "ckv:0", 0, seal(body)) == b"OK"
        assert_stored(b, stored)
