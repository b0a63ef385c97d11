"""The benchmarks' scripts, each from start to end with few records: what they measure is not the matter here, but that they
run, that what they read is right (they check it themselves) and that the page can be made of what they write."""

import json
import os
import subprocess
import sys

import pytest

from server import BINARY, MODULE, ROOT


@pytest.fixture(scope="module", autouse=True)
def programs():
    subprocess.run(["make", "-C", ROOT, "build/ckv-bench",], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"the value of line {i}, {'x' * (i % 50)}\n" for i in range(700)))
    return path


@pytest.fixture
def run(tmp_path):
    """Runs a script of bench/; returns the JSON that it has written."""
    def script(name, *args):
        result = tmp_path / "result.json"
        done = subprocess.run([sys.executable, os.path.join(ROOT, "bench", name), *map(str, args), "--redis-server", BINARY,
                               "--module", MODULE, "--json", result], text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(result.read_text())

    return script


@pytest.mark.parametrize("comparison,stores", [("cache", 6), ("uuid", 7), ("latency", 12)])
def test_comparisons(run, lines, comparison, stores):
    report = run("compare.py", comparison, "--records", 1000, "--data", lines)
    assert len(report["rows"]) == stores
    assert comparison in report["command"]


def test_the_fan_page_job_ends_alike_in_all_stores(run):
    """A store that loses or mixes up a row makes the script fail."""
    report = run("compare.py", "fans", "--records", 30)
    stores = {(row["store"], row["transport"]) for row in report["rows"]}
    assert {("ckv", "TCP"), ("ckv", "Unix socket"), ("memcached", "TCP"), ("strings", "Unix socket")} <= stores
    assert len({row["digest"] for row in report["rows"] if row["store"] != "null"}) == 1


# `drift` waits for the background many times.
@pytest.mark.parametrize("part", ["density", "pairs", "speed", "pause", "churn", "files", pytest.param("drift", marks=pytest.mark.slow)])
def test_scale(run, lines, part):
    report = run("scale.py", "--records", 2000, "--sizes", "1000,2000", "--rounds", 1, "--data", lines,
                 "--kinds", lines, "--parts", part)
    if part == "density":
        assert [row["records"] for row in report[part]["lines.txt"]] == [1000, 2000]
    else:
        assert report[part]["figures"]
