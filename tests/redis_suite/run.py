"""Redis' own Tcl suite against a server with the module; what fails with it and passes without it is told.

    run.py --server redis-7.0 [--mode without|prefixes] [--jobs 2] [unit/type/string ...]

The suite is the one in the sources of build/servers/<server> (all of its files, if none are named). Each file runs by
itself, twice: without the module (the baseline, kept until the server is built anew) and with it, in one of the modes
below. What they print, and of failures the servers' logs, is kept in build/redis-suite/<server>/.

without   not with it: nothing but the baseline
prefixes  the module, with ckv.prefixes "*": the transparent mode

A test is bad that passes in the baseline and fails with the module, or is not reached with it. What is bad is run
again, for a machine with other work may be too slow for a test: bad is what is bad each time. A bad test that
expected.txt does not know fails the run. A line of that file is

    <servers> | <file> | <test> | <reason>

where '*' stands for any text in the first three. A reason that begins with "left out:" does that to the test, named in
full: one that hangs or takes others with it."""

import argparse
import concurrent.futures
import ctypes
import fcntl
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
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from expected import Expected  # noqa: E402

SERVERS = os.path.join(ROOT, "build", "servers")
MODULE = os.path.join(ROOT, "build", "ckv.so")
CONFIG = [("loadmodule", MODULE), ("ckv.prefixes", '"*"')]

STALLED_SECONDS = 240
FILE_SECONDS = 2400
AT_MOST = 0.02  # of all tests may be expected to fail in the transparent mode

# The suite takes ports from a base on, and those 10,000 above it for the cluster bus; all of them below the ports that
# the kernel gives to others. It looks for its own port in the 32 below the base.
PORTS = range(11040, 22000, 400)

NOT_BUILT = "unit/moduleapi/"  # tests of modules that only a build of the suite's own has
OUTSIDE = "(outside of the tests)"
NOT_REACHED = ["not reached"]
STATUS = re.compile(r"^\[(ok|err|skip|ignore|exception|TIMEOUT|ready|testing|\d+/\d+ done)\]: (.*)$")
FAILED_IN = re.compile(r"^(.*) in tests/\S+\.tcl$")
READY = "eady to accept"
TOOK = re.compile(r" \(\d+ ms\)$")
CRASH = re.compile(r"crashed by signal|ASSERTION FAILED|ERROR: (?:Address|Leak)Sanitizer|runtime error:")
SENT = re.compile(r"Killed by PID:")  # the signal: the suite does so to a server that does not end

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


def start(command, cwd, output):
    """Starts a command in a group of its own, which stop() ends with all that it started."""
    with open(output, "wb") as out, _lock:
        if _stopping:
            raise SystemExit(1)
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={**os.environ, "TERM": "dumb"}, start_new_session=True,
                                   preexec_fn=_die_with_parent)
        _running.add(process)
    return process


def stop(process):
    kill_group(process)
    with _lock:
        process.wait()
        _running.discard(process)


