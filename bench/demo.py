#!/usr/bin/env python3
"""Real records once as SET key value EX and once as CSET key value EX, side by side.

Two fresh servers of the same binary, one after the other, with the module loaded in both. Each one is
loaded, read back (every value is compared byte by byte), measured, saved, started again and read back
once more. Both go through exactly the same code; only the names of the commands differ, and that between
loading and reading CKV TRAIN and CKV OPTIMIZE bring the pages up to date (the last row of the table).

    bench/demo.py [--records N] [--data FILE] [--json FILE] [--update-readme README.md]
"""

import argparse
import json
import os
import platform
import re
import signal
import sys
import time

import data
from server import ROOT, Client, Failed, Pipelines, Server, command

TTL = 86400
DEPTH = 50  # commands in a pipeline
CHUNK = 50_000  # records whose requests are prepared at once
NATIVE = {"name": "SET", "set": b"SET", "get": b"GET", "expiretime": "PEXPIRETIME"}
CKV = {"name": "CSET", "set": b"CSET", "get": b"CGET", "expiretime": "CPEXPIRETIME"}


class Progress:
    """One line on a terminal, a line a step elsewhere."""

    def __init__(self, out=sys.stderr):
        self.out = out
        self.live = out.isatty()
        self.what = ""
        self.drawn = 0

    def step(self, what):
        self.what = what
        if self.live:
            self.show(0, 0)
        else:
            print(what, file=self.out, flush=True)

    def show(self, done, total):
        if not self.live or (done < total and time.monotonic() - self.drawn < 0.1):
            return
        self.drawn = time.monotonic()
        bar = ""
        if total:
            filled = 30 * done // total
            bar = f"[{'#' * filled}{'.' * (30 - filled)}] {100 * done // total:3d}%"
        print(f"\r\033[K{self.what:<34} {bar}", end="", file=self.out, flush=True)

    def end(self):
        if self.live:
            print("\r\033[K", end="", file=self.out, flush=True)


class Run:
    """One way of storing the records."""

    def __init__(self, kind, options, values, progress):
        self.kind = kind
        self.options = options
        self.values = values
        self.progress = progress
        self.result = {}

    def key(self, i):
        return b"KEY:%d" % (self.options.first + i)

    def step(self, what):
        self.progress.step(f"{self.kind['name']:>4}: {what}")

    def measure(self):
        module = self.options.module
        with Server(self.options.redis_server, module=module) as server:
            server.start()
            with Client(server.port) as client:
                version = client.info("server")
                self.result["server"] = "%s %s" % (
                    ("Valkey", version["valkey_version"]) if "valkey_version" in version
                    else ("Redis", version["redis_version"]))
                before = self.memory(client)
                self.result["load_per_second"] = self.per_second("load", self.loading, server)
                if self.kind is CKV:
                    # Where a server would get to by itself, in the background, a while after such a bulk load.
                    self.step("train and optimize")
                    began = time.perf_counter()
                    client.call("CKV", "TRAIN")
                    client.call("CKV", "OPTIMIZE")
                    self.result["optimize_seconds"] = time.perf_counter() - began
                self.result["read_per_second"] = self.per_second("read and compare", self.reading, server)
                after = self.memory(client)
                for name in ("used_memory", "rss"):
                    self.result[name + "_per_record"] = (after[name] - before[name]) / self.options.records
                if self.kind is CKV:
                    self.result["info"] = {k: v for k, v in client.info("ckv").items() if k.startswith("ckv_")}
                expiries = self.expiries(client)
                self.step("save")
                began = time.perf_counter()
                client.call("SAVE")
                self.result["save_seconds"] = time.perf_counter() - began
                self.result["file_bytes"] = os.path.getsize(os.path.join(server.dir, "dump.rdb"))
            server.stop()
            self.step("start again")
            self.result["ready_seconds"] = server.start()
            self.result["start_seconds"] = server.load_seconds()
            self.result["both_seconds"] = self.result["save_seconds"] + self.result["start_seconds"]
            self.per_second("read and compare again", self.reading, server)
            with Client(server.port) as client:
                if self.expiries(client) != expiries:
                    raise Failed("an expiry changed over the restart")
            server.stop()
        return self.result

    def memory(self, client):
        """After what can be given back was given back: the same for both."""
        try:
            client.call("MEMORY", "PURGE")
        except Failed:
            pass
        time.sleep(0.3)  # the server looks at its RSS ten times a second
        memory = client.info("memory")
        return {"used_memory": int(memory["used_memory"]), "rss": int(memory["used_memory_rss"])}

    def expiries(self, client):
        """The absolute expiry of every hundredth record, ms."""
        found = [client.call(self.kind["expiretime"], self.key(i)) for i in range(0, self.options.records, 100)]
        if min(found) < 0:
            raise Failed("a record has lost its expiry")
        return found

    def per_second(self, what, pairs_of, server):
        """Goes through all records in pipelines; the clock runs while requests are under way only."""
        self.step(what)
        seconds = 0.0
        total = self.options.records
        with Pipelines(server.port, self.options.connections) as pipelines:
            for start in range(0, total, CHUNK):
                end = min(start + CHUNK, total)
                seconds += pipelines.run(pairs_of(start, end))
                self.progress.show(end, total)
        return total / seconds

    def loading(self, start, end):
        tail = b"$2\r\nEX\r\n" + b"$%d\r\n%d\r\n" % (len(str(TTL)), TTL)
        head = b"*5\r\n" + b"$%d\r\n%b\r\n" % (len(self.kind["set"]), self.kind["set"])
        values, count = self.values, len(self.values)
        pairs = []
        for at in range(start, end, DEPTH):
            out = []
            for i in range(at, min(at + DEPTH, end)):
                key, value = self.key(i), values[i % count]
                out.append(b"%b$%d\r\n%b\r\n$%d\r\n%b\r\n%b" % (head, len(key), key, len(value), value, tail))
            pairs.append((b"".join(out), b"+OK\r\n" * len(out)))
        return pairs

    def reading(self, start, end):
        values, count = self.values, len(self.values)
        pairs = []
        for at in range(start, end, DEPTH):
            part = range(at, min(at + DEPTH, end))
            requests = b"".join([command(self.kind["get"], self.key(i)) for i in part])
            expected = b"".join([b"$%d\r\n%b\r\n" % (len(values[i % count]), values[i % count]) for i in part])
            pairs.append((requests, expected))
        return pairs


