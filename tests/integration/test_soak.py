"""The soak (tests/soak) goes on after an interruption where it was."""

import os
import re
import signal
import subprocess
import sys

from server import BINARY, MODULE, PATIENCE_S, ROOT


def start(folder):
    line = [sys.executable, os.path.join(ROOT, "tests", "soak", "soak.py"), "--operations", "20000", "--records", "3000",
            "--state", folder]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, "CKV_MODULE": MODULE, "REDIS_SERVER": BINARY})


def test_an_interrupted_soak_goes_on(tmp_path):
    first = start(tmp_path)
    said = [first.stdout.readline()]
    assert "operations" in said[0]
    first.send_signal(signal.SIGTERM)
    said += first.stdout.readlines()
    assert first.wait(PATIENCE_S) == 130, "".join(said)
    done = int(re.match(r"([\d,]+) operations: the same command goes on", said[-1]).group(1).replace(",", ""))
    assert 0 < done < 20_000
    second = start(tmp_path)
    out, _ = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, out
    assert out.startswith(f"going on after {done:,} operations\n") and "all records as they should be" in out
    assert not os.listdir(tmp_path)
