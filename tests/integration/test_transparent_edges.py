"""The transparent mode where a record meets what only a server does: the stream, long values, events, settings."""

import os
import socket
import time

import pytest
import redis

from helpers import EAGER, PATIENCE_S, forget_exact_times, info, is_error, noise, now_ms, reply, wait_for, wait_for_replica
from mover_data import wait_moved


@pytest.fixture
def server(own_server):
    return own_server({"ckv.prefixes": "*", "ckv.maps": 512, **EAGER})


def follow(server, do, last):
    """What a replica is sent from before do() until there is `last` in it."""
    with socket.create_connection(("127.0.0.1", server.port)) as s, s.makefile("rb") as f:
        s.settimeout(PATIENCE_S)
        s.sendall(b"SYNC\r\n")
        header = b"\n"
        while header == b"\n":
            header = f.readline()
        f.read(int(header[1:]))
        do()
        stream = b""
        while last not in stream:
            stream += f.read1()
        return stream


def test_what_expires_is_told_in_plain_words(server):
    with server.client() as r:
        stream = follow(server, lambda: [r.set(f"key:{i}", "value", px=50) for i in range(100)], b"DEL\r\n")
    assert b"$3\r\nDEL\r\n" in stream
    assert b"CDEL" not in stream and b"CSET" not in stream


def test_what_is_evicted_is_told_in_plain_words(own_server):
    server = own_server({"ckv.prefixes": "*", "maxmemory-policy": "allkeys-random", "ckv.maxmemory": "256kb", **EAGER})

    def fill():
        with server.client() as r, r.pipeline(transaction=False) as pipe:
            for i in range(400):
                pipe.set(f"key:{i}", os.urandom(3000))  # of what compresses all may have room
            pipe.execute()

    stream = follow(server, fill, b"DEL\r\n")
    assert b"$3\r\nDEL\r\n" in stream
    assert b"CDEL" not in stream


@pytest.mark.parametrize("change, longer", [(("APPEND", "key", "tail"), 4), (("SETRANGE", "key", "9", "part"), 0)])
def test_long_values_that_are_changed_in_part_stay_with_the_server(server, change, longer):
    with server.client() as r:
        wait_moved(r, b"in")  # a walk that goes on since the start would take it in
        r.set("key", "v" * 10_000, px=100_000)
        assert r.info("ckv")["ckv_records"] == 1
        for i in range(1, 4):
            assert r.execute_command(*change) == 10_000 + i * longer
            assert r.info("ckv")["ckv_records"] == 0
        assert 90_000 < r.pttl("key") <= 100_000
        r.set("key", "short")
        assert r.execute_command("APPEND", "key", "er") == 7
        assert r.info("ckv")["ckv_records"] == 1


def test_a_long_value_that_is_changed_in_part_is_there_after_a_restart(own_server):
    server = own_server({"ckv.prefixes": "*", "appendonly": "yes"})
    with server.client() as r:
        r.set("key", "v" * 10_000)
        r.bgrewriteaof()
        wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0)
        r.append("key", "tail")
        r.setrange("key", 0, "head")
    server.restart()
    with server.client() as r:
        assert r.get("key") == b"head" + b"v" * 9_996 + b"tail"


LONG = b"a value that is too long " * 80_000  # 2 MB
SETS = ["SET key {}", "SET key {} EX 100", "SETEX key 100 {}", "PSETEX key 100000 {}", "GETSET key {}", "SET key {} GET", "SET key {} XX", "SETNX new {}"]


def ask(r, line, value, how):
    words = [value if word == "{}" else word for word in line.split()]
    if how == "script":
        return r.eval("return redis.call(unpack(ARGV))", 0, *words)
    if how == "transaction":
        with r.pipeline(transaction=True) as pipe:
            return pipe.execute_command(*words).execute()[0]
    return r.execute_command(*words)


