"""INFO in the transparent mode: what it counts of records and of served commands, beside a plain server."""

import time

import pytest

from cluster import Cluster
from helpers import cpu_seconds, is_error, reply, texts, wait_for

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
    r.object("encoding", "counter")
    r.set("soon", "gone", px=1)
    r.expire("key:4", 1000)
    time.sleep(0.01)
    wait_for(lambda: r.dbsize() == 102)


def counts(r):
    """What a command's line says without the time that it took. Not of those that are called until something happens."""
    return {
        name: tuple(line[field] for field in ("calls", "rejected_calls", "failed_calls"))
        for name, line in r.info("commandstats").items()
        if name != "cmdstat_dbsize"
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


def test_commands_are_counted_once(pair):
    """Not what the module calls for them besides."""
    counted = []
    for server in pair:
        with server.client() as r:
            r.config_set("notify-keyspace-events", "KEA" + "n")
            before = r.info("stats")["total_commands_processed"]
            for i in range(20):
                r.set(f"key:{i}", "v")
            r.lpush("list", 1)
            for command in ["MGET", "key:1", "list"], ["DEL", "list", "key:1"], ["SCAN", 0], ["BITCOUNT", "key:2"], ["SORT", "none"]:
                r.execute_command(*command)
            counted.append(r.info("stats")["total_commands_processed"] - before)
            r.config_resetstat()
            r.get("key:2")
            counted.append(r.info("stats")["total_commands_processed"])
    assert counted == [27, 2, 27, 2]


FAILING = """SET key v EX 0|SET hash v NX|SET hash v NX|SET hash v XX GET|INCR hash|GET hash|MSET hash v key v
HSET hash field value|APPEND hash x|MEMORY USAGE key SAMPLES -1|MEMORY USAGE key|OBJECT FREQ key|GETDEL hash|SCAN nowhere|DEL hash"""


def test_failures_are_those_of_a_plain_server(pair):
    told = []
    for server in pair:
        with server.client() as r:
            r.hset("hash", "field", "value")
            r.config_resetstat()
            told.append([(line, reply(r, *line.split()) and counts(r)) for line in FAILING.replace("\n", "|").split("|")])
    for ours, plain in zip(*told):
        assert ours == plain


def test_what_nobody_has_sent_is_not_shown(pair):
    told = []
    for server in pair:
        with server.client() as r, server.client() as other:
            r.config_resetstat()
            for kind, add in ("list", r.rpush), ("set", r.sadd), ("sorted", lambda key, value: r.zadd(key, {value: 1})):
                add(kind, "a")
                r.execute_command("SORT", kind, "BY", "nosort", "GET", "text:*")
            r.mset({"text:a": "x", "text:b": "y"})
            r.keys("*")
            r.scan(0)
            r.randomkey()
            r.setbit("text:a", 1, 1)
            other.execute_command("MULTI")
            time.sleep(1.2)  # somebody has looked at all clients
            told.append(set(r.info("commandstats")))
    assert told[0] == told[1]


def test_what_the_module_asks_a_cluster_is_not_shown():
    """It finds out by PERSIST whether a slot that has no map is elsewhere, and by DEBUG what a value of another type is."""
    told = []
    for config, options in ({"ckv.prefixes": "*"}, {}), ({}, {"module": False}):
        with Cluster(1, config={**config, "enable-debug-command": "yes"}, **options) as cluster, cluster.primaries[0].client() as r:
            r.rpush("list", "a")
            r.config_resetstat()
            for key in "abc":
                r.get(key)
            r.persist("a")
            r.execute_command("DEBUG", "DIGEST")
            told.append(counts(r))
    assert told[0] == told[1]


def test_no_name_of_ours_is_shown(pair):
    with pair[0].client() as r:
        work(r)
        r.setbit("key:5", 1, 1)
        text = r.execute_command("INFO", "everything")
        kinds = ("cmdstat_", "latency_percentiles_usec_")
        assert not [name for name in text if name.startswith(tuple(kind + "ckv" + c for kind in kinds for c in ".+"))]
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


@pytest.mark.parametrize("end", ("DISCARD", "EXEC", "EXEC of what is watched"))
def test_what_is_queued_resets_them_when_it_runs(pair, end):
    left = []
    for server in pair:
        with server.client() as r, server.client() as other:
            r.set("key", "value")
            for _ in range(100):
                r.get("key")
            r.execute_command("WATCH", "watched")
            r.execute_command("MULTI")
            assert r.execute_command("CONFIG", "RESETSTAT") == b"QUEUED"
            if end == "EXEC of what is watched":
                other.set("watched", "value")
            left.append([r.execute_command(end.split()[0]), r.info("stats")["keyspace_hits"]])
            left[-1].append(r.info("commandstats")["cmdstat_get"]["calls"] if left[-1][1] else 0)
    assert left[0] == left[1] == {"DISCARD": [b"OK", 100, 100], "EXEC": [[b"OK"], 0, 0]}.get(end, [None, 100, 100])


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


def test_what_a_file_held_and_what_was_freed_aside(own_server):
    told = []
    for config in {}, {"ckv.prefixes": "*"}:
        server = own_server({"save": "", "enable-debug-command": "yes", **config})
        with server.client() as r:
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            r.mset({f"key:{i}": i for i in range(500)})
            for i in range(100):
                r.set(f"soon:{i}", i, px=1)
            r.lpush("list", 1)
            r.flushall(asynchronous=True)
            wait_for(lambda: r.info("memory")["lazyfree_pending_objects"] == 0, what="freeing")
            freed = r.info("memory")["lazyfreed_objects"]
            r.config_resetstat()
            freed_since = r.info("memory")["lazyfreed_objects"]
            r.mset({f"key:{i}": i for i in range(500)})
            for i in range(100):
                r.set(f"soon:{i}", i, px=1)
            r.lpush("list", 1)
            time.sleep(0.02)
            r.save()
        server.restart()
        with server.client() as r:
            info = r.info("persistence")
            loaded = info["rdb_last_load_keys_loaded"], info["rdb_last_load_keys_expired"]
        told.append((freed, freed_since, loaded))
    assert told[0] == told[1] == (601, 0, (501, 100))


CHANGES = """MSET a 1 b 2 c 3|MSETNX a 1 d 2|MSETNX d 1 e 2|LPUSH list 1|MSET a 1 list 2|SADD set 1 2
APPEND a x|INCR n|SETEX s 100 x|EXPIRE a 100|PERSIST a|GETDEL s|GETEX n EX 9|DEL a b set none|UNLINK c list|DEL none"""


def changes(server):
    """By how much each command brings the next save nearer."""
    told = {}
    with server.client() as r:
        for line in CHANGES.replace("\n", "|").split("|"):
            before = r.info("persistence")["rdb_changes_since_last_save"]
            r.execute_command(*line.split())
            told[line] = r.info("persistence")["rdb_changes_since_last_save"] - before
    return told


def test_each_key_that_changes_brings_the_next_save_nearer(pair, own_server):
    ours, plain = map(changes, pair)
    assert ours == plain and ours["MSET a 1 b 2 c 3"] == 3
    fed = changes(own_server({"ckv.prefixes": "*", "appendonly": "yes"}))
    assert all(plain[line] <= fed[line] <= plain[line] + 1 for line in plain)


def sizes(server):
    with server.client() as r:
        r.mset({f"short:{i}": "x" * (i % 3) for i in range(30)} | {"long": "y" * 5000, "number": 12345})
        r.setbit("bits", 100, 1)
        r.lpush("list", 1)
        r.execute_command("SELECT", 3)
        r.set("other", "z")
        few = r.execute_command("INFO", "keysizes")
        if not few:
            pytest.skip("a server without INFO's keysizes")
        r.execute_command("SELECT", 0)
        r.flushall()
        for i in range(0, 20000, 1000):
            r.mset({f"key:{k}": "x" * (20 if k % 4 else 200) for k in range(i, i + 1000)})
        return few, r.execute_command("INFO", "keysizes")["db0_distrib_strings_sizes"]


def test_how_long_strings_are(pair):
    (few, many), (few_plain, many_plain) = map(sizes, pair)
    assert few == few_plain
    assert list(many) == list(many_plain) == ["16", "128"]
    assert sum(many.values()) == pytest.approx(20000, abs=2)
    assert many["16"] == pytest.approx(15000, rel=0.2)  # of a sample


ASKED_OF_LONG = "OBJECT ENCODING long|OBJECT REFCOUNT long|OBJECT FREQ long"
REFUSED_OF_LONG = "MEMORY USAGE long SAMPLES -1|MEMORY USAGE long SAMPLES|MEMORY USAGE long SAMPLES x|MEMORY USAGE long 5"


@pytest.mark.parametrize("policy", ("noeviction", "allkeys-lfu"))
def test_what_is_asked_of_a_long_value_is_known_by_its_length(pair, policy):
    """It was decoded, lent to the server, and young again behind each of these."""
    said = []
    for server in pair:
        with server.client() as r:
            r.config_set("maxmemory-policy", policy)
            r.set("long", b"".join(b"%d and so on, " % i for i in range(50_000)))
            if server.module:
                wait_for(lambda: r.info("ckv")["ckv_young_records"] == 0, what="that it is encoded")
            r.config_resetstat()
            told = [repr(reply(r, *line.split())) for line in ASKED_OF_LONG.split("|")]
            idle = reply(r, "OBJECT", "IDLETIME", "long")
            told.append(repr(idle) if is_error(idle) else idle < 60)
            usage = [r.memory_usage("long"), r.memory_usage("long", samples=0)]
            if server.module:
                assert (r.info("ckv")["ckv_young_records"], r.info("ckv")["ckv_young_encoded"]) == (0, 1)
            told += [repr(reply(r, *line.split())) for line in REFUSED_OF_LONG.split("|")]
            figures = r.info("stats")
            called = {name: line for name, line in counts(r).items() if name != "cmdstat_info"}
            said.append((told, [figures.get(name) for name in COUNTERS], called))
            assert usage[0] == usage[1] and abs(usage[0] - 917_600) < 300
    assert said[0] == said[1]


def test_how_long_strings_are_takes_no_longer_of_many_databases(own_server):
    """To tell the length of an encoded value is to go over it."""
    with own_server({"ckv.prefixes": "*", "ckv.train-after": "1gb"}).client() as r:
        def fill(db):
            r.execute_command("SELECT", db)
            r.mset({f"text:{i}": b" ".join(texts(300, seed=100 * db + i)) for i in range(20)})
            r.execute_command("CKV", "OPTIMIZE" if db else "TRAIN")  # the one encodes, the other learns

        def seconds():
            before = cpu_seconds(r)
            for _ in range(100):
                r.execute_command("INFO", "keysizes")
            return cpu_seconds(r) - before

        fill(0)
        r.execute_command("CKV", "OPTIMIZE")
        if not r.execute_command("INFO", "keysizes"):
            pytest.skip("a server without INFO's keysizes")
        of_one = seconds()
        for db in range(1, 8):
            fill(db)
        assert seconds() < 4 * of_one
