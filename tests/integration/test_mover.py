"""The mover: strings under a prefix move into ckv and out again, and nobody notices."""

import itertools
import random
import time

import pytest

from checking import THEIRS, checking
from helpers import info, is_in_sync, load, noise, texts, wait_for, wait_for_replica
from mover_data import ask, assert_same, fill, move_in, move_out, moving, state, wait_moved

FAST = {"ckv.move-cpu": 100}
COUNT = 10_000


def memory(r):
    return r.execute_command("INFO", "memory")["used_memory"]


def records(r):
    return info(r)["records"]


def test_in_and_out_again(own_server):
    with own_server(FAST).client() as r:
        fill(r, COUNT)
        before = state(r)
        told = move_in(r)
        strings = sum(kind == b"string" and key.startswith(b"user:") for (_, key), (kind, *_) in before.items())
        assert told["moved"] + told["left"] == strings
        assert info(r)["records"] == told["moved"] > 0.9 * strings
        assert_same(before, state(r))
        told = move_out(r)
        assert told["left"] == 0 and info(r)["records"] == 0
        wait_for(lambda: not info(r)["prefixes_leaving"], what="that the prefix is forgotten")
        assert_same(before, state(r))


def test_memory_falls_by_what_is_told(own_server):
    server = own_server({"ckv.maps": 16, "ckv.train-after": "1gb", **FAST})
    with server.client() as r:
        # What is made once, of work space, maps and the server's list of commands, is not what the strings save.
        r.execute_command("CSET", "first", "a")
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "none:")
        ask(r, [("SET", f"user:{i}", value) for i, value in enumerate(texts(5 * COUNT))])
        time.sleep(0.5)
        used = memory(r)
        told = move_in(r)["saved_bytes"]
        assert told > 10 * 5 * COUNT
        # The server makes its table of keys smaller in its own time.
        wait_for(lambda: abs(told - (used - memory(r))) < 0.15 * told, what=f"that {told} bytes are saved, not {used - memory(r)}")


def test_what_is_lost_is_told_as_well(own_server):
    """A map for each string takes more than the string did."""
    server = own_server({"ckv.maps": 16384, "ckv.train-after": "1gb", **FAST})
    with server.client() as r:
        ask(r, [("SET", f"user:{i}:x", "v") for i in range(COUNT)])
        used = memory(r)
        told = move_in(r)["saved_bytes"]
        # The server makes its table of keys larger and smaller in its own time.
        wait_for(lambda: abs(told + memory(r) - used) < 0.3 * (memory(r) - used), what=f"that {-told} bytes are lost")


def test_neither_of_two_values_of_a_name_is_lost(own_server):
    """An application that has used CSET beside SET."""
    with own_server({"ckv.maps": 16, **FAST}).client() as r:
        r.hset("user:1", "f", "v")
        r.rpush("user:2", "a")
        r.set("user:3", "native")
        for i in range(1, 5):
            r.execute_command("CSET", f"user:{i}", f"record {i}")
        r.execute_command("CKV", "MOVE", "OUT", "user:")
        assert wait_moved(r, b"out")["left"] == 3
        assert (r.execute_command("CMOVEOUT", "user:1"), r.execute_command("CMOVEIN", "user:3")) == (0, 0)
        assert (r.hget("user:1", "f"), r.lrange("user:2", 0, -1), r.get("user:3"), r.get("user:4")) == (b"v", [b"a"], b"native", b"record 4")
        assert [r.execute_command("CGET", f"user:{i}") for i in range(1, 5)] == [b"record 1", b"record 2", b"record 3", None]
        r.execute_command("CSET", "user:4", "record 4")
        r.execute_command("CKV", "MOVE", "IN", "user:")
        assert wait_moved(r, b"in")["left"] == 2
        assert (r.get("user:3"), r.get("user:4"), r.execute_command("CGET", "user:3")) == (b"native", b"record 4", b"record 3")
        move_in(r)
        assert (r.hget("user:1", "f"), r.lrange("user:2", 0, -1)) == (b"v", [b"a"])
        move_out(r)
        assert (r.hget("user:1", "f"), r.lrange("user:2", 0, -1), r.execute_command("CGET", "user:1")) == (b"v", [b"a"], b"record 1")


