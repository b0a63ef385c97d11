"""Keyspace notifications: the events that strings have, on the record's key."""

import time

import pytest

from helpers import NATIVE, PATIENCE_S, at_one_moment, now_ms, reply, wait_for

FLAGS = "KEAmn"  # "A" leaves out misses and new keys


@pytest.fixture
def events(shared):
    """Call it for what has been announced since the last call: [(key, event)]. The channel of events by
    key and the one by event must agree."""
    with shared.client() as r:
        r.execute_command("CONFIG", "SET", "notify-keyspace-events", FLAGS)
        pubsub = r.pubsub()
        pubsub.psubscribe("__key*__:*")
        while pubsub.get_message(timeout=PATIENCE_S)["type"] != "psubscribe":
            pass

        def since():
            r.execute_command("PUBLISH", "__keyend__:", "end")
            by_key, by_event = [], []
            while True:
                message = pubsub.get_message(timeout=PATIENCE_S)
                channel, data = message["channel"], message["data"]
                if channel == b"__keyend__:":
                    assert by_key == by_event
                    return by_key
                name = channel.split(b":", 1)[1]
                if channel.startswith(b"__keyspace@"):
                    by_key.append((name, data.decode()))
                else:
                    by_event.append((data, name.decode()))

        yield since
        pubsub.close()
        r.execute_command("CONFIG", "SET", "notify-keyspace-events", "")


SCENARIO = [
    ("CSET", "k", "1"), ("CSET", "k", "2"), ("CSET", "k", "2", "NX"), ("CSET", "new", "2", "XX"), ("CSET", "nosuch", "2", "XX", "GET"), ("CSET", "nosuch", "2", "XX", "EX", 9), ("CSET", "k", "3", "EX", 100),
    ("CSET", "k", "3", "KEEPTTL"), ("CSET", "k", "3", "GET"), ("CGET", "k"), ("CGET", "missing"), ("CMGET", "k", "missing", "gone"),
    ("CSTRLEN", "missing"), ("CEXISTS", "missing"), ("CTTL", "missing"), ("CEXPIRE", "missing", 10), ("CPERSIST", "missing"),
    ("CGETRANGE", "missing", 0, 1), ("CGETRANGE", "k", 0, 1),
    ("CEXPIRE", "k", 100), ("CPERSIST", "k"), ("CPERSIST", "k"), ("CPEXPIREAT", "k", 2**42), ("CEXPIRE", "k", 100, "NX"),
    ("CINCR", "n"), ("CDECR", "n"), ("CINCRBY", "n", 7), ("CDECRBY", "n", 7), ("CINCRBYFLOAT", "n", "1.5"), ("CINCR", "n"),
    ("CAPPEND", "a", "x"), ("CAPPEND", "a", "y"), ("CAPPEND", "a", ""), ("CSETRANGE", "a", 5, "z"), ("CSETRANGE", "a", 5, ""),
    ("CSETRANGE", "empty", 5, ""), ("CSETRANGE", "made", 5, "z"),
    ("CGETSET", "k", "4"), ("CGETSET", "other", "5"), ("CGETDEL", "other"), ("CGETDEL", "other"),
    ("CGETEX", "k"), ("CGETEX", "k", "EX", 100), ("CGETEX", "k", "PERSIST"), ("CGETEX", "k", "PERSIST"), ("CGETEX", "missing", "EX", 100),
    ("CGETEX", "k", "PXAT", 1), ("CSETNX", "k", "1"), ("CSETNX", "k", "1"), ("CSETEX", "k", 100, "1"), ("CPSETEX", "k", 100_000, "1"),
    ("CMSET", "a", 1, "b", 2), ("CMSETNX", "a", 1, "c", 2), ("CMSETNX", "d", 1, "e", 2), ("CTOUCH", "a", "missing"),
    ("CEXPIRE", "a", -1), ("CPEXPIREAT", "b", 1), ("CDEL", "d", "e", "missing"), ("CUNLINK", "k", "n"), ("CDEL", "made"),
]


def test_the_same_as_strings(shared, r, events):
    events()
    for command, *args in SCENARIO:
        reply(r, command, *args)
        ours = events()
        reply(r, NATIVE[command], *args)
        theirs = events()
        # Valkey 9 says "expired" of what is given a time that has passed.
        assert ours in (theirs, [(key, event.replace("expired", "del")) for key, event in theirs]), f"{command} {args}"


