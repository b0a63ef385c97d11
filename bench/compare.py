#!/usr/bin/env python3
"""Everything that is measured here, a verb each; `compare.py <verb> --help` lists its options.

    demo        real records as SET and as CSET side by side
    throughput  redis-benchmark: CSET and CGET against SET and GET
    codec       bytes and speed of the codecs alone
    layout      what each byte of a record in memory is for
    scale       density, speed, pauses, churn, files by the number of records
    caches      published statistics of caches, each a workload: RAM, time, hit rates of strings and of ckv by SET and GET
    cache_duty  expiry under load, hit rates, memory at maxmemory
    cache       bytes per record, load rate, save and load time of stores, on each data file
    latency     one write at a time by 1, 8, 16 and 32 clients, a MessagePack object of 200 fields
    fans        pages liked together: read, update and write back a JSON object for every pair
    transparent SET and others under ckv.prefixes against a server without the module, memory against CSET
    long_values loading, overwriting and reading values of each data file by SET and GET, against strings
    sustained   new values of each data file at full speed for minutes: what the encoder thread keeps up with, CPU time, memory
    moving      strings that move into ckv and out again under 20,000 requests a second
    estimate    what ckv-estimate says of strings, against what they then take, on each data file
    uuid        records keyed by UUIDs: strings, hashes by the length of their keys, ckv
    fleet       how many machines a billion records take, worked out from what others have measured
    report      docs/results.md, its plots and the fleet of docs/operations.md from bench/results/*.json

A verb prints what it has measured as tables. Those of the demo and of throughput are kept with --json only."""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time

import fleet
import report
from load import progress
from measure import told
from server import ROOT, Failed


def positive(text):
    number = int(text.replace("_", ""))
    if number < 1:
        raise ValueError
    return number


def sizes(text):
    return [positive(size) for size in text.split(",")]


OPTIONS = {
    "records": dict(type=positive, help="how many (profiles, for fans)"),
    "data": dict(action="append", help="a file with one record a line, or *.u32le, or what is generated: sessions, ids; may be repeated"),
    "redis-server": dict(default="redis-server"),
    "valkey-server": dict(type=os.path.abspath, metavar="FILE", help="of Valkey, for its strings besides"),
    "module": dict(default=os.path.join(ROOT, "build", "ckv.so")),
    "update-readme": dict(metavar="FILE", help="put the table between the markers in FILE"),
    "requests": dict(type=positive, default=1_000_000, help="per run; a fifth without pipelining"),
    "rounds": dict(type=positive, help="of which the median counts"),
    "parts": dict(help="some only, separated by commas; figures of the others stay"),
    "sizes": dict(type=sizes, help="for density, separated by commas; up to --records if not given"),
    "kinds": dict(action="append", default=[], help="files for drift, in the order they come"),
    "scale": dict(type=float, default=1.0, help="of all numbers of records; 1 is what the result was measured with"),
    "caches": dict(metavar="FILE", help="their statistics (CSV)"),
    "cluster": dict(type=positive, action="append", help="one of them; may be repeated; figures of the others stay"),
    "seconds": dict(type=float, default=2, help="of requests to each server"),
    "memcached-megabytes": dict(type=positive, default=4096),
}
SERVER = ["data", "redis-server", "module"]
STORES = ["records", *SERVER, "memcached-megabytes"]


def run_program(name):
    """Programs of our own print JSON."""
    def run(options):
        line = [os.path.join(ROOT, "build", f"bench-{name}")] + ([str(options.records)] if name == "layout" else [])
        done = subprocess.run(line + options.data, stdout=subprocess.PIPE)
        if done.returncode:
            raise Failed(f"{line[0]} ended with {done.returncode}")
        return json.loads(done.stdout)
    return run


def compared(verb, module, of_files):
    """What is told of a comparison of stores."""
    def run(options):
        began = time.monotonic()
        rows = getattr(importlib.import_module(module), verb if module == "stores" else "run")(options)
        others = filter(None, [getattr(options, "valkey_server", None), "memcached"])
        files = [f"--data {os.path.basename(path)}" for path in options.data or [] if of_files]
        line = " ".join([f"bench/compare.py {verb} --records {options.records}", *files])
        return told(options, began, line, {"rows": rows}, others)
    return run