def test_a_server_that_starts_with_strings_takes_them_in(own_server):
    server = own_server({"appendonly": "yes"})
    with server.client() as r:
        fill(r, 500)
        before = state(r)
    server.config |= {"ckv.prefixes": '"user:"', **FAST}
    server.restart()
    with server.client() as r:
        assert wait_moved(r, b"in")["moved"] > 300
        assert_same(before, state(r))
        r.execute_command("DEBUG", "RELOAD")
        assert_same(before, state(r))


def test_a_restart_with_the_setting_forgotten_goes_on_moving_out(own_server):
    server = own_server({"save": "900 1", **FAST})
    with server.client() as r:
        fill(r, 500)
        before = state(r)
        move_in(r)
    server.restart()
    with server.client() as r:
        wait_for(lambda: not info(r)["prefixes_leaving"], what="the end of moving out")
        assert records(r) == 0
        assert_same(before, state(r))


def test_no_event_no_watch_no_tracking(own_server):
    server = own_server({"notify-keyspace-events": "KEAnm", **FAST})
    with server.client() as r, server.client() as listener, server.socket() as tracker, server.client() as watcher:
        fill(r, 500)
        keys = [k for k in r.execute_command("KEYS", "user:*") if r.execute_command("TYPE", k) == b"string"]
        listener.connection.send_command("PSUBSCRIBE", "__key*__:*")
        assert listener.connection.read_response()[0] == b"psubscribe"
        tracker.sendall(b"HELLO 3\r\nCLIENT TRACKING ON\r\n")
        tracker.sendall(b"".join(b"GET %s\r\n" % k for k in keys) + b"PING\r\n")
        read_until(tracker, b"+PONG\r\n")
        for move in (move_in, move_out):
            watcher.execute_command("WATCH", *keys)
            move(r)
            replies = [watcher.execute_command(word) for word in ("MULTI", "PING", "EXEC")]
            assert replies == [b"OK", b"QUEUED", [b"PONG"]]
        assert not listener.connection.can_read(timeout=0.2)
        tracker.sendall(b"PING\r\n")
        assert read_until(tracker, b"+PONG\r\n") == b"+PONG\r\n"
        r.execute_command("SET", keys[0], "new")
        assert listener.connection.read_response()[0] == b"pmessage"
        assert b"invalidate" in read_until(tracker, keys[0])


def read_until(s, end):
    got = b""
    while end not in got:
        got += s.recv(1 << 16)
    return got


def test_what_would_not_gain_stays_and_is_left_alone(own_server):
    server = own_server({"ckv.train-after": "64kb", **FAST})
    rng = random.Random(1)
    with server.client() as r:
        for i, value in enumerate(texts(3000)):
            r.execute_command("SET", f"text:{i}", value)
        move_in(r, "text:")
        wait_for(lambda: info(r)["dictionaries"] > 0, what="a dictionary")
        for i in range(20):
            r.execute_command("SET", f"photo:{i}", rng.randbytes(5000))
        r.execute_command("SET", "photo:huge", bytes(3 << 20))
        r.execute_command("PFADD", "photo:seen", *range(1000))
        r.execute_command("HSET", "photo:hash", "a", 1)
        told = move_in(r, "text: photo:")
        assert told["moved"] == 0 and told["left"] == 22
        before = info(r)["moved_in"]
        time.sleep(0.5)
        assert info(r)["moved_in"] == before and moving(r, b"in")["seconds"] == told["seconds"]


def test_what_would_not_gain_stays_where_nothing_has_been_learned(own_server):
    with own_server(FAST).client() as r:
        ask(r, [("SET", f"photo:{i}", noise(5000, i)) for i in range(100)])
        ask(r, [("SET", f"photo:long:{i}", noise(100_000, i)) for i in range(10)])
        ask(r, [("SET", f"photo:text:{i}", value * 10) for i, value in enumerate(texts(100))])
        told = move_in(r, "photo:")
        assert (told["moved"], told["left"]) == (100, 110)


