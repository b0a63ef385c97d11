#!/usr/bin/env python3
"""CSET and CGET against SET and GET on one server, sent by redis-benchmark from 50 connections.

The server holds the same real records both ways. Reads pick random keys among them; writes replace
random ones by a record of the data. Each pair is run several times in turn, and the medians compared,
so that what else the machine does hits both alike.

    bench/throughput.py [--records N] [--requests N] [--data FILE] [--json FILE]
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys

import data
from demo import Progress, machine, positive
from server import ROOT, Client, Failed, Pipelines, Server, command

CLIENTS = 50


def load(server, values, count):
    """Both kinds, under the keys that redis-benchmark's __rand_int__ makes: 12 digits."""

    def pairs(name):
        for at in range(0, count, 50):
            part = range(at, min(at + 50, count))
            yield (b"".join([command(name, b"KEY:%012d" % i, values[i % len(values)], b"EX", b"86400") for i in part]),
                   b"+OK\r\n" * len(part))

    with Pipelines(server.port) as pipelines:
        for name in (b"SET", b"CSET"):
            pipelines.run(pairs(name))


def rate(options, server, pipeline, *args):
    """Requests per second, by redis-benchmark."""
    requests = options.requests if pipeline > 1 else max(options.requests // 5, 1)
    done = subprocess.run(
        [options.redis_benchmark, "-p", str(server.port), "-c", str(CLIENTS), "-P", str(pipeline), "-n", str(requests),
         "-r", str(options.records), "--csv", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    rows = list(csv.reader(done.stdout.decode(errors="replace").splitlines()))
    if done.returncode or len(rows) < 2:
        raise Failed(f"redis-benchmark failed: {done.stderr.decode()} {done.stdout.decode()}")
    return float(rows[-1][1])


def run(options, progress):
    values, name = data.records(options.data)
    value = values[len(values) // 2]
    report = {"records": options.records, "data": name, "clients": CLIENTS, "machine": machine(), "results": []}
    with Server(options.redis_server, module=options.module) as server:
        server.start()
        progress.step("load")
        load(server, values, options.records)
        with Client(server.port) as client:
            client.call("CKV", "OPTIMIZE")
            report["server"] = client.info("server").get("redis_version")
        for pipeline in (1, 50):
            for native, ours in (("GET", "CGET"), ("SET", "CSET")):
                rates = {native: [], ours: []}
                progress.step(f"{ours} against {native}, pipeline {pipeline}")
                for i in range(options.rounds):
                    progress.show(i, options.rounds)
                    for what in (native, ours):
                        tail = (value, b"EX", b"86400") if what.endswith("SET") else ()
                        rates[what].append(rate(options, server, pipeline, what, "KEY:__rand_int__", *tail))
                a, b = statistics.median(rates[native]), statistics.median(rates[ours])
                report["results"].append({"pipeline": pipeline, "native": native, "ours": ours, "native_per_second": a,
                                          "ours_per_second": b, "ratio": b / a, "rounds": rates})
        server.stop()
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=positive, default=200_000)
    parser.add_argument("--requests", type=positive, default=1_000_000, help="per run; a fifth without pipelining")
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--data")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--redis-benchmark", default="redis-benchmark")
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "ckv.so"))
    parser.add_argument("--json")
    options = parser.parse_args()
    progress = Progress()
    try:
        report = run(options, progress)
    except KeyboardInterrupt:
        progress.end()
        return 130
    except Failed as failed:
        progress.end()
        print(f"throughput: {failed}", file=sys.stderr)
        return 1
    progress.end()
    print(f"{report['records']:,} records ({report['data']}), {CLIENTS} connections, Redis {report['server']}, "
          f"{report['machine']}\n")
    print(f"{'pipeline':>8}  {'':4} {'per second':>12}  {'':4} {'per second':>12}  ratio")
    for row in report["results"]:
        print(f"{row['pipeline']:>8}  {row['native']:4} {row['native_per_second']:>12,.0f}  "
              f"{row['ours']:4} {row['ours_per_second']:>12,.0f}  {row['ratio']:.2f}")
    if options.json:
        with open(options.json, "w") as f:
            json.dump(report, f, indent=1)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
