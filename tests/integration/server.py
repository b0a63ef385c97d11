"""A redis-server of the tests' own: started, stopped, killed and restarted by them.

It listens on a free loopback port, lives in a temporary folder that goes away with it, and ends
with the process that started it, however that ends (PR_SET_PDEATHSIG).
"""

import atexit
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref

import redis

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULE = os.environ.get("CKV_MODULE", os.path.join(ROOT, "build", "ckv.so"))
BINARY = os.environ.get("REDIS_SERVER", "redis-server")

SANITIZERS = {
    # Records that are large are found through pointers within pages, which lie anywhere; tests of faults load a library
    # of theirs before all others.
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:verify_asan_link_order=0", "LSAN_OPTIONS": "use_unaligned=1"},
    "tsan": {},
}

EVERYWHERE = {}  # lines of every server's redis.conf
# How long a test waits for what is to come: it ends one that would wait for ever, and says nothing of how long anything may
# take. Where others have the processors a thread of a server may stand still for seconds.
PATIENCE_S = 600
# A server that starts answers within so many seconds, if only that it is loading, or it hangs.
ANSWERED_S = 40

PR_SET_PDEATHSIG = 1
CRASH = re.compile(
    r"=== (REDIS|VALKEY) BUG REPORT|ASSERTION FAILED|ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:"
)

_libc = ctypes.CDLL(None, use_errno=True)
_servers = weakref.WeakSet()


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def use_sanitizer(name):
    """All servers from here on are those with AddressSanitizer or ThreadSanitizer: that of REDIS_SERVER if it is one."""
    global MODULE, BINARY
    MODULE = os.path.join(ROOT, "build", name, "ckv.so")
    if not os.path.dirname(BINARY).endswith("-" + name):
        BINARY = os.path.join(ROOT, "build", "servers", "redis-7.0-" + name, "redis-server")
    os.environ.update(SANITIZERS[name])


class ServerFailed(Exception):
    """The server did not come up. `log` is what it wrote, `returncode` how it ended."""

    def __init__(self, message, log, returncode):
        super().__init__(f"{message}\n{log}")
        self.log = log
        self.returncode = returncode


class Server:
    """One redis-server. `config` are lines of redis.conf: {"ckv.maps": 16, "appendonly": "yes"}."""

    def __init__(self, config=None, module=True, binary=None, start=True, prefix=(), env=None):
        """`prefix` is a command line that is to run the server's, `env` adds to its environment."""
        self.config = dict(config or {})
        self.module = module
        self.binary = binary or BINARY
        self.prefix = list(prefix)
        self.env = env or {}
        self.dir = tempfile.mkdtemp(prefix="ckv-test-")
        self._remove = weakref.finalize(self, shutil.rmtree, self.dir, ignore_errors=True)
        self.port = None
        self.process = None
        self._log_start = 0
        _servers.add(self)
        if start:
            self.start()

    # --- life ---

    def start(self):
        """Starts and waits until the data is loaded. Raises ServerFailed if it ends instead."""
        for attempt in range(5):
            self.port = free_port()
            self._spawn()
            try:
                self._wait_ready()
                return self
            except ServerFailed as failed:
                # Somebody else may have taken the port in between.
                if attempt == 4 or "Address already in use" not in failed.log:
                    raise

    def _is_redis_8(self):
        said = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout
        return said.startswith("Redis server v=8.")

    def _spawn(self):
        lines = {
            "bind": "127.0.0.1",
            "port": self.port,
            "dir": self.dir,
            "logfile": self.log_path,
            "save": '""',
            "appendonly": "no",
            "enable-debug-command": "yes",
            "repl-diskless-sync-delay": 0,
            **EVERYWHERE,
            **self.config,
        }
        # Redis 8 with io-threads answers some writes before they are in the AOF: those that beforeSleep() takes from
        # the threads, after it has written the file (8.6.3, without a module, in 1 round of 25 of kill -9).
        if lines.get("appendfsync") == "always" and "io-threads" in lines and self._is_redis_8():
            lines["io-threads"] = 1
        with open(self.conf_path, "w") as f:
            if self.module:
                f.write(f"loadmodule {MODULE}\n")
            f.writelines(f"{name} {value}\n" for name, value in lines.items())
        self._log_start = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as out:
            self.process = subprocess.Popen(
                [*self.prefix, self.binary, self.conf_path],
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.dir,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def _wait_ready(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise ServerFailed("the server ended at start", self.log(), self.process.returncode)
            try:
                with self.client(timeout=ANSWERED_S) as r:
                    # A server that somebody else runs on this port is not ours.
                    if int(r.info("server")["process_id"]) == self.process.pid:
                        if r.info("persistence")["loading"] == 0:
                            return
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                pass
            time.sleep(0.005)
        self.kill()
        raise ServerFailed(f"the server was not ready in {PATIENCE_S} s", self.log(), None)

    def _shut_down(self, how):
        """It does not end while the AOF of a replica that has just synced is first written."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self.client() as r:
                    r.execute_command("SHUTDOWN", how)
                return
            except redis.ConnectionError:
                return
            except redis.ResponseError:
                if time.monotonic() > deadline or "Writing initial AOF" not in self.log():
                    raise
                time.sleep(0.1)

    def stop(self, save=False):
        """SHUTDOWN, then the log is searched for crashes. Fine when it has ended already."""
        if self.process is not None and self.process.poll() is None:
            self._shut_down("SAVE" if save else "NOSAVE")
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("the server did not end on SHUTDOWN\n" + self.log())
        self.check_log()

    def kill(self):
        """kill -9."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def restart(self, save=True):
        self.stop(save=save)
        return self.start()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        """Ends it and removes its folder."""
        try:
            self.stop()
        finally:
            self.kill()
            self._remove()
            _servers.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- what it says ---

    @property
    def log_path(self):
        return os.path.join(self.dir, "server.log")

    @property
    def conf_path(self):
        return os.path.join(self.dir, "redis.conf")

    @property
    def rdb_path(self):
        return os.path.join(self.dir, "dump.rdb")

    def log(self, whole=False):
        """The log since the last start, or all of it."""
        try:
            with open(self.log_path, errors="replace") as f:
                f.seek(0 if whole else self._log_start)
                return f.read()
        except FileNotFoundError:
            return ""

    def check_log(self):
        log = self.log(whole=True)
        found = CRASH.search(log)
        if found:
            # The stack trace is what matters; INFO and all settings come after it.
            excerpt = log[max(0, found.start() - 1000) :].split("------ INFO OUTPUT")[0]
            raise AssertionError(f"{found.group(0)} in the server's log\n{excerpt[:10000]}")

    # --- talking to it ---

    def client(self, db=0, protocol=2, timeout=PATIENCE_S):
        """A redis-py client whose replies are left as they came: bytes, ints, lists, None."""
        r = redis.Redis(
            host="127.0.0.1",
            port=self.port,
            db=db,
            protocol=protocol,
            socket_timeout=timeout,
            retry=None,
            single_connection_client=True,
        )
        keep = {"INFO": r.response_callbacks["INFO"]}
        r.response_callbacks.clear()
        r.response_callbacks.update(keep)
        return r

    def socket(self):
        """A bare connection, to see a reply's own bytes."""
        s = socket.create_connection(("127.0.0.1", self.port))
        s.settimeout(PATIENCE_S)
        return s


def running():
    """The servers that this process has, for the report of a failed test."""
    return [s for s in list(_servers) if os.path.exists(s.log_path)]


@atexit.register
def _end_all():
    for server in list(_servers):
        server.kill()
        server._remove()
