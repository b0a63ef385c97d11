"""Fixtures: one server for all tests that need no restart, and servers of their own for the others.

    pytest tests/integration [--topology plain|aof|replica|asan|tsan] [--io-threads 4]

The topology changes what stands around the shared server, not the tests: with `aof` it is restarted
from its append-only file after every test, with `replica` a second server follows it; in both cases
all records are compared. With `asan` and `tsan` every server and the module are those that `make test-asan` and
`make test-tsan` build with AddressSanitizer and ThreadSanitizer; what these find fails the test that ends the server.
"""

import os
import subprocess

import pytest
import redis

import server as servers
import traffic
from faults import Faults
from helpers import LATE_MS, is_error, late_by, now_ms, reply, wait_for_replica
from server import Server

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(servers.ROOT, "build", "hypothesis"))


def pytest_addoption(parser):
    parser.addoption(
        "--topology",
        choices=tuple(TOPOLOGIES),
        default="plain",
        help="what stands around the server under test",
    )
    parser.addoption("--io-threads", type=int, default=1, help="of every server")
    parser.addoption("--no-slow", action="store_true", help="leave out the tests marked slow")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes seconds, or gigabytes of memory")
    if config.getoption("--topology") in servers.SANITIZERS:
        servers.use_sanitizer(config.getoption("--topology"))
    if config.getoption("--io-threads") > 1:
        servers.EVERYWHERE["io-threads"] = config.getoption("--io-threads")


def pytest_collection_modifyitems(config, items):
    """A slow test may take a multiple of its time, beside whatever else the machine does."""
    leave_out = config.getoption("--no-slow")
    marker = pytest.mark.skip(reason="--no-slow") if leave_out else pytest.mark.timeout(1800)
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(marker)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what the servers logged."""
    report = (yield).get_result()
    if report.failed:
        for server in servers.running():
            log = server.log(whole=True).split("------ INFO OUTPUT")[0][-8000:]
            report.sections.append((f"log of the server on port {server.port}", log))


# --- topologies ---


class Plain:
    """One server, nothing around it."""

    config = {}

    def __init__(self):
        self.server = Server(config=self.config)

    def after_test(self):
        self.server.check_log()

    def close(self):
        self.server.close()


class Compared(Plain):
    """Something else must hold the same records after each test. Lists them with CSCAN."""

    def __init__(self):
        super().__init__()
        with self.server.client() as r:
            if is_error(reply(r, "CSCAN", "0")):
                self.close()
                pytest.exit("this topology compares all records and needs CSCAN", returncode=4)

    @staticmethod
    def records(server):
        """{(db, key): (value, expiry)} of all databases."""
        found = {}
        with server.client() as r:
            for db in range(16):
                r.execute_command("SELECT", db)
                found.update({(db, key): record for key, record in traffic.records(r).items()})
        return found

    @staticmethod
    def assert_agree(expected, found):
        """All that is expected, and has not expired since, was found with the same values. A time that is stored
        again later is stored more exactly."""
        now = now_ms()
        for key, (value, at) in expected.items():
            if key not in found and at != -1 and at <= now:
                continue
            assert key in found and found[key][0] == value, key
            assert abs(found[key][1] - at) <= (late_by(at - now + 60_000) if at != -1 else 0), key


    @staticmethod
    def assert_expired(found, gone):
        """Their time has come."""
        now = now_ms()
        early = {key: found[key] for key in gone if not -1 < found[key][1] <= now + LATE_MS}
        assert not early, (now, early)


class Aof(Compared):
    config = {"appendonly": "yes", "appendfsync": "no"}

    def after_test(self):
        before = self.records(self.server)
        self.server.restart(save=False)
        after = self.records(self.server)
        # A record may expire in between; none may appear or change.
        self.assert_agree(after, before)
        self.assert_expired(before, before.keys() - after.keys())


class Replica(Compared):
    def __init__(self):
        super().__init__()
        self.replica = Server(config={"replicaof": f"127.0.0.1 {self.server.port}"})

    def after_test(self):
        with self.server.client() as r:
            wait_for_replica(r)
        primary = self.records(self.server)
        replica = self.records(self.replica)
        self.assert_agree(primary, replica)
        self.assert_expired(replica, replica.keys() - primary.keys())
        self.server.check_log()
        self.replica.check_log()

    def close(self):
        try:
            self.replica.close()
        finally:
            super().close()


TOPOLOGIES = {"plain": Plain, "aof": Aof, "replica": Replica, "asan": Plain, "tsan": Plain}


@pytest.fixture(scope="session")
def caller(tmp_path_factory):
    """Another module, which calls and listens as it is told."""
    library = str(tmp_path_factory.mktemp("caller") / "caller.so")
    source = os.path.join(servers.ROOT, "tests", "integration", "caller.c")
    given = os.environ.get("REDISMODULE_INCLUDE")
    include = [f"-I{given}"] if given else []
    include += ["-idirafter", os.path.join(servers.ROOT, "build", "deps", "include")]
    cc = os.environ.get("CC", "cc")
    subprocess.run([cc, "-O1", "-Wall", "-shared", "-fPIC", *include, "-o", library, source], check=True)
    return library


@pytest.fixture(scope="session")
def _topology(request):
    current = {}

    def get():
        # A test that crashed the server must not fail all the others.
        if current and not current["it"].server.alive():
            try:
                current.pop("it").close()
            except AssertionError:
                pass
        if not current:
            current["it"] = TOPOLOGIES[request.config.getoption("--topology")]()
        return current["it"]

    yield get
    if current:
        current["it"].close()


@pytest.fixture
def shared(_topology):
    """The server that tests share, emptied."""
    topology = _topology()
    with topology.server.client() as r:
        r.execute_command("FLUSHALL")
    yield topology.server
    assert topology.server.alive(), "the test ended the shared server"
    topology.after_test()


@pytest.fixture
def r(shared):
    """A client of the shared server, RESP2, database 0."""
    with shared.client() as client:
        yield client


@pytest.fixture
def lines(tmp_path):
    """A file of data for benchmarks."""
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"the value of line {i}, {'x' * (i % 50)}\n" for i in range(700)))
    return path


@pytest.fixture
def own_server():
    """A factory of servers for one test: own_server({"ckv.maps": 1})."""
    started = []

    def start(config=None, **options):
        server = Server(config=config, **options)
        started.append(server)
        return server

    yield start
    errors = []
    for server in started:
        try:
            server.close()
        except AssertionError as error:
            errors.append(error)
    if errors:
        raise errors[0]


@pytest.fixture
def prefixes(own_server):
    """A server with a prefix of every key and one string; it may be left with any rules of users."""
    server = own_server({"ckv.prefixes": '"*"'})
    with server.client() as r:
        r.execute_command("SET", "k", "secret")
    yield server
    # Whatever it was left as: the server has to let us end it.
    with redis.Redis(port=server.port, username="admin", password="pw") as r:
        r.execute_command("ACL", "SETUSER", "default", "reset", "on", "nopass", "+@all", "~*", "&*")


@pytest.fixture
def faults(tmp_path):
    """What servers suffer from that are started with env=faults.env: faults.set(seconds=3600) sets their clock forward."""
    return Faults(str(tmp_path / "faults"))
