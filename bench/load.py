"""What servers are loaded with, the records of a file or of what every Debian machine has, and how: by build/ckv-bench,
or, where only Python is there or commands are of another kind, by pipelines of our own."""

import collections
import contextlib
import functools
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

import generated
from server import ROOT, Client, Failed

BENCH = os.path.join(ROOT, "build", "ckv-bench")
DEPTH = 50  # commands in a pipeline
CONNECTIONS = 8
CHUNK = 50_000  # records whose requests are prepared at once


class Progress:
    """One line on a terminal, a line a step elsewhere."""

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.drawn = 0

    def step(self, what):
        self.what = what
        print(f"\r\033[K{what}" if self.live else what, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def show(self, done, total):
        if self.live and (done == total or time.monotonic() - self.drawn > 0.1):
            self.drawn = time.monotonic()
            bar = "#" * (30 * done // total)
            print(f"\r\033[K{self.what:<34} [{bar:.<30}] {100 * done // total:3d}%", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


progress = Progress()


class Data:
    """The records of a file, one a line or (*.u32le) each after its length; so many of a kind that is generated; without either,
    package descriptions."""

    def __init__(self, given=None, records=100_000):
        if given and given not in generated.KINDS and not os.path.isfile(given):
            raise Failed(f"cannot read DATA: {given} is not a file")
        self.given, self.records = given, records
        self.name = os.path.basename(given) if given else "Debian package descriptions"
        self.keys = generated.KINDS[given][1] if given in generated.KINDS else "sequential"

    @classmethod
    def first(cls, options):
        """For verbs that measure one file."""
        return cls(options.data[0] if options.data else None)

    @functools.cached_property
    def values(self):
        if not self.given:
            return descriptions()
        if self.given in generated.KINDS:
            return generated.values(self.given, self.records)
        try:
            with open(self.given, "rb") as f:
                text = f.read()
            found = [value for value in (prefixed(text) if self.given.endswith(".u32le") else text.split(b"\n")) if value]
        except (OSError, struct.error) as error:
            raise Failed(f"cannot read DATA: {error}")
        if not found:
            raise Failed(f"{self.given} is empty")
        return found

    def mean(self, records):
        """Bytes of a value, where so many records are stored."""
        rounds, rest = divmod(records, len(self.values))
        return (rounds * sum(map(len, self.values)) + sum(map(len, self.values[:rest]))) / records

    @property
    def path(self):
        """Of a file, for programs that want one."""
        return self.given if self.given and self.given not in generated.KINDS else self._file.name

    @functools.cached_property
    def _file(self):
        f = tempfile.NamedTemporaryFile(suffix=".txt")
        f.write(b"\n".join(self.values))
        f.flush()
        return f


def prefixed(text):
    at = 0
    while at < len(text):
        length, = struct.unpack_from("<I", text, at)
        yield text[at + 4:at + 4 + length]
        at += 4 + length


def descriptions():
    """Of apt's package lists; where these were removed, of installed packages."""
    try:
        text = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except OSError:
        text = b""
    found = paragraphs(text)
    if len(found) < 1000 and os.path.exists("/var/lib/dpkg/status"):
        with open("/var/lib/dpkg/status", "rb") as f:
            found = paragraphs(text + b"\n\n" + f.read())
    if not found:
        raise Failed("there are no package lists here; give a file with one record a line: DATA=<file>")
    return found


def paragraphs(text):
    """"package: description" of each paragraph, a long description's lines joined; each once."""
    found = {}
    for paragraph in text.split(b"\n\n"):
        fields = {name.lower(): about for name, about in re.findall(rb"^(Package|Description)(?:-en)?: (.*(?:\n .*)*)", paragraph, re.M)}
        if b"description" in fields:
            about = b" ".join(line.strip() for line in fields[b"description"].split(b"\n"))
            found[fields.get(b"package", b"") + b": " + about] = True
    return list(found)


def bench(server, store, data, records, *args):
    """Runs ckv-bench; its report."""
    line = [BENCH, "--server", store, "--data", data.path, "--records", str(records), "--port", str(server.port),
            *map(str, args)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(line)} ended with {done.returncode}")
    return json.loads(done.stdout)


def fill(server, store, data, records, first=0, digits=1, ttl=("--ttl", 86400)):
    """Records KEY:<n> as fast as the server takes them; returns seconds."""
    return bench(server, store, data, records, "--pipeline", DEPTH, "--clients", CONNECTIONS, "--first", first,
                 "--digits", digits, *ttl)["seconds"]


def send(server, total, request, reply=b"+OK\r\n"):
    """Sends request(i) for each i below total, in pipelines; what comes back must be reply(i), or `reply`.

    Returns seconds. Requests and replies are prepared before, so that only sending, waiting and comparing is timed."""
    answer = reply if callable(reply) else lambda i: reply
    seconds = 0.0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(CONNECTIONS)]
        for first in range(0, total, CHUNK):
            end = min(first + CHUNK, total)
            parts = [range(at, min(at + DEPTH, end)) for at in range(first, end, DEPTH)]
            seconds += take_turns(clients, [(b"".join(map(request, part)), b"".join(map(answer, part))) for part in parts])
            progress.show(end, total)
    return seconds


def take_turns(clients, pairs):
    """Waits for one client's pipeline while those of the others are under way; returns seconds."""
    began = time.perf_counter()
    waiting = collections.deque()
    for client, (requests, expected) in zip(itertools.cycle(clients), pairs):
        if len(waiting) == len(clients):
            expect(*waiting.popleft())
        client.socket.sendall(requests)
        waiting.append((client, expected))
    while waiting:
        expect(*waiting.popleft())
    return time.perf_counter() - began


def expect(client, expected):
    got = b""
    while got != expected:
        more = client.socket.recv(1 << 20)
        got = got + more if got else more
        # Errors are shorter than what is expected, and nothing more would come.
        if not more or got[:1] == b"-" != expected[:1] or len(got) >= len(expected) and got != expected:
            at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), len(got))
            raise Failed(f"a reply differs from what was stored: {got[max(0, at - 80):at + 80]!r} instead of "
                         f"{expected[max(0, at - 80):at + 80]!r}")