@pytest.mark.parametrize("how", ["command", "script", "transaction"])
@pytest.mark.parametrize("line", SETS)
def test_a_value_of_more_than_a_megabyte_is_left_to_the_server(server, line, how):
    key = line.split()[1]
    with server.client() as r:
        r.set("key", "before", ex=1000)
        assert ask(r, line, LONG, how) in ([b"before"] if "GET" in line else [1] if "SETNX" in line else [b"OK", True])
        for _ in range(2):
            assert r.info("ckv")["ckv_records"] == (1 if key == "new" else 0)
            assert r.get(key) == LONG and r.strlen(key) == len(LONG) and r.object("encoding", key) == b"raw"
        assert (0 < r.ttl(key) <= 100) == ("100" in line)
        r.set(key, "short")
        assert r.get(key) == b"short"
        # Where the server does not tell whose EXEC comes, the keys of transactions stay its own for a while.
        if how != "transaction" or not r.info("server")["redis_version"].startswith("7.0"):
            assert r.info("ckv")["ckv_records"] == (2 if key == "new" else 1)


@pytest.mark.parametrize("line", ["MSET key {} other short", "MSET other short key {}", "MSETNX new {} other short"])
def test_a_value_of_more_than_a_megabyte_among_others(server, line):
    """What changes it does not move it out first."""
    key = "new" if "NX" in line else "key"
    with server.client() as r:
        r.set("key", "before", ex=1000)
        assert ask(r, line, LONG, "command") in (b"OK", True, 1)
        assert [r.get(key), r.get("other"), r.ttl(key)] == [LONG, b"short", -1]
        before = info(r)["moved_out"]
        assert r.append(key, "tail") == len(LONG) + 4 and r.setbit(key, 3, 1) == 0
        assert info(r)["moved_out"] == before and r.object("encoding", key) == b"raw"


def ran(r, *command):
    """The names that SLOWLOG has of what ran."""
    r.execute_command("SLOWLOG", "RESET")
    r.execute_command(*command)
    names = [entry[3][0].decode() for entry in r.execute_command("SLOWLOG", "GET")]
    return [name for name in names if name != "SLOWLOG"]


def test_a_long_string_of_the_servers_is_read_by_its_own_command(server):
    with server.client() as r:
        r.config_set("slowlog-log-slower-than", 0)
        r.set("key:1", LONG[:70_000])
        r.append("key:1", "a part, which leaves it to the server")
        r.set("key:2", "of the same shape")
        assert ran(r, "GET", "key:2") != ["GET"]
        r.get("key:1")
        assert ran(r, "GET", "key:1") == ["GET"] and ran(r, "STRLEN", "key:1") == ["STRLEN"]
        r.set("key:1", "short")
        assert ran(r, "GET", "key:1") != ["GET"] and r.get("key:1") == b"short"


@pytest.mark.parametrize("change", [("APPEND", "key", "x"), ("SETRANGE", "key", "9", "x")])
def test_a_string_that_is_changed_piece_by_piece_is_so_by_the_servers_command(server, change):
    with server.client() as r:
        r.config_set("slowlog-log-slower-than", 0)
        r.set("key", b"v" * 10_000)
        assert ran(r, *change) != [change[0]] and ran(r, *change) == [change[0]]
        r.set("key", "short")
        assert ran(r, *change) != [change[0]]
        assert r.get("key") == (b"shortx" if change[0] == "APPEND" else b"short\0\0\0\0x") and info(r)["records"] == 1


def test_a_long_string_of_the_servers_comes_and_goes(server):
    with server.client() as r:
        r.set("other", "of the same shape")
        r.set("key", LONG)
        before = info(r)["moved_out"]
        assert r.getrange("key", -5, -1) == LONG[-5:] and r.append("key", "more") == len(LONG) + 4
        assert r.getdel("key") == LONG + b"more" and r.get("key") is None and info(r)["moved_out"] == before
        r.set("key", "short")
        assert [r.get("key"), r.get("other")] == [b"short", b"of the same shape"] and info(r)["records"] == 2


