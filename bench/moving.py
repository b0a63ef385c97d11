"""Strings that move into ckv and out again while clients send 20,000 requests a second: latency, memory, pace."""

import json
import subprocess
import time

from load import BENCH, Data, bench, fill, progress
from measure import told, used_memory
from server import Failed, Server

RATE = 20_000
CONNECTIONS = 4
SECONDS = 10  # of a run
SETTLE_SECONDS = 3


class Load:
    """Runs of ckv-bench one after the other, every second request a SET, every reply compared."""

    def __init__(self, server, data, records):
        self.server, self.latencies, self.memory, self.began = server, [], {}, time.monotonic()
        self.line = [BENCH, "--server", "strings", "--data", data.path, "--records", str(records), "--port", str(server.port),
                     "--first", "0", "--mode", "mixed", "--rate", str(RATE), "--threads", str(CONNECTIONS), "--clients", str(CONNECTIONS),
                     "--operations", str(RATE * SECONDS)]

    def sample(self):
        self.memory[time.monotonic() - self.began] = used_memory(self.server)

    def until(self, done):
        """Runs until done() says so after one; returns the p99.9 of each, us."""
        found = []
        while not found or not done():
            with subprocess.Popen(self.line, stdout=subprocess.PIPE, text=True) as run:
                while run.poll() is None:
                    self.sample()
                    time.sleep(0.5)
                if run.returncode:
                    raise Failed(f"{' '.join(self.line)} ended with {run.returncode}")
                found.append(json.load(run.stdout)["pipeline_us"]["p999"])
        return found


def progress_of(server, way):
    reply = server.call("CKV", "MOVING")
    flat = reply[reply.index(way) + 1]
    return dict(zip(flat[::2], flat[1::2]))


def move(server, load, way, prefixes):
    """Sets the prefixes, and waits for what follows."""
    progress.step(f"moving {way.decode()}")
    server.call("CONFIG", "SET", "ckv.prefixes", prefixes)
    began = time.monotonic() - load.began
    latencies = load.until(lambda: progress_of(server, way)[b"state"] == b"done")
    told = progress_of(server, way)
    return {"began": began, "seconds": told[b"seconds"], "moved": told[b"moved"], "left": told[b"left"],
            "saved_bytes": told[b"saved_bytes"], "p999_us": latencies}


def rest(load, what, runs):
    progress.step(what)
    time.sleep(SETTLE_SECONDS)
    found = []
    return load.until(lambda: found.append(1) or len(found) >= runs)


def run(options):
    data = Data.first(options)
    began = time.monotonic()
    with Server(options) as server:
        progress.step("load")
        fill(server, "strings", data, options.records, ttl=())
        load = Load(server, data, options.records)
        before = rest(load, "strings of the server's own", options.rounds)
        moved_in = move(server, load, b"in", "*")
        within = rest(load, "strings in ckv", options.rounds)
        moved_out = move(server, load, b"out", "")
        after = rest(load, "strings of the server's own again", options.rounds)
        progress.step("every value")
        bench(server, "strings", data, options.records, "--first", "0", "--mode", "read", "--pipeline", 50)
    return told(options, began, f"bench/compare.py moving --records {options.records} --rounds {options.rounds} --data {data.name}",
                {"data": data.name, "before": before, "in": moved_in, "within": within, "out": moved_out, "after": after,
                 "memory": load.memory})
