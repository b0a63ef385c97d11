"""The caches that bench/ckv-bench makes after statistics (its modes fill, age and replay): they are what the statistics say, on
plain strings and with the module alike."""

import json
import math
import os
import statistics
import subprocess

import pytest

from helpers import PATIENCE_S, wait_for
from server import ROOT, Server

PROGRAM = os.path.join(ROOT, "build", "ckv-bench")
TABLE = """cluster,category,key_bytes,value_bytes,requests_per_object,one_hit_percent,miss_ratio,gets,sets,increments,deletes,zipf_alpha,ttls
1,2,21,68,934.5,0.01,0.0017,1.0,0.0,0.0,0.0,1.4908,"4d:0.59, 2d:0.41"
15,3,18,102,1.0,99.57,N/A,0.0,1.0,0.0,0.0,0.0242,30s:1.00
23,3,35,224,3.9,1.17,0.0259,0.36,0.31,0.3,0.02,0.274,"120s:0.93, 2700s:0.05, 5s:0.03"
"""


@pytest.fixture(scope="module", autouse=True)
def program():
    subprocess.run(["make", "-C", ROOT, "build/ckv-bench"], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module", params=["strings", "ckv"])
def server(request):
    config = {"ckv.prefixes": '"*"'} if request.param == "ckv" else {}
    with Server(config=config, module=request.param == "ckv") as server:
        yield server


@pytest.fixture
def cache(server, tmp_path):
    """Runs a mode of ckv-bench on an empty server; the report, or what it complains of."""
    data, table = tmp_path / "lines.txt", tmp_path / "caches.csv"
    data.write_text("".join(f"the value of line {i}, {'x' * (i % 50)}\n" for i in range(700)))
    table.write_text(TABLE)
    with server.client() as r:
        r.flushall()

    def run(mode, *args, status=0):
        done = subprocess.run([PROGRAM, "--server", "strings", "--data", data, "--port", str(server.port), "--caches", table,
                               "--mode", mode, *map(str, args)], text=True, capture_output=True, timeout=PATIENCE_S)
        assert done.returncode == status, done.stdout + done.stderr
        return json.loads(done.stdout) if status == 0 else done.stderr

    return run


def contents(r):
    """What has not expired meanwhile."""
    keys = r.keys("*")
    return {key: value for key, value in zip(keys, r.mget(keys)) if value is not None}


@pytest.mark.parametrize("size", [10, 18, 36, 44, 122])
def test_keys_are_all_different_and_of_one_length(cache, server, size):
    assert cache("fill", "--records", 5000, "--key-bytes", size)["objects"] == 5000
    with server.client() as r:
        stored = contents(r)
    assert len(stored) == 5000 and {len(key) for key in stored} == {size}


@pytest.mark.parametrize("size", [10, 200, 3000])
@pytest.mark.parametrize("kind", ["records", "random"])
def test_values_have_the_length_and_the_spread_asked_for(cache, server, size, kind):
    cache("fill", "--records", 3000, "--value-bytes", size, "--spread", 0.5, "--values", kind)
    with server.client() as r:
        lengths = [len(value) for value in contents(r).values()]
        text = r.get(r.randomkey())
    assert statistics.mean(lengths) == pytest.approx(size, rel=0.06)
    assert statistics.pstdev(map(math.log, lengths)) == pytest.approx(0.5, rel=0.1)
    assert size < 200 or text.isascii() == (kind == "records")


def test_a_row_of_the_table_and_what_is_said_otherwise(cache, server):
    cache("fill", "--cache", 1, "--records", 1000, "--value-bytes", 300)
    with server.client() as r:
        stored = contents(r)
    assert {len(key) for key in stored} == {21}
    assert statistics.mean(map(len, stored.values())) == pytest.approx(300, rel=0.1)
    assert "has no cluster 7" in cache("fill", "--cache", 7, status=1)


def test_what_is_asked_for(cache, server):
    """Shares of the requests, as many hits as were promised, and counters that count."""
    sizes = ["--records", 5000, "--rate", 20000]
    cache("fill", "--cache", 23, *sizes)
    assert cache("age", "--cache", 23, *sizes)["objects"] == 5000
    found = cache("replay", "--cache", 23, *sizes, "--operations", 10_000, "--clients", 8)
    asked = found["gets"] + found["sets"] + found["adds"] + found["increments"] + found["deletes"]
    assert asked == 10_000 and found["requests"] == asked + found["follow_ups"]
    assert found["hits"] + found["misses"] == found["gets"] and found["us"]["median"] <= found["us"]["max"]
    for what, share in (("gets", 0.36), ("increments", 0.30), ("deletes", 0.02)):
        assert found[what] / asked == pytest.approx(share, abs=0.03)
    with server.client() as r:
        assert any(value.isdigit() for value in contents(r).values())


def test_objects_are_stored_until_their_time_has_come(cache, server):
    """Half a second in a replay at 60 times the speed, however late a busy machine has sent them: then all are gone."""
    sizes = ["--cache", 15, "--records", 2000, "--rate", 4000]
    cache("fill", *sizes)
    with server.client() as r:
        assert r.ttl(r.randomkey()) > 80_000
    cache("age", *sizes)
    with server.client() as r:
        key = r.randomkey()
        assert key is None or r.pttl(key) <= 500
    found = cache("replay", *sizes, "--operations", 12000, "--clients", 8)
    assert found["sets"] == 12000 and found["gets"] == 0 and found["speed"] == pytest.approx(60, rel=0.01)
    with server.client() as r:
        left = [r.pttl(key) for key in r.keys("*")]
        assert -1 not in left and all(ms <= 500 for ms in left)
        wait_for(lambda: not r.keys("*"), what="that the time of all has come")


def test_what_never_expires_is_all_hit(cache):
    args = ["--records", 1000, "--ttls", "", "--misses", 0, "--sets", 0, "--requests-per-object", 1_000_000]
    cache("fill", *args)
    assert cache("age", *args)["objects"] == 0
    found = cache("replay", *args, "--operations", 2000, "--clients", 4)
    assert found["hits"] == found["gets"] == 2000


def test_popularity_follows_zipf(cache, server):
    """The most popular of 1000 objects at exponent 1.5 gets 1/2.54 of the requests."""
    args = ["--records", 1000, "--ttls", "", "--misses", 0, "--sets", 0, "--deletes", 1, "--requests-per-object", 1_000_000, "--zipf", 1.5]
    cache("fill", *args)
    cache("replay", *args, "--operations", 1000, "--clients", 1, "--rate", 100_000)
    with server.client() as r:
        deleted = 1000 - r.dbsize()
    # Expected number of different ones among 1000 draws.
    weights = [n ** -1.5 for n in range(1, 1001)]
    expected = sum(1 - (1 - w / sum(weights)) ** 1000 for w in weights)
    assert deleted == pytest.approx(expected, rel=0.15)


def test_a_value_that_was_never_stored_is_an_error(cache, server):
    args = ["--records", 50, "--ttls", "", "--misses", 0, "--sets", 0, "--requests-per-object", 1_000_000]
    cache("fill", *args)
    with server.client() as r:
        for key in contents(r):
            r.set(key, "something else")
    assert "has a value that was never stored" in cache("replay", *args, "--operations", 10, status=1)


def test_turns_do_not_overlap_and_their_time_is_counted(cache, server):
    args = ["--records", 500, "--rate", 4000, "--operations", 2000, "--turns", 2]
    cache("fill", *args[:4])
    one = cache("replay", *args, "--turn", 1, "--pid", server.process.pid)
    assert one["seconds"] >= 0.99
    # Of what has passed; a thread that waits for io-threads takes all of it.
    assert 0 < one["cpu_us"] * one["requests"] <= 1.01e6 * one["seconds"]


def test_a_report_that_is_lost_is_an_error(server, tmp_path):
    data = tmp_path / "lines.txt"
    data.write_text("a line\n")
    for args in (*(["--mode", mode, "--records", 10, "--operations", 10] for mode in ("fill", "age", "replay", "read")), ["--help"]):
        with open("/dev/full", "w") as full, server.client() as r:
            r.flushall()
            for i in range(10):
                r.set(f"KEY:{100_000_000 + i}", "a line")
            done = subprocess.run([PROGRAM, "--server", "strings", "--data", data, "--port", str(server.port), *map(str, args)],
                                  text=True, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE_S)
        assert done.returncode == 1 and "cannot write the report" in done.stderr, args


@pytest.mark.parametrize("args, said", [
    (["--ttls", "1 day"], "TTLs are times and their shares"),
    (["--ttls", "1d:x"], "TTLs are times and their shares"),
    (["--sets", "1.5"], "--sets must be from 0 to 1"),
    (["--sets", "0.7", "--deletes", "0.7"], "are more than all requests"),
    (["--values", "noise"], "--values must be records or random"),
    (["--key-bytes", "3"], "--key-bytes must be from 10 to 400"),
    (["--turn", "1"], "--turn must be below --turns"),
    (["--server", "hashes"], "is for --server strings"),
])
def test_bad_options(cache, args, said):
    assert said in cache("replay", *args, status=2)


@pytest.mark.parametrize("column, value, said", [
    ("key_bytes", 600, "--key-bytes would be 600, which must be from 10 to 400"), ("key_bytes", 1, "--key-bytes would be 1,"),
    ("requests_per_object", 0, "--requests-per-object would be 0,"), ("miss_ratio", 2, "--misses would be 2,"),
    ("one_hit_percent", 500, "--one-hit would be 5,"),
])
def test_a_row_that_no_cache_can_have(cache, tmp_path, column, value, said):
    """It is held to the limits of the options, unless one says otherwise."""
    names, row = TABLE.splitlines()[0].split(","), TABLE.splitlines()[1].split(",", maxsplit=12)
    row[names.index(column)] = str(value)
    path = tmp_path / "bad.csv"
    path.write_text(",".join(names) + "\n" + ",".join(row) + "\n")
    assert said in cache("fill", "--cache", 1, "--caches", path, "--records", 100, status=1)
    well = ["--key-bytes", 20, "--requests-per-object", 5, "--misses", 0, "--one-hit", 0.1]
    assert cache("fill", "--cache", 1, "--caches", path, "--records", 100, *well)["objects"] == 100


def test_a_row_of_no_table(tmp_path):
    done = subprocess.run([PROGRAM, "--server", "strings", "--data", tmp_path, "--mode", "fill", "--cache", "1"], text=True, capture_output=True)
    assert done.returncode == 2 and "--cache needs --caches" in done.stderr


@pytest.mark.parametrize("text, said", [("cluster,key_bytes\n1,x\n", "key_bytes is 'x'"), ("cluster,ttls\n1,2,3\n", "3 columns"),
                                        ("a,b\n1,2\n", "no column 'cluster'"), ("", "cannot read")])
def test_a_bad_table(cache, tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert said in cache("fill", "--cache", 1, "--caches", path, status=1)
