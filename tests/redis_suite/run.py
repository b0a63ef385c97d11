"""Redis' own Tcl suite against a server with the module; what fails with it and passes without it is told.

    run.py --server redis-7.0 [--mode rename|prefixes] [--jobs 2] [unit/type/string ...]

The suite is the one in the sources of build/servers/<server> (all of its files, if none are named). Each file runs by
itself in a tree of its own under build/redis-suite/<server>/, twice: without the module (the baseline, kept in
baseline.json until the server is built anew) and with it, in one of two modes:

rename    rename.so loads the module and renames SET to CSET and so on: a means to try ckv's commands on their own
prefixes  the module alone, with ckv.prefixes "*": the transparent mode

A test is bad that passes in the baseline and fails with the module, or is not reached with it. What is bad is run
again, for a machine with other work may be too slow for a test: bad is what is bad each time. A bad test that
expected.txt does not know fails the run. A line of that file is

    <servers> | <file> | <test> | <reason>

where '*' stands for any text in the first three; expected-rename.txt is read as well in that mode. A reason that
begins with "hangs:" leaves the test out, which has to be named in full."""

import argparse
import concurrent.futures
import ctypes
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SERVERS = os.path.join(ROOT, "build", "servers")
MODULE = os.path.join(ROOT, "build", "ckv.so")
RENAME = os.path.join(ROOT, "build", "redis-suite", "rename.so")

STALLED_SECONDS = 240
FILE_SECONDS = 2400
AT_MOST = 0.02  # of all tests may be expected to fail in the transparent mode

# The suite takes ports from a base on, and those 10,000 above it for the cluster bus; all of them below the ports that
# the kernel gives to others. It looks for its own port in the 32 below the base.
PORTS = range(11040, 22000, 400)

OUTSIDE = "(outside of the tests)"
NOT_REACHED = ["not reached"]
STATUS = re.compile(r"^\[(ok|err|skip|ignore|exception|TIMEOUT|ready|testing|\d+/\d+ done)\]: (.*)$")
FAILED_IN = re.compile(r"^(.*) in tests/\S+\.tcl$")
TOOK = re.compile(r" \(\d+ ms\)$")
CRASH = re.compile(r"=== (?:REDIS|VALKEY) BUG REPORT START|ERROR: (?:Address|Leak)Sanitizer|runtime error:")

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_lock = threading.Lock()
_running = set()
_stopping = False