def expires_first(r):
    """MSETEX of Redis 8.4 tells of the expiry first, Valkey's does not."""
    server = r.info("server")
    return "valkey_version" not in server and server["redis_version"] >= "8.4"


def test_compare_and_many(r, events):
    events()
    r.execute_command("CMSETEX", 2, "a", 1, "b", 2, "EX", 100)
    of_each = ("expire", "set") if expires_first(r) else ("set", "expire")
    assert [e for e in events() if e[1] != "new"] == [(key, event) for key in (b"a", b"b") for event in of_each]
    r.execute_command("CMSETEX", 1, "a", 1, "KEEPTTL")
    r.execute_command("CMSETEX", 1, "a", 1, "NX")
    assert events() == [(b"a", "set")]
    r.execute_command("CSET", "a", 2, "IFEQ", 7)
    r.execute_command("CDELEX", "a", "IFEQ", 7)
    r.execute_command("CDELEX", "missing", "IFEQ", 7)
    assert events() == []
    r.execute_command("CSET", "a", 2, "IFEQ", 1)
    r.execute_command("CDELEX", "a", "IFEQ", 2)
    assert events() == [(b"a", "set"), (b"a", "del")]


def test_expired_when_met(r, events):
    # In one go, so that nothing comes between that would expire it in the background.
    pipe = r.pipeline(transaction=False)
    pipe.execute_command("CSET", "k", "v", "PX", 1)
    pipe.execute_command("DEBUG", "SLEEP", "0.02")
    pipe.execute_command("CGET", "k")
    assert pipe.execute()[-1] is None
    assert (b"k", "expired") in events()


def test_expired_in_the_background(r, events):
    events()
    keys = {b"k:%d" % i for i in range(500)}
    for key in keys:
        r.execute_command("CSET", key, "v", "PX", 20)
    seen = []
    wait_for(lambda: seen.extend(events()) or sum(e[1] == "expired" for e in seen) >= len(keys), what="expiry of all")
    assert sorted(key for key, event in seen if event == "expired") == sorted(keys)
    assert now_ms() > 0 and r.execute_command("CDBSIZE") == 0


def test_the_maps_stay_inside(r, events):
    """No event of records carries a map's name, whatever happens to the map."""
    for i in range(300):
        r.execute_command("CSET", f"k:{i}", "v" * (i * 10))
    r.execute_command("CMGET", *[f"k:{i}" for i in range(600)])
    r.execute_command("CDEL", *[f"k:{i}" for i in range(300)])
    seen = events()
    assert seen and not [event for event in seen if event[0].startswith(b"ckv:")]


def test_the_setting_stays(r):
    """It is switched while a map is made: whoever asks for it sees what was set."""
    for setting in ["KEn", "Kg$n", "KExen", "KEmn", "", "KEA"]:
        r.execute_command("FLUSHALL")
        r.execute_command("CONFIG", "SET", "notify-keyspace-events", setting)
        before = r.execute_command("CONFIG", "GET", "notify-keyspace-events")
        r.execute_command("CSET", "k", "v")
        r.execute_command("CDEL", "k")
        assert r.execute_command("CONFIG", "GET", "notify-keyspace-events") == before
    r.execute_command("CONFIG", "SET", "notify-keyspace-events", "")


def test_databases(shared, events):
    events()
    with shared.client(db=5) as r5:
        r5.execute_command("CSET", "k", "v")
    with shared.client() as r:
        pubsub = r.pubsub()
        pubsub.psubscribe("__key*@5__:*")
        assert pubsub.get_message(timeout=PATIENCE_S)["type"] == "psubscribe"
        with shared.client(db=5) as r5:
            r5.execute_command("CSET", "k", "v")
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message["channel"] == b"__keyspace@5__:k" and message["data"] == b"set"
        pubsub.close()


@pytest.mark.parametrize("gone", ["CDEL", "CPERSIST"])
def test_what_was_due_may_be_gone_by_then(own_server, gone):
    server = own_server({"notify-keyspace-events": "KEA"})
    with server.client() as r:
        for i in range(20):
            at_one_moment(r, ("CSET", f"k{i}", "v", "PX", 100), (gone, f"k{i}"))
        time.sleep(0.4)
        assert r.execute_command("CDBSIZE") == (0 if gone == "CDEL" else 20)