def test_a_long_value_is_seen_where_a_key_has_both_a_record_and_a_string_of_the_servers(own_server):
    with own_server({"ckv.maps": 512, **EAGER}).client() as r:
        r.set("key", "string")
        r.execute_command("CSET", "key", "record")
        r.config_set("ckv.prefixes", "*")
        assert r.get("key") == b"record"
        r.set("key", LONG)
        assert r.get("key") == LONG


def test_the_number_of_maps_may_be_set_to_what_it_is(server):
    with server.client() as r:
        assert r.config_set("ckv.maps", 512) == b"OK"
        with pytest.raises(redis.ResponseError, match="can't be changed while the server runs"):
            r.config_set("ckv.maps", 513)
        assert r.config_get("ckv.maps") == [b"ckv.maps", b"512"]


def test_object_encoding_of_numbers(server):
    with server.client() as r:
        for value, encoding in (("5", b"int"), ("-9223372036854775808", b"int"), ("05", b"embstr"), ("5 ", b"embstr")):
            r.set("key", value)
            assert r.object("ENCODING", "key") == encoding


def test_overwriting_is_told(server):
    with server.client() as r:
        try:
            r.config_set("notify-keyspace-events", "Eoc")
        except redis.ResponseError:
            pytest.skip("this server has no such events")
        heard = r.pubsub()
        heard.psubscribe("*")
        assert heard.get_message(timeout=PATIENCE_S)["type"] == "psubscribe"
        r.set("key", "value")
        r.incr("counter")
        r.incr("counter")
        for command in (("SET", "key", "1"), ("GETSET", "key", "2"), ("MSET", "key", "3"), ("SETEX", "key", 9, "4")):
            r.execute_command(*command)
        r.delete("key")
        r.lpush("key", "element")
        r.set("key", "value")
        events = []
        while len(events) < 6:
            events.append(heard.get_message(timeout=PATIENCE_S)["channel"].split(b":")[1])
        heard.close()
        assert events == [b"overwritten"] * 5 + [b"type_changed"]


@pytest.mark.parametrize("aof", ["no", "yes"])
def test_a_del_of_keys_with_and_without_a_prefix_is_told_of_both(own_server, aof):
    server = own_server({"ckv.prefixes": "c:", "appendonly": aof, "aof-use-rdb-preamble": aof})
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}"})
    with server.client() as r, replica.client() as copy:
        wait_for_replica(r)
        r.mset({"c:1": "x", "c:2": "x"})
        r.mset({"other:1": "y", "other:2": "y"})
        assert r.delete("c:1", "other:1") == 2
        wait_for_replica(r)
        assert sorted(copy.keys("[co]*:?")) == sorted(r.keys("[co]*:?")) == [b"c:2", b"other:2"]
    server.restart(save=False)
    with server.client() as r:
        assert sorted(r.keys()) == ([b"c:2", b"other:2"] if aof == "yes" else [])


def test_a_client_is_told_of_what_its_own_command_evicts(server):
    """Of what goes before its command is carried out, that is, together with that of others."""
    with socket.create_connection(("127.0.0.1", server.port)) as s, server.client() as r:
        s.settimeout(PATIENCE_S)
        s.sendall(b"HELLO 3\r\nCLIENT TRACKING ON\r\n")
        r.set("first", "value")
        r.config_set("maxmemory-policy", "volatile-random")
        r.config_set("maxmemory", r.info("memory")["used_memory"] + (1 << 20))
        s.sendall(b"".join(b"SETEX volatile:%d 1000 x\r\nGET volatile:%d\r\n" % (i, i) for i in range(100)))
        s.sendall(b"SETBIT big 24000000 0\r\nGETBIT big 0\r\nECHO done\r\n")
        heard = b""
        while b"$4\r\ndone\r\n" not in heard:
            heard += s.recv(1 << 20)
        # Before the reply of the command that would have found too little memory.
        assert heard.count(b"invalidate") == 100
        s.sendall(b"CLIENT TRACKING OFF\r\nECHO again\r\n")
        while b"$5\r\nagain\r\n" not in heard:
            heard += s.recv(1 << 20)
        assert heard.count(b"volatile:99\r\n") == 1