# --- processes ---


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_group(process):
    """What a run of the suite has left. The group is its own, and the leader's number is ours until it is waited for."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_to_end(command, cwd, output, seconds):
    """Runs a command and all it starts, in a group of its own; True if it ended in time."""
    with open(output, "wb") as out, _lock:
        if _stopping:
            raise SystemExit(1)
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={**os.environ, "TERM": "dumb"}, start_new_session=True,
                                   preexec_fn=_die_with_parent)
        _running.add(process)
    ended = threading.Event()
    timer = threading.Timer(seconds, lambda: kill_group(process))
    timer.start()
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended.set()
        in_time = timer.is_alive()
    finally:
        timer.cancel()
        kill_group(process)
        with _lock:
            process.wait()
            _running.discard(process)
    return in_time


def stop_all():
    global _stopping
    with _lock:
        _stopping = True
        for process in _running:
            kill_group(process)


class Ports:
    """A range of ports for one run. Other runs on this machine see by the socket that it is taken."""

    def __enter__(self):
        for base in random.sample(PORTS, len(PORTS)):
            self.socket = socket.socket()
            try:
                self.socket.bind(("127.0.0.1", base - 33))
                return base
            except OSError:
                self.socket.close()
        raise SystemExit("redis-suite: no free range of ports")

    def __exit__(self, *exc):
        self.socket.close()


# --- the suite's tree ---


class Suite:
    """The suite of one server, and the trees its files run in."""

    def __init__(self, server, mode):
        self.source = os.path.realpath(os.path.join(SERVERS, server, "source"))
        self.binary = os.path.join(SERVERS, server, "redis-server")
        if not os.path.exists(os.path.join(self.source, "runtest")):
            raise SystemExit(f"redis-suite: no server '{server}' with its sources; scripts/build_server.sh builds it")
        self.folder = os.path.join(ROOT, "build", "redis-suite", server)
        self.tests = os.path.join(self.folder, "tests")
        self.programs = os.path.join(self.folder, "src")
        self._copy_tests(mode)
        self._link_programs(server)

    def _copy_tests(self, mode):
        shutil.rmtree(self.tests, ignore_errors=True)
        shutil.copytree(os.path.join(self.source, "tests"), self.tests, symlinks=True)
        if mode == "rename":
            # Read when all procedures of the suite are there, and before it starts.
            with open(f"{self.tests}/test_helper.tcl", encoding="utf-8") as f:
                helper = f.read()
            with open(f"{self.tests}/test_helper.tcl", "w", encoding="utf-8") as f:
                f.write(helper.replace("\nif {$::client} {", f"\nsource {HERE}/rename.tcl\nif {{$::client}} {{", 1))

    def _link_programs(self, server):
        shutil.rmtree(self.programs, ignore_errors=True)
        os.makedirs(self.programs)
        for name in ("redis", "valkey"):
            for program in ("server", "cli", "benchmark"):
                os.symlink(os.path.join(SERVERS, server, f"redis-{program}"), f"{self.programs}/{name}-{program}")
            for program in ("sentinel", "check-aof", "check-rdb"):
                os.symlink(self.binary, f"{self.programs}/{name}-{program}")

    def files(self):
        listed = subprocess.run(["./runtest", "--list-tests"], cwd=self.source, capture_output=True, text=True,
                                check=True)
        return listed.stdout.split()

    def identity(self):
        of = os.stat(os.path.realpath(self.binary))
        return [of.st_size, of.st_mtime_ns]

    def tree(self, label, name):
        """A new tree of links, with a folder of its own for what the servers write."""
        tree = os.path.join(self.folder, label, name.replace("/", "."))
        shutil.rmtree(tree, ignore_errors=True)
        os.makedirs(os.path.join(tree, "tests", "tmp"))
        os.symlink(self.programs, os.path.join(tree, "src"))
        os.symlink(os.path.join(self.source, "runtest"), os.path.join(tree, "runtest"))
        for entry in os.listdir(self.tests):
            if entry != "tmp":
                os.symlink(os.path.join(self.tests, entry), os.path.join(tree, "tests", entry))
        return tree

    def run(self, label, name, config, left_out=()):
        """One file, once. `config` are lines for every server that it starts, `left_out` names of tests."""
        tree = self.tree(label, name)
        output = os.path.join(tree, "output")
        with Ports() as base:
            command = ["./runtest", "--single", name, "--clients", "1", "--durable", "--dont-clean",
                       "--timeout", str(STALLED_SECONDS), "--baseport", str(base), "--portcount", "350"]
            for line in config:
                command += ["--config", *line]
            for test in left_out:
                command += ["--skiptest", test]
            in_time = run_to_end(command, tree, output, FILE_SECONDS)
        with open(output, encoding="utf-8", errors="replace") as f:
            text = f.read()
        result = parse(text)
        if result["ended"]:
            result["ended"] += ": " + " / ".join(text.split("\n")[-6:])
        if not in_time:
            result["ended"] = f"not done after {FILE_SECONDS} s"
        result["crashes"] = crashes(tree)
        if not result["failed"] and not result["ended"] and not result["crashes"]:
            shutil.rmtree(os.path.join(tree, "tests"))
        return result


def parse(text):
    """What the suite printed of one file, by the name of the test; a name that comes twice fails if one of them does."""
    result = {"passed": [], "failed": {}, "skipped": [], "ended": "the suite ended early",
              "stalled": False}
    details = None
    for line in text.splitlines():
        if line.strip() == "The End":
            break
        match = STATUS.match(line)
        if not match:
            if details is not None and len(details) < 12:
                details.append(line)
            continue
        status, rest = match.groups()
        details = None
        if status == "ok":
            result["passed"].append(TOOK.sub("", rest))
        elif status in ("skip", "ignore"):
            result["skipped"].append(rest)
        elif status == "err":
            named = FAILED_IN.match(rest)
            details = result["failed"].setdefault(named.group(1) if named else OUTSIDE, [])
            if not named:
                details.append(rest)
        elif status in ("exception", "TIMEOUT"):
            details = result["failed"].setdefault(OUTSIDE, [])
            details.append(f"{status}: {rest}")
            result["stalled"] = status == "TIMEOUT"
        elif status.endswith("done"):
            result["ended"] = None
    result["passed"] = sorted(set(result["passed"]) - set(result["failed"]))
    return result


def crashes(tree):
    """How many servers wrote a crash report."""
    count = 0
    for path in glob.glob(os.path.join(tree, "tests", "tmp", "*", "std*")):
        with open(path, encoding="utf-8", errors="replace") as f:
            count += sum(1 for line in f if CRASH.search(line))
    return count


# --- comparing ---


def bad(result, baseline):
    """The tests that pass in the baseline and not here: {name: why}."""
    found = {name: why for name, why in result["failed"].items() if name not in baseline["failed"]}
    if OUTSIDE in result["failed"]:
        found[OUTSIDE] = result["failed"][OUTSIDE]
    seen = {*result["passed"], *result["failed"], *result["skipped"]}
    for name in baseline["passed"]:
        if name not in seen:
            found[name] = NOT_REACHED
    if result["crashes"] > baseline["crashes"]:
        found["(a server crashed)"] = [f"{result['crashes']} crash reports"]
    if result["ended"] and not baseline["ended"]:
        found[OUTSIDE] = [result["ended"], *found.get(OUTSIDE, [])]
    if baseline["failed"].get(OUTSIDE) and result["failed"].get(OUTSIDE):
        found.pop(OUTSIDE)
    return found


class Expected:
    """The lines of expected.txt, and which of them were needed."""

    def __init__(self, paths, server):
        self.entries = []
        for path in paths:
            with open(path, encoding="utf-8") as f:
                for number, line in enumerate(f, 1):
                    if line.strip() and not line.startswith("#"):
                        self._add(f"{os.path.basename(path)}:{number}", line, server)

    def _add(self, place, line, server):
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != 4 or not all(fields):
            raise SystemExit(f"redis-suite: {place}: not '<servers> | <file> | <test> | <reason>'")
        servers, name, test, reason = fields
        if like(servers, server):
            self.entries.append({"place": place, "file": name, "test": test, "reason": reason, "used": False})

    def find(self, name, test):
        for entry in self.entries:
            if like(entry["file"], name) and like(entry["test"], test):
                entry["used"] = True
                return entry
        return None

    def hanging(self, name):
        return [e["test"] for e in self.entries if like(e["file"], name) and e["reason"].startswith("hangs:")]

    def unused(self, names):
        return [e for e in self.entries if not e["used"] and any(like(e["file"], name) for name in names)]


def like(pattern, text):
    return pattern == text or re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.S) is not None


# --- runs ---


def run_baseline(suite, name):
    """Twice if something fails: only what fails both times is no fault of the module."""
    result = suite.run("without", name, [])
    if result["failed"] or result["ended"]:
        again = suite.run("without", name, [])
        if again["ended"] or not result["ended"]:
            again["passed"] = sorted({*again["passed"], *result["passed"]})
            again["failed"] = {n: why for n, why in again["failed"].items() if n in result["failed"]}
        return again
    return result


def run_file(suite, options, name, baseline, expected):
    """The outcome with the module: {"bad": ..., "unsteady": ..., "tests": n}."""
    first, remaining = {}, None
    left_out = expected.hanging(name)
    for _ in range(options.attempts):
        result = suite.run(options.mode, name, config_of(options.mode), left_out)
        found = {**bad(result, baseline), **{test: ["left out"] for test in left_out}}
        first = first or found
        remaining = found if remaining is None else {n: why for n, why in found.items() if n in remaining}
        with _lock:
            unknown = [n for n in remaining if not expected.find(name, n)]
        if not unknown or result["stalled"]:
            break
    unsteady = {n: why for n, why in first.items() if n not in remaining}
    tests = len({*result["passed"], *result["failed"], *baseline["passed"], *baseline["failed"]})
    return {"bad": remaining, "unsteady": unsteady, "tests": tests, "skipped": len(result["skipped"]),
            "baseline_failed": sorted(baseline["failed"])}


def cached_baselines(suite):
    path = os.path.join(suite.folder, "baseline.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            kept = json.load(f)
        if kept["server"] == suite.identity():
            return kept
    return {"server": suite.identity(), "files": {}}


def save(path, content):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(content, f, indent=1)
    os.replace(path + ".new", path)


def config_of(mode):
    if mode == "rename":
        return [("loadmodule", f"{RENAME} {MODULE}")]
    return [("loadmodule", MODULE), ("ckv.prefixes", '"*"')]


def report(name, outcome, expected):
    """Prints one file's outcome; returns the number of failures that nobody expects."""
    new = {n: why for n, why in outcome["bad"].items() if not expected.find(name, n)}
    known, count = len(outcome["bad"]) - len(new), len(new)
    print(f"{name:42} {outcome['tests']:5} tests {len(outcome['baseline_failed']):4} fail without {known:4} expected "
          f"{count:4} new", flush=True)
    unreached = [test for test, why in new.items() if why == NOT_REACHED]
    if len(unreached) > 5:
        print(f"    NEW  {len(unreached)} tests not reached, the first of the alphabet: {unreached[0]}")
        new = {test: why for test, why in new.items() if why != NOT_REACHED}
    for test, why in new.items():
        print(f"    NEW  {test}")
        for line in why[:6]:
            print(f"         {line[:200]}")
    for test in outcome["unsteady"]:
        print(f"    not each time  {test}")
    return count


