"""Who comes while records are written gets absolute times: a replica, an AOF that is switched on. Until
then nobody is to get anything, and the server is told the command as it came."""

import contextlib
import glob
import os
import socket
import socketserver
import threading
import time

import pytest

from helpers import PATIENCE_S, is_in_sync, wait_for, wait_for_replica

SECONDS = 0.5


@pytest.fixture
def writing(own_server):
    """A server to which records with relative TTLs are written all the time."""
    server = own_server({"repl-diskless-sync": "no"})
    stop = threading.Event()

    def write():
        with server.client() as r:
            i = 0
            while not stop.is_set():
                pipe = r.pipeline(transaction=False)
                for i in range(i, i + 20):
                    pipe.execute_command("CSET", f"key:{i}", "value", "EX", 1000)
                pipe.execute()

    writer = threading.Thread(target=write)
    writer.start()
    # Long enough for the server to have found that nobody listens.
    time.sleep(SECONDS)
    yield server
    stop.set()
    writer.join()


def enough(stream):
    return stream.count(b"$4\r\nCSET\r\n") > 101  # the last may have come in part


def check(stream):
    assert stream.count(b"$4\r\nCSET\r\n") > 100
    assert stream.count(b"$4\r\nPXAT\r\n") == stream.count(b"$4\r\nCSET\r\n")
    assert b"\r\nEX\r\n" not in stream


def test_a_replica_that_comes_gets_absolute_times(writing):
    with socket.create_connection(("127.0.0.1", writing.port)) as s:
        s.settimeout(PATIENCE_S)
        s.sendall(b"SYNC\r\n")
        with s.makefile("rb") as f:
            header = b"\n"
            while header == b"\n":  # a sign of life while the file is written
                header = f.readline()
            f.read(int(header[1:]))
            stream, end = b"", time.monotonic() + SECONDS
            while time.monotonic() < end or not enough(stream):
                stream += f.read1()
    # From the first whole command to the last.
    check(stream[: stream.rindex(b"*5\r\n")])


def test_an_aof_that_is_switched_on_gets_absolute_times(writing):
    with writing.client() as r:
        r.config_set("appendonly", "yes")
        wait_for(lambda: r.info("persistence")["aof_rewrite_in_progress"] == 0, what="the AOF's rewrite")
    time.sleep(SECONDS)

    def written():
        found = b""
        for path in sorted(glob.glob(os.path.join(writing.dir, "appendonlydir", "*.incr.aof"))):
            with open(path, "rb") as f:
                found += f.read()
        return found

    wait_for(lambda: enough(written()))
    stream = written()
    check(stream[: stream.rindex(b"*5\r\n")])


class WrongPrimary(socketserver.StreamRequestHandler):
    """Sends a replica a file of a version that no server knows."""

    def handle(self):
        with contextlib.suppress(OSError):
            while line := self.rfile.readline():
                words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2].upper() for _ in range(int(line[1:]))]
                if words[0] == b"PSYNC":
                    file = b"REDIS9999" + bytes(100)
                    self.wfile.write(b"+FULLRESYNC %s 0\r\n$%d\r\n%s" % (b"a" * 40, len(file), file))
                else:
                    self.wfile.write(b"+PONG\r\n" if words[0] == b"PING" else b"+OK\r\n")


@pytest.fixture
def wrong_primary():
    """Its port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), WrongPrimary) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_the_aof_of_a_replica_whose_first_sync_failed(own_server, wrong_primary):
    """Valkey 9 switches it on again without a fork: it got commands as they had come, under names that no file may have."""
    primary = own_server({"ckv.prefixes": '"*"', "repl-diskless-sync": "no"})
    replica = own_server({"appendonly": "yes", "appendfsync": "always", "ckv.prefixes": '"*"'})
    stop = threading.Event()

    def write():
        with primary.client() as r:
            for i in range(10**9):
                r.set(f"key:{i}", "value", ex=1000)
                if stop.is_set():
                    return

    writer = threading.Thread(target=write)
    with primary.client() as r, replica.client() as q:
        q.replicaof("127.0.0.1", wrong_primary)
        wait_for(lambda: "Failed trying to load the" in replica.log(), what="a refused file")
        time.sleep(SECONDS)  # long enough for the module to have found that nobody listens
        writer.start()
        q.replicaof("127.0.0.1", primary.port)
        wait_for(lambda: is_in_sync(q), what="the right primary")
        time.sleep(SECONDS)
        stop.set()
        writer.join()
        wait_for_replica(r)
        aof = lambda: q.info("persistence")
        wait_for(lambda: aof()["aof_enabled"] and not aof()["aof_rewrite_in_progress"] + aof()["aof_rewrite_scheduled"], what="its AOF")
        there = r.dbsize()
        assert q.dbsize() == there
    replica.kill()
    replica.start()
    with replica.client() as q:
        assert q.dbsize() == there
