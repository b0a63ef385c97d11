"""Servers for benchmarks: each on a free loopback port in a temporary folder of its own, both gone with the process that
started it. A bare client speaks Redis' protocol. Standard library only."""

import ctypes
import os
import re
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

    def pipeline(self, commands):
        """Sends commands, returns their replies."""
        self.socket.sendall(b"".join(commands))
        return [self.read() for _ in commands]

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


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """`with` starts it and waits until it answers. Those that derive from it tell line() and answers()."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="ckv-bench-")
        self.log_path = os.path.join(self.dir, "server.log")
        self.process = self.port = None

    def start(self, attempts=5, timeout=3600):
        """Returns the seconds until it answered, its data loaded."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        line = self.line()
        open(self.log_path, "w").close()
        began = time.monotonic()
        try:
            with open(self.log_path, "a") as out:
                # A session of its own: Ctrl-C reaches this process, which then ends the server.
                self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.dir,
                                                start_new_session=True, preexec_fn=_die_with_parent)
        except OSError as error:
            raise Failed(f"cannot start {line[0]}: {error}")
        while time.monotonic() - began < timeout:
            if self.process.poll() is not None:
                # Somebody else may have taken the port in between.
                if attempts > 1 and "Address already in use" in self.log():
                    return self.start(attempts - 1)
                raise Failed(f"{line[0]} ended at start:\n{self.log()[-3000:]}")
            try:
                # A server that somebody else runs on this port is not ours.
                if self.answers() == str(self.process.pid):
                    return time.monotonic() - began
            except (OSError, Failed):
                pass
            time.sleep(0.002)
        raise Failed(f"{line[0]} was not ready in {timeout} s")

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def status_bytes(self, field):
        """VmRSS, VmHWM."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith(field))

    def stop(self):
        """SIGTERM, or a kill if that takes too long."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()


class Server(Process):
    """A Redis or Valkey server with the module; `config` are lines of redis.conf, None leaves one out. call() and info() ask it by a
    connection that stays open."""

    def __init__(self, options, **config):
        super().__init__()
        self.binary = options.redis_server
        self.config = {"bind": "127.0.0.1", "dir": self.dir, "logfile": self.log_path, "save": '""', "appendonly": "no",
                       "loadmodule": options.module, **{name.replace("_", "-"): value for name, value in config.items()}}
        self.client = None
        self.rdb_path = os.path.join(self.dir, "dump.rdb")

    def line(self):
        conf = os.path.join(self.dir, "redis.conf")
        with open(conf, "w") as f:
            f.writelines(f"{name} {value}\n" for name, value in {**self.config, "port": self.port}.items() if value is not None)
        return [self.binary, conf]

    def answers(self):
        self.disconnect()
        self.client = Client(self.port)
        self.call("PING")  # an error as long as data is being loaded
        return self.info("server")["process_id"]

    def call(self, *args):
        return self.client.call(*args)

    def info(self, section):
        return self.client.info(section)

    def load_seconds(self):
        """What the server itself says that loading its RDB file took."""
        found = re.search(r"DB loaded from disk: ([0-9.]+) seconds", self.log())
        if not found:
            raise Failed("the server did not log that it loaded its data:\n" + self.log()[-3000:])
        return float(found.group(1))

    def disconnect(self):
        if self.client:
            self.client.close()
            self.client = None

    def close(self):
        self.disconnect()
        super().close()


class Memcached(Process):
    """Listens on a loopback port, or on a Unix socket."""

    def __init__(self, options, unix=False):
        super().__init__()
        self.megabytes = options.memcached_megabytes
        self.unix = os.path.join(self.dir, "memcached.sock") if unix else None

    @property
    def address(self):
        return self.unix or ("127.0.0.1", self.port)

    def line(self):
        where = ["-s", self.unix] if self.unix else ["-l", "127.0.0.1", "-p", str(self.port), "-U", "0"]
        user = ["-u", "root"] if os.geteuid() == 0 else []
        return ["memcached", *where, "-m", str(self.megabytes), *user]

    def answers(self):
        return self.stats()["pid"]

    def stats(self):
        with socket.socket(socket.AF_UNIX if self.unix else socket.AF_INET) as s:
            s.connect(self.address)
            s.sendall(b"stats\r\n")
            text = b""
            while not text.endswith(b"END\r\n"):
                more = s.recv(65536)
                if not more:
                    raise Failed("memcached closed the connection")
                text += more
        return {line.split()[1].decode(): line.split()[2].decode() for line in text.splitlines()[:-1]}

    def used(self):
        """Item headers, keys, values and what their slab chunks leave free; the hash table besides."""
        stats = self.stats()
        return int(stats["bytes"]) + int(stats["hash_bytes"])

    def rss(self):
        return self.status_bytes("VmRSS")
