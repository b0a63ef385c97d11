"""DEBUG DIGEST in the transparent mode: by it, what two servers hold is compared, whatever form it has there."""

import time

import pytest

from helpers import info, wait_for

EMPTY = b"0" * 40


@pytest.fixture
def servers(own_server):
    return own_server({"ckv.prefixes": "*"}), own_server({"ckv.prefixes": '"key:1 string"', "ckv.maps": 7})


def digest(r):
    return r.execute_command("DEBUG", "DIGEST")


def fill(r):
    for i in range(300):
        r.set(f"key:{i}", f"value {i}", ex=100 + i if i % 3 else None)
    r.set("string", "")
    r.set("binary\0", b"\0\xff")
    r.lpush("list", 1, 2, 3)
    r.hset("hash", mapping={"a": 1, "b": 2})
    r.zadd("zset", {"a": 1})
    r.expire("zset", 1000)
    r.execute_command("SELECT", 2)
    r.set("key:1", "in another database")
    r.execute_command("SELECT", 0)


def test_the_form_of_a_string_does_not_count(servers):
    with servers[0].client() as a, servers[1].client() as b:
        assert digest(a) == digest(b) == EMPTY
        fill(a)
        fill(b)
        told = digest(a)
        assert told == digest(b) != EMPTY
        for i in range(0, 300, 2):
            a.execute_command("DEBUG", "OBJECT", f"key:{i}")  # moves out
        assert digest(a) == told
    servers[0].restart()
    with servers[0].client() as a:
        assert digest(a) == told
        a.flushall()
        assert digest(a) == EMPTY


@pytest.mark.parametrize(
    "change",
    [
        ("SET", "key:7", "value 8", "KEEPTTL"),
        ("PERSIST", "key:7"),
        ("EXPIRE", "key:3", 100),
        ("DEL", "key:3"),
        ("SET", "new", ""),
        ("LPUSH", "list", 4),
        ("RENAME", "key:3", "key:3a"),
        ("PERSIST", "zset"),
        ("SWAPDB", 0, 2),
    ],
)
def test_any_difference_counts(servers, change):
    with servers[0].client() as a:
        fill(a)
        told = digest(a)
        a.execute_command(*change)
        assert digest(a) != told


def test_where_debug_is_not_allowed_it_is_refused(own_server):
    server = own_server({"ckv.prefixes": "*", "enable-debug-command": "no"})
    with server.client() as r:
        with pytest.raises(Exception, match="DEBUG command not allowed"):
            digest(r)
    server = own_server({"ckv.prefixes": "*"})
    with server.client() as r:
        r.acl_setuser("some", enabled=True, nopass=True, commands=["+@all", "-debug"], keys=["*"])
        r.execute_command("AUTH", "some", "x")
        with pytest.raises(Exception, match="no permissions"):
            digest(r)
        r.execute_command("AUTH", "default", "x")


def test_who_may_not_use_debug_does_not_stop_the_expiry(own_server):
    server = own_server({"ckv.prefixes": "*", "enable-debug-command": "no"})
    with server.client() as r:
        with pytest.raises(Exception, match="DEBUG command not allowed"):
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        r.set("key", "v", px=10)
        wait_for(lambda: int(r.info("ckv")["ckv_records"]) == 0)


@pytest.mark.parametrize("end, expires", (("DISCARD", True), ("EXEC", False)))
def test_what_is_queued_stops_the_expiry_when_it_runs(own_server, end, expires):
    server = own_server({"ckv.prefixes": "*"})
    with server.client() as r:
        for words in (("MULTI",), ("DEBUG", "SET-ACTIVE-EXPIRE", "0"), (end,)):
            r.execute_command(*words)
        r.set("key", "v", px=10)
        if expires:
            wait_for(lambda: info(r)["records"] == 0)
        else:
            time.sleep(0.8)
            assert info(r)["records"] == 1
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")
            wait_for(lambda: info(r)["records"] == 0)
