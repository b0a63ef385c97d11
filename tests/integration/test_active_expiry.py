"""Records that nobody asks for again expire as well, and are announced to whoever listens."""

import time

from helpers import info, load, now_ms


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def test_expired_records_go_by_themselves(r):
    before = info(r)["expired_records"]
    with r.pipeline(transaction=False) as p:
        for i in range(5000):
            p.execute_command("CSET", "KEY:%d" % i, "value %d" % i, "PX", 100 + i % 400)
        for i in range(100):
            p.execute_command("CSET", "stays:%d" % i, "v", *(("EX", 1000) if i % 2 else ()))
        p.execute_command("CSET", "large", "x" * 5000, "PX", 200)
        p.execute()
    assert wait_until(lambda: info(r)["records"] == 100, 10)
    assert info(r)["expired_records"] - before == 5001
    assert r.execute_command("CDBSIZE") == 100
    for i in range(100):
        assert r.execute_command("CGET", "stays:%d" % i) == b"v"


def test_expiry_is_announced(r):
    r.config_set("notify-keyspace-events", "KEA")
    try:
        listener = r.pubsub()
        listener.subscribe("__keyevent@0__:expired")
        assert listener.get_message(timeout=5)["type"] == "subscribe"
        r.execute_command("CSET", "user:1001", "v", "PX", 50)
        message = listener.get_message(timeout=10)
        assert message["type"] == "message" and message["data"] == b"user:1001"
    finally:
        r.config_set("notify-keyspace-events", "")


def test_the_last_record_takes_its_map_along(r):
    r.execute_command("CSET", "alone", "v", "PX", 50)
    assert r.dbsize() == 1
    assert wait_until(lambda: r.dbsize() == 0, 10)


def seconds_to_expire(r, effort, count=200_000, every=40):
    """Until the pass has found all of the few records that have expired among many."""
    r.config_set("active-expire-effort", effort)
    load(r, [b"%d" % i for i in range(count)])
    at_ms = now_ms() + 2000
    with r.pipeline(transaction=False) as p:
        for i in range(0, count, every):
            p.execute_command("CPEXPIREAT", f"KEY:{i}", at_ms)
        p.execute()
    r.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    assert info(r)["records"] == count
    time.sleep(max(at_ms + 100 - now_ms(), 0) / 1000)
    began = time.monotonic()
    r.execute_command("CLIENT", "UNPAUSE")
    assert wait_until(lambda: info(r)["records"] == count - count // every, 30)
    return time.monotonic() - began


def test_effort_finds_little_sooner(own_server):
    """One in 40 that has expired is much to an effort of 10, and worth a hundredth of the time to one of 1."""
    with own_server().client() as r:
        slowly = seconds_to_expire(r, 1)
    with own_server().client() as r:
        soon = seconds_to_expire(r, 10)
    assert soon < slowly / 2, (soon, slowly)
