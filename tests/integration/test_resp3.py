"""The replies' own bytes, in RESP2 and RESP3."""

import pytest

from helpers import assert_stored, load, texts


class Wire:
    def __init__(self, server, protocol):
        self.socket = server.socket()
        self.file = self.socket.makefile("rb")
        if protocol == 3:
            self.call("HELLO", "3")

    def send(self, *args):
        out = b"*%d\r\n" % len(args)
        for arg in args:
            arg = arg if isinstance(arg, bytes) else str(arg).encode()
            out += b"$%d\r\n%b\r\n" % (len(arg), arg)
        self.socket.sendall(out)

    def read(self):
        """One whole reply, unparsed."""
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and rest != b"-1":
            return line + self.file.read(int(rest) + 2)
        if kind in b"*~>" and rest != b"-1":
            return line + b"".join(self.read() for _ in range(int(rest)))
        if kind == b"%":
            return line + b"".join(self.read() for _ in range(2 * int(rest)))
        return line

    def call(self, *args):
        self.send(*args)
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def wire(shared, request):
    w = Wire(shared, request.param)
    w.protocol = request.param
    yield w
    w.close()


def test_bytes_of_every_reply(wire):
    null = b"_\r\n" if wire.protocol == 3 else b"$-1\r\n"
    for args, expected in [
        (("CSET", "k", "v"), b"+OK\r\n"),
        (("CGET", "k"), b"$1\r\nv\r\n"),
        (("CGET", "none"), null),
        (("CSET", "k", "w", "NX"), null),
        (("CSET", "k", "w", "GET"), b"$1\r\nv\r\n"),
        (("CSET", "new", "w", "GET"), null),
        (("CMSET", "a", "1", "b", ""), b"+OK\r\n"),
        (("CMGET", "a", "none", "b"), b"*3\r\n$1\r\n1\r\n" + null + b"$0\r\n\r\n"),
        (("CDEL", "a", "none"), b":1\r\n"),
        (("CEXISTS", "b", "b"), b":2\r\n"),
        (("CSTRLEN", "k"), b":1\r\n"),
        (("CTTL", "k"), b":-1\r\n"),
        (("CPTTL", "none"), b":-2\r\n"),
        (("CEXPIRETIME", "k"), b":-1\r\n"),
        (("CPEXPIRETIME", "none"), b":-2\r\n"),
        (("CEXPIRE", "k", "100"), b":1\r\n"),
        (("CEXPIRE", "none", "100"), b":0\r\n"),
        (("CPERSIST", "k"), b":1\r\n"),
        (("CDBSIZE",), b":3\r\n"),
        (("CKV", "TRAIN", "x"), None),
        (("CSET", "k"), b"-ERR wrong number of arguments for 'cset' command\r\n"),
        (("CSET", "k", "v", "EX", "0"), b"-ERR invalid expire time in 'cset' command\r\n"),
        (("CSET", "k", "v", "WHAT"), b"-ERR syntax error\r\n"),
        (("CSET", "k", "v", "EX", "x"), b"-ERR value is not an integer or out of range\r\n"),
    ]:
        got = wire.call(*args)
        if expected is None:
            assert got.startswith(b"-ERR")
        else:
            assert got == expected, args


def test_stats_is_a_map(wire):
    got = wire.call("CKV", "STATS")
    kind, count = got[:1], int(got[1:].split(b"\r\n")[0])
    if wire.protocol == 3:
        assert kind == b"%" and count >= 16
    else:
        assert kind == b"*" and count >= 32 and count % 2 == 0
    assert b"bytes_per_record" in got


def test_help_is_an_array_of_lines(wire):
    assert wire.call("CKV", "HELP").startswith(b"*")


def test_same_as_the_native_command(wire):
    for ours, theirs in [(("CSET", "k", "v"), ("SET", "k", "v")), (("CGET", "k"), ("GET", "k")),
                         (("CGET", "x"), ("GET", "x")), (("CMGET", "k", "x"), ("MGET", "k", "x")),
                         (("CSET", "k", "v", "XX", "GET"), ("SET", "k", "v", "XX", "GET")),
                         (("CSET", "n", "v", "XX"), ("SET", "n", "v", "XX")),
                         (("CTTL", "x"), ("TTL", "x")), (("CSTRLEN", "k"), ("STRLEN", "k"))]:
        assert wire.call(*ours) == wire.call(*theirs)


def test_pipelined(wire):
    for i in range(1000):
        wire.send("CSET", f"key:{i}", "v" * i)
    for i in range(1000):
        wire.send("CGET", f"key:{i}")
    assert all(wire.read() == b"+OK\r\n" for _ in range(1000))
    for i in range(1000):
        assert wire.read() == b"$%d\r\n%b\r\n" % (i, b"v" * i)


def test_inline(wire):
    wire.socket.sendall(b"CSET k v EX 100\r\nCGET k\r\n")
    assert wire.read() == b"+OK\r\n"
    assert wire.read() == b"$1\r\nv\r\n"


def test_redis_py_with_resp3(shared):
    with shared.client(protocol=3) as r:
        stored = load(r, texts(200))
        assert_stored(r, stored)
        stats = r.execute_command("CKV", "STATS")
        assert stats[b"records"] == 200
        assert float(stats[b"bytes_per_record"]) > 0
