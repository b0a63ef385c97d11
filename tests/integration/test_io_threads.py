"""Several io-threads parse commands while the main thread executes others."""
import threading
import time

from cluster import Cluster

CONFIG = {"io-threads": 4, "appendonly": "yes", "appendfsync": "no"}


def set_many(server):
    until = time.monotonic() + 3
    failed = []

    def write(name):
        try:
            with server.client() as r:
                done = False
                while not done:
                    done = time.monotonic() > until
                    pipe = r.pipeline(transaction=False)
                    for i in range(20):
                        pipe.execute_command("CMSETEX", 2, f"{{{name}}}a{i}", i, f"{{{name}}}b{i}", i, "EX", 100)
                        pipe.execute_command("CSET", f"{{{name}}}c{i}", i)
                    pipe.execute()
        except Exception as error:  # in a thread: told of below
            failed.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[:3]
    server.check_log()
    with server.client() as r:
        assert r.execute_command("CDBSIZE") == 12 * 60
        assert [r.execute_command("CGET", f"{{11}}{k}19") for k in "abc"] == [b"19"] * 3


def test_counted_keys_are_found_without_the_module(own_server):
    """Redis 8.4 looks for a command's keys where it parses it. Asked there, the module had the server's count of what it
    executes changed by two threads: 8.6.3 crashed within 500 commands."""
    set_many(own_server(CONFIG))


def test_counted_keys_in_a_cluster():
    """There Valkey does the same."""
    with Cluster(primaries=1, config=CONFIG) as cluster:
        set_many(cluster.nodes[0])
