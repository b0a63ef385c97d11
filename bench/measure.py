"""What is measured: bytes, time, the server's CPU time, rates. Each figure is taken in one way, here."""

import os
import platform
import re
import statistics
import subprocess
import time

from load import Data, progress
from server import Failed

TICK = os.sysconf("SC_CLK_TCK")


def machine():
    cpu = platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            cpu = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), cpu)
    except OSError:
        pass
    return f"{os.cpu_count()} cores of {cpu}"


def version(*line):
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def told(options, began, line, found, others=()):
    """What a verb has found since `began`, and with what; `line` is how it was called, `others` are servers beside Redis."""
    return {"date": time.strftime("%Y-%m-%d"), "machine": machine(),
            "servers": [version(server, "--version") for server in (options.redis_server, *others)],
            "records": options.records, **found, "seconds": time.monotonic() - began, "command": line}


def by_file(options, file, line):
    """What is told of a verb that measures one file of data after the other; `line` is how it was called."""
    began = time.monotonic()
    files = [Data(path) for path in options.data]
    found = {data.name: file(options, data) for data in files}
    return told(options, began, " ".join(["bench/compare.py", line, *(f"--data {data.name}" for data in files)]), {"files": found})


def used_memory(server):
    return int(server.info("memory")["used_memory"])


def memory(server):
    """After what can be given back was given back."""
    try:
        server.call("MEMORY", "PURGE")
    except Failed:
        pass
    time.sleep(0.3)  # the server looks at its RSS ten times a second
    return {"used_memory": used_memory(server), "rss": int(server.info("memory")["used_memory_rss"])}


def per_record(before, after, records):
    return {name: (after[name] - before[name]) / records for name in before}


def settle(server):
    """Where a server gets to by itself, in the background, a while after a bulk load; returns the seconds of training and encoding."""
    began = time.perf_counter()
    server.call("CKV", "TRAIN")
    server.call("CKV", "OPTIMIZE")
    seconds = time.perf_counter() - began
    moved, before = server.info("ckv").get("ckv_defrag_moved"), None
    while moved != before:  # it looks once a second whether there is something to gain
        time.sleep(1.5)
        moved, before = server.info("ckv").get("ckv_defrag_moved"), moved
    return seconds


def growth(server, records, fill, ckv):
    """Bytes a record by which a server grows when fill(server) has sent them, the rate, and INFO ckv."""
    before = memory(server)
    seconds = fill(server)
    if ckv:
        settle(server)
    return {**per_record(before, memory(server), records), "per_second": records / seconds,
            "info": server.info("ckv") if ckv else {}}


def of_main_thread(server, name):
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/{name}") as f:
        return f.read()


def cpu_seconds(server):
    """The main thread's, counted in nanoseconds."""
    return int(of_main_thread(server, "schedstat").split()[0]) / 1e9


def cpu_ticks(server):
    """Its seconds in user and in kernel mode, counted in hundredths."""
    return [int(n) / TICK for n in of_main_thread(server, "stat").rsplit(")", 1)[1].split()[11:13]]


def stolen():
    """Seconds that the cores were kept from this machine by the one that it runs on (Linux: steal)."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / TICK


def save(server):
    """Seconds of a SAVE, of these the main thread's CPU time, and the file's size."""
    before, began = cpu_ticks(server), time.perf_counter()
    server.call("SAVE")
    seconds = time.perf_counter() - began
    user, system = (after - earlier for after, earlier in zip(cpu_ticks(server), before))
    return {"seconds": seconds, "spent": {"user": user, "system": system}, "bytes": os.path.getsize(server.rdb_path)}


def restart(server):
    """Seconds until the server answers again, its process started anew, and those of loading the file."""
    server.stop()
    return {"ready": server.start(), "load": server.load_seconds()}


def life(name, server, records, ckv, fill, read, check=lambda server: None):
    """Fills a server, reads all, saves, starts it again and reads once more. `check` must tell the same both times."""
    def step(what):
        progress.step(f"{name}: {what}")

    before = memory(server)
    step("load")
    result = {"load_per_second": records / fill(server)}
    if ckv:
        step("train and optimize")
        result["optimize_seconds"] = settle(server)
    step("read and compare")
    result["read_per_second"] = records / read(server)
    result["bytes"] = per_record(before, memory(server), records)
    checked = check(server)
    step("save")
    saved = save(server)
    step("start again")
    started = restart(server)
    result.update(save_seconds=saved["seconds"], file_bytes=saved["bytes"], restart_seconds=started["ready"],
                  file_load_seconds=started["load"])
    step("read and compare again")
    read(server)
    if check(server) != checked:
        raise Failed("something changed over the restart")
    return result


def redis_benchmark(server, requests, depth, keys, *words):
    """By redis-benchmark, 50 connections: requests a second, the server's CPU time per command, us, p99.9 in ms."""
    before, began = cpu_seconds(server), time.monotonic()
    done = subprocess.run(["redis-benchmark", "-p", str(server.port), "-c", "50", "-P", str(depth), "-n", str(requests),
                           "-r", str(keys), "--precision", "3", *words], capture_output=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    out = done.stdout.decode(errors="replace").replace("\r", "\n")
    rates = re.findall(r"throughput summary: ([0-9.]+|inf)", out)
    if done.returncode or not rates:
        raise Failed(f"redis-benchmark failed: {done.stderr.decode()} {out}")
    slowest = [float(ms) for percent, ms in re.findall(r"([0-9.]+)% <= ([0-9.]+) milliseconds", out) if float(percent) >= 99.9]
    # It counts whole milliseconds: what took none is as fast as the process as a whole at least.
    per_second = requests / seconds if rates[-1] == "inf" else float(rates[-1])
    return {"per_second": per_second, "cpu_us": (cpu_seconds(server) - before) / requests * 1e6,
            "p999_ms": min(slowest) if slowest else 0.0}


def medians(runs):
    return {field: statistics.median(run[field] for run in runs) for field in runs[0]}
