"""What an operator's tools show: redis-cli's surveys and mass insertion, MONITOR, SLOWLOG, LATENCY."""

import os
import shutil
import subprocess
import threading

import pytest

import server as servers
from helpers import PATIENCE_S, assert_stored, load, map_keys, texts


@pytest.fixture
def cli(shared):
    beside = os.path.join(os.path.dirname(shutil.which(servers.BINARY) or ""), "redis-cli")
    program = beside if os.path.exists(beside) else "redis-cli"

    def run(*args, given=b""):
        done = subprocess.run([program, "-p", str(shared.port), *args], input=given, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout
        return done.stdout.decode()

    return run


def test_surveys_pass_over_the_maps(r, cli):
    """Of module keys they know no size, but MEMORY USAGE tells; none of them fails over one."""
    stored = load(r, texts(2000))
    r.set("native", "x" * 5000)
    names = [name.decode() for name in map_keys(r)]
    big = cli("--bigkeys")
    assert f"Sampled {len(names) + 1} keys" in big and '"native"' in big
    memory = cli("--memkeys")
    assert f"Sampled {len(names) + 1} keys" in memory
    assert sorted(cli("--scan").split()) == sorted(names + ["native"])
    assert_stored(r, stored)


def test_mass_insertion(r, cli):
    count = 20_000
    lines = b"".join(b"CSET KEY:%d value-%d EX 1000\r\n" % (i, i) for i in range(count))
    out = cli("--pipe", given=lines)
    assert f"errors: 0, replies: {count}" in out
    assert r.execute_command("CDBSIZE") == count
    assert r.execute_command("CGET", "KEY:777") == b"value-777"


def test_monitor_shows_what_was_sent(shared, r):
    """The commands of clients, as they sent them, and nothing of the module's own."""
    sent = ["CSET user:1 v EX 100", "CGET user:1", "CINCRBY n 4", "CMSET a 1 b 2", "CDEL a b n user:1"]
    seen, listening = [], threading.Event()

    def listen():
        with shared.client() as watcher, watcher.monitor() as monitor:
            listening.set()
            for event in monitor.listen():
                seen.append(event["command"])
                if event["command"] == "PING the-end":
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    listening.wait(10)
    for line in sent:
        r.execute_command(*line.split())
    r.execute_command("PING", "the-end")
    thread.join(10)
    assert seen[:-1] == sent


def test_slow_log_and_latency(r):
    r.config_set("slowlog-log-slower-than", 0)
    r.config_set("latency-monitor-threshold", 1)
    try:
        r.execute_command("SLOWLOG", "RESET")
        r.execute_command("CSET", "user:1", "v", "EX", "100")
        logged = [b" ".join(entry[3]) for entry in r.execute_command("SLOWLOG", "GET", 5)]
        assert b"CSET user:1 v EX 100" in logged
        assert not any(b"ckv:" in line or b"CEVICT" in line for line in logged)
        commands = r.info("commandstats")
        assert commands["cmdstat_cset"]["calls"] >= 1
        r.execute_command("DEBUG", "SLEEP", "0.01")
        assert b"command" in [event[0] for event in r.execute_command("LATENCY", "LATEST")]
    finally:
        r.config_set("slowlog-log-slower-than", 10_000)
        r.config_set("latency-monitor-threshold", 0)