def of(module, name="run"):
    """Loaded when it runs: not everything that one verb needs is there for all."""
    return lambda *args: getattr(importlib.import_module(module), name)(*args)


# What runs (of a verb with parts: one of them, into what is known already), the options, defaults of these.
VERBS = {
    "demo": (of("demo"), ["records", *SERVER, "update-readme"], {"records": 200_000}),
    "throughput": (of("scale", "throughput"), ["records", *SERVER, "requests", "rounds"], {"records": 200_000, "rounds": 5}),
    "codec": (run_program("codec"), ["data"], {"data": []}),
    "layout": (run_program("layout"), ["records", "data"], {"records": 10_000_000}),
    "scale": (of("scale"), ["records", *SERVER, "rounds", "parts", "sizes", "kinds"],
              {"records": 10_000_000, "rounds": 3, "parts": ",".join(report.SCALE)}),
    "caches": (of("caches"), [*SERVER, "caches", "cluster", "scale", "seconds"], {}),
    "cache_duty": (of("cache_duty"), [*SERVER, "parts", "scale"], {"parts": ",".join(report.CACHE_DUTY)}),
    "cache": (compared("cache", "stores", True), [*STORES, "valkey-server"], {"records": 100_000}),
    "latency": (compared("latency", "stores", False), [*STORES, "rounds"], {"records": 20_000, "rounds": 7}),
    "uuid": (compared("uuid", "stores", True), STORES, {"records": 200_000}),
    "fans": (compared("fans", "fans", False), STORES, {"records": 10_000}),
    "transparent": (of("transparent"), ["records", *SERVER, "requests", "rounds"], {"records": 1_000_000, "rounds": 3}),
    "long_values": (of("long_values"), ["records", *SERVER, "rounds"], {"records": 100_000, "rounds": 3}),
    "sustained": (of("sustained"), ["records", *SERVER, "seconds"], {"records": 1_000_000, "seconds": 120}),
    "moving": (of("moving"), ["records", *SERVER, "rounds"], {"records": 1_000_000, "rounds": 3}),
    "estimate": (of("estimate"), ["records", *SERVER], {"records": 200_000}),
    "fleet": (None, [], {}),
    "report": (None, [], {}),
}
NEED_DATA = {"estimate", "long_values", "sustained", "layout", "cache", "uuid"}
NOT_KEPT = {"demo", "throughput"}


def measure_parts(options, run, path, known):
    found = report.kept(path, {})
    for part in options.parts.split(","):
        if part not in known:
            raise Failed(f"there is no part '{part}', but {', '.join(known)}")
        run(options, found, part)
        report.keep(path, found)
        progress.end()
        report.show(known[part](json.loads(json.dumps(found[part]))))


def perform(options):
    verb = options.verb
    run = VERBS[verb][0]
    if verb == "fleet":
        return report.show(fleet.fleet())
    if verb == "report":
        importlib.import_module("plots").draw()
        report.rewrite(report.README, report.in_short)
        report.rewrite(report.PAGE, report.generated)
        return report.rewrite(fleet.PAGE, fleet.generated)
    path = options.json or (None if verb in NOT_KEPT else os.path.join(report.RESULTS, f"{verb}.json"))
    if verb in NEED_DATA and not options.data:
        raise Failed("no data: --data FILE")
    if verb in ("scale", "cache_duty"):
        return measure_parts(options, run, path, report.SCALE if verb == "scale" else report.CACHE_DUTY)
    found = run(options, path) if verb == "caches" else run(options)
    report.keep(path, found)
    progress.end()
    render = (lambda found: report.speed(found["speed"])) if verb == "throughput" else getattr(report, verb)
    report.show(render(json.loads(json.dumps(found))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for verb, (_, names, defaults) in VERBS.items():
        options = verbs.add_parser(verb)
        for name in names:
            options.add_argument(f"--{name}", **OPTIONS[name])
        options.add_argument("--json", help="default: bench/results/<verb>.json")
        options.set_defaults(**defaults)
    # `kill` cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = parser.parse_args()
    try:
        perform(options)
    except KeyboardInterrupt:
        progress.end()
        return 130
    except Failed as failed:
        progress.end()
        print(f"{options.verb}: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