def summary(mode, outcomes, expected, new):
    tests = sum(o["tests"] for o in outcomes.values())
    known = sum(len(o["bad"]) for o in outcomes.values()) - new
    share = known / max(tests, 1)
    print(f"{len(outcomes)} files, {tests} tests: {new} new failures, {known} expected ({share:.1%})")
    for entry in expected.unused(outcomes):
        print(f"{entry['place']}: no longer fails: {entry['file']} | {entry['test']}")
    if mode == "prefixes" and share > AT_MOST:
        print(f"more than {AT_MOST:.0%} of the tests are expected to fail")
        return False
    return new == 0


def run_all(options):
    suite = Suite(options.server, options.mode)
    names = options.files or suite.files()
    lists = ["expected.txt"] + (["expected-rename.txt"] if options.mode == "rename" else [])
    expected = Expected([os.path.join(HERE, name) for name in lists], options.server)
    baselines = cached_baselines(suite)
    outcomes, new = {}, 0

    def one(name):
        if name not in baselines["files"]:
            result = run_baseline(suite, name)
            with _lock:
                baselines["files"][name] = result
                save(os.path.join(suite.folder, "baseline.json"), baselines)
        return run_file(suite, options, name, baselines["files"][name], expected)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(one, name): name for name in names}
        try:
            for future in concurrent.futures.as_completed(futures):
                name = futures[future]
                outcomes[name] = future.result()
                new += report(name, outcomes[name], expected)
        finally:
            stop_all()
            pool.shutdown(cancel_futures=True)
    save(os.path.join(suite.folder, f"{options.mode}.json"), outcomes)
    return summary(options.mode, outcomes, expected, new)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="redis-7.0", help="a folder of build/servers")
    parser.add_argument("--mode", choices=["rename", "prefixes"], default="prefixes")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time")
    parser.add_argument("--attempts", type=int, default=3, help="runs of a file with new failures")
    parser.add_argument("files", nargs="*", metavar="FILE", help="as the suite names it: unit/type/string")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return 0 if run_all(options) else 1


if __name__ == "__main__":
    sys.exit(main())
