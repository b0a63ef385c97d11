"""What ckv-estimate says of a server with strings, against what used_memory then shows: the same records as SET in a server
without the module, which it is asked about, and as CSET in one with it."""

import json
import os
import subprocess

from load import Data, bench, progress
from measure import growth, machine
from server import ROOT, Failed, Server

PROGRAM = os.path.join(ROOT, "build", "ckv-estimate")
TTL = 86400
PIPELINE = ["--pipeline", 50, "--clients", 8]


def ask(server, *args):
    line = [PROGRAM, "-p", str(server.port), "--json", *map(str, args)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(line)} ended with {done.returncode}")
    return json.loads(done.stdout)


def one(options, data, keys=()):
    """Of one file: bytes as estimated and as measured."""
    def fill(store):
        return lambda server: bench(server, store, data, options.records, *PIPELINE, "--ttl", TTL)["seconds"]

    progress.step(f"{data.name}: strings")
    with Server(options, loadmodule=None) as server:
        now = growth(server, options.records, fill("strings"), False)["used_memory"] * options.records
        total = ask(server, *keys)
    progress.step(f"{data.name}: ckv")
    with Server(options) as server:
        with_ckv = growth(server, options.records, fill("ckv"), True)["used_memory"] * options.records
    return row(data.name, total["total"], now, with_ckv, total["sample"])


def row(name, total, now, with_ckv, sample):
    return {"data": name, "now": now, "with_ckv": with_ckv, "estimated_now": total["bytes_now"],
            "estimated": total["bytes_with_ckv"], "low": total["low"], "high": total["high"],
            "off": total["bytes_with_ckv"] / with_ckv - 1, "off_now": total["bytes_now"] / now - 1,
            "sampled": sample["keys"], "seconds": sample["seconds"], "encode_us": total["encode_us"],
            "decode_us": total["decode_us"]}


if __name__ == "__main__":
    import argparse
    p = argparse.ArgumentParser()
    p.add_argument("--records", type=int, default=200000)
    p.add_argument("--redis-server", default="redis-server")
    p.add_argument("--module", default=os.path.join(ROOT, "build", "ckv.so"))
    p.add_argument("--keys", default="250000")
    p.add_argument("data", nargs="+")
    o = p.parse_args()
    for path in o.data:
        r = one(o, Data(path), ("--keys", o.keys, "--rate", 0))
        print(f"{r['data']:28} now {r['now']/o.records:8.1f} est {r['estimated_now']/o.records:8.1f} {100*r['off_now']:+5.1f}%  "
              f"ckv {r['with_ckv']/o.records:7.2f} est {r['estimated']/o.records:7.2f} {100*r['off']:+5.1f}% "
              f"[{r['low']/o.records:.1f} {r['high']/o.records:.1f}] n={r['sampled']} {r['seconds']}s enc {r['encode_us']} dec {r['decode_us']}", flush=True)