def run_to_end(command, cwd, output, seconds):
    """True if it ended in time."""
    process = start(command, cwd, output)
    timer = threading.Timer(seconds, lambda: kill_group(process))
    timer.start()
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return timer.is_alive()
    finally:
        timer.cancel()
        stop(process)


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

    def __init__(self, server):
        self.source = os.path.realpath(os.path.join(SERVERS, server, "source"))
        self.binary = os.path.join(SERVERS, server, "redis-server")
        if not os.path.exists(os.path.join(self.source, "runtest")):
            raise SystemExit(f"redis-suite: no server '{server}' with its sources; scripts/build_server.sh builds it")
        self.folder = os.path.join(ROOT, "build", "redis-suite", server)
        self.programs = os.path.join(self.folder, "src")
        self._link_programs(server)

    def _link_programs(self, server):
        shutil.rmtree(self.programs, ignore_errors=True)
        os.makedirs(self.programs)
        for name in ("redis", "valkey"):
            for program in ("server", "cli", "benchmark"):
                os.symlink(os.path.join(SERVERS, server, f"redis-{program}"), f"{self.programs}/{name}-{program}")
            for program in ("sentinel", "check-aof", "check-rdb"):
                os.symlink(self.binary, f"{self.programs}/{name}-{program}")

    def files(self):
        tree = self.tree("list")
        listed = subprocess.run(["./runtest", "--list-tests"], cwd=tree, capture_output=True, text=True, check=True)
        shutil.rmtree(tree)
        return [name for name in listed.stdout.split() if not name.startswith(NOT_BUILT)]

    def identity(self):
        of = os.stat(os.path.realpath(self.binary))
        return [of.st_size, of.st_mtime_ns]

    def lock(self):
        """Two runs would write into the same trees."""
        self.locked = open(os.path.join(self.folder, "lock"), "w")
        try:
            fcntl.flock(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"redis-suite: {self.folder} is in use by another run") from None

    def try_config(self, config):
        """Ends the run if no server starts with these lines: the suite would wait two minutes for each of its own."""
        folder = os.path.join(self.folder, "try")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(os.path.join(folder, "conf"), "w", encoding="utf-8") as f:
            f.write("port 0\nunixsocket socket\n")
            f.writelines(" ".join(line) + "\n" for line in config)
        log = os.path.join(folder, "log")
        process = start([self.binary, "conf"], folder, log)
        text = ""
        try:
            while READY not in text and process.poll() is None:
                time.sleep(0.05)
                with open(log, encoding="utf-8", errors="replace") as f:
                    text = f.read()
        finally:
            stop(process)
        if READY not in text:
            raise SystemExit(f"redis-suite: the server does not start with {config}\n{text[-500:]}")

    def tree(self, label):
        """A copy of the tests beside links to the programs. Its path is short: the servers' sockets are in it."""
        tree = tempfile.mkdtemp(prefix="suite-")
        shutil.copytree(os.path.join(self.source, "tests"), os.path.join(tree, "tests"), symlinks=True)
        os.makedirs(os.path.join(tree, "tests", "tmp"), exist_ok=True)
        os.symlink(self.programs, os.path.join(tree, "src"))
        os.symlink(os.path.join(self.source, "runtest"), os.path.join(tree, "runtest"))
        if label == "prefixes":
            name_as_sent(os.path.join(tree, "tests", "test_helper.tcl"))
        return tree

    def run(self, label, name, config, left_out=()):
        """One file, once. `config` are lines for every server that it starts, `left_out` names of tests."""
        tree = self.tree(label)
        try:
            return self._run(tree, label, name, config, left_out)
        finally:
            shutil.rmtree(tree, ignore_errors=True)

    def _run(self, tree, label, name, config, left_out):
        kept = os.path.join(self.folder, label, name.replace("/", "."))
        shutil.rmtree(kept, ignore_errors=True)
        os.makedirs(kept)
        output = os.path.join(kept, "output")
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
        if result["failed"] or result["ended"] or result["crashes"]:
            shutil.move(os.path.join(tree, "tests", "tmp"), os.path.join(kept, "servers"))
        return result


def name_as_sent(helper):
    """names.tcl is read when all procedures of the suite are there, and before it starts."""
    with open(helper, encoding="utf-8") as f:
        text = f.read()
    with open(helper, "w", encoding="utf-8") as f:
        f.write(text.replace("\nif {$::client} {", f"\nsource {HERE}/names.tcl\nif {{$::client}} {{", 1))


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
    """How many crash reports the servers wrote."""
    count = 0
    for path in glob.glob(os.path.join(tree, "tests", "tmp", "*", "std*")):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        count += len(CRASH.findall(text)) - len(SENT.findall(text))
    return count


# --- comparing ---


def without_draws(name):
    """Some names of integration/psync2 tell numbers that were drawn at random."""
    return re.sub(r"\d+", "0", name) if name.startswith("PSYNC2: ") else name


