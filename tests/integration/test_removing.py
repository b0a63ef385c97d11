"""docs/operations.md, "Removing the module", as it is written: a primary and a replica under ckv.prefixes, with records of CSET as well."""

from cluster import Cluster
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


def names_of_ckv(r):
    """In rules of users."""
    commands = {name.decode() for name in r.execute_command("COMMAND", "LIST", "FILTERBY", "MODULE", "ckv")}
    return {sign + name for sign in "+-" for name in commands | {"@ckv"}}


def restart_without(server):
    """Step 5, with the file that the server has written, and the restart."""
    with server.client() as r:
        ours = names_of_ckv(r)
        assert r.execute_command("CONFIG", "REWRITE") == b"OK"
        with open(server.conf_path) as f:
            lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    server.module = False
    server.config = {}
    for words in lines:
        name = " ".join(words[:2]) if words[0] == "user" else words[0]
        if name != "loadmodule" and name != "port" and not name.startswith("ckv."):
            server.config[name] = " ".join(word for word in words[len(name.split()) :] if word not in ours)
    server.restart(save=False)


def test_step_by_step(own_server):
    primary = own_server({"ckv.prefixes": '"user:"', **FAST})
    replica = own_server({"replicaof": f"127.0.0.1 {primary.port}", "ckv.prefixes": '"user:"', **FAST})
    for server in primary, replica:
        with server.client() as r:
            beside = ["-@ckv"] if b"ckv" in r.execute_command("ACL", "CAT") else ["-cget", "-cset"]
            r.execute_command("ACL", "SETUSER", "someone", "on", "nopass", "~user:*", "+@all", "-get", *beside)
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
        with replica.client() as second:
            second.execute_command("REPLICAOF", "127.0.0.1", primary.port)  # it is elsewhere now
        restart_without(replica)
    else:
        restart_without(replica)
        with primary.client() as r, replica.client() as second:
            wait_for(lambda: link_is_up(second), what="the replica")
            r.execute_command("FAILOVER")
            wait_for(lambda: second.execute_command("INFO", "replication")["role"] == "master", what="the failover")
        restart_without(primary)
    own = {(0, b"own:%d" % i): (b"string", b"%d" % i, -1) for i in range(500)}
    for server in primary, replica:
        with server.client() as r:
            if "replicaof" in server.config:
                wait_for(lambda: link_is_up(r) or r.execute_command("INFO", "replication")["role"] == "master", what="the link")
            assert all(b"ckv" not in module for module in r.execute_command("MODULE", "LIST"))
            assert r.execute_command("ACL", "DRYRUN", "someone", "SET", "user:1", "v") == b"OK"
            assert_same(before | own, state(r))
            # A replica writes its AOF anew after a full sync, and does not end before that is done.
            busy = "aof_rewrite_in_progress", "aof_rewrite_scheduled"
            wait_for(lambda r=r: not any(r.info("persistence")[word] for word in busy), what="the AOF")


def test_in_a_cluster():
    """Replicas first: they are carried out by their primary, and then know of nothing that is leaving."""
    with Cluster(primaries=1, replicas=1, config={"ckv.prefixes": "*", **FAST}) as cluster:
        (primary,), (replica,) = cluster.primaries, cluster.replicas
        with primary.client() as r:
            for i in range(200):
                r.set(f"before:{i}", "x" * 30)
        replica.ask("CONFIG", "SET", "ckv.prefixes", "")
        with primary.client() as r:
            for i in range(5):
                r.set(f"between:{i}", "v")
            r.set("before:3", "new")
            r.delete("before:4")
        primary.ask("CONFIG", "SET", "ckv.prefixes", "")
        primary.ask("SET", "after", "v")
        for node in primary, replica:
            wait_for(lambda node=node: not node.ask("INFO", "ckv")["ckv_prefixes_leaving"], "strings that have moved out")
            assert node.ask("INFO", "ckv")["ckv_records"] == 0
        wait_for(lambda: replica.ask("DBSIZE") == 205)
        with replica.client() as r:
            r.execute_command("READONLY")
            assert [r.get(key) for key in ("before:3", "before:4", "between:1", "after")] == [b"new", None, b"v", b"v"]
