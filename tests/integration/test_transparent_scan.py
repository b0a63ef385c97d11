"""SCAN in the transparent mode: keys of the server's own and records, while others change them."""

import random
import time

import pytest

from helpers import is_in_sync, reply, wait_for


SOON_MS = 200  # longer than the machine stands still within a command, which would find that it has passed


@pytest.fixture
def server(own_server):
    return own_server({"ckv.prefixes": "*"})


def fill(r, strings=400, lists=400):
    with r.pipeline(transaction=False) as pipe:
        for i in range(strings):
            pipe.set(f"string:{i}", "value")
        for i in range(lists):
            pipe.lpush(f"list:{i}", "value")
        pipe.execute()
    return {*(f"string:{i}".encode() for i in range(strings)), *(f"list:{i}".encode() for i in range(lists))}


def scan(r, between=None, count=10, pattern="*"):
    """What a whole SCAN tells, and how many calls that took; between() runs between two of them."""
    found, cursor, calls = [], b"0", 0
    while calls == 0 or cursor != b"0":
        cursor, keys = r.execute_command("SCAN", cursor, "COUNT", count, "MATCH", pattern)
        found += keys
        calls += 1
        assert int(cursor) < 2**31  # what some clients hold, of so few keys
        if between:
            between(calls)
    return found, calls


@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.parametrize("strings", [10, 3000])
def test_no_page_is_empty(server, strings, count):
    """Pages of maps alone came first, which clients took for the end and tests of theirs for a fault."""
    with server.client() as r:
        fill(r, strings, 0)
        cursor, empty = None, 0
        while cursor != b"0":
            cursor, keys = r.execute_command("SCAN", cursor or b"0", "COUNT", count)
            empty += not keys and cursor != b"0"
        assert empty == 0


def test_each_key_once_while_nothing_changes(server):
    with server.client() as r:
        keys = fill(r)
        found, _ = scan(r)
        assert len(found) == len(keys) and set(found) == keys
        assert sorted(scan(r, count=10**6)[0]) == sorted(keys)
        assert scan(r, count=10**6)[1] == 1


@pytest.mark.parametrize("at_once", [1, 4, 7])
def test_strings_that_move_out_meanwhile_are_not_missed(server, at_once):
    with server.client() as r, server.client() as other:
        keys = fill(r)
        names = [f"string:{i}" for i in range(400)]
        random.Random(at_once).shuffle(names)

        def move_some_out(_):
            for _ in range(min(at_once, len(names))):
                other.setbit(names.pop(), 0, 0)

        assert set(scan(r, move_some_out)[0]) == keys


def test_all_strings_move_out_in_the_middle(server):
    for at in (1, 20, 40, 50, 60):
        with server.client() as r, server.client() as other:
            r.flushall()
            keys = fill(r)

            def move_all_out(calls, at=at, other=other):
                for i in range(400) if calls == at else ():
                    other.setbit(f"string:{i}", 0, 0)

            assert set(scan(r, move_all_out)[0]) == keys


def test_what_is_only_lent_makes_no_second_round(server):
    with server.client() as r, server.client() as other:
        keys = fill(r)
        _, calls = scan(r)
        found, again = scan(r, lambda n: [other.dump(f"string:{n}"), other.memory_usage(f"string:{n}")])
        assert sorted(found) == sorted(keys) and again == calls
        assert other.info("ckv")["ckv_moved_out"] == 0


def test_cursors_of_nobodys(server, own_server):
    plain = own_server(module=False)
    with server.client() as r, plain.client() as other:
        fill(r)
        for number in (17, 2**48 + 5, 2**49, 2**50, 2**53 - 1, 2**60, 2**64 - 1):
            assert isinstance(r.execute_command("SCAN", number)[1], list)
        for text in ("", "a", "-", "-1", "1 ", " 1", "1x", str(2**64)):
            replies = [reply(r, "SCAN", text), reply(other, "SCAN", text)]
            if isinstance(replies[1], Exception):
                assert str(replies[0]) == str(replies[1])
            else:
                assert not [key for key in replies[0][1] if key.startswith(b"ckv:")]


def test_what_has_expired_goes_when_a_scan_meets_it(server):
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        for i in range(3000):
            r.execute_command("SET", f"{'key' if i % 3 else 'other'}:{i}", "value", *(("PX", SOON_MS) if i % 2 else ()))
        time.sleep(SOON_MS / 1000 + 0.01)
        assert r.dbsize() == 3000
        found, _ = scan(r, pattern="key:*")
        assert len(found) == 1000
        assert r.dbsize() == 2000  # all "key", and those of "other" that the pattern left out
        assert len(scan(r)[0]) == 1500 and r.dbsize() == 1500
        assert r.info("stats")["expired_keys"] == 1500
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)


def test_a_replica_is_told_of_it(server, own_server):
    replica = own_server({"ckv.prefixes": "*", "replicaof": f"127.0.0.1 {server.port}"})
    with server.client() as r, replica.client() as other:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        wait_for(lambda: is_in_sync(other))
        for i in range(100):
            r.set(f"key:{i}", "value", px=SOON_MS)
            r.lpush(f"list:{i}", "value")
            r.pexpire(f"list:{i}", SOON_MS)
        r.set("stays", "value")
        wait_for(lambda: other.dbsize() == 201)
        time.sleep(SOON_MS / 1000 + 0.01)
        assert scan(other)[0] == [b"stays"] and other.dbsize() == 201
        for words in (["SCAN", 0, "COUNT", 1000], ["EVAL", "return redis.call('SCAN', 0, 'COUNT', 1000)", 0]):
            assert r.execute_command(*words) == [b"0", [b"stays"]]
        wait_for(lambda: other.dbsize() == 1)
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)


ODD_OPTIONS = ["NOVALUES", "EXPIRES", "NOEXPIRES", "TYPE nosuch", "MATCH", "COUNT 0", "COUNT x", "TYPE string TYPE string", "COUNT", "MATCH * COUNT", "TYPE"]


@pytest.mark.parametrize("options", ODD_OPTIONS)
def test_options_are_the_servers(server, options):
    """Among the records as among the server's own keys, where it says itself what it takes."""
    with server.client() as r:
        fill(r, strings=1000, lists=0)
        cursor, keys = b"0", []
        while not keys:
            cursor, keys = r.execute_command("SCAN", cursor)
        assert cursor != b"0"
        first, then = (reply(r, "SCAN", at, *options.split()) for at in (0, cursor))
        assert str(first) == str(then) if isinstance(first, Exception) else isinstance(then, list)
