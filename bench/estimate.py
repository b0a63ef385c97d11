"""What ckv-estimate says of strings, against what the same records then take as CSET: each file alone, and five files under
five families of keys in one server."""

import json
import os
import resource
import subprocess
import time

import measure
from load import DEPTH, Data, bench, progress, send
from server import ROOT, Failed, Server, command

PROGRAM = os.path.join(ROOT, "build", "ckv-estimate")
TTL = 86400
MIXED = 5
FEW = 100_000  # keys, of a smaller sample


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ask(server, *args):
    """Its report, and the CPU seconds that it took."""
    line = [PROGRAM, "-p", str(server.port), "--json", "--rate", "0", *args]
    before = cpu_of_children()
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(line)} ended with {done.returncode}")
    return json.loads(done.stdout), cpu_of_children() - before


def of_file(data, records):
    return lambda store: lambda server: bench(server, store, data, records, "--pipeline", DEPTH, "--clients", 8, "--ttl", TTL)["seconds"]


def of_mix(files, records):
    """The records of each file in turn, `<name of the file>:<n>`."""
    names = [data.name.split(".")[0].encode() for data in files]

    def request(i, name):
        at, n = i % len(files), i // len(files)
        values = files[at].values
        return command(name, b"%b:%d" % (names[at], 10_000_000 + n), values[n % len(values)], "EX", TTL)

    return lambda store: lambda server: send(server, records, lambda i: request(i, {"strings": "SET", "ckv": "CSET"}[store]))


def compared(options, name, fill):
    progress.step(f"{name}: strings")
    with Server(options, loadmodule=None) as server:
        now = measure.growth(server, options.records, fill("strings"), False)["used_memory"]
        said, _ = ask(server)
        of_few, cpu_seconds = ask(server, "--keys", str(FEW))
    progress.step(f"{name}: ckv")
    with Server(options) as server:
        then = measure.growth(server, options.records, fill("ckv"), True)["used_memory"]
    total = said["total"]
    few = {"bytes_with_ckv": of_few["total"]["bytes_with_ckv"] / options.records, "sampled": of_few["sample"]["keys"],
           "seconds": of_few["sample"]["seconds"], "cpu_seconds": cpu_seconds}
    return {"data": name, "now": now, "then": then, "sampled": said["sample"]["keys"], "few": few,
            **{field: total[field] / options.records for field in ("bytes_now", "bytes_with_ckv", "low", "high")}}


def run(options):
    began = time.monotonic()
    files = [Data(path) for path in options.data]
    rows = [compared(options, data.name, of_file(data, options.records)) for data in files]
    if len(files) >= MIXED:
        mixed = files[::len(files) // MIXED][:MIXED]
        rows.append(compared(options, "mix of " + ", ".join(data.name.split(".")[0] for data in mixed), of_mix(mixed, options.records)))
    return measure.told(options, began, "make bench-estimate", {"rows": rows})