def test_long_values_wait_for_room_to_be_young(own_server, faults):
    """A second at most, where the thread that makes room has no processor: then they come in a minute later."""
    server = own_server({"ckv.young-memory": "256kb", **FAST}, env=faults.env)
    values = {f"page:{i}": bytes(f"{i:<9}", "ascii") * 12_000 for i in range(30)}
    with server.client() as r:
        r.mset(values)
        told = move_in(r, "page:")
        assert told["moved"] + told["left"] == len(values) and told["moved"] > 2  # which is all that there is room for at once
        minutes = itertools.count(1)

        def all_in_a_minute_later():
            faults.set(passed=60 * next(minutes))
            return records(r) == len(values)

        assert told["left"] == 0 or wait_for(all_in_a_minute_later, "that all have moved in")
        assert r.mget(values) == list(values.values())


def test_what_stays_is_not_learned_from(own_server):
    """10 MB that do not compress are no sign that the data has changed if none of it is taken in."""
    server = own_server({"ckv.train-after": "1gb", **FAST})
    with server.client() as r:
        load(r, texts(20_000))
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CONFIG", "SET", "ckv.train-after", "1mb")
        ask(r, [("SET", f"photo:{i}", noise(1000, i)) for i in range(10_000)])
        told = move_in(r, "photo:")
        assert told["moved"] == 0 and told["left"] == 10_000
        time.sleep(0.5)
        assert info(r)["training"] == 0 and server.log().count("trained on") == 1


def test_bits_in_use_stay(own_server):
    with own_server(FAST).client() as r:
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "seen:")
        r.execute_command("SET", "seen:1", "abc")
        assert records(r) == 1
        r.execute_command("SETBIT", "seen:1", 3, 1)
        r.execute_command("SETBIT", "seen:2", 3, 1)
        assert records(r) == 0
        told = move_in(r, "seen: more:")
        assert told["left"] == 2 and records(r) == 0


@pytest.mark.slow  # two minutes of it waiting
def test_what_the_server_has_worked_on_stays_with_it_for_a_minute(own_server):
    """Whenever in the minute before that was: names grow old together."""
    with own_server({"ckv.prefixes": '"*"', **FAST}).client() as r:
        for name, wait_s in (("first", 50), ("second", 0)):
            r.execute_command("SET", name, "v" * 1000)
            r.execute_command("SETBIT", name, 7, 1)
            time.sleep(wait_s)
        named = time.monotonic()
        assert records(r) == 0
        wait_for(lambda: records(r) > 0)
        assert time.monotonic() - named > 55
        wait_for(lambda: records(r) == 2)
        assert time.monotonic() - named < 200  # a minute or two


def test_more_bit_maps_than_names_are_kept(own_server, faults):
    """What was forgotten is found by a walk, an hour later."""
    with own_server({"ckv.prefixes": "seen:", **FAST}, env=faults.env).client() as r:
        ask(r, [("SETBIT", f"seen:{i}:x", 7, 1) for i in range(110_000)])
        assert records(r) == 0
        minutes = itertools.count(1)

        def all_in_a_minute_later():
            faults.set(passed=60 * next(minutes))
            return records(r) == 110_000

        wait_for(all_in_a_minute_later, what="that all have moved in")
        assert r.execute_command("GETBIT", "seen:5:x", 7) == 1


def test_what_was_built_in_pieces_moves_in_when_it_is_whole(own_server, faults):
    """A longer value that is appended to is the server's: to encode all of it for every piece would take too long. It is
    no walk that takes it in."""
    with own_server({"ckv.prefixes": '"*"', **FAST}, env=faults.env).client() as r:
        wait_moved(r, b"in")
        for name, first in ("grown", "text " * 800), ("long", "text " * 2000):
            r.execute_command("SET", name, first)
            r.execute_command("APPEND", name, "and more " * 20)
        r.execute_command("APPEND", "long", "again")
        r.execute_command("SETRANGE", "written", 5000, "at its end")
        assert records(r) == 0
        minutes = itertools.count(1)

        def all_in_a_minute_later():
            faults.set(passed=60 * next(minutes))
            return records(r) == 3

        wait_for(all_in_a_minute_later, what="that they have moved in")
        assert r.execute_command("STRLEN", "long") == 10_000 + 180 + 5


