"""ckv-estimate against what is no server, or one that answers as none should: it says so and ends, and what the other end calls
itself does nothing to a terminal or to JSON."""

import json
import socket
import subprocess
import threading
import time

import pytest

from server import PATIENCE_S
from test_estimate import PROGRAM, program  # noqa: F401 (a fixture)

ESCAPES, SHOWN = b"\x1b]0;o\x07\xc2\x9b1m\xff\"", "\\x1b]0;o\\x07\\xc2\\x9b1m\\xff\""


def text(value):
    return b"$%d\r\n%s\r\n" % (len(value), value)


def array(*elements):
    return b"*%d\r\n%s" % (len(elements), b"".join(elements))


def info(version=b"7.0.15", keys=b"db0:keys=3,expires=0,avg_ttl=0", more=b""):
    return text(b"# Server\r\nredis_version:%s\r\nrole:master\r\n%s# Keyspace\r\n%s\r\n" % (version, more, keys))


KEYS = array(*(text(b"k:%d" % i) for i in range(3)))
MANY = info(keys=b"db0:keys=1000000,expires=0,avg_ttl=0")
USUAL = {
    "INFO": info(), "SCAN": array(text(b"0"), KEYS), "TYPE": b"+string\r\n", "PTTL": b":-1\r\n", "MEMORY USAGE": b":100\r\n",
    "GETRANGE": text(b"v" * 20), "RANDOMKEY": text(b"k:1001"), "EXISTS": b":1\r\n", "MEMORY STATS": b"*0\r\n",
}


class Odd:
    """Serves one connection: answers each command with what `replies` has for it (of a list with each in turn), +OK to
    others. Closes behind one that is not complete."""

    def __init__(self, replies):
        self.replies = {name.encode(): reply for name, reply in {**USUAL, **replies}.items()}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def read_command(self, f):
        count = int(f.readline()[1:] or 0)
        return [f.read(int(f.readline()[1:]) + 2)[:-2] for _ in range(count)]

    def serve(self):
        with self.listener.accept()[0] as c, c.makefile("rb") as f:
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while command := self.read_command(f):
                    both = b" ".join(command[:2])
                    reply = self.replies.get(both, self.replies.get(command[0], b"+OK\r\n"))
                    if isinstance(reply, list):
                        reply = reply.pop(0)
                    c.sendall(reply)
                    if not reply.endswith(b"\r\n"):
                        return
            except ConnectionError:
                pass  # it has ended with an error

    def close(self):
        self.listener.close()
        self.thread.join()


@pytest.fixture
def ask(program):  # noqa: F811
    """Runs it against such a server; returns what it has printed."""
    def run(replies, *args, status=0):
        odd = Odd(replies)
        try:
            done = subprocess.run([PROGRAM, "-p", str(odd.port), *args], text=True, capture_output=True, timeout=PATIENCE_S)
        finally:
            odd.close()
        assert done.returncode == status, done.stdout + done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


def test_the_usual_answers(ask):
    assert "3 of 3 keys" in ask({})
    assert json.loads(ask({"INFO": MANY}, "--json", "--keys", "100"))["total"]["keys"] == 1_000_000


@pytest.mark.parametrize("command, kinds, said", [
    ("INFO", "number array nil", "a text"), ("SCAN", "number text nil", "a list"), ("TYPE", "number array long", "a text"),
    ("PTTL", "text array", "a number"), ("MEMORY USAGE", "text array huge", "a number"), ("GETRANGE", "number array long", "a text"),
])
def test_answers_of_another_type(ask, command, kinds, said):
    """Or size, as a value that is longer than what was asked for."""
    replies = {"number": b":7\r\n", "text": text(b"7"), "nil": b"$-1\r\n", "array": array(b":1\r\n", text(b"x"), b":1\r\n", b":2\r\n"),
               "long": text(b"x" * 200_000), "huge": b":%d\r\n" % 2**62}
    for kind in kinds.split():
        assert f"{command}: the server did not answer with {said}" in ask({command: replies[kind]}, status=1)


@pytest.mark.parametrize("reply, said", [
    (array(b":0\r\n", KEYS), "a text"), (array(b"$-1\r\n", KEYS), "a text"), (array(text(b"1" * 30), KEYS), "a text of the length"),
    (array(text(b"0"), b":3\r\n"), "a list"), (array(text(b"0"), array(b":3\r\n")), "a text"), (array(text(b"0")), "a cursor and keys"),
    (array(text(b"0"), array(text(b"x"), b"-ERR\r\n")), "a text"), (array(text(b"0"), array(*[text(b"k")] * 600)), "a list of the length"),
])
def test_what_scan_answers(ask, reply, said):
    assert f"SCAN: the server did not answer with {said}" in ask({"SCAN": reply}, "--keys", "100", status=1)


