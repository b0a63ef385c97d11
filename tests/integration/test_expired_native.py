"""Keys of the server's own that have expired and are still there, as on a replica and while clients are paused: nobody sees
them, and a server dies of what is put in their place."""

import time

import pytest

from helpers import info, is_in_sync, reply, wait_for, wait_for_replica
from mover_data import wait_moved

FAST = {"ckv.maps": 2, "ckv.move-cpu": 100}


@pytest.fixture
def primary(own_server):
    """It deletes nothing by itself."""
    server = own_server(FAST)
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        yield server
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)


@pytest.fixture
def replica(own_server, primary):
    server = own_server({**FAST, "replicaof": f"127.0.0.1 {primary.port}"})
    with server.client() as q:
        wait_for(lambda: is_in_sync(q), what="the replica")
    return server


@pytest.mark.parametrize("memory", ["MEMORY", "remember", '""'], ids=["", "renamed", "taken-away"])
def test_where_a_map_is_to_be(primary, replica, memory):
    """Where the server can't be asked whether there is anything, nothing is moved."""
    if memory != "MEMORY":
        replica.stop()
        replica.config["rename-command"] = f"MEMORY {memory}"
        replica.start()
    with primary.client() as r, replica.client() as q:
        r.mset({f"user:{i}": f"some value of {i}" for i in range(100)})
        for n in range(FAST["ckv.maps"]):
            r.set(f"ckv:{n}", "in the way", px=50)
        wait_for_replica(r)
        time.sleep(0.1)
        q.config_set("ckv.prefixes", "user:")
        time.sleep(1)  # in which the mover tries
        assert q.get("user:7") == b"some value of 7"
        assert q.execute_command("CDBSIZE") == 0
        assert r.exists("ckv:0", "ckv:1") == 0  # which has them deleted everywhere
        wait_for_replica(r)
        q.config_set("ckv.prefixes", "")
        q.config_set("ckv.prefixes", "user:")
        wait_moved(q, b"in")
        assert q.execute_command("CDBSIZE") == (100 if memory == "MEMORY" else 0) and q.get("user:7") == b"some value of 7"


def test_where_a_record_is_to_be_a_string(primary, replica):
    with primary.client() as r, replica.client() as q:
        r.execute_command("CSET", "user:1", "record")
        r.set("user:1", "string", px=50)
        wait_for_replica(r)
        time.sleep(0.1)
        q.config_set("ckv.prefixes", "user:")
        q.config_set("ckv.prefixes", "")
        assert wait_moved(q, b"out")["left"] == 1
        assert q.get("user:1") == q.execute_command("CGET", "user:1") == b"record"


@pytest.mark.parametrize("command", ["DUMP", "BITCOUNT", "OBJECT ENCODING", "MEMORY USAGE"])
def test_what_is_lent_in_a_pause(primary, command):
    with primary.client() as r:
        r.execute_command("CSET", "user:1", "record")
        r.set("user:1", "string", px=50)
        time.sleep(0.1)
        r.config_set("ckv.prefixes", "user:")
        r.execute_command("CLIENT", "PAUSE", 1000, "WRITE")
        reply(r, *command.split(), "user:1")
        assert r.get("user:1") == b"record"
        r.execute_command("CLIENT", "UNPAUSE")
        assert r.get("user:1") == b"record" and r.pttl("user:1") == -1


@pytest.fixture
def writable(own_server, faults):
    """(clients of a primary, of its replica that may be written to), both with a prefix; the replica suffers `faults`."""
    config = {"ckv.prefixes": '"k:"', "repl-timeout": 86_400}  # the link outlasts the step of the clock
    primary = own_server(config)
    replica = own_server({**config, "replicaof": f"127.0.0.1 {primary.port}", "replica-read-only": "no"}, env=faults.env)
    with primary.client() as r, replica.client() as q:
        wait_for(lambda: is_in_sync(q))
        yield r, q


def test_a_writable_replica_does_not_take_its_primarys_keys_for_its_own(writable):
    """It deleted them by its own clock, where the primary might have prolonged them, and ended itself where one expired in a pause."""
    r, q = writable
    for i in range(4):
        r.set(f"k:{i}", "value", ex=1000)
    r.hset("k:hash", "field", 1)
    r.expire("k:hash", 1000)
    r.setbit("k:3", 1, 1)
    r.set("k:3", "again", ex=1000)
    wait_for_replica(r)
    q.bitcount("k:0")
    q.dump("k:1")
    q.sort("k:hash:none", by="k:*")
    assert q.info("stats")["slave_expires_tracked_keys"] == 0
    assert q.execute_command("CONFIG", "GET", "replica-read-only")[1] == b"no"


def test_a_writable_replicas_own_string_comes_back(writable, faults):
    """Nobody deleted it any more when it had expired."""
    r, q = writable
    for i in range(5):
        q.set(f"k:{i}", "value", ex=1000)
        assert q.bitcount(f"k:{i}") > 0
    time.sleep(1)  # names of what is outside are looked at some times a second
    for i in range(5):
        q.append(f"k:{i}", "x")
    assert info(q)["records"] == 5
    faults.set(seconds=3600)
    wait_for(lambda: q.dbsize() == 0)


@pytest.mark.parametrize("load", ["disabled", "swapdb"])
def test_what_a_full_sync_brings_is_not_a_writable_replicas_own(writable, faults, load):
    """It went by the replica's clock where its clients had written one of that name before."""
    r, q = writable
    q.config_set("repl-diskless-load", load)
    r.set("k:0", "primarys", ex=1000)
    wait_for_replica(r)
    q.set("k:0", "own", ex=1000)
    r.execute_command("DEBUG", "CHANGE-REPL-ID")
    r.execute_command("CLIENT", "KILL", "TYPE", "replica")
    wait_for(lambda: is_in_sync(q) and q.get("k:0") == b"primarys", what="a full sync")
    q.set("k:own", "own", ex=1000)
    faults.set(seconds=3600)
    wait_for(lambda: info(q)["records"] <= 1, what="the end of its own record")
    r.persist("k:0")
    wait_for_replica(r)
    assert q.get("k:0") == b"primarys" and q.pttl("k:0") == -1
