"""bench/ckv-bench against a server: each way to store, what it verifies, what it refuses."""

import json
import os
import re
import subprocess

import pytest

from server import PATIENCE_S, ROOT

PROGRAM = os.path.join(ROOT, "build", "ckv-bench")


@pytest.fixture(scope="module")
def bench():
    subprocess.run(["make", "-C", ROOT, "build/ckv-bench"], check=True, stdout=subprocess.DEVNULL)

    def run(*args):
        return subprocess.run([PROGRAM, *map(str, args)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE_S)

    return run


@pytest.mark.parametrize("server", ["strings", "strings-zlib", "strings-zstd", "hashes", "ckv"])
@pytest.mark.parametrize("keys", ["sequential", "uuid"])
def test_loads_and_reads(bench, shared, r, lines, server, keys):
    common = ["--server", server, "--data", lines, "--port", shared.port, "--records", 2000, "--threads", 2,
              "--clients", 5, "--pipeline", 7, "--keys", keys]
    for mode in (["--mode", "load"], ["--mode", "read"], ["--mode", "mixed", "--zipf", "0.9"]):
        done = bench(*common, *mode)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["operations"] == 2000 and report["per_second"] > 0
        assert 0 < report["pipeline_us"]["median"] <= report["pipeline_us"]["max"]
    stored = r.execute_command("CDBSIZE") if server == "ckv" else r.dbsize()
    assert stored == 2000 or server == "hashes"


def test_a_wrong_value_is_an_error(bench, shared, r, lines):
    common = ["--server", "ckv", "--data", lines, "--port", shared.port, "--records", 100]
    assert bench(*common, "--ttl", 100).returncode == 0
    assert r.execute_command("CTTL", "KEY:100000042") > 0
    r.execute_command("CSET", "KEY:100000042", "something else")
    done = bench(*common, "--mode", "read")
    assert done.returncode == 1 and "KEY:100000042 differs" in done.stderr
    r.execute_command("CDEL", "KEY:100000042")
    done = bench(*common, "--mode", "read")
    assert done.returncode == 1 and "KEY:100000042 is missing" in done.stderr


@pytest.mark.parametrize("args, said", [
    (["--server", "ckv"], "--data is missing"),
    (["--data", "x"], "--server is missing"),
    (["--server", "redis"], "--server must be"),
    (["--server", "ckv", "--records", "0"], "--records must be a number"),
    (["--server", "ckv", "--threads", "2x"], "--threads must be a number"),
    (["--server", "ckv", "--data", "x", "--zipf", "0.5"], "--zipf is for"),
    (["--server", "hashes", "--data", "x", "--ttl", "5"], "cannot expire"),
    (["--server", "hashes", "--data", "x", "--first", "0", "--bucket", "5"], "--bucket must be less than the 5 characters"),
    (["--server", "ckv", "--data", "x", "--threads", "4", "--clients", "2"], "fewer than"),
    (["--nonsense"], "unrecognized option"),
    (["word"], "unknown argument 'word'"),
])
def test_bad_options(bench, args, said):
    done = bench(*args)
    assert done.returncode == 2 and said in done.stderr


def test_help_lists_every_option(bench):
    done = bench("--help")
    assert done.returncode == 0
    with open(os.path.join(ROOT, "bench", "ckv-bench", "options.c")) as f:
        known = re.search(r"known\[\] = \{(.*?)\n\}", f.read(), flags=re.S).group(1)
    names = re.findall(r"^    \{\"(\w+)\"", known, flags=re.M)
    assert len(names) > 10
    for name in names:
        assert f"--{name} " in done.stdout, name