def test_what_is_asked_of_a_sample(ask):
    """More neighbours than there can be; a key that is none."""
    assert "EXISTS: the server did not answer with a number" in ask({"INFO": MANY, "EXISTS": b":255\r\n"}, "--keys", "100", status=1)
    assert "EXISTS: the server did not answer with a number" in ask({"INFO": MANY, "EXISTS": b"*0\r\n"}, "--keys", "100", status=1)
    assert "RANDOMKEY: the server did not answer with a text" in ask({"INFO": MANY, "RANDOMKEY": b":1\r\n"}, status=1)


def test_a_scan_without_an_end(ask):
    assert "SCAN: 20000 answers in a row had no new key" in ask({"SCAN": array(text(b"5"), array())}, status=1)


def test_what_may_be_told_or_not(ask):
    """Answers that are of use where they are what they should be."""
    more = b"cluster_enabled:1\r\n"
    for reply in (b":1\r\n", b"$-1\r\n", array(b":1\r\n", array(b":1\r\n", b":2\r\n"), text(b"dataset.bytes")), b"-ERR no\r\n"):
        assert "3 of 3 keys" in ask({"INFO": info(more=more), "MEMORY STATS": reply, "CLUSTER INFO": reply, "CLIENT NO-TOUCH": reply})
    assert "the server did not answer with a text" in ask({"INFO": info(more=b"module:name=ckv,\r\n"), "INFO ckv": b":1\r\n"}, status=1)


def test_a_string_that_vanishes_is_not_an_empty_one(ask):
    """Between its TYPE and its value: GETRANGE of what is not there is an empty text."""
    value, there, gone = text(b"v" * 20), b"+string\r\n", b"+none\r\n"
    values = [value, text(b""), text(b"")]
    assert "2 of 3 keys" in ask({"GETRANGE": list(values), "TYPE": [there] * 3 + [there, gone]})
    assert "3 of 3 keys" in ask({"GETRANGE": list(values), "TYPE": [there] * 5})


def test_keys_that_are_elsewhere_count_for_the_rate(ask):
    began = time.monotonic()
    ask({"INFO": MANY, "TYPE": b"-MOVED 1 h:1\r\n", "RANDOMKEY": [text(b"k:%d" % i) for i in range(2200)]}, "--keys", "100", "--rate", "1000")
    assert time.monotonic() - began > 1.5


@pytest.mark.parametrize("keys", [b"db0:keys=0,expires=0", b"db0:keys=-1,expires=0",
                                  b"db0:keys=99999999999999999999,expires=0\r\ndb1:keys=2,expires=0"])
def test_numbers_of_keys_that_cannot_be(ask, keys):
    empty = b"keys=0" in keys
    said = ask({"INFO": info(keys=keys)}, status=0 if empty else 1)
    assert ("There are no keys." if empty else "INFO: the server tells of 18446744073709551615 keys") in said


def test_a_time_to_live_that_never_ends(ask):
    family = json.loads(ask({"PTTL": b":%d\r\n" % (2**63 - 1)}, "--json"))["families"][0]
    assert family["keys"] == 3 and family["expiring"] == 1


def test_names_that_a_terminal_would_obey(ask, tmp_path):
    """A type, the server's version, an error."""
    replies, page = {"INFO": info(version=ESCAPES), "TYPE": text(ESCAPES)}, tmp_path / "page.html"
    assert ask(replies, "--html", str(page)).count(SHOWN) == 2
    assert page.read_text().count(SHOWN.replace('"', "&quot;")) == 3
    report = json.loads(ask(replies, "--json"))
    assert report["server"]["version"] == f"Redis {SHOWN}" and report["families"][0]["type"] == SHOWN
    # Of a long one the first bytes are told, whatever they are.
    report = json.loads(ask({"INFO": info(version=b"\xc3" + b"\xc3\xa9" * 100)}, "--json"))
    assert report["server"]["version"] == "Redis \\xc3" + "\u00e9" * 15 + "\\xc3"
    assert f"TYPE: the server answered: ERR {SHOWN}" in ask({"TYPE": b"-ERR " + ESCAPES + b"\r\n"}, status=1)


@pytest.mark.parametrize("command", ["SCAN", "TYPE", "GETRANGE", "MEMORY STATS"])
@pytest.mark.parametrize("part", [b"", b"$900000\r\nsome", b"*2\r\n$1"])
def test_a_connection_that_ends_on_the_way(ask, command, part):
    """Before an answer, or in the midst of it."""
    assert "is lost: " in ask({command: part}, status=1)