def test_a_client_is_told_of_no_key_that_it_has_only_written(server):
    """What a string of the server's own takes is asked of the server: of some, and then as if the client had."""
    keys = [f"key:{i}" for i in range(128)]
    with socket.create_connection(("127.0.0.1", server.port)) as s, server.client() as r:
        s.settimeout(PATIENCE_S)
        s.sendall(b"HELLO 3\r\nCLIENT TRACKING ON\r\n")
        for key in keys:
            r.setbit(key, 1, 1)
        s.sendall("".join(f"SET {key} v\r\n" for key in keys).encode() + b"ECHO written\r\n")
        heard = b""
        while b"written\r\n" not in heard:
            heard += s.recv(1 << 20)
        for key in keys:
            r.set(key, "w")
        s.sendall(b"ECHO done\r\n")
        while b"done\r\n" not in heard:
            heard += s.recv(1 << 20)
        assert b"invalidate" not in heard


def test_few_keys_are_scanned_at_once(server):
    with server.client() as r:
        r.mset({"a": 1, "b": 2})
        for keys in ({b"a", b"b"}, {b"a", b"b", b"list"}):
            cursor, found = r.execute_command("SCAN", 0)
            assert int(cursor) == 0 and sorted(found) == sorted(keys)
            r.lpush("list", 1)


def test_own_commands_keep_records(own_server):
    with own_server({"ckv.prefixes": "a:"}).client() as r:
        r.execute_command("CSET", "a:1", "v", "PX", 90_000)
        r.set("a:2", "v")
        assert r.execute_command("CGET", "a:2") == b"v" and r.get("a:1") == b"v"
        assert r.execute_command("CMGET", "a:1", "a:2") == [b"v", b"v"]
        assert r.execute_command("CDBSIZE") == 2
        r.lpush("a:list", 1)
        assert r.execute_command("CDEL", "a:1", "a:list") == 2 and r.keys() == [b"a:2"]


@pytest.mark.parametrize("stars", [999, 1000, 1001, 3000])
@pytest.mark.parametrize("end", ["", "*", "**"])
def test_a_pattern_of_very_many_stars_is_given_up_when_the_server_does(server, stars, end):
    name, pattern = "a" * 3000, "*a" * stars + end
    with server.client() as r:
        r.lpush(name, "native")
        native = r.keys(pattern)
        if stars > 1000 and native:
            pytest.skip("a server that does not give up (CVE-2024-31228); ckv does, whatever the server")
        r.delete(name)
        r.set(name, "a record")
        assert r.keys(pattern) == native


def test_the_error_of_a_command_that_replies_an_old_value_is_its_own(server):
    """Valkey 9.1 keeps it back from a module that calls the command, and gives it to a later call."""
    with server.client() as r:
        r.rpush("list", "one")
        for command in (("GETDEL", "list"), ("GETSET", "list", "value"), ("SET", "list", "value", "GET")):
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                r.execute_command(*command)
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                r.eval("return redis.call(unpack(ARGV))", 0, *command)
            assert r.get("nothing") is None and r.mget("list", "nothing") == [None, None]
        assert r.lrange("list", 0, -1) == [b"one"]


@pytest.mark.parametrize("change", ["SET stream string", "MSET stream string", "MULTI|DEL stream|SET stream string|EXEC"])
def test_who_is_blocked_by_a_stream_finds_what_has_overwritten_it(own_server, change):
    told = []
    for config in {}, {"ckv.prefixes": "*"}:
        server = own_server(config)
        with server.client() as r, server.socket() as waiting:
            r.xadd("stream", {"field": "value"})
            r.xgroup_create("stream", "group")
            waiting.sendall(b"XREADGROUP GROUP group me BLOCK 0 STREAMS stream >\r\n")
            wait_for(lambda: r.info("clients")["blocked_clients"] == 1, what="a blocked client")
            for command in change.split("|"):
                r.execute_command(*command.split())
            told.append(waiting.recv(1000))
    assert told[0] == told[1]


