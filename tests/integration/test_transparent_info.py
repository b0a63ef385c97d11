"""INFO in the transparent mode: what it counts of records and of served commands, beside a plain server."""

import time

import pytest

from helpers import reply, wait_for

COUNTERS = ["keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys", "expired_keys_active"]


@pytest.fixture
def pair(own_server):
    """The server in the transparent mode, and one without the module."""
    return own_server({"ckv.prefixes": "*"}), own_server(module=False)


def work(r):
    """Strings, other types, misses, errors, one by one and in a script."""
    r.mset({f"key:{i}": f"value {i}" for i in range(100)})
    for i in range(150):
        reply(r, "GET", f"key:{i}")
    r.setrange("long", 5000, "stays with the server")
    r.append("long", ", and is read there")
    r.get("long")
    r.lpush("list", 1, 2)
    reply(r, "INCR", "list")
    reply(r, "GET", "list")
    reply(r, "GET")
    r.incr("counter")
    r.eval("redis.call('SET', KEYS[1], 'v') return redis.call('GET', KEYS[1])", 1, "scripted")
    r.exists("key:1", "none", "list")
    r.delete("key:2", "list", "none")
    r.memory_usage("key:3")
    r.object("encoding", "key:3")
    r.set("soon", "gone", px=1)
    r.expire("key:4", 1000)
    time.sleep(0.01)
    wait_for(lambda: r.dbsize() == 102)


def counts(r):
    """What a command's line says without the time that it took. Not of those that are called until something happens,
    nor of what the module asks the server."""
    return {
        name: tuple(line[field] for field in ("calls", "rejected_calls", "failed_calls"))
        for name, line in r.info("commandstats").items()
        if not name.startswith(tuple(f"cmdstat_{word}" for word in ("dbsize", "acl", "client", "command", "config")))
    }


def test_figures_are_those_of_a_plain_server(pair):
    figures = []
    for server in pair:
        with server.client() as r:
            r.config_resetstat()
            work(r)
            info = r.info()
            figures.append(
                {
                    "stats": {name: info.get(name) for name in COUNTERS},
                    "keys": {name: info["db0"][name] for name in ("keys", "expires")},
                    "commands": counts(r),
                }
            )
    for kind, figure in figures[1].items():
        assert sorted(figures[0][kind].items()) == sorted(figure.items())


def test_no_name_of_ours_is_shown(pair):
    with pair[0].client() as r:
        work(r)
        text = r.execute_command("INFO", "everything")
        assert not [name for name in text if name.startswith(("cmdstat_ckv.", "cmdstat_ckv+"))]
        for name in ("get", "set", "info"):
            assert text[f"cmdstat_{name}"]["usec"] >= text[f"cmdstat_{name}"]["calls"] // 100
            assert "p50" in text[f"latency_percentiles_usec_{name}"]


def test_resetstat_resets_them(pair):
    with pair[0].client() as r:
        work(r)
        assert r.info("stats")["keyspace_hits"] > 100
        r.config_resetstat()
        assert [r.info("stats").get(name, 0) for name in COUNTERS] == [0] * len(COUNTERS)
        r.get("key:1")
        assert r.info("stats")["keyspace_hits"] == 1
        assert r.info("commandstats")["cmdstat_get"]["calls"] == 1


def test_databases_with_records_of_several_kinds(pair):
    for server in pair:
        for db in (0, 3):
            with server.client(db=db) as r:
                r.set("a", 1)
                r.setex("b", 100, 1)
                r.hset("c", "d", 1)
    for server in pair:
        with server.client() as r:
            info = r.info("keyspace")
            assert set(info) == {"db0", "db3"}
            assert all(info[db]["keys"] == 3 and info[db]["expires"] == 1 for db in info)


def test_whoever_may_ask_for_info_may_ask(pair):
    with pair[0].client() as r:
        r.acl_setuser("watcher", enabled=True, nopass=True, commands=["+info", "+ping"])
        r.acl_setuser("nobody", enabled=True, nopass=True, commands=["+ping"])
        r.set("a", 1)
        r.get("a")
        r.execute_command("AUTH", "watcher", "x")
        assert r.info("stats")["keyspace_hits"] == 1
        r.execute_command("AUTH", "nobody", "x")
        assert "no permissions" in str(reply(r, "INFO"))
        r.execute_command("AUTH", "default", "x")


def test_with_a_password_the_server_itself_may_answer(own_server):
    server = own_server({"ckv.prefixes": "*"})
    with server.client() as admin, server.client() as r:
        admin.acl_setuser("watcher", enabled=True, nopass=True, commands=["+info", "+ping"])
        admin.config_set("requirepass", "secret")
        r.execute_command("AUTH", "watcher", "x")
        assert "uptime_in_seconds" in r.info("server")
        admin.config_set("requirepass", "")


def test_the_reply_is_of_the_same_kind(pair):
    for protocol in (2, 3):
        texts = []
        for server in pair:
            with server.client(protocol=protocol) as r:
                r.set_response_callback("INFO", lambda text, **_: text)
                texts.append(r.execute_command("INFO", "keyspace"))
        assert type(texts[0]) is type(texts[1]) and texts[0] == texts[1]
