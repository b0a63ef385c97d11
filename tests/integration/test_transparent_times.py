"""Expiry in the transparent mode: times that a record cannot keep, that have passed, or pass while a command is queued."""

import pytest

from helpers import EAGER, PATIENCE_S, is_error, now_ms, reply, wait_for


@pytest.fixture
def server(own_server):
    return own_server({"ckv.prefixes": "*", "ckv.maps": 512, **EAGER})


FAR = 33177117420  # in the year 3021, further away than a record can keep


def give_time(r, command):
    if is_error(reply(r, *command), "unknown command"):
        pytest.skip(f"a server without {command[0]}")


@pytest.mark.parametrize("give", [("SET", "key", "value", "EXAT", FAR), ("SET", "key", "value", "PXAT", FAR * 1000),
                                  ("EXPIREAT", "key", FAR), ("PEXPIREAT", "key", FAR * 1000),
                                  ("GETEX", "key", "EXAT", FAR), ("GETEX", "key", "PXAT", FAR * 1000),
                                  ("MSETEX", 1, "key", "value", "NX", "EXAT", FAR), ("MSETEX", 1, "key", "value", "PXAT", FAR * 1000)])
def test_a_time_that_a_record_cannot_keep(server, give):
    with server.client() as r:
        if "NX" not in give:
            r.set("key", "value")
        give_time(r, give)
        assert r.execute_command("EXPIRETIME", "key") == FAR
        r.append("key", "s")
        assert r.execute_command("EXPIRETIME", "key") == FAR
        assert r.get("key") == b"values"
        # A server that has just started leaves keys alone until it knows of no transaction.
        wait_for(lambda: r.set("key", "value") and r.info("ckv")["ckv_records"] == 1)
        assert r.ttl("key") == -1


SETS_A_TIME = [("PEXPIREAT", "key", "{at}"), ("SET", "key", "value", "PXAT", "{at}"), ("GETEX", "key", "PXAT", "{at}"),
               ("MSETEX", 1, "key", "value", "PXAT", "{at}")]
THEN = [None, ("SET", "key", "other", "KEEPTTL"), ("APPEND", "key", "s"), ("DUMP", "key"), ("OBJECT", "ENCODING", "key"), ("MEMORY", "USAGE", "key")]


def wait_for_record(r):
    """A server that has just started leaves keys alone until it knows of no transaction."""
    wait_for(lambda: r.set("key", "value") and r.info("ckv")["ckv_records"] == 1)


@pytest.mark.parametrize("then", THEN, ids=lambda then: then and then[0])
@pytest.mark.parametrize("give", SETS_A_TIME, ids=lambda give: give[0])
def test_a_time_that_was_just_set_is_told_as_it_was(server, give, then):
    with server.client() as r:
        wait_for_record(r)
        for ttl_ms in (10_001, 1_234_567, 86_400_003, 40 * 365 * 86_400_019):
            at = now_ms() + ttl_ms
            give_time(r, [str(word).format(at=at) for word in give])
            if then:
                r.execute_command(*then)
            assert r.pexpiretime("key") == at
            assert r.info("ckv")["ckv_records"] == 1


@pytest.mark.parametrize("then", [("GETBIT", "key", "1"), ("RENAME", "key", "key2"), ("COPY", "key", "key2"), ("DEBUG", "RELOAD")], ids=" ".join)
def test_what_has_moved_is_not_told_later_than_it_was_set(server, then):
    with server.client() as r:
        wait_for_record(r)
        at = now_ms() + 86_400_000
        r.set("key", "value", pxat=at)
        r.execute_command(*then)
        assert at - 90_000 < r.pexpiretime("key2" if "key2" in then else "key") <= at


def test_times_that_were_just_set_are_told_apart(server):
    with server.client() as r:
        wait_for_record(r)
        at = now_ms() + 86_400_000
        r.set("key", "value", pxat=at)
        r.object("ENCODING", "key")
        for condition, ms, done in (("GT", at, 0), ("LT", at, 0), ("GT", at + 1, 1), ("LT", at + 1, 0), ("LT", at, 1), ("GT", at, 0)):
            assert r.execute_command("PEXPIREAT", "key", ms, condition) == done


def test_a_time_of_the_same_key_in_another_database_is_another(server):
    with server.client() as r, server.client(db=1) as other:
        wait_for_record(r)
        at = now_ms() + 86_400_000
        r.set("key", "value", pxat=at)
        other.set("key", "value", pxat=at + 500)
        assert r.pexpiretime("key") <= at and other.pexpiretime("key") == at + 500
        r.swapdb(0, 1)
        assert other.pexpiretime("key") <= at


