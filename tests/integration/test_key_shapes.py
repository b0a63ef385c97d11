"""Commands that the filter leaves to the server because the shape of their key says that there is no record
(core/map/key_shapes.h): that it is never wrong, in transactions, behind a pause, after restarts and on replicas."""

import threading
import time

import pytest
import redis

from helpers import wait_for_replica

ALL = {"ckv.prefixes": "*"}
PERSISTENCE = {"rdb": {}, "aof": {"appendonly": "yes"}, "plain aof": {"appendonly": "yes", "aof-use-rdb-preamble": "no"}}


def served(r, name):
    """How often a command ran as one of ours. INFO tells of it as of the server's."""
    histograms = r.execute_command("LATENCY", "HISTOGRAM", f"ckv.{name}", f"ckv+{name}")
    return sum(dict(zip(h[::2], h[1::2]))[b"calls"] for h in histograms[1::2])


def settle(r):
    """Until the module has counted that no transaction is open."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        before = served(r, "exists")
        r.execute_command("EXISTS", "a:shape:of:none")
        if served(r, "exists") == before:
            return
        time.sleep(0.05)
    raise AssertionError("what has no record is never left to the server")


def assert_is_record(r, key, value):
    """It is found in both ways: by a command of ours, and by one that only the server can run."""
    assert r.get(key) == value
    assert r.bitcount(key) == sum(byte.bit_count() for byte in value)
    assert r.strlen(key) == len(value)


def test_other_types_are_left_to_the_server(own_server):
    with own_server(ALL).client() as r:
        r.set("user:1:name", "x")
        r.hset("user:1", "name", "x")
        settle(r)
        before = served(r, "ttl"), served(r, "exists"), served(r, "del")
        assert r.execute_command("TTL", "user:1") == -1
        assert r.execute_command("EXISTS", "user:1", "user:2", "other") == 1
        assert r.execute_command("DEL", "user:1", "user:2") == 1
        assert (served(r, "ttl"), served(r, "exists"), served(r, "del")) == before
        assert r.execute_command("EXISTS", "user:1", "user:1:name") == 1
        assert served(r, "exists") == before[1] + 1


def test_a_record_that_a_transaction_makes_is_found_in_it(own_server):
    with own_server(ALL).client() as r:
        settle(r)
        r.execute_command("MULTI")
        for command in ["SET", "a", "x"], ["STRLEN", "a"], ["DEL", "a"], ["EXISTS", "a"]:
            r.execute_command(*command)
        assert r.execute_command("EXEC") == [b"OK", 1, 1, 0]
        assert r.get("a") is None


def test_a_record_that_comes_while_a_transaction_is_queued_is_found(own_server):
    server = own_server(ALL)
    with server.client() as r, server.client() as other:
        settle(r)
        r.execute_command("MULTI")
        r.execute_command("DEL", "a")
        other.set("a", "x")
        assert r.execute_command("EXEC") == [1]
        assert other.get("a") is None


def test_who_ends_what_it_has_not_begun_changes_nothing(own_server):
    server = own_server(ALL)
    with server.client() as r, server.client() as other:
        settle(other)
        r.execute_command("MULTI")
        with pytest.raises(Exception, match="EXEC without MULTI"):
            other.execute_command("EXEC")
        r.execute_command("DEL", "a")
        other.set("a", "x")
        assert r.execute_command("EXEC") == [1]


def test_a_transaction_that_began_before_the_prefix_was_set(own_server):
    server = own_server()
    with server.client() as r, server.client() as other:
        time.sleep(1.5)
        r.execute_command("MULTI")
        other.config_set("ckv.prefixes", "*")
        r.execute_command("DEL", "a")
        other.set("a", "x")
        assert r.execute_command("EXEC") == [1]
        settle(other)


def test_a_pause_holds_commands_back(own_server):
    """A command that waits for the end of a pause finds the record that another one, which waited before it, wrote."""
    server = own_server(ALL)
    with server.client() as r, server.client() as first, server.client() as second:
        settle(r)
        r.execute_command("CLIENT", "PAUSE", 60000, "WRITE")
        connections = [client.connection_pool.get_connection() for client in (first, second)]
        connections[0].send_command("SET", "a", "x")
        while r.info("clients")["blocked_clients"] < 1:
            time.sleep(0.01)
        connections[1].send_command("DEL", "a")
        while r.info("clients")["blocked_clients"] < 2:
            time.sleep(0.01)
        r.execute_command("CLIENT", "UNPAUSE")
        assert [c.read_response() for c in connections] == [b"OK", 1]
        assert r.get("a") is None


@pytest.mark.parametrize("config", PERSISTENCE.values(), ids=PERSISTENCE)
def test_restarts(own_server, config):
    server = own_server({**ALL, **config})
    with server.client() as r:
        r.set("user:1:name", "x")
        r.set("list", "y" * 100_000)
    server.restart(save=not config)
    with server.client() as r:
        r.lpush("user:1", "x")
        assert_is_record(r, "user:1:name", b"x")
        assert_is_record(r, "list", b"y" * 100_000)
        settle(r)


def test_a_file_of_before_and_records_of_before(own_server):
    """Neither a file without prefixes nor a running server tells the shapes of what is there."""
    server = own_server()
    with server.client() as r:
        r.execute_command("CSET", "a", "x")
        r.config_set("ckv.prefixes", "*")
        assert_is_record(r, "a", b"x")
        r.set("b:1", "x")
    server.restart()
    with server.client() as r:
        assert_is_record(r, "b:1", b"x")
    server = own_server()
    with server.client() as r:
        r.execute_command("CSET", "a", "x")
    server.restart()
    server.config.update(ALL)
    server.restart()
    with server.client() as r:
        assert_is_record(r, "a", b"x")


def test_a_replica_and_a_payload(own_server):
    server = own_server({**ALL, "ckv.maps": 1})
    with server.client() as r:
        r.set("before:1", "x")
        replica = own_server({"replicaof": f"127.0.0.1 {server.port}"})
        with replica.client() as copy:
            wait_for_replica(r)
            r.set("after:1", "y")
            wait_for_replica(r)
            copy.execute_command("REPLICAOF", "NO", "ONE")
            copy.config_set("ckv.prefixes", "*")
            assert_is_record(copy, "before:1", b"x")
            assert_is_record(copy, "after:1", b"y")
        payload = r.dump("ckv:0")
    with own_server({**ALL, "ckv.maps": 1}).client() as r:
        r.restore("ckv:0", 0, payload)
        assert_is_record(r, "before:1", b"x")


def test_an_empty_store_knows_no_shape(own_server):
    with own_server(ALL).client() as r:
        r.set("a", "x")
        settle(r)
        r.flushall()
        deadline = time.monotonic() + 30
        while True:
            before = served(r, "exists")
            assert r.execute_command("EXISTS", "a") == 0
            if served(r, "exists") == before:
                break
            assert time.monotonic() < deadline
            time.sleep(0.2)
        r.set("a", "y")
        assert_is_record(r, "a", b"y")


def test_a_prefix_that_is_set_while_a_file_is_loaded(own_server):
    """Of records that come behind it no shapes were kept when the file was written."""
    config = {"ckv.maps": 1, "loading-process-events-interval-bytes": 1024, "enable-debug-command": "yes"}
    server = own_server(config)
    with server.client() as r:
        pipe = r.pipeline(transaction=False)
        for i in range(3000):
            pipe.rpush(f"list:{i}", "x" * 100)
        pipe.execute()
        r.execute_command("SELECT", 1)  # it comes last in the file
        for i in range(100):
            r.execute_command("CSET", f"KEY:{i}", "value")
    server.stop(save=True)
    server.config["key-load-delay"] = 1000  # us
    loading = []

    def set_while_loading():
        while not loading:
            try:
                with server.client() as r:
                    r.config_set("ckv.prefixes", "KEY:")
                    loading.append(r.info("persistence")["loading"])
            except redis.ConnectionError:
                time.sleep(0.01)

    setting = threading.Thread(target=set_while_loading)
    setting.start()
    server.start()  # here: the server ends with the thread that has started it
    setting.join()
    assert loading == [1]
    with server.client() as r:
        r.execute_command("SELECT", 1)
        assert r.mget(f"KEY:{i}" for i in range(100)) == [b"value"] * 100
        assert r.get("KEY:1") == b"value" and r.delete("KEY:1") == 1