def test_a_replica_moves_by_itself(own_server):
    primary = own_server(FAST)
    replica = own_server({"replicaof": f"127.0.0.1 {primary.port}", **FAST})
    with primary.client() as r, replica.client() as second:
        wait_for(lambda: is_in_sync(second), what="the replica")
        fill(r, 1000)
        wait_for_replica(r)
        before = state(r)
        offset = r.execute_command("INFO", "replication")["master_repl_offset"]
        move_in(r)
        assert records(second) == 0
        assert_same(before, state(second))
        move_in(second)
        assert records(second) == records(r) > 500
        assert_same(before, state(second))
        move_out(r)
        assert records(second) > 500
        assert_same(before, state(second))
        # Nothing but pings was told.
        assert r.execute_command("INFO", "replication")["master_repl_offset"] - offset < 200


def test_a_replica_that_syncs_in_the_middle_and_is_promoted(own_server):
    primary = own_server()
    with primary.client() as r:
        fill(r, 20_000)
        before = state(r)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        wait_for(lambda: 1000 < records(r), what="some records")
        replica = own_server({"replicaof": f"127.0.0.1 {primary.port}", "ckv.prefixes": '"user:"'})
        with replica.client() as second:
            wait_for(lambda: is_in_sync(second), what="the replica")
            assert 0 < records(second) < len(before), "the replica should sync in the middle"
            primary.kill()
            second.execute_command("REPLICAOF", "NO", "ONE")
            assert_same(before, state(second))
            second.execute_command("CONFIG", "SET", "ckv.move-cpu", 100)
            wait_moved(second, b"in")
            assert_same(before, state(second))


def test_moving_out_stops_before_maxmemory_and_goes_on(own_server):
    server = own_server({"maxmemory-policy": "allkeys-lru", "ckv.train-after": "1gb", **FAST})
    with server.client() as r:
        values = texts(40_000)
        pipe = r.pipeline(transaction=False)
        for i, value in enumerate(values):
            pipe.execute_command("SET", f"user:{i}", value)
        pipe.execute()
        move_in(r)
        # 1 MB is kept free. What some take more as strings is a little beyond, and what all do is twice that.
        limit = memory(r) + 1_100_000
        r.execute_command("CONFIG", "SET", "maxmemory", limit)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
        wait_for(lambda: moving(r, b"out")["waits_for"] == "maxmemory", "the limit")
        while records(r) == 40_000:
            limit += 100_000
            r.execute_command("CONFIG", "SET", "maxmemory", limit)
            time.sleep(0.5)
        wait_for(lambda: moving(r, b"out")["waits_for"] == "maxmemory", "the limit")
        assert 0 < records(r) < 40_000 and info(r)["moving_out"] == "waiting"
        assert "moving strings out of ckv waits for memory (maxmemory)" in server.log()
        time.sleep(0.5)
        assert records(r) > 0
        assert info(r)["evicted_records"] == 0 and info(r)["evicted_other_keys"] == 0
        r.execute_command("CONFIG", "SET", "maxmemory", 0)
        assert wait_moved(r, b"out")["left"] == 0 and records(r) == 0
        assert r.execute_command("MGET", *[f"user:{i}" for i in range(40_000)]) == values