WAITING = {
    "BLPOP a b 0": "LPUSH b x",
    "BZPOPMAX a b 0": "ZADD b 1 x",
    "BLMPOP 0 2 a b LEFT": "LPUSH b x",
    "BZMPOP 0 2 a b MIN": "ZADD b 1 x",
    "XREAD BLOCK 0 STREAMS a b $ $": "XADD b 1-1 field value",
}


@pytest.mark.parametrize("waits", WAITING)
def test_who_waits_for_several_keys_finds_what_one_has_become(own_server, waits):
    """Servers that run the command again say so, others don't."""
    told = []
    for config in {}, {"ckv.prefixes": "*"}:
        server = own_server(config)
        with server.client() as r, server.socket() as waiting:
            waiting.sendall(waits.encode() + b"\r\n")
            wait_for(lambda: r.info("clients")["blocked_clients"] == 1, what="a blocked client")
            r.set("a", "a string")
            r.execute_command(*WAITING[waits].split())
            told.append((waiting.recv(1000), r.get("a"), r.type("b")))
    assert told[0] == told[1]


IMPORT = """SET a 1 PX 1|SET b 1 PX 1|SET c 1 PX 100000|DBSIZE|GET a|TTL a|DBSIZE|GET c|SET b 2|GET b
CLIENT IMPORT-SOURCE ON|TTL a|GET a|INCR a|STRLEN a|MGET a c|KEYS a|SCAN 0 MATCH a COUNT 1000
EXPIREAT c 1|GET c|RESET|GET c|DBSIZE"""


def import_data(server):
    told = []
    with server.client() as r:
        if is_error(reply(r, "CONFIG", "SET", "import-mode", "yes")):
            pytest.skip("a server without import-mode")
        for line in IMPORT.replace("\n", "|").split("|"):
            told.append((line, reply(r, *line.split())))
            time.sleep(0.005 if "PX 1" in line else 0)
        r.config_set("import-mode", "no")
        wait_for(lambda: r.dbsize() == 1, what="expiry")
        told.append(r.get("b"))
    return told


def test_what_has_expired_is_there_for_who_imports_it(own_server):
    told = [import_data(own_server(config)) for config in ({}, {"ckv.prefixes": "*"})]
    assert told[0] == told[1]


def test_what_has_expired_stays_for_who_imports_it_where_strings_move_in(own_server):
    """The mover had the server delete it: now and then in the test above."""
    with own_server().client() as r:
        if is_error(reply(r, "CONFIG", "SET", "import-mode", "yes")):
            pytest.skip("a server without import-mode")
        r.set("a", "expires", px=1)
        r.set("b", "stays")
        time.sleep(0.005)
        r.config_set("ckv.prefixes", "*")
        wait_for(lambda: info(r)["moved_in"] == 1, what="the mover")
        r.execute_command("CLIENT", "IMPORT-SOURCE", "ON")
        assert r.mget("a", "b") == [b"expires", b"stays"]


def test_randomkey_deletes_what_it_meets_expired(own_server):
    told = []
    for config, module in ({"ckv.prefixes": "*", **EAGER}, True), (EAGER, False):
        server = own_server({"enable-debug-command": "yes", **config}, module=module)
        with server.client() as r:
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            r.config_set("notify-keyspace-events", "Ex")
            for i in range(5):
                r.set(f"key:{i}", "value", px=1)
            r.hset("hash", "field", "value")
            time.sleep(0.01)

            def draw():
                while r.dbsize() > 1:
                    assert r.randomkey() == b"hash"
                r.publish("end", "end")

            told.append((follow(server, draw, b"end\r\n").count(b"DEL\r\n"), r.info("stats")["expired_keys"]))
    assert told == [(5, 5)] * 2


