"""Who comes while records are written gets absolute times: a replica, an AOF that is switched on. Until
then nobody is to get anything, and the server is told the command as it came."""

import glob
import os
import socket
import threading
import time

import pytest

from helpers import PATIENCE_S, wait_for

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
