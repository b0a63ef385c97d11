"""The verbs of bench/compare.py, each from start to end with few records: what they measure is not the matter here, but that
they run, that what they read is right (they check it themselves) and that the page can be made of what they write."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from server import BINARY, MODULE, ROOT

GLIDE = os.path.join(ROOT, "build", "glide-venv", "bin", "python")


@pytest.fixture(scope="module", autouse=True)
def programs():
    subprocess.run(["make", "-C", ROOT, "build/ckv-bench", "build/ckv-estimate", "build/bench-codec", "build/bench-layout", "build/filter.so"],
                   check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def run(tmp_path):
    """Runs a verb; returns the JSON that it has written, and what it has printed."""
    def verb(*args, status=0, python=sys.executable):
        result = tmp_path / "result.json"
        server = [] if args[0] in ("codec", "layout") else ["--redis-server", BINARY, "--module", MODULE]
        done = subprocess.run([python, os.path.join(ROOT, "bench", "compare.py"), *map(str, args), *server,
                               "--json", result], text=True, capture_output=True)
        assert done.returncode == status, done.stdout + done.stderr
        return (json.loads(result.read_text()), done.stdout) if status == 0 else done.stderr

    return verb


@pytest.mark.parametrize("comparison,more,stores", [("cache", [], 6), ("uuid", [], 7), ("latency", ["--rounds", 1], 12)])
def test_comparisons(run, lines, comparison, more, stores):
    report, said = run(comparison, "--records", 1000, "--data", lines, *more)
    assert len([row for row in report["rows"] if row["store"] != "valkey-glide"]) == stores
    assert comparison in report["command"] and "strings" in said


def test_what_the_readmes_picture_is_drawn_from(run, tmp_path):
    """A file and what is generated; in the place of Valkey is the server that is there."""
    tweets = tmp_path / "tweets.txt"
    tweets.write_text("".join(f"tweet {i}\n" for i in range(300)))
    found, _ = run("cache", "--records", 300, "--data", tweets, "--data", "sessions", "--data", "ids", "--valkey-server", shutil.which(BINARY))
    stores = {(row["data"], row["store"]) for row in found["rows"]}
    assert {("sessions", "valkey-strings"), ("ids", "ckv"), ("tweets", "hashes")} <= stores
    assert all(11 < row["value_bytes"] < 12 for row in found["rows"] if row["data"] == "ids")
    show = ("import json, plots, report, sys; plots.save = lambda name, figure: print(name); found = json.load(open(sys.argv[1])); "
            "plots.choice(found); print(report.choice(found))")
    shown = subprocess.run([sys.executable, "-c", show, tmp_path / "result.json"], cwd=os.path.join(ROOT, "bench"), text=True,
                           stdout=subprocess.PIPE, check=True).stdout
    assert shown.startswith("choice\n") and "| Memcarrot, published | 51.1 |  |  |" in shown and "sessions as JSON" in shown


@pytest.mark.skipif(not os.path.exists(GLIDE), reason="make setup-glide")
def test_the_client_that_compresses(run, lines):
    report, _ = run("cache", "--records", 500, "--data", lines, python=GLIDE)
    rates = {row["store"]: row["read_per_second"] for row in report["rows"]}
    assert rates["valkey-glide"] > 0 and len(rates) == 7


def test_the_fan_page_job_ends_alike_in_all_stores(run):
    """A store that loses or mixes up a row makes the script fail."""
    report, _ = run("fans", "--records", 30)
    stores = {(row["store"], row["transport"]) for row in report["rows"]}
    assert {("ckv", "TCP"), ("ckv", "Unix socket"), ("memcached", "TCP"), ("strings", "Unix socket")} <= stores
    assert len({row["digest"] for row in report["rows"] if row["store"] != "null"}) == 1


# `drift` waits for the background many times.
@pytest.mark.parametrize("part", ["density", "pairs", "speed", "pause", "churn", "files", pytest.param("drift", marks=pytest.mark.slow)])
def test_scale(run, lines, part):
    report, said = run("scale", "--records", 2000, "--sizes", "1000,2000", "--rounds", 1, "--data", lines,
                       "--kinds", lines, "--parts", part)
    if part == "density":
        assert "in pages" in said and [row["records"] for row in report[part]["lines.txt"]] == [1000, 2000]
    else:
        assert report[part]["figures"] and {"pause": "PINGs", "drift": "together"}.get(part, part) in said


@pytest.mark.parametrize("part", ["hits", "limit", pytest.param("expiry", marks=pytest.mark.slow)])
def test_cache_duty(run, lines, part):
    report, said = run("cache_duty", "--scale", "0.01", "--data", lines, "--parts", part)
    if part == "expiry":
        assert report[part]["returned_expired"] == 0 and len(report[part]["samples"]) > 10
    elif part == "hits":
        assert len(report[part]["runs"]) == 4 and all(0 < run["ckv"] < 1 for run in report[part]["runs"])
    else:
        assert len(report[part]) == 9 and all(run["kept_records"] > 0 for run in report[part])
    assert {"expiry": "after s", "hits": "exact LRU", "limit": "volatile-ttl"}[part] in said


def test_caches(run, tmp_path, lines):
    """A cache is measured anew; those measured before stay, and so does what other servers took for it."""
    table, result = tmp_path / "caches.csv", tmp_path / "result.json"
    table.write_text("cluster,category,key_bytes,value_bytes,kilo_requests_per_second,requests_per_object,one_hit_percent,miss_ratio,"
                     "working_set_mb,gets,sets,increments,deletes,zipf_alpha,ttls\n"
                     "3,1,36,400,2.5,20,5,0.1,100,0.9,0.1,0,0,1.2,1d:1.00\n")
    args = ["caches", "--caches", table, "--scale", "0.1", "--seconds", "0.1", "--data", lines]
    row, = run(*args)[0]
    assert row["memory_ratio"] > 0 and row["cpu_ratio"] > 0 and row["p999_ratio"] > 0 and row["random_memory_ratio"] > 0
    assert 0 < row["hits_strings"] <= 1 and 0 < row["hits_ckv"] <= 1
    # A cache that nobody reads, and another server.
    others = [{**row, "cluster": 9, "hits_strings": None, "hits_ckv": None, "hits_strings_more": None},
              {**row, "server": "Valkey server v=99.1.2 sha=0", "date": "the other day"}]
    result.write_text(json.dumps(others))
    report, said = run(*args, "--cluster", 3)
    assert [row["cluster"] for row in report] == [3, 9, 3] and report[2] == others[1]
    assert "Valkey 99.1" in said
    assert "Not within the limits" in said and "random: RAM" in said
    assert "has no cache 4" in run(*args, "--cluster", 4, status=1)


def test_estimate(run, lines):
    """Of records that are hardly any; tests/integration/test_estimate.py compares."""
    report, said = run("estimate", "--records", 2000, *["--data", lines] * 5)
    assert len(report["rows"]) == 6 and report["rows"][5]["data"].startswith("mix of lines")
    assert all(row["now"] > 0 and row["bytes_with_ckv"] > 0 for row in report["rows"]) and "interval" in said


def test_throughput(run, lines):
    report, said = run("throughput", "--records", 1000, "--requests", 500, "--rounds", 1, "--data", lines)
    assert {verb for verbs in report["speed"]["figures"].values() for verb in verbs} == {"SET", "CSET", "GET", "CGET"}
    assert "CGET" in said


def test_transparent(run, lines):
    report, said = run("transparent", "--records", 2000, "--requests", 500, "--rounds", 1, "--data", lines)
    assert set(report["memory"]) == {"CSET", "SET"} and {len(commands) for commands in report["speed"].values()} == {7}
    assert all(len(servers) == 5 for commands in report["speed"].values() for servers in commands.values())
    assert "a prefix of no key" in said and "HSET" in said


def test_long_values(run, lines):
    report, said = run("long_values", "--records", 500, "--rounds", 1, "--data", lines)
    (depths,) = report["files"].values()
    assert {len(figures) for servers in depths.values() for figures in servers.values()} == {5} and len(depths) == 2
    assert "over settled" in said


def test_sustained(run, lines):
    report, said = run("sustained", "--records", 3000, "--seconds", 2, "--data", lines)
    (figures,) = report["files"].values()
    assert figures["late"]["written"] > 0 and figures["strings"] > 0 and figures["settled"] > 0
    assert 0 < figures["late"]["main"] <= figures["late"]["all"] + 1e-9  # of one thread both are sums, in another order
    assert "used above settled" in said


@pytest.mark.slow  # it learns from 600,000 keys of each kind
def test_codec(run, tmp_path, lines):
    path = tmp_path / "values.u32le"
    path.write_bytes(b"".join(len(value).to_bytes(4, "little") + value for value in lines.read_bytes().splitlines()))
    report, said = run("codec", "--data", lines, "--data", path)
    for row, name in zip(report, ("lines.txt", "values.u32le")):
        assert row["name"] == name and 0 < row["best"]["bytes"] < row["raw"]
    assert "keys UUID" in said


def test_layout(run, lines):
    report, said = run("layout", "--records", 5000, "--data", lines)
    assert report["records"] == 5000 and report["value"] > 0 and "overhead" in said


def test_what_is_wrong_is_said(run, tmp_path):
    assert "no data" in run("cache", status=1)
    assert "no statistics" in run("caches", status=1)
    assert "is not a file" in run("throughput", "--data", tmp_path / "nothing", status=1)
    assert "there is no part 'all'" in run("scale", "--parts", "all", status=1)
    assert "cannot read" in run("codec", "--data", tmp_path / "nothing", status=1)