@pytest.mark.parametrize("group", ["/", "/system.slice/redis.service"])
def test_moving_out_stops_before_a_containers_limit_and_goes_on(own_server, faults, group):
    folder = "/sys/fs/cgroup" + group.rstrip("/")
    faults.say("/proc/self/cgroup", f"1:cpu:/elsewhere\n0::{group}\n")
    faults.say(folder + "/memory.max", "max\n")
    faults.say(folder + "/memory.current", "950000000\n")
    faults.say(folder + "/memory.stat", "anon 850000000\ninactive_file 1000\nactive_file 1000\n")
    with own_server(FAST, env=faults.env).client() as r:
        ask(r, [("SET", f"user:{i}", value) for i, value in enumerate(texts(1000))])
        move_in(r)
        move_out(r)  # there is no limit
        move_in(r)
        faults.say(folder + "/memory.max", "1000000000\n")
        time.sleep(0.2)  # what was read before is believed for a moment
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
        wait_for(lambda: moving(r, b"out")["waits_for"] == "maxmemory", what="the limit")
        assert records(r) == 1000
        faults.say(folder + "/memory.stat", "anon 850000000\ninactive_file 60000000\nactive_file 1000\n")
        assert wait_moved(r, b"out")["left"] == 0 and records(r) == 0


def test_moving_in_stops_before_ckv_maxmemory(own_server):
    server = own_server({"ckv.maxmemory": "3mb", "maxmemory-policy": "allkeys-lru", **FAST})
    with server.client() as r:
        fill(r, 60_000)
        before = state(r)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        wait_for(lambda: moving(r, b"in")["waits_for"] == "ckv.maxmemory", "the limit")
        assert info(r)["evicted_records"] == 0
        assert_same(before, state(r))
        r.execute_command("CONFIG", "SET", "ckv.maxmemory", 0)
        wait_moved(r, b"in")
        assert_same(before, state(r))


def test_a_transaction_from_before_the_prefix(own_server):
    """What it has queued is the server's own INCR, which must find its string."""
    server = own_server(FAST)
    with server.client() as r, server.client() as other:
        r.execute_command("SET", "user:1", 41)
        other.execute_command("MULTI")
        other.execute_command("INCR", "user:1")
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        wait_for(lambda: moving(r, b"in")["waits_for"] == "a transaction from before", what="the wait")
        assert other.execute_command("EXEC") == [42]
        assert wait_moved(r, b"in")["moved"] == 1
        assert r.execute_command("GET", "user:1") == b"42"


def test_a_command_that_a_pause_holds_back(own_server):
    server = own_server(FAST)
    with server.client() as r, server.client() as other:
        r.execute_command("SET", "user:1", 41)
        r.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")
        other.connection.send_command("SETBIT", "user:1", 1, 0)
        wait_for(lambda: r.info("clients")["blocked_clients"] == 1, what="the command's arrival")
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        time.sleep(0.3)
        r.execute_command("CLIENT", "UNPAUSE")
        assert other.connection.read_response() == 0
        wait_moved(r, b"in")
        assert r.execute_command("GET", "user:1") == b"41"


def test_watch_sees_a_moved_string_expire(own_server, faults):
    server = own_server(FAST, env=faults.env)
    with server.client() as r, server.client() as early, server.client() as late:
        r.execute_command("SET", "user:1", "a", "EX", 600)
        early.execute_command("WATCH", "user:1")
        move_in(r)
        late.execute_command("WATCH", "user:1")
        faults.set(seconds=3600)
        wait_for(lambda: records(r) == 0, what="that it expires")
        for watcher in early, late:
            assert [watcher.execute_command(word) for word in ("MULTI", "PING", "EXEC")] == [b"OK", b"QUEUED", None]


@pytest.mark.parametrize("out", [False, True], ids=["in", "out"])
def test_scan_meets_every_key(own_server, out):
    with own_server().client() as r:
        fill(r, 5000)
        keys = set(r.execute_command("KEYS", "*"))
        if out:
            r.execute_command("CONFIG", "SET", "ckv.move-cpu", 100)
            move_in(r)
            r.execute_command("CONFIG", "SET", "ckv.move-cpu", 1)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "" if out else "user:")
        while True:
            found, cursor = set(), b"0"
            working = moving(r, b"out" if out else b"in")["state"] == "working"
            while True:
                cursor, some = r.execute_command("SCAN", cursor, "COUNT", 20)
                found.update(some)
                if cursor == b"0":
                    break
            assert keys - found == set()
            r.execute_command("CONFIG", "SET", "ckv.move-cpu", 100)
            if not working:
                break