def bad(result, baseline):
    """The tests that pass in the baseline and not here: {name: why}."""
    found = {name: why for name, why in result["failed"].items() if name not in baseline["failed"]}
    if OUTSIDE in result["failed"]:
        found[OUTSIDE] = result["failed"][OUTSIDE]
    seen = set(map(without_draws, [*result["passed"], *result["failed"], *result["skipped"]]))
    for name in baseline["passed"]:
        if without_draws(name) not in seen:
            found[name] = NOT_REACHED
    if result["crashes"] > baseline["crashes"]:
        found["(a server crashed)"] = [f"{result['crashes']} crash reports"]
    if result["ended"] and not baseline["ended"]:
        found[OUTSIDE] = [result["ended"], *found.get(OUTSIDE, [])]
    if OUTSIDE in baseline["failed"]:
        found.pop(OUTSIDE, None)
    return found


# --- runs ---


def run_baseline(suite, name):
    """Twice if something fails: only what fails both times is no fault of the module."""
    first = suite.run("without", name, [])
    if not first["failed"] and not first["ended"]:
        return first
    again = suite.run("without", name, [])
    failed = {test: why for test, why in again["failed"].items() if test in first["failed"]}
    return {**again, "failed": failed, "passed": sorted({*first["passed"], *again["passed"]} - set(failed)),
            "ended": first["ended"] and again["ended"], "crashes": max(first["crashes"], again["crashes"])}


def run_file(suite, options, name, baseline, expected):
    """The outcome with the module: {"bad": ..., "unsteady": ..., "tests": n}."""
    first, remaining = {}, None
    outcome = {"bad": {}, "unsteady": {}, "tests": len(baseline["passed"]) + len(baseline["failed"]),
               "skipped": len(baseline["skipped"]), "baseline_failed": sorted(baseline["failed"])}
    if baseline["ended"] and not baseline["passed"]:
        return {**outcome, "bad": {OUTSIDE: ["nothing runs without the module either", baseline["ended"]]}}
    if options.mode == "without":
        return outcome
    left_out = expected.left_out(name)
    for _ in range(options.attempts):
        result = suite.run(options.mode, name, CONFIG, left_out)
        found = {**bad(result, baseline), **{test: ["left out"] for test in left_out}}
        first = first or found
        remaining = found if remaining is None else {n: why for n, why in found.items() if n in remaining}
        unknown = [n for n in remaining if not expected.find(name, n)]
        if not unknown or result["stalled"]:
            break
    unsteady = {n: why for n, why in first.items() if n not in remaining}
    tests = len({*result["passed"], *result["failed"], *baseline["passed"], *baseline["failed"]})
    return {**outcome, "bad": remaining, "unsteady": unsteady, "tests": tests, "skipped": len(result["skipped"])}


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
            print("        ", "".join(c if c.isprintable() else "?" for c in line[:200]))
    for test in outcome["unsteady"]:
        print(f"    not each time  {test}")
    return count


def summary(mode, whole, outcomes, baselines, expected, new):
    tests = sum(o["tests"] for o in outcomes.values())
    known = sum(len(o["bad"]) for o in outcomes.values()) - new
    share = known / max(tests, 1)
    print(f"{len(outcomes)} files, {tests} tests: {new} new failures, {known} expected ({share:.1%})")
    expected.print_unused([(name, test) for name in outcomes for test in baselines["files"][name]["passed"]])
    if mode == "prefixes" and whole and share > AT_MOST:
        print(f"more than {AT_MOST:.0%} of the tests are expected to fail")
        return False
    return new == 0


def run_all(options):
    suite = Suite(options.server)
    names = options.files or suite.files()
    expected = Expected(os.path.join(HERE, "expected.txt"), ["servers", "file", "test", "reason"], options.server)
    suite.lock()
    if options.mode != "without":
        suite.try_config(CONFIG)
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
                save(os.path.join(suite.folder, f"{options.mode}.json"), outcomes)
        finally:
            stop_all()
            pool.shutdown(cancel_futures=True)
    return summary(options.mode, not options.files, outcomes, baselines, expected, new)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="redis-7.0", help="a folder of build/servers")
    parser.add_argument("--mode", choices=["without", "prefixes"], default="prefixes")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time")
    parser.add_argument("--attempts", type=int, default=3, help="runs of a file with new failures")
    parser.add_argument("files", nargs="*", metavar="FILE", help="as the suite names it: unit/type/string")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return 0 if run_all(options) else 1


if __name__ == "__main__":
    sys.exit(main())
