"""Commands on the Redis keys that hold maps: copied, renamed, dumped, restored, moved, deleted."""

import os

import pytest

from helpers import assert_stored, info, is_error, load, map_keys, reply, texts, wait_for, wait_for_replica
from test_restore_damage import seal


def first_map(r):
    return sorted(map_keys(r))[0]


def test_copy_in_place_of_what_was_deleted(r):
    stored = load(r, texts(3000))
    name = first_map(r)
    assert r.execute_command("COPY", name, "kept") == 1
    r.delete(name)
    assert r.execute_command("CDBSIZE") < len(stored)
    r.rename("kept", name)
    assert r.execute_command("CDBSIZE") == len(stored)
    for key, value in stored.items():
        assert r.execute_command("CGET", key) == value


def test_dump_and_restore(r):
    stored = load(r, texts(3000), ttl=1000)
    name = first_map(r)
    payload = r.dump(name)
    r.delete(name)
    r.restore(name, 0, payload)
    assert all(r.execute_command("CGET", key) == value for key, value in stored.items())
    assert all(900 < r.execute_command("CTTL", key) <= 1001 for key in list(stored)[:50])


def test_move_takes_the_records_along(r):
    stored = load(r, texts(500))
    for name in map_keys(r):
        assert r.execute_command("MOVE", name, 1)
    assert r.execute_command("CDBSIZE") == 0
    r.execute_command("SELECT", 1)
    try:
        assert r.execute_command("CDBSIZE") == len(stored)
        assert all(r.execute_command("CGET", key) == value for key, value in stored.items())
    finally:
        r.flushdb()
        r.execute_command("SELECT", 0)


@pytest.mark.parametrize("kind", ["string", "map"])
def test_copy_and_move_leave_the_client_where_it_was(r, own_server, kind):
    """A module that listens to keyspace notifications makes Valkey 8.1 leave it, and what is replicated, in the other database."""
    replica = own_server({"replicaof": f"127.0.0.1 {r.connection_pool.connection_kwargs['port']}"})
    name = "s" if kind == "string" else map_keys_after(r, lambda: r.execute_command("CSET", "s", "v"))
    if kind == "string":
        r.execute_command("SET", name, "v")
    try:
        assert r.execute_command("COPY", name, name, "DB", 2) == 1
        assert b" db=0 " in r.execute_command("CLIENT", "INFO")
        assert r.execute_command("MOVE", name, 3) == 1
        assert b" db=0 " in r.execute_command("CLIENT", "INFO")
        r.execute_command("EVAL", "redis.call('SELECT', 2) redis.call('MOVE', KEYS[1], 4) redis.call('SET', 'here', 2)", 1, name)
        r.execute_command("MULTI")
        r.execute_command("SELECT", 4)
        r.execute_command("COPY", name, name, "DB", 5)
        r.execute_command("SET", "there", 4)
        r.execute_command("SELECT", 0)
        r.execute_command("EXEC")
        wait_for_replica(r)
        with replica.client() as q:
            for client in (r, q):
                found = {}
                for db in range(6):
                    client.execute_command("SELECT", db)
                    found[db] = set(client.execute_command("KEYS", "*"))
                name = name if isinstance(name, bytes) else name.encode()
                assert found == {0: set(), 1: set(), 2: {b"here"}, 3: {name}, 4: {name, b"there"}, 5: {name}}
                client.execute_command("SELECT", 0)
    finally:
        r.flushall()


def map_keys_after(r, change):
    change()
    return first_map(r)


def test_a_map_that_was_renamed_is_not_lost(own_server):
    """Under a name of its own, or under the one of another map's place, with or without a restart in between."""
    server = own_server({"ckv.train-after": "64kb"})
    with server.client() as r:
        stored = load(r, texts(3000), ttl=1000)
        r.execute_command("CKV", "TRAIN")
        name = first_map(r)
        r.execute_command("RENAME", name, "aside")
        assert r.execute_command("CDBSIZE") < len(stored)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        r.execute_command("RENAME", "aside", name)
        assert r.execute_command("CDBSIZE") == len(stored)
        assert info(r)["records_with_expiry"] == len(stored)
        assert_stored(r, stored)
        r.execute_command("RENAME", name, "aside")
        left = len(stored) - r.execute_command("CDBSIZE")
        # What it was written with is still there when others have learned something else, and in the file.
        load(r, texts(3000, seed=2), key=b"new:%d")
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        r.delete(*map_keys(r))
    server.restart()
    with server.client() as r:
        assert r.execute_command("CDBSIZE") == 0
        r.execute_command("RENAME", "aside", name)
        assert r.execute_command("CDBSIZE") == left > 0
        assert sum(r.execute_command("CGET", key) == value for key, value in stored.items()) == left


def test_a_map_that_is_renamed_right_after_a_restart_keeps_its_dictionary(own_server):
    """The pass after a restart frees what it meets in no map; renaming takes the map from where the pass has come to."""
    server = own_server({"ckv.train-after": "64kb", "ckv.maps": "1"})
    with server.client() as r:
        stored = load(r, texts(1000))
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        (name,) = map_keys(r)
        r.execute_command("RENAME", name, "aside")
        load(r, texts(1000, seed=2), key=b"new:%d")
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        r.delete(name)
    server.restart()
    with server.client() as r:
        r.execute_command("RENAME", "aside", name)
        assert r.execute_command("CDBSIZE") == len(stored)
        wait_for(lambda: info(r)["dictionaries"] == 1)
        assert_stored(r, stored)


