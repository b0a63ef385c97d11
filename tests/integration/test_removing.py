"""docs/operations.md, "Removing the module", as it is written: a primary and a replica under ckv.prefixes, with records of CSET as well."""

from helpers import info, wait_for, wait_for_replica
from mover_data import assert_same, ask, fill, state, wait_moved

FAST = {"ckv.move-cpu": 100}


def link_is_up(r):
    return r.execute_command("INFO", "replication").get("master_link_status") == "up"


def leave(r, primary):
    """Steps 1 to 4, of one server."""
    assert r.execute_command("CONFIG", "SET", "ckv.prefixes", "") == b"OK"
    assert r.execute_command("CONFIG", "REWRITE") == b"OK"
    wait_moved(r, b"out")
    if primary:
        assert r.execute_command("CKV", "MOVE", "OUT", "*") == b"OK"
        wait_moved(r, b"out")


def write_plain_aof(r):
    r.execute_command("CONFIG", "SET", "aof-use-rdb-preamble", "no")
    r.execute_command("CONFIG", "SET", "appendonly", "yes")
    about = lambda: r.execute_command("INFO", "persistence")  # noqa: E731
    wait_for(lambda: about()["aof_rewrite_in_progress"] == 0 and about()["aof_rewrite_scheduled"] == 0, what="the rewrite")
    assert about()["aof_last_bgrewrite_status"] == "ok"


def restart_without(server):
    server.module = False
    server.config = {k: v for k, v in server.config.items() if not k.startswith("ckv.")}
    server.config |= {"appendonly": "yes", "aof-use-rdb-preamble": "no"}
    server.restart(save=False)


def test_step_by_step(own_server):
    primary = own_server({"ckv.prefixes": '"user:"', **FAST})
    replica = own_server({"replicaof": f"127.0.0.1 {primary.port}", "ckv.prefixes": '"user:"', **FAST})
    with primary.client() as r, replica.client() as second:
        wait_for(lambda: link_is_up(second), what="the replica")
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
        fill(r, 2000)
        before = state(r)
        ask(r, [("CSET", f"own:{i}", i) for i in range(500)])
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "user:")
        wait_moved(r, b"in")
        leave(r, primary=True)
        leave(second, primary=False)
        wait_for_replica(r)
        for server in r, second:
            wait_for(lambda server=server: not info(server)["prefixes_leaving"] and info(server)["records"] == 0, what="step 3")
            write_plain_aof(server)
        old = r.execute_command("INFO", "server")["redis_version"] < "7.2"
    if old:
        restart_without(primary)
        replica.config["replicaof"] = f"127.0.0.1 {primary.port}"
        restart_without(replica)
    else:
        restart_without(replica)
        with primary.client() as r, replica.client() as second:
            wait_for(lambda: link_is_up(second), what="the replica")
            r.execute_command("FAILOVER")
            wait_for(lambda: second.execute_command("INFO", "replication")["role"] == "master", what="the failover")
        primary.config["replicaof"] = f"127.0.0.1 {replica.port}"
        restart_without(primary)
    own = {(0, b"own:%d" % i): (b"string", b"%d" % i, -1) for i in range(500)}
    for server in primary, replica:
        with server.client() as r:
            if "replicaof" in server.config:
                wait_for(lambda: link_is_up(r) or r.execute_command("INFO", "replication")["role"] == "master", what="the link")
            assert all(b"ckv" not in module for module in r.execute_command("MODULE", "LIST"))
            assert_same(before | own, state(r))
            # A replica writes its AOF anew after a full sync, and does not end before that is done.
            busy = "aof_rewrite_in_progress", "aof_rewrite_scheduled"
            wait_for(lambda r=r: not any(r.info("persistence")[word] for word in busy), what="the AOF")
