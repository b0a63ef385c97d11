"""What servers are loaded with, the records of a file or of what every Debian machine has, and how: by build/ckv-bench,
or, where only Python is there or commands are of another kind, by pipelines of our own."""

import functools
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

from server import ROOT, Failed

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
    """The records of a file, one a line or (*.u32le) each after its length; without a path, package descriptions."""

    def __init__(self, path=None):
        if path and not os.path.isfile(path):
            raise Failed(f"cannot read DATA: {path} is not a file")
        self.given = path
        self.name = os.path.basename(path) if path else "Debian package descriptions"

    @functools.cached_property
    def values(self):
        if not self.given:
            return descriptions()
        try:
            with open(self.given, "rb") as f:
                text = f.read()
            found = [value for value in (prefixed(text) if self.given.endswith(".u32le") else text.split(b"\n")) if value]
        except (OSError, struct.error) as error:
            raise Failed(f"cannot read DATA: {error}")
        if not found:
            raise Failed(f"{self.given} is empty")
        return found

    @property
    def path(self):
        """Of a file, for programs that want one."""
        return self.given or self._file.name

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
    """"package: description" of each paragraph, a long description's lines joined."""
    found = {}
    for paragraph in text.split(b"\n\n"):
        name = about = b""
        inside = False
        for line in paragraph.split(b"\n"):
            if line.startswith(b"Package: "):
                name = line[9:]
            elif line.startswith(b"Description: ") or line.startswith(b"Description-en: "):
                about, inside = line.split(b": ", 1)[1], True
            elif inside and line.startswith(b" "):
                about += b" " + line.strip()
            else:
                inside = False
        if about:
            found[name + b": " + about] = True
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
    with Pipelines(server.port) as pipelines:
        for first in range(0, total, CHUNK):
            end = min(first + CHUNK, total)
            parts = [range(at, min(at + DEPTH, end)) for at in range(first, end, DEPTH)]
            seconds += pipelines.run([(b"".join(map(request, part)), b"".join(map(answer, part))) for part in parts])
            progress.show(end, total)
    return seconds


class Pipelines:
    """Several connections, each with one pipeline under way, driven by one thread."""

    def __init__(self, port):
        self.poller = select.epoll()
        self.sockets = {}
        for _ in range(CONNECTIONS):
            s = socket.create_connection(("127.0.0.1", port))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets[s.fileno()] = s
            self.poller.register(s.fileno(), select.EPOLLIN)

    def run(self, pairs):
        """Takes pairs (requests, the bytes that must come back), returns seconds."""
        pairs = iter(pairs)
        waiting = {}
        began = time.perf_counter()
        for fd in self.sockets:
            self._next(fd, pairs, waiting)
        while waiting:
            for fd, _ in self.poller.poll():
                expected, got = waiting[fd]
                data = self.sockets[fd].recv(1 << 20)
                if not data:
                    raise Failed("the server closed the connection")
                data = got + data if got else data
                if data == expected:
                    self._next(fd, pairs, waiting)
                elif len(data) >= len(expected) or data[:1] == b"-" != expected[:1]:
                    # Errors are shorter than what is expected, and nothing more would come.
                    at = next((i for i, (a, b) in enumerate(zip(data, expected)) if a != b), len(expected))
                    raise Failed(f"a reply differs from what was stored: {data[max(0, at - 80):at + 80]!r} instead of "
                                 f"{expected[max(0, at - 80):at + 80]!r}")
                else:
                    waiting[fd] = expected, data
        return time.perf_counter() - began

    def _next(self, fd, pairs, waiting):
        waiting.pop(fd, None)
        for requests, expected in pairs:
            self.sockets[fd].sendall(requests)
            waiting[fd] = expected, b""
            return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.poller.close()
        for s in self.sockets.values():
            s.close()
