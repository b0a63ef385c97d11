"""repl-diskless-load swapdb: a replica serves what it has while it loads what its primary sends, and then changes over."""

import pytest

from helpers import wait_for

KEYS = 6000
MAPS = 300  # of the primary, and so in its file


def value(name, i):
    return f"{name} {i} ".encode() * (1 + i % 40)


def write(server, name, keys=KEYS, command="CSET"):
    with server.client() as r, r.pipeline(transaction=False) as pipe:
        for i in range(keys):
            pipe.execute_command(command, f"key:{i * 37}", value(name, i))
        pipe.execute()


def holds(r, name, keys=KEYS, command="CMGET"):
    found = r.execute_command(command, *(f"key:{i * 37}" for i in range(keys)))
    return found == [value(name, i) for i in range(keys)]


def is_in_sync(r):
    return r.info("replication")["master_link_status"] == "up"


def lose_replica(server, name, command="CSET"):
    """The replica is to load a whole file again, of the same history: it was gone for more than the backlog holds."""
    with server.client() as r:
        r.config_set("repl-backlog-size", 16384)
        with r.pipeline(transaction=True) as pipe:
            pipe.execute_command("CLIENT", "KILL", "TYPE", "replica")
            for i in range(KEYS):
                pipe.execute_command(command, f"key:{i * 37}", value(name, i))
            pipe.execute()


def slow_down(r, seconds):
    """A file takes about that long, and clients are served in between."""
    r.config_set("key-load-delay", int(seconds * 1e6 / MAPS))
    r.config_set("loading-process-events-interval-bytes", 1024)


@pytest.fixture(params=["CSET", "CSET, other maps", "SET"])
def pair(request, own_server):
    """A primary, its replica in sync, and the commands to write and to read with."""
    command = request.param.split(",")[0]
    reading = command.replace("SET", "MGET")
    config = {"ckv.maps": MAPS, "ckv.prefixes": "*" if command == "SET" else '""'}
    server = own_server({**config, "repl-diskless-sync": "yes", "rdbcompression": "no"})
    write(server, "old", command=command)
    if "other" in request.param:
        config["ckv.maps"] = 512
    replica = own_server({**config, "repl-diskless-load": "swapdb"})
    with replica.client() as r:
        r.replicaof("127.0.0.1", server.port)
        wait_for(lambda: is_in_sync(r) and holds(r, "old", command=reading))
    return server, replica, command, reading


def test_what_is_there_is_served_until_all_has_come(pair):
    server, replica, command, reading = pair
    with replica.client() as r, replica.client() as watching:
        slow_down(r, 15)
        watching.execute_command("WATCH", "key:0")
        lose_replica(server, "new", command)
        wait_for(lambda: r.info("persistence")["async_loading"] == 1)
        for _ in range(5):
            assert holds(r, "old", command=reading)
        assert r.info("persistence")["async_loading"] == 1
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r))
        assert holds(r, "new", command=reading)
        assert r.execute_command("CDBSIZE") == KEYS
        assert [watching.execute_command(word) for word in ("MULTI", "PING", "EXEC")] == [b"OK", b"QUEUED", None]
        with server.client() as other:
            other.execute_command(command, "key:0", "newest")
        wait_for(lambda: r.execute_command(reading, "key:0") == [b"newest"])
    replica.stop(save=True)
    replica.start()
    with replica.client() as r:
        assert r.execute_command("CDBSIZE") == KEYS


def test_what_is_there_stays_if_the_primary_goes_away(pair):
    server, replica, command, reading = pair
    with replica.client() as r:
        slow_down(r, 15)
        for _ in range(2):
            lose_replica(server, "new", command)
            wait_for(lambda: r.info("persistence")["async_loading"] == 1)
            assert holds(r, "old", command=reading)
            with server.client() as other:
                other.config_set("repl-diskless-sync-delay", 1)
                other.execute_command("CLIENT", "KILL", "TYPE", "replica")
            wait_for(lambda: r.info("persistence")["async_loading"] == 0)
            assert holds(r, "old", command=reading)
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r) and holds(r, "new", command=reading))
        assert r.execute_command("CDBSIZE") == KEYS


def test_a_replica_that_may_be_written_to_meanwhile(pair):
    server, replica, command, reading = pair
    with replica.client() as r:
        r.config_set("replica-read-only", "no")
        slow_down(r, 15)
        lose_replica(server, "new", command)
        wait_for(lambda: r.info("persistence")["async_loading"] == 1)
        for i in range(10):
            r.execute_command(command, f"own:{i}", "written meanwhile")
            assert r.execute_command(reading, f"own:{i}") == [b"written meanwhile"]
        slow_down(r, 0)
        wait_for(lambda: is_in_sync(r))
        assert holds(r, "new", command=reading)
        assert r.execute_command(reading, *(f"own:{i}" for i in range(10))) == [None] * 10
        assert r.execute_command("CDBSIZE") == KEYS