def test_a_map_that_was_moved_is_found_by_the_timer(own_server, faults):
    """Nobody asks for its records; they expire nevertheless, and INFO counts them."""
    with own_server(env=faults.env).client() as r:
        stored = load(r, texts(300))
        r.execute_command("CEXPIRE", "KEY:5", 600)
        for name in map_keys(r):
            assert r.execute_command("MOVE", name, 7) == 1
        wait_for(lambda: info(r)["records"] == len(stored))
        faults.set(seconds=3600)
        wait_for(lambda: info(r)["expired_records"] == 1)
        assert info(r)["records"] == len(stored) - 1


@pytest.mark.parametrize("trained", [False, True])
def test_a_dumped_map_brings_what_it_takes_to_read_it(r, own_server, trained):
    """To a server with no dictionaries, or others."""
    stored = load(r, texts(3000), ttl=1000)
    r.execute_command("CKV", "TRAIN")
    r.execute_command("CKV", "OPTIMIZE")
    with own_server().client() as other:
        if trained:
            load(other, texts(3000, seed=9), first=1_000_000)
            other.execute_command("CKV", "TRAIN")
            other.execute_command("FLUSHALL")
        for name in map_keys(r):
            other.restore(name, 0, r.dump(name))
        assert other.execute_command("CDBSIZE") == len(stored)
        assert_stored(other, stored)


def test_migrate_of_a_stand_alone_server(r, own_server):
    stored = load(r, texts(3000), ttl=1000)
    target = own_server()
    with target.client() as other:
        names = map_keys(r)
        for first in range(0, len(names), 50):
            r.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 20_000, "KEYS", *names[first:first + 50])
        assert r.execute_command("CDBSIZE") == 0 and map_keys(r) == []
        assert_stored(other, stored)


@pytest.mark.parametrize("limit", ["proto-max-bulk-len", "client-query-buffer-limit"])
def test_migrate_of_more_than_the_target_takes(own_server, limit):
    """It ends with an error, nothing is lost, and goes on when the limit is raised."""
    source, target = own_server({"ckv.maps": 1}), own_server({"ckv.maps": 1, limit: "1mb"})
    with source.client() as r, target.client() as other:
        stored = load(r, [os.urandom(1000) for _ in range(3000)])
        migrate = ("MIGRATE", "127.0.0.1", target.port, "ckv:0", 0, 20_000)
        assert is_error(reply(r, *migrate))
        assert r.execute_command("CDBSIZE") == 3000 and other.execute_command("CDBSIZE") == 0
        other.config_set(limit, "1gb")
        assert reply(r, *migrate) == b"OK" and r.execute_command("CDBSIZE") == 0
        assert_stored(other, stored)


def test_swapped_databases(shared, r):
    with shared.client(db=1) as other:
        here, there = load(r, texts(500)), load(other, texts(300, seed=5), first=10_000)
        r.execute_command("SWAPDB", 0, 1)
        assert other.execute_command("CDBSIZE") == len(here) and r.execute_command("CDBSIZE") == len(there)
        assert_stored(other, here)
        assert_stored(r, there)
        other.execute_command("CSET", "new", "in 1")
        assert r.execute_command("CGET", "new") is None and other.execute_command("CGET", "new") == b"in 1"


@pytest.mark.parametrize("how", ["ASYNC", "SYNC"])
@pytest.mark.parametrize("command", ["FLUSHALL", "FLUSHDB"])
def test_flushed(r, command, how):
    load(r, texts(5000), ttl=1000)
    assert r.execute_command(command, how)
    assert r.execute_command("CDBSIZE") == 0 and r.execute_command("CGET", "KEY:1") is None
    fields = r.execute_command("INFO", "ckv")
    assert fields["ckv_records"] == fields["ckv_page_bytes"] == 0
    assert_stored(r, load(r, texts(500)))


def test_what_is_told_of_a_map(r):
    load(r, texts(3000))
    name = first_map(r)
    assert r.object("refcount", name) == 1
    assert r.object("idletime", name) is not None
    assert r.memory_usage(name) > 0
    assert b"refcount:1" in r.execute_command("DEBUG", "OBJECT", name)
    assert r.execute_command("TYPE", name) == b"ckv-map-1"


def test_a_map_of_a_newer_version(r):
    """The version is in the last ten bits of the module's id, which follow the byte for its type."""
    stored = load(r, texts(3000))
    name = first_map(r)
    body = bytearray(r.dump(name)[:-8])
    assert body[1] == 0x81
    body[9] += 1
    answer = reply(r, "RESTORE", "elsewhere", 0, seal(body))
    assert "Bad data format" in repr(answer), answer
    assert r.exists("elsewhere") == 0
    assert_stored(r, stored)


def test_unloading_is_refused(own_server):
    with own_server({"enable-module-command": "yes"}).client() as r:
        stored = load(r, texts(100))
        answer = reply(r, "MODULE", "UNLOAD", "ckv")
        assert is_error(answer) and "data types" in repr(answer), answer
        assert_stored(r, stored)