ROWS = [
    # what, field, how to print it, whether more is better
    ("bytes per record (used_memory)", "used_memory_per_record", "{:,.1f}", False),
    ("bytes per record (RSS)", "rss_per_record", "{:,.1f}", False),
    ("records loaded per second", "load_per_second", "{:,.0f}", True),
    ("records read per second", "read_per_second", "{:,.0f}", True),
    ("seconds to save (SAVE)", "save_seconds", "{:,.3f}", False),
    ("seconds to load the file", "start_seconds", "{:,.3f}", False),
    ("seconds to save and load", "both_seconds", "{:,.3f}", False),
    ("size of the file, MB", "file_megabytes", "{:,.1f}", False),
    ("seconds for CKV TRAIN and CKV OPTIMIZE", "optimize_seconds", "{:,.1f}", False),
]


def table(report):
    """Rows of four texts: what, SET, CSET, ratio."""
    results = report["results"]
    rows = []
    for what, field, form, more_is_better in ROWS:
        if field == "file_megabytes":
            a, b = (results[name]["file_bytes"] / 1e6 for name in ("SET", "CSET"))
        else:
            a, b = (results[name].get(field) for name in ("SET", "CSET"))
        if a is None:
            rows.append((what, "", form.format(b), ""))
            continue
        if more_is_better:
            ratio = f"{b / a:.2f} of the speed" if a else ""
        elif b > 0:
            ratio = f"{a / b:.1f} times less" if a >= b else f"{b / a:.1f} times more"
        else:
            ratio = ""
        rows.append((what, form.format(a), form.format(b), ratio))
    return rows


def as_text(report):
    rows = [("", "SET", "CSET", "CSET against SET")] + table(report)
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]
    lines.insert(1, "-" * (sum(widths) + 6))
    return "\n".join([title(report), ""] + lines)


def as_markdown(report):
    lines = [title(report) + "", "", "| | `SET` | `CSET` | `CSET` against `SET` |", "|---|---:|---:|---|"]
    lines += [f"| {a} | {b} | {c} | {d} |" for a, b, c, d in table(report)]
    return "\n".join(lines)


def title(report):
    raw = report["raw_bytes_per_value"]
    return (f"{report['records']:,} records: key `KEY:<n>`, a value of {raw:.0f} bytes on average "
            f"({report['data']}, {report['different_values']:,} different ones), `EX {TTL}`; {report['server']}, {report['date']}, {report['machine']}.")


def machine():
    cpu = platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            cpu = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), cpu)
    except OSError:
        pass
    return f"{os.cpu_count()} cores of {cpu}"


def update_readme(path, report):
    with open(path) as f:
        text = f.read()
    new = re.sub(r"(<!-- demo:begin[^>]*-->\n).*?(<!-- demo:end -->)",
                 lambda m: m.group(1) + as_markdown(report) + "\n" + m.group(2), text, flags=re.S)
    if new == text and "<!-- demo:begin" not in text:
        raise Failed(f"{path} has no markers <!-- demo:begin --> and <!-- demo:end -->")
    with open(path, "w") as f:
        f.write(new)


def run(options, progress):
    values, name = data.records(options.data)
    used = [values[i % len(values)] for i in range(options.records)] if options.records < len(values) else values
    report = {
        "records": options.records,
        "data": name,
        "different_values": len(set(used)),
        "raw_bytes_per_value": sum(map(len, used)) / len(used),
        "ttl": TTL,
        "pipeline": DEPTH,
        "connections": options.connections,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "results": {},
    }
    for kind in (NATIVE, CKV):
        report["results"][kind["name"]] = Run(kind, options, values, progress).measure()
    report["server"] = report["results"]["CSET"]["server"]
    return report


def positive(text):
    number = int(text.replace("_", ""))
    if number < 1:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=positive, default=200_000, help="how many (default 200000)")
    parser.add_argument("--data", help="a file with one record a line; default: Debian's package descriptions")
    parser.add_argument("--first", type=int, default=100_000_000,
                        help="n of the first key KEY:<n> (default 100000000: keys of 13 bytes)")
    parser.add_argument("--connections", type=positive, default=8)
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--module", default=os.path.join(ROOT, "build", "ckv.so"))
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--update-readme", metavar="FILE", help="put the table between the markers in FILE")
    options = parser.parse_args()

    # `kill` cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    progress = Progress()
    try:
        report = run(options, progress)
        progress.end()
        print(as_markdown(report) if options.markdown else as_text(report))
        print("\nEvery value read back identical, before and after the restart.", file=sys.stderr)
        if options.json:
            with open(options.json, "w") as f:
                json.dump(report, f, indent=1)
                f.write("\n")
        if options.update_readme:
            update_readme(options.update_readme, report)
    except KeyboardInterrupt:
        progress.end()
        print("stopped", file=sys.stderr)
        return 130
    except Failed as failed:
        progress.end()
        print(f"demo: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
