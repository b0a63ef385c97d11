"""ckv-estimate against servers without the module: what it says agrees with what the same records then take in one with it, it
changes nothing, and what goes wrong is said."""

import json
import os
import random
import re
import shutil
import socket
import subprocess
import threading

import pytest

from server import PATIENCE_S, ROOT, Server, ServerFailed, free_port

PROGRAM = os.path.join(ROOT, "build", "ckv-estimate")
READER = ["+@read", "+@connection", "+info", "+memory|stats"]
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def program():
    subprocess.run(["make", "-C", ROOT, "build/ckv-estimate"], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def _plain():
    with Server(module=False) as server:
        yield server


@pytest.fixture
def plain(_plain):
    """A server without the module, empty."""
    with _plain.client() as r:
        r.execute_command("FLUSHALL")
    return _plain


@pytest.fixture
def ask(program, plain):
    """Runs it against that server, or as the arguments say; returns what it has printed."""
    def run(*args, status=0, port=plain.port, env=None):
        at = ["-p", port] if port else []
        done = subprocess.run([PROGRAM, *map(str, [*at, *args])], text=True, capture_output=True, timeout=PATIENCE_S,
                              env={**os.environ, **(env or {})})
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


def texts(count, seed=1):
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(3000)]
    return [" ".join(rng.choices(words, k=rng.randint(4, 20))) for _ in range(count)]


def used(r):
    return r.info("memory")["used_memory"]


def fill(r, command, pairs, ttl=True):
    """Stores (key, value)s; returns by how much the server has grown."""
    before = used(r)
    pipe = r.pipeline(transaction=False)
    for i, (key, value) in enumerate(pairs):
        pipe.execute_command(command, key, value, *(("EX", 86400) if ttl else ()))
        if i % 1000 == 999:
            pipe.execute()
    pipe.execute()
    return used(r) - before


def family(report, name, kind="string"):
    return next(f for f in report["families"] if f["family"] == name and f["type"] == kind)


# ---- the figures ------------------------------------------------------------------------------------------

def measured(own_server, pairs):
    """What the records take in a server with the module, when it has come to rest."""
    with own_server({}).client() as r:
        before = used(r)
        fill(r, "CSET", pairs)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        return used(r) - before