def test_of_many_times_none_is_told_later_than_it_was_set(server):
    """There is room for a thousand or so that are told as they were."""
    with server.client() as r:
        at = now_ms() + 86_400_000
        times = {f"key:{i}": at + i % 997 for i in range(5000)}
        pipe = r.pipeline(transaction=False)
        for key, ms in times.items():
            pipe.set(key, "value", pxat=ms)
        for key in times:
            pipe.pexpiretime(key)
        told = pipe.execute()[len(times):]
        assert all(ms - 90_000 < answer <= ms for answer, ms in zip(told, times.values()))
        assert sum(answer == ms for answer, ms in zip(told, times.values())) >= 500


@pytest.mark.parametrize("at_ms", [2**63 - 1, 2**63 - 2])
def test_the_last_times_that_there_are(server, at_ms):
    with server.client() as r:
        r.set("key", "value", pxat=at_ms)
        r.append("key", "s")
        assert (r.pexpiretime("key"), r.get("key")) == (at_ms, b"values")


@pytest.mark.parametrize("give", [("SETEX", "key", FAR, "value"), ("PSETEX", "key", FAR * 1000, "value"), ("GETEX", "key", "EX", FAR),
                                  ("GETEX", "key", "PX", FAR * 1000), ("MSETEX", 1, "key", "value", "EX", FAR)])
def test_a_time_to_live_that_a_record_cannot_keep(server, give):
    with server.client() as r:
        r.set("key", "value")
        give_time(r, give)
        assert FAR - 60 < r.ttl("key") <= FAR


@pytest.mark.parametrize("give", [("GETEX", "key", "PXAT", 1), ("GETEX", "key", "EXAT", 1), ("GETEX", "key", "EX", 0), ("GETEX", "key", "PX", -5),
                                  ("SETEX", "key", 0, "value"), ("PSETEX", "key", -1, "value"),
                                  ("MSETEX", 2, "key", "value", "other", "value", "EXAT", 1)])
def test_what_is_told_of_a_time_that_has_passed(own_server, give):
    told = []
    for config, module in ({"ckv.prefixes": "*"}, True), ({}, False):
        with own_server(config, module=module).client() as r:
            r.config_set("notify-keyspace-events", "KEA")
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            r.set("key", "value")
            r.config_resetstat()
            heard = r.pubsub()
            heard.psubscribe("__keyevent*")
            assert heard.get_message(timeout=PATIENCE_S)["type"] == "psubscribe"
            answer = str(reply(r, *give))
            r.publish("__keyevent end", "end")
            events = []
            while not events or events[-1] != (b"__keyevent end", b"end"):
                events += [(m["channel"], m["data"]) for m in [heard.get_message(timeout=PATIENCE_S)]]
            heard.close()
            told.append((answer, events, [r.info("stats")[name] for name in ("expired_keys", "keyspace_hits", "keyspace_misses")]))
    assert told[0] == told[1]


@pytest.mark.parametrize("give", [("SET", "key", "value", "EXAT", 5), ("EXPIRE", "key", -1), ("PEXPIREAT", "key", 17)])
def test_a_time_that_has_passed(server, give):
    with server.client() as r:
        r.set("key", "value")
        r.execute_command(*give)
        assert r.get("key") is None and r.exists("key") == 0
        assert r.info("ckv")["ckv_records"] == 0


LATE = {
    "EXPIREAT": lambda at: [("EXPIREAT", "k", at)],
    "GETEX": lambda at: [("GETEX", "k", "EXAT", at)],
    "SET": lambda at: [("SET", "k", "new", "EXAT", at)],
    "a new key": lambda at: [("DEL", "k"), ("SET", "k", "new", "EXAT", at)],
}


@pytest.mark.parametrize("what", LATE)
def test_a_time_passes_while_a_command_is_queued(own_server, what):
    """Servers differ in what they tell of then."""
    heard = []
    for module in (True, False):
        config = {"notify-keyspace-events": "KEA", **({"ckv.prefixes": "*"} if module else {})}
        with own_server(config, module=module) as server, server.client() as r, server.client() as listening:
            r.set("k", "old")
            listener = listening.pubsub(ignore_subscribe_messages=True)
            listener.subscribe("__keyspace@0__:k")
            listener.get_message(timeout=PATIENCE_S)
            assert reply(r, "MULTI") == b"OK"
            at = now_ms() // 1000 + 1
            for command in LATE[what](at):
                assert reply(r, *command) == b"QUEUED"
            wait_for(lambda: now_ms() > (at + 1) * 1000)
            replies = reply(r, "EXEC")
            found = r.get("k")
            r.publish("__keyspace@0__:k", "the end")
            events = list(iter(lambda: listener.get_message(timeout=PATIENCE_S)["data"], b"the end"))
            heard.append((replies, found, events, r.info("stats")["expired_keys"]))
    assert heard[0] == heard[1]