def test_databases_that_are_swapped_in_the_middle(own_server):
    with own_server({"ckv.move-cpu": 1}).client() as r:
        fill(r, 10_000)
        before = state(r)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        wait_for(lambda: records(r) > 500, what="some records")
        r.execute_command("SWAPDB", 0, 3)
        r.execute_command("CONFIG", "SET", "ckv.move-cpu", 100)
        left = wait_moved(r, b"in")["left"]
        strings = sum(kind == b"string" and key.startswith(b"user:") for (_, key), (kind, *_) in before.items())
        came_behind = records(r) + left - strings  # long values for which there was no room at first
        assert 0 <= came_behind < 10
        assert_same({(3 - db, key): what for (db, key), what in before.items()}, state(r))


def under_load(server, rounds, keys):
    with checking([server], keys) as clients, server.client() as r:
        for _ in range(rounds):
            move_in(r)
            assert info(r)["records"] > keys
            move_out(r)
        wait_for(lambda: all(client.count > 100 for client in clients), "some commands")


def test_every_reply_is_right_under_load(own_server):
    under_load(own_server(FAST), rounds=3, keys=2000)


@pytest.mark.slow
def test_every_reply_is_right_under_load_of_a_million(own_server):
    server = own_server({"ckv.move-cpu": 20})
    with server.client() as r:
        fill(r, 800_000)
        before = state(r)
        under_load(server, rounds=1, keys=20_000)
        assert_same(before, state(r, THEIRS))


def test_a_prefix_that_leaves_where_nothing_is(own_server):
    with own_server({"ckv.prefixes": "user:"}).client() as r:
        assert moving(r, b"out")["state"] == "none"
        assert move_out(r)["moved"] == 0


def test_a_prefix_that_leaves_twice(own_server):
    with own_server(FAST).client() as r:
        for _ in range(2):
            r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
            r.execute_command("SCAN", 0, "COUNT", 1)  # a cursor is out: the prefix is not forgotten at once
            ask(r, [("SET", f"user:{i}", i) for i in range(500)])
            move_out(r)
            assert [r.execute_command("GET", f"user:{i}") for i in (0, 499)] == [b"0", b"499"]
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        ask(r, [("SET", f"user:{i}", i) for i in range(500)])
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
        assert r.execute_command("MGET", *[f"user:{i}" for i in range(500)]) == [b"%d" % i for i in range(500)]


@pytest.mark.parametrize("name", ("backup", "ckv:7"))
def test_records_of_ones_own_stay_when_a_map_comes(own_server, name):
    """Under a prefix that was let go, and that an application uses for CSET since."""
    with own_server({"ckv.maps": 16, **FAST}).client() as r:
        r.config_set("ckv.prefixes", "user:")
        r.config_set("ckv.prefixes", "")
        wait_for(lambda: not info(r)["prefixes_leaving"], what="that the prefix is forgotten")
        for i in range(100):
            r.execute_command("CSET", f"user:{i}", i)
        payload = r.dump("ckv:7")
        r.delete("ckv:7")
        r.restore(name, 0, payload)
        time.sleep(0.3)
        assert not info(r)["prefixes_leaving"]
        assert r.exists(*(f"user:{i}" for i in range(100))) == 0
        assert info(r)["records"] == r.execute_command("CDBSIZE")


def test_a_session_that_debugged_a_script_is_over(own_server):
    """The child in which it runs was waited for until the next one ended."""
    with own_server({"save": ""}) as server, server.client() as r:
        r.mset({f"k:{i}": "some value" for i in range(100)})
        with server.socket() as session:
            for command in (b"SCRIPT DEBUG YES\r\n", b"EVAL 'return 1' 0\r\n", b"*1\r\n$8\r\ncontinue\r\n"):
                session.sendall(command)
                assert session.recv(4096)
        assert move_in(r, "k:")["state"] == "done"
        assert info(r)["records"] == 100