def test_randomkey_tells_of_what_has_expired_and_has_to_stay(server):
    with server.client() as r, server.client() as other:
        r.execute_command("MULTI")
        r.execute_command("SET", "key", "value", "PX", 1)
        r.execute_command("CLIENT", "PAUSE", 10000, "WRITE")
        r.execute_command("EXEC")
        time.sleep(0.01)
        assert other.get("key") is None and other.randomkey() == b"key"
        r.execute_command("CLIENT", "UNPAUSE")
        assert r.randomkey() is None


@pytest.mark.parametrize("destination", ["get", "by", "limit", "store"])
def test_a_word_of_sort_may_be_the_name_of_a_key(server, destination):
    with server.client() as r:
        r.rpush("list", "b", "a")
        for element in "ab":
            r.set(f"text:{element}", f"of {element}")
            r.set(f"weight:{element}", ord(element))
        assert r.execute_command("SORT", "list", "ALPHA", "STORE", destination, "GET", "text:*") == 2
        assert r.lrange(destination, 0, -1) == [b"of a", b"of b"]
        assert r.execute_command("SORT", "list", "LIMIT", "0", "1", "BY", "weight:*", "GET", "text:*") == [b"of a"]


LOOKS = pytest.mark.parametrize("look", ("MEMORY USAGE {}", "DUMP {}", "OBJECT ENCODING {}"))


@LOOKS
def test_who_looks_changes_no_time(server, look):
    """What the server tells of a string is of one of its own, which comes back as the record that it was."""
    keys = [f"k:{i}" for i in range(100)]
    with server.client() as r:
        asked = {key: now_ms() + 128_100 + i for i, key in enumerate(keys)}
        for key, at in asked.items():
            r.set(key, "value", pxat=at)
        forget_exact_times(r)
        time.sleep(0.3)
        told = [r.pexpiretime(key) for key in keys]
        assert all(at <= asked[key] for key, at in zip(keys, told))
        for key in keys:
            assert r.execute_command(*look.format(key).split())
        assert [r.pexpiretime(key) for key in keys] == told