@pytest.fixture
def pairs():
    """Three families: dense numbers, random ones, and names; long values among the first."""
    rng = random.Random(7)
    values = texts(24_000)
    kinds = [("post:%d" % (10_000_000 + i), value + " " + values[i // 2]) for i, value in enumerate(values[:12_000])]
    kinds += [("user:%d:name" % rng.randrange(10**9), value) for value in values[12_000:18_000]]
    kinds += [("word-%s" % "".join(rng.choices("abcdefgh", k=12)), value) for value in values[18_000:]]
    return list(dict(kinds).items())


def test_the_estimate_is_what_the_records_then_take(ask, plain, own_server, pairs):
    with plain.client() as r:
        now = fill(r, "SET", pairs)
    whole = json.loads(ask("--json", "--rate", 0))
    total = whole["total"]
    then = measured(own_server, pairs)
    assert whole["sample"]["whole"] and total["keys"] == len(pairs) == sum(f["keys"] for f in whole["families"])
    assert total["bytes_now"] == pytest.approx(now, rel=0.06)
    assert total["bytes_with_ckv"] == pytest.approx(then, rel=0.05)
    assert total["low"] < total["bytes_with_ckv"] < total["high"]
    assert total["bytes_with_ckv"] == pytest.approx(sum(f["bytes_with_ckv"] for f in whole["families"]), abs=10)
    assert {f["family"] for f in whole["families"]} == {"post", "user", "word"}
    assert [f["saved"] for f in whole["families"]] == sorted((f["saved"] for f in whole["families"]), reverse=True)
    # A sample of it is less sure, and says so. What is learned of so few comes to 11% more in one of eight: not in four of five.
    parts = (json.loads(ask("--json", "--rate", 0, "--keys", 6_000)) for _ in range(5))
    part = sorted(parts, key=lambda p: p["total"]["bytes_with_ckv"])[1]
    assert not part["sample"]["whole"] and 6_000 <= part["sample"]["keys"] < 6_500
    assert part["total"]["keys"] == pytest.approx(len(pairs), rel=0.01)
    assert part["total"]["bytes_now"] == pytest.approx(now, rel=0.06)
    width, part_width = ((t["high"] - t["low"]) / t["bytes_with_ckv"] for t in (total, part["total"]))
    assert part_width > width
    assert part["total"]["bytes_with_ckv"] == pytest.approx(then, rel=0.06)


def piped(r, commands):
    pipe = r.pipeline(transaction=False)
    for command in commands:
        pipe.execute_command(*command)
    pipe.execute()


def test_what_stays_keeps_its_table(ask, plain, own_server):
    """Where an eighth of the keys stays, or more, the server does not make the table of keys smaller."""
    pairs = [(f"n:{i * 3}", i % 1000) for i in range(60_000)]
    hashes = [("HSET", f"obj:{i}", "a", i, "b", 2) for i in range(18_000)]
    with plain.client() as r:
        fill(r, "SET", pairs, ttl=False)
        piped(r, hashes)
    total = json.loads(ask("--json", "--rate", 0))["total"]
    with own_server({}).client() as r:
        before = used(r)
        fill(r, "SET", pairs, ttl=False)
        piped(r, hashes)
        piped(r, [("CMOVEIN", key) for key, _ in pairs])
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        assert total["bytes_with_ckv"] == pytest.approx(used(r) - before, rel=0.1)
    # Of few that stay it says no such thing.
    with plain.client() as r:
        r.execute_command("DEL", *(f"obj:{i}" for i in range(200, 18_000)))
    few = json.loads(ask("--json", "--rate", 0))["total"]
    assert total["bytes_with_ckv"] - total["bytes_staying"] > few["bytes_with_ckv"] - few["bytes_staying"] + 700_000


def test_what_is_in_no_figure_is_told(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [(f"k:{1000 + i}", "x" * 20) for i in range(21_000)])
        assert "MEMORY STATS" not in ask("--rate", 0)
        piped(r, [("ACL", "SETUSER", f"u{i}", "~" + "x" * 100_000) for i in range(80)])
        assert re.search(r"\d MB more are in use that are not in these figures", ask("--rate", 0))
        r.execute_command("ACL", "DELUSER", *(f"u{i}" for i in range(80)))


def test_what_is_told_of_a_family(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [("a:%03d" % i, "v" * 50) for i in range(300)], ttl=False)
        fill(r, "SET", [("b:%03d" % i, "v" * 100) for i in range(100)])
        r.execute_command("HSET", "h:1", *(["field", "value"] * 3))
        r.execute_command("PFADD", "b:hll", *range(1000))
        r.execute_command("SET", "b:large", os.urandom(1_500_000))
    report = json.loads(ask("--json"))
    a, b, h = family(report, "a"), family(report, "b"), family(report, "h", "hash")
    assert (a["keys"], a["mean_key"], a["mean_value"], a["expiring"], a["prefix"]) == (300, 5, 50, 0, "a:")
    assert b["keys"] == 102 and b["expiring"] == pytest.approx(100 / 102, abs=1e-3)
    assert b["keys_staying"] == 2 and b["bytes_staying"] > 1_500_000
    assert h["keys"] == h["keys_staying"] == 1 and h["bytes_now"] == h["bytes_with_ckv"] > 0 and "mean_value" not in h
    assert a["encode_us"] > 0 and a["decode_us"] > 0


def test_families_by_other_rules(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [(f"{a}:{b}:{i}", "x") for a in "pq" for b in "rs" for i in range(5)])
    assert {f["family"] for f in json.loads(ask("--json"))["families"]} == {"p", "q"}
    assert {f["family"] for f in json.loads(ask("--json", "--by", ":2"))["families"]} == {"p:r", "p:s", "q:r", "q:s"}
    assert {f["family"] for f in json.loads(ask("--json", "--by", 1))["families"]} == {"p", "q"}
    assert [f["family"] for f in json.loads(ask("--json", "--by", "all"))["families"]] == [""]


@pytest.mark.parametrize("name, shown", [
    (b"\xc2\x9b31mred", "\\xc2\\x9b31mred"), ("a\u202eb", "a\\xe2\\x80\\xaeb"), ("a\u2066b\u2069", "a\\xe2\\x81\\xa6b\\xe2\\x81\\xa9"),
    ("a\u2028b", "a\\xe2\\x80\\xa8b"), (b"a\x1b[b\xff", "a\\x1b[b\\xff"), ("\u00a0a\u2027\u202f\u2065\u206a\u00e9\u4e2d", None),
])
def test_names_that_a_terminal_would_obey(ask, plain, tmp_path, name, shown):
    with plain.client() as r:
        r.execute_command("SET", (name if isinstance(name, bytes) else name.encode()) + b":1", "x")
    name, page = shown or name, tmp_path / "page.html"
    assert name in ask("--by", ":", "--html", page) and name in page.read_text()
    assert family(json.loads(ask("--json", "--by", ":")), name)["keys"] == 1


def test_a_long_name_is_cut_between_characters(ask, plain):
    with plain.client() as r:
        for name in ("\u00e9" * 40, "\u4e2d" * 5, "short"):
            r.execute_command("HSET", name, "f", "v")
    lines = [line for line in ask("--by", ":").splitlines() if " hash " in line]
    assert {line.split()[0] for line in lines} == {"\u00e9" * 28, "\u4e2d" * 5, "short"}
    assert len({line.index(" hash ") for line in lines}) == 1


def test_many_families_are_told_together(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [("".join(chr(97 + (i // 26**n) % 26) for n in range(3)) + ":1", "x") for i in range(500)])
    report = json.loads(ask("--json"))
    others = family(report, "(others)")
    assert len(report["families"]) == 41 and others["keys"] == 460 and report["total"]["keys"] == 500


def test_databases(ask, plain):
    for db, count in ((0, 100), (3, 50)):
        with plain.client(db=db) as r:
            fill(r, "SET", [(f"k:{i}", "x" * 30) for i in range(count)])
    assert json.loads(ask("--json"))["total"]["keys"] == 150
    assert json.loads(ask("--json", "-n", 3))["total"]["keys"] == 50
    assert json.loads(ask("--json", "-u", f"redis://127.0.0.1:{plain.port}/3", port=None))["total"]["keys"] == 50


def test_a_small_database_with_large_values(ask, plain):
    """Its part of the keys, or of the bytes, has been read from the one before: it is looked at all the same."""
    value = os.urandom(60_000).hex()
    with plain.client() as r, plain.client(db=1) as one, plain.client(db=2) as two:
        fill(r, "SET", [(f"a:{i}", "v" * 20) for i in range(3000)])
        fill(one, "SET", [(f"b:{i}", value[: 1000 * i]) for i in range(60)])
        report = json.loads(ask("--json", "--keys", 1000))
        assert report["total"]["keys"] == 3060
        assert family(report, "b")["keys"] == 60 and family(report, "b")["mean_value"] == pytest.approx(29_500)
        fill(r, "SET", [(f"a:{i}", value) for i in range(600)])
        fill(two, "SET", [(f"c:{i}", value) for i in range(250)])
        report = json.loads(ask("--json", "--by", "all"))
        assert report["total"]["keys"] == 3310
        assert family(report, "")["mean_value"] == pytest.approx((60 * 29_500 + 850 * 120_000 + 2400 * 20) / 3310, rel=0.25)


def test_prefixes_are_those_that_gain(ask, plain, own_server, pairs):
    with plain.client() as r:
        fill(r, "SET", pairs)
        r.execute_command("HSET", "hash:1", "f", "v")
        r.execute_command("SET", "one", "x")
    line = ask("--prefixes", "--rate", 0)
    assert re.fullmatch(r'ckv\.prefixes "[^"]*"\n', line) and set(line.split('"')[1].split()) == {"post:", "user:", "word-"}
    with own_server({"ckv.prefixes": line.split(" ", 1)[1].strip()}).client() as r:
        assert r.execute_command("CONFIG", "GET", "ckv.prefixes")[1].decode() == line.split('"')[1]
        r.execute_command("SET", "post:1", "v")
        assert r.execute_command("CDBSIZE") == 1
    # Where no prefix could name them, all keys are named.
    with plain.client() as r:
        r.execute_command("FLUSHALL")
        fill(r, "SET", [(key.split(":")[-1], value) for key, value in pairs[:12_000]])
    assert ask("--prefixes", "--rate", 0) == 'ckv.prefixes "*"\n'


def test_keys_that_are_never_served_stay(ask, plain, own_server):
    """ckv's own names, which no setting can name; a prefix that does not fit into the setting is not told either."""
    with plain.client() as r:
        fill(r, "SET", [(f"ckv:{i}", text) for i, text in enumerate(texts(2000))])
        fill(r, "SET", [(f"{chr(97 + i % 26)}{'x' * 400}:{i}", "a text " * 50) for i in range(2600)])
        fill(r, "SET", [(f"post:{i}", text * 20) for i, text in enumerate(texts(2000))])
    own = family(json.loads(ask("--json")), "ckv")
    assert own["keys_staying"] == own["keys"] == 2000 and own["bytes_with_ckv"] == own["bytes_now"]
    line = ask("--prefixes")
    assert "ckv:" not in line
    own_server({"ckv.prefixes": line.split(" ", 1)[1].strip()})
    with plain.client() as r:
        r.execute_command("FLUSHALL")
        fill(r, "SET", [(f"ckv:{i}", text) for i, text in enumerate(texts(2000))])
    assert ask("--prefixes") == 'ckv.prefixes ""\n'


# ---- it reads only ----------------------------------------------------------------------------------------


def test_a_reader_is_enough_and_nothing_changes(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [(f"k:{1000 + i}", text) for i, text in enumerate(texts(2000))])
        r.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">pw", "%R~*", *READER)
        before = r.execute_command("DEBUG", "DIGEST"), r.info("persistence")["rdb_changes_since_last_save"]
        r.execute_command("CONFIG", "RESETSTAT")
        r.execute_command("ACL", "LOG", "RESET")
    # Of 2,000 keys 300: by RANDOMKEY, neighbours included.
    for args in (["--keys", 300], []):
        assert json.loads(ask("--json", "--user", "reader", "-a", "pw", *args))["total"]["keys"] == pytest.approx(2000)
    with plain.client() as r:
        assert before == (r.execute_command("DEBUG", "DIGEST"), r.info("persistence")["rdb_changes_since_last_save"])
        assert r.execute_command("ACL", "LOG") == []
        run = {name.removeprefix("cmdstat_") for name in r.info("commandstats")}
        flags = {info[0].decode(): info[2] for info in r.execute_command("COMMAND")}
        for name in run:
            assert b"write" not in flags.get(name.split("|")[0], []), name
        assert {"randomkey", "scan", "exists", "getrange"} <= run
        r.execute_command("ACL", "DELUSER", "reader")


def test_a_user_who_may_too_little(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [("a:1", "x"), ("b:1", "y")])
        r.execute_command("ACL", "SETUSER", "little", "reset", "on", ">pw", "~a:*", "+@connection", "+info", "+scan")
        said = ask("--user", "little", "-a", "pw", status=1)
        assert "may not run" in said and "NOPERM" in said and "--help" in said
        r.execute_command("ACL", "DELUSER", "little")


def test_keys_that_vanish(ask, plain):
    """Others write and delete meanwhile: a thousand keys are there, of ten thousand names."""
    done = threading.Event()

    def churn():
        rng = random.Random(3)
        with plain.client() as r:
            while not done.is_set():
                pipe = r.pipeline(transaction=False)
                for _ in range(100):
                    key = f"k:{rng.randrange(2000)}"
                    pipe.execute_command(*rng.choice([("DEL", key), ("SET", key, "x" * 50), ("SET", key, "y", "PX", 1)]))
                    pipe.execute_command("DEL", f"t:{key}")
                    pipe.execute_command(*rng.choice([("SADD", f"t:{key}", 1), ("SET", f"t:{key}", "x")]))
                pipe.execute()

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        for args in ([], ["--keys", 100], ["--json"]) * 3:
            ask(*args)
    finally:
        done.set()
        writer.join()


def test_the_rate_is_kept(ask, plain):
    with plain.client() as r:
        fill(r, "SET", [(f"k:{i}", "x") for i in range(1500)])
    assert json.loads(ask("--json", "--rate", 1000))["sample"]["seconds"] > 1.4


def test_neighbours_are_asked_for_at_that_rate(ask, plain):
    """64 keys of the family are asked for a hundred each; of long ones, which share nothing, none is."""
    with plain.client() as r:
        fill(r, "SET", [(f"k:{1000 + i}", "x") for i in range(3000)])
        assert json.loads(ask("--json", "--keys", 100, "--rate", 8000))["sample"]["seconds"] > 0.75
        r.execute_command("FLUSHALL")
        fill(r, "SET", [(f"{'k' * 1021}{1000 + i}", "x") for i in range(600)])
        r.execute_command("CONFIG", "RESETSTAT")
        ask("--keys", 100)
        assert "cmdstat_exists" not in r.info("commandstats")


# ---- servers of other kinds -------------------------------------------------------------------------------


def test_an_empty_server(ask):
    report = json.loads(ask("--json"))
    assert report["families"] == [] and report["total"]["keys"] == report["total"]["bytes_now"] == 0
    assert "There are no keys." in ask() and ask("--prefixes") == 'ckv.prefixes ""\n'


def test_only_hashes(ask, plain):
    with plain.client() as r:
        for i in range(50):
            r.execute_command("HSET", f"h:{i}", "f", "v" * 100)
    report = json.loads(ask("--json"))
    assert report["total"]["bytes_now"] == report["total"]["bytes_with_ckv"] == report["total"]["bytes_staying"] > 50 * 100
    assert "stay as they are" in ask() and ask("--prefixes") == 'ckv.prefixes ""\n'


@pytest.fixture
def alone(own_server):
    """The one node of a cluster, with the module or without."""
    def start(module):
        server = own_server({"cluster-enabled": "yes", "cluster-port": free_port()}, module=module)
        with server.client() as r:
            r.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while b"cluster_state:ok" not in r.execute_command("CLUSTER", "INFO"):
                pass
        return server

    return start


def test_a_node_of_a_cluster(ask, alone):
    server = alone(module=False)
    with server.client() as r:
        fill(r, "SET", [(f"user:{{{i // 50}}}:{1000 + i}", text) for i, text in enumerate(texts(3000))])
    assert "This is about one node: the cluster has 1 primaries." in ask(port=server.port)
    for args in ([], ["--keys", 500]):
        report = json.loads(ask("--json", *args, port=server.port))
        assert report["server"]["cluster_primaries"] == 1 and report["total"]["keys"] == pytest.approx(3000)


def test_strings_that_take_more_are_told(ask, alone):
    """A few short ones in each slot of a cluster do not pay for its map. No prefix is named for them."""
    pairs = [(f"likes:{1_000_000 + 7 * i}", i % 1000) for i in range(24_000)]
    plain, ckv = alone(module=False), alone(module=True)
    with plain.client() as r, ckv.client() as c:
        now, then = (fill(client, command, pairs, ttl=False) for client, command in ((r, "SET"), (c, "CSET")))
    report = json.loads(ask("--json", "--rate", 0, port=plain.port))
    assert report["total"]["bytes_now"] == pytest.approx(now, rel=0.2)
    assert report["total"]["bytes_with_ckv"] == pytest.approx(then, rel=0.08)
    likes = family(report, "likes")
    assert likes["keys_staying"] == 0 and likes["saved"] == likes["bytes_now"] - likes["bytes_with_ckv"] < -1_000_000
    said = ask("--rate", 0, port=plain.port)
    assert re.search(r"ckv would take \d.* more than ", said) and "1 of the families would take more than they do" in said
    assert ask("--prefixes", "--rate", 0, port=plain.port) == 'ckv.prefixes ""\n'


def test_a_replica_without_its_primary(ask, plain, own_server):
    """What it has it tells; if it has nothing, because it never had anything, it does not say that there are no keys."""
    primary = own_server({}, module=False)
    replica = own_server({}, module=False)
    with primary.client() as p, replica.client() as r:
        fill(p, "SET", [(f"k:{i}", "x") for i in range(300)])
        r.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        while r.dbsize() < 300 or r.info("replication")["master_link_status"] != "up":
            pass
        assert "lost its primary" not in ask(port=replica.port)
        primary.kill()
        while r.info("replication")["master_link_status"] != "down":
            pass
        assert "300 of 300 keys" in ask(port=replica.port) and "lost its primary" in ask(port=replica.port)
        assert json.loads(ask("--json", port=replica.port))["server"]["stale"]
        r.execute_command("REPLICAOF", "NO", "ONE")
        r.execute_command("FLUSHALL")
        r.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        assert "has no keys and no connection to its primary" in ask(port=replica.port, status=1)


def test_a_server_with_ckv(ask, own_server):
    """Loaded, it is as any other; records of CSET are left out; where strings are records already no figure would be true."""
    server = own_server({})
    with server.client() as r:
        fill(r, "SET", [(f"k:{1000 + i}", text) for i, text in enumerate(texts(2000))])
        assert "in ckv already" not in ask(port=server.port)
        fill(r, "CSET", [(f"c:{1000 + i}", text) for i, text in enumerate(texts(1000))])
        assert "1000 records are in ckv already" in ask(port=server.port)
        assert family(json.loads(ask("--json", port=server.port)), "k")["keys"] == 2000
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "new:")
        assert "ckv is at work in this server: what its 1000 records take, INFO ckv tells" in ask(port=server.port, status=1)
        r.execute_command("CONFIG", "SET", "ckv.prefixes", "")


def test_a_unix_socket(ask, own_server, tmp_path):
    path = tmp_path / "socket"
    server = own_server({"unixsocket": path}, module=False)
    with server.client() as r:
        r.execute_command("SET", "k:1", "x")
    assert json.loads(ask("-s", path, "--json", port=None))["total"]["keys"] == 1


@pytest.fixture
def certificates(tmp_path):
    """A CA, and a key and certificate of its for both sides; the paths of all three."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make certificates with")
    ca, ca_key, key, request, certificate = (tmp_path / name for name in ("ca.crt", "ca.key", "key", "request", "crt"))
    for line in (
        ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test CA", "-days", "2", "-keyout", ca_key, "-out", ca],
        ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", request],
        ["x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-out", certificate],
    ):
        subprocess.run(["openssl", *map(str, line)], check=True, capture_output=True)
    return ca, key, certificate


def test_tls(ask, own_server, certificates):
    ca, key, certificate = certificates
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    config = {"tls-port": port, "tls-ca-cert-file": ca, "tls-key-file": key, "tls-cert-file": certificate}
    try:
        server = own_server(config, module=False)
    except ServerFailed as failed:
        if "Failed finding TLS support" in failed.log or "Bad directive" in failed.log:
            pytest.skip("a server that was built without TLS")
        raise
    with server.client() as r:
        fill(r, "SET", [(f"k:{i}", "x" * 1000) for i in range(500)])
    sure = ["--tls", "--cacert", ca, "--cert", certificate, "--key", key]
    assert json.loads(ask("--json", *sure, port=port))["total"]["keys"] == 500
    uri = ["-u", f"rediss://localhost:{port}", "--insecure", "--cert", certificate, "--key", key]
    assert json.loads(ask("--json", *uri, port=None))["total"]["keys"] == 500
    assert "is not trusted" in ask("--tls", "--cert", certificate, "--key", key, status=1, port=port)
    assert "lost" in ask("--tls", "--cacert", ca, status=1, port=port)  # the server wants a certificate
    assert "TLS: no secure connection" in ask(*sure, status=1, port=server.port)
    assert "TLS: cannot use certificates of" in ask("--tls", "--cacert", "/nonexistent", status=1, port=port)


# ---- what goes wrong --------------------------------------------------------------------------------------


def test_passwords(ask, own_server):
    plain = own_server({}, module=False)
    with plain.client() as r:
        r.execute_command("SET", "k", "v")
        r.execute_command("CONFIG", "SET", "requirepass", "sesame")
        try:
            assert "wants a password" in ask(status=1, port=plain.port)
            assert "WRONGPASS" in ask("-a", "wrong", status=1, port=plain.port)
            for right in (["-a", "sesame"], ["--pass", "sesame"], ["--user", "default", "-a", "sesame"],
                          ["-u", f"redis://:sesame@127.0.0.1:{plain.port}"]):
                assert "1 of 1 keys" in ask(*right, port=plain.port)
            assert "1 of 1 keys" in ask(port=plain.port, env={"REDISCLI_AUTH": "sesame"})
        finally:
            r.execute_command("CONFIG", "SET", "requirepass", "")


def test_no_server(ask):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        assert "Connection refused" in ask(status=1, port=s.getsockname()[1])
    assert "cannot connect to nowhere.invalid:6379" in ask("-h", "nowhere.invalid", status=1, port=None)


def answering(listener, text):
    """Answers the first bytes of a connection with a text, and closes it."""
    c = listener.accept()[0]
    c.recv(1000)
    c.sendall(text)
    c.close()


@pytest.mark.parametrize("text,said", [(b"", "lost: the server has closed it"), (b"$100\r\nredis_version:7", "lost"),
                                       (b"HTTP/1.1 400 Bad\r\n", "does not speak Redis' protocol"),
                                       (b"-LOADING Redis is loading\r\n", "LOADING")])
def test_a_connection_that_ends(ask, text, said):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answering, args=(listener, text))
        thread.start()
        assert said in ask(status=1, port=listener.getsockname()[1])
        thread.join()


@pytest.mark.parametrize("args, said", [
    (["--keys", "0"], "--keys must be a number"), (["-p", "70000"], "-p must be a number"), (["--by", "nonsense"], "--by must be"),
    (["-u", "http://host"], "-u must be"), (["--user", "me"], "no password"), (["--nonsense"], "unrecognized option"),
    (["--json", "--prefixes"], "exclude each other"), (["word"], "unknown argument 'word'"), (["-s", "x", "--tls"], "--tls is not"),
])
def test_bad_options(ask, args, said):
    assert said in ask(*args, status=2, port=None)


def test_help_lists_every_option(ask):
    said = ask("--help", port=None)
    with open(os.path.join(ROOT, "tools", "ckv-estimate", "options.c")) as f:
        known = re.search(r"known\[\] = \{(.*?)\n\}", f.read(), flags=re.S).group(1)
    names = re.findall(r"^    \{\"([\w-]+)\"", known, flags=re.M)
    assert len(names) > 20
    for name in names:
        assert re.search(rf"^  {'-' if len(name) == 1 else '--'}{name} ", said, flags=re.M), name
    assert all(right in said for right in READER)


@pytest.mark.parametrize("args", [["--help"], [], ["--json"], ["--prefixes"]])
def test_a_report_that_is_lost(program, plain, args):
    with plain.client() as r:
        fill(r, "SET", [(f"{chr(97 + i % 26)}{chr(97 + i // 26)}:1", "x") for i in range(50)])
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "-p", str(plain.port), *args], text=True, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == 1 and "cannot write the report" in done.stderr


# ---- the page ---------------------------------------------------------------------------------------------


@pytest.fixture
def page(ask, plain, tmp_path):
    """The file of a server with strings, hashes and a name that is HTML."""
    with plain.client() as r:
        fill(r, "SET", [(f"page:{i}", text) for i, text in enumerate(texts(5_000))])
        r.execute_command("SET", "<b>&\"':1", "x" * 5000)
        r.execute_command("HSET", "hash:1", "f", "v")
    path = tmp_path / "report.html"
    ask("--html", path, "--by", ":")
    return path


def test_the_page_needs_nothing_else(page):
    text = page.read_text()
    assert "page" in text and "&lt;b&gt;&amp;&quot;" in text and "<b>&\"" not in text and "stay as it is" in text
    assert not re.search(r"<script|https?:|//|url\(|@import|src=", text)
    assert set(re.findall(r"href=\"([^\"]*)\"", text)) == {"data:,"}


@pytest.mark.skipif(not CHROMIUM, reason="no chromium")
def test_the_page_in_a_browser(page, tmp_path):
    """Nothing is said on the console: its own policy forbids the page to ask for anything."""
    done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
                           "--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}",
                           "--enable-logging=stderr", "--dump-dom", f"file://{page}"],
                          text=True, capture_output=True, timeout=PATIENCE_S)
    assert "with ckv</h1>" in done.stdout and "CONSOLE" not in done.stderr
