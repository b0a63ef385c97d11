"""A redis-server for benchmarks: starts on a free loopback port in a temporary folder, and goes away
with the process that started it. A bare client speaks the protocol in large pieces, so that Python is
not what is measured. Standard library only."""

import ctypes
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


class Failed(Exception):
    """Something that the user should read, without a traceback."""


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    def __init__(self, binary="redis-server", module=None, config=()):
        self.binary = binary
        self.module = module
        self.config = dict(config)
        self.dir = tempfile.mkdtemp(prefix="ckv-bench-")
        self.process = None
        self.port = None
        self.log_path = os.path.join(self.dir, "server.log")

    def start(self, timeout=3600):
        """Starts it; returns the seconds until it answered, its data loaded."""
        for attempt in range(5):
            try:
                return self._start(timeout)
            except Failed as failed:
                # Somebody else may have taken the port in between.
                if attempt == 4 or "Address already in use" not in str(failed):
                    raise

    def _start(self, timeout):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        lines = {"bind": "127.0.0.1", "port": self.port, "dir": self.dir, "logfile": self.log_path,
                 "save": '""', "appendonly": "no", **self.config}
        conf = os.path.join(self.dir, "redis.conf")
        with open(conf, "w") as f:
            if self.module:
                f.write(f"loadmodule {self.module}\n")
            f.writelines(f"{name} {value}\n" for name, value in lines.items())
        open(self.log_path, "w").close()
        began = time.monotonic()
        try:
            with open(self.log_path, "a") as out:
                # A session of its own: Ctrl-C reaches this process, which then ends the server.
                self.process = subprocess.Popen([self.binary, conf], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                cwd=self.dir, start_new_session=True, preexec_fn=_die_with_parent)
        except OSError as error:
            raise Failed(f"cannot start {self.binary}: {error}")
        while time.monotonic() - began < timeout:
            if self.process.poll() is not None:
                raise Failed(f"{self.binary} ended at start:\n{self.log()[-3000:]}")
            try:
                with Client(self.port) as client:
                    if client.call("PING") == b"PONG" and client.info("server")["process_id"] == str(self.process.pid):
                        return time.monotonic() - began
            except (OSError, Failed):
                pass
            time.sleep(0.002)
        raise Failed(f"{self.binary} was not ready in {timeout} s")

    def stop(self):
        """SHUTDOWN NOSAVE, or a kill if that takes too long."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def load_seconds(self):
        """What the server itself says that loading its RDB file took."""
        found = re.search(r"DB loaded from disk: ([0-9.]+) seconds", self.log())
        if not found:
            raise Failed("the server did not log that it loaded its data:\n" + self.log()[-3000:])
        return float(found.group(1))

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def command(*args):
    """A command as the protocol has it."""
    out = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = arg if isinstance(arg, bytes) else str(arg).encode()
        out.append(b"$%d\r\n%b\r\n" % (len(arg), arg))
    return b"".join(out)


class Client:
    """One connection, for single commands."""

    def __init__(self, port, timeout=3600):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def call(self, *args):
        self.socket.sendall(command(*args))
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line:
            raise Failed("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Failed("the server answered: " + rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise Failed(f"unknown reply {line!r:.100}")

    def info(self, section):
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Pipelines:
    """Several connections, each with one pipeline under way, driven by one thread.

    run() takes pairs (requests, the bytes that must come back) and returns the seconds that it took.
    Whoever calls prepares the pairs before, so that only sending, waiting and comparing is timed."""

    def __init__(self, port, connections=8):
        self.poller = select.epoll()
        self.sockets = {}
        for _ in range(connections):
            s = socket.create_connection(("127.0.0.1", port))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets[s.fileno()] = s
            self.poller.register(s.fileno(), select.EPOLLIN)

    def run(self, pairs):
        pairs = iter(pairs)
        waiting = {}
        began = time.perf_counter()
        for fd, s in self.sockets.items():
            self._next(fd, s, pairs, waiting)
        while waiting:
            for fd, _ in self.poller.poll():
                s = self.sockets[fd]
                expected, got = waiting[fd]
                data = s.recv(1 << 20)
                if not data:
                    raise Failed("the server closed the connection")
                data = got + data if got else data
                if len(data) < len(expected):
                    waiting[fd] = expected, data
                    # Errors are shorter than what is expected, and nothing more would come.
                    if data[:1] == b"-" and expected[:1] != b"-":
                        raise Failed("the server answered: " + data.split(b"\r\n")[0].decode(errors="replace"))
                elif data == expected:
                    self._next(fd, s, pairs, waiting)
                else:
                    at = next(i for i, (a, b) in enumerate(zip(data, expected)) if a != b)
                    raise Failed(f"a reply differs from what was stored: {data[max(0, at - 80):at + 80]!r} instead of "
                                 f"{expected[max(0, at - 80):at + 80]!r}")
        return time.perf_counter() - began

    @staticmethod
    def _next(fd, s, pairs, waiting):
        for requests, expected in pairs:
            s.sendall(requests)
            waiting[fd] = expected, b""
            return
        waiting.pop(fd, None)

    def close(self):
        self.poller.close()
        for s in self.sockets.values():
            s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