@LOOKS
def test_who_looks_does_not_use(own_server, look):
    """What has been read stays, and what has not goes, when memory is short behind it."""
    server = own_server({"ckv.prefixes": "*", "maxmemory": "1gb", "maxmemory-policy": "allkeys-lfu"})
    keys = [f"k:{i}" for i in range(20_000)]
    with server.client() as r:
        for n in range(0, len(keys), 1000):
            r.mset({key: noise(60, n + i) for i, key in enumerate(keys[n : n + 1000])})
        for _ in range(5):
            r.mget(keys[:2000])
        pipe = r.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command(*look.format(key).split())
        pipe.execute()
        r.config_set("maxmemory", r.info("memory")["used_memory"] - info(r)["page_bytes"] // 3)
        wait_for(lambda: r.dbsize() < 17_000, what="that some are gone")
        left = [value is not None for value in r.mget(keys)]
        assert sum(left[:2000]) / 2000 > sum(left[2000:]) / 18_000 + 0.15


@pytest.mark.parametrize("order", [(), ("DESC",)])
def test_of_a_list_in_its_own_order_only_the_part_asked_for_moves_out(server, order):
    with server.client() as r:
        r.rpush("list", *range(100))
        for i in range(100):
            r.set(f"text:{i}", f"of {i}")
        assert r.execute_command("SORT", "list", "BY", "nosort", *order, "LIMIT", 10, 2, "GET", "text:*") == (
            [b"of 89", b"of 88"] if order else [b"of 10", b"of 11"]
        )
        assert int(r.info("ckv")["ckv_records"]) == (0 if order else 98)


@pytest.mark.parametrize("options", ("by nosort get text:* get #", "get text:* by nosort limit 3 4 desc", "by nosort get text:* by none alpha get #"))
def test_in_a_script_a_set_is_sorted_that_need_not_be(own_server, options):
    """So the server orders it wherever the script runs, which it doesn't for a command that a module calls."""
    told = []
    for server in (own_server({"ckv.prefixes": "*"}), own_server(module=False)):
        with server.client() as r:
            r.sadd("set", *(f"e{i * 7919 % 1000}" for i in range(40)))
            r.mset({f"text:e{i}": f"of {i}" for i in range(0, 1000, 100)})
            told.append(r.eval("return redis.call('sort', KEYS[1], unpack(ARGV))", 1, "set", *options.split()))
            told[-1].append(r.eval("return redis.call('sort', KEYS[1], 'by', 'nosort', 'get', 'text:*', 'store', 'k')", 1, "set"))
            told[-1].append(r.lrange("k", 0, -1))
    assert told[0] == told[1]


def test_sorting_sets_in_scripts_keeps_no_memory(server):
    script = "for i = 1, ARGV[1] do redis.call('sort', KEYS[1], 'by', 'nosort', 'get', 'text:*') end"
    with server.client() as r:
        r.sadd("set", "a", "b")
        r.eval(script, 1, "set", 100)
        used = r.info("memory")["used_memory"]
        r.eval(script, 1, "set", 30_000)
        assert r.info("memory")["used_memory"] < used + 400_000


@pytest.mark.parametrize("command", (("BLMOVE", "source", "target", "LEFT", "RIGHT", 30), ("BRPOPLPUSH", "source", "target", 30)))
@pytest.mark.parametrize("before", (None, b"earlier"))
def test_what_a_blocked_client_will_write_is_a_string_by_then(server, command, before):
    """The server moves an element when there is one, and asks nobody again."""
    with server.client() as r, server.client() as blocked:
        if before:
            r.set("target", before)
        blocked.connection_pool.get_connection().disconnect()
        connection = blocked.connection_pool.get_connection()
        connection.send_command(*command)
        if before:  # it was there when the command came, which makes no difference: nothing is moved yet
            r.delete("target")
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1)
        time.sleep(1.5)  # somebody has looked at all clients since
        assert r.set("target", "written")
        r.rpush("source", "element")
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            connection.read_response()
        assert r.get("target") == b"written" and r.lrange("source", 0, -1) == [b"element"]
        assert info(r)["records"] == 0
        wait_for(lambda: r.set("target", "again") and info(r)["records"] == 1, what="that the name is let go")


def test_a_transaction_that_a_script_may_not_begin(server):
    with server.client() as r:
        r.eval("redis.pcall('multi')", 0)
        r.set("a", "1")


        def both_are_records():
            r.eval("redis.call('getbit', 'b', 1)", 0)  # a key of a command that only the server can run
            r.set("b", "1")
            return info(r)["records"] == 2

        wait_for(both_are_records, "that somebody has looked at all clients")


def test_a_name_is_let_go_while_others_wait(server):
    with server.client() as r, server.client() as worker:
        connection = worker.connection_pool.get_connection()
        connection.send_command("BLPOP", "nothing", 0)
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1)
        r.rpush("source", "x")
        assert r.execute_command("BLMOVE", "source", "target", "LEFT", "LEFT", 1) == b"x"
        r.delete("target")
        wait_for(lambda: r.set("target", "a string") and info(r)["records"] == 1)


def test_a_channel_is_no_key(server):
    """Servers name it where they name keys, for a cluster to spread: a record of its name moved out with each message."""
    with server.client() as r, server.client() as other:
        r.mset({"one": "value", "two": "value"})
        assert r.execute_command("SPUBLISH", "one", "message") == 0
        other.execute_command("SSUBSCRIBE", "two")
        assert r.execute_command("SPUBLISH", "two", "message") == 1
        assert info(r)["moved_out"] == 0 and info(r)["records"] == 2


def test_an_unknown_option_is_named_in_full(server):
    with server.client() as r:
        r.set("k", "v")
        option = "LATER" * 100
        assert str(reply(r, "EXPIRE", "k", 10, option)) == f"Unsupported option {option}"
