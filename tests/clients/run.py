"""The tests of Redis' clients and of applications on top of them, against a server with the module.

    run.py [--mode prefixes|plain] [--jobs 2] [suite ...]

Each suite (suites.py) has a server of its own. It runs without the module first (the baseline, kept under build/clients
until the server or this folder changes), then with it:

plain     the baseline only
prefixes  the module with ckv.prefixes "*": the transparent mode

A test is bad that passes in the baseline and does not pass with the module. What is bad runs again by itself, for a
machine with other work may be too slow for a test; bad is what is bad each time. A bad test that expected.txt does not
know fails the run. A line of that file is

    <suite> | <test> | <reason>

where '*' stands for any text in the first two."""

import argparse
import concurrent.futures
import ctypes
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INSIDE = os.path.join(HERE, "inside")
BUILD = os.path.join(ROOT, "build", "clients")
PYTHON = os.path.join(ROOT, "build", "clients-venv", "bin", "python")
REQUIREMENTS = os.path.join(HERE, "requirements.txt")

sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "integration")]
import server as servers  # noqa: E402
from expected import Expected  # noqa: E402
from suites import SUITES  # noqa: E402

ATTEMPTS = 3
WORSE = {"skipped": 0, "passed": 1, "failed": 2}

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_lock = threading.Lock()
_running = set()
_stopping = False


# --- what is fetched ---


def digest(*parts):
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources():
    """The source distributions of the packages marked "tests", unpacked: {package: folder}. Fetched if they are not there."""
    wanted = re.findall(r"^(\S+)==(\S+) +# tests$", read(REQUIREMENTS), re.M)
    found = {}
    for package, version in wanted:
        folder = os.path.join(BUILD, "sources", f"{package}-{version}")
        if not os.path.isdir(folder):
            fetch(package, version, folder)
        found[package] = folder
    return found


def fetch(package, version, folder):
    print(f"fetching the tests of {package} {version}", flush=True)
    partial = folder + ".new"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    subprocess.run([PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package, "-d", partial,
                    f"{package}=={version}"], check=True)
    (archive,) = glob.glob(os.path.join(partial, "*.tar.gz"))
    subprocess.run(["tar", "-xzf", archive, "-C", partial], check=True)
    (unpacked,) = [entry.path for entry in os.scandir(partial) if entry.is_dir()]
    os.rename(unpacked, folder)
    shutil.rmtree(partial)


# --- processes ---


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def kill_group(process):
    """What a suite has left in the group that it leads; its number is ours until it is waited for."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_to_end(command, cwd, env, output, seconds):
    """Runs a command; True if it ended in time. A keeper (keep.py) adopts and ends all that it leaves behind."""
    with open(output, "wb") as out, _lock:
        if _stopping:
            raise SystemExit(1)
        process = subprocess.Popen([sys.executable, os.path.join(HERE, "keep.py"), *command], cwd=cwd, env=env,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                   preexec_fn=_die_with_parent)
        _running.add(process)
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        end(process)


def end(process):
    """SIGTERM lets the keeper end what it keeps."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            kill_group(process)
            process.wait()
    with _lock:
        _running.discard(process)


def stop_all():
    global _stopping
    with _lock:
        _stopping = True
        for process in _running:
            process.terminate()


# --- a run of a suite ---


def start_server(mode):
    config = {"databases": 32, "enable-module-command": "yes"}
    if mode == "prefixes":
        return servers.Server({**config, "ckv.prefixes": '"*"'})
    return servers.Server(config, module=False)


def environment(port, report):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "DJANGO", "REDIS", "CELERY", "RQ_"))}
    env.update(CKV_CLIENTS_PORT=str(port), CKV_CLIENTS_REPORT=report, PYTHONPATH=INSIDE, PYTHONDONTWRITEBYTECODE="1")
    env["PATH"] = os.path.dirname(PYTHON) + os.pathsep + env["PATH"]
    return env


def assert_redirected(server, env):
    """A suite empties the server that it finds. It must be ours."""
    ask = "import redis; print(redis.Redis().info('server')['process_id'])"
    answer = subprocess.run([PYTHON, "-c", ask], env=env, capture_output=True, text=True)
    if answer.stdout.strip() != str(server.process.pid):
        raise SystemExit(f"test-clients: port 6379 does not lead to the server under test\n{answer.stderr}")


def run_suite(suite, folders, mode, names=()):
    """{test: [outcome, why]} of the whole suite, or of some of its tests."""
    label = os.path.join(BUILD, f"{suite.name}-{mode}{'-again' if names else ''}")
    report = label + ".jsonl"
    if os.path.exists(report):
        os.remove(report)
    server = start_server(mode)
    try:
        env = environment(server.port, report)
        assert_redirected(server, env)
        command = [PYTHON, *suite.command(server.port, names)]
        in_time = run_to_end(command, suite.place(folders), env, label + ".log", suite.seconds)
        crashed = not server.alive()
    finally:
        try:
            server.close()
        except AssertionError as error:
            crashed = str(error)
    result = outcomes(report)
    if not in_time:
        result["(the suite)"] = ["failed", f"not done after {suite.seconds} s"]
    if crashed:
        result["(the server)"] = ["failed", f"the server ended: {crashed}"]
    return result


def outcomes(report):
    result = {}
    if os.path.exists(report):
        for line in read(report).splitlines():
            test, outcome, why = json.loads(line)
            if test not in result or WORSE[outcome] > WORSE[result[test][0]]:
                result[test] = [outcome, why]
    return result


def bad(result, baseline):
    """What passes in the baseline and not here: {test: why}."""
    found = {}
    for test in {*baseline, *result}:
        outcome, why = result.get(test, ["not reached", ""])
        if outcome != "passed" and baseline.get(test, ["passed"])[0] == "passed":
            found[test] = f"{outcome}\n{why}"
    return found


def baseline(suite, folders):
    """The outcome without the module. Kept; what fails there is no fault of the module."""
    binary = os.stat(shutil.which(servers.BINARY))
    ours = [REQUIREMENTS, *glob.glob(os.path.join(HERE, "*.py")), *glob.glob(os.path.join(INSIDE, "*.py"))]
    of = digest(*map(read, sorted(ours)), binary.st_size, binary.st_mtime_ns)
    path = os.path.join(BUILD, f"{suite.name}-baseline-{of}.json")
    if os.path.exists(path):
        return json.loads(read(path))
    result = run_suite(suite, folders, "plain")
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(result, f, indent=0)
    os.replace(path + ".new", path)
    return result


def compare(suite, folders, mode, expected):
    """The outcome of one suite: {"baseline": ..., "bad": {test: why}, "unsteady": [...]}."""
    before = baseline(suite, folders)
    outcome = {"baseline": before, "bad": {}, "unsteady": []}
    if mode == "plain":
        return outcome
    first = outcome["bad"] = bad(run_suite(suite, folders, mode), before)
    for _ in range(ATTEMPTS - 1):
        new = sorted(t for t in outcome["bad"] if not expected.find(suite.name, t))
        if not new:
            break
        again = run_suite(suite, folders, mode, [t for t in new if not t.startswith("(")] or None)
        passed = {test for test in new if again.get(test, ["passed" if test.startswith("(") else ""])[0] == "passed"}
        outcome["bad"] = {test: why for test, why in outcome["bad"].items() if test not in passed}
    outcome["unsteady"] = sorted(set(first) - set(outcome["bad"]))
    return outcome


# --- what is told ---


def report(suite, outcome, expected):
    """Prints how one suite did; returns the number of failures that nobody expects."""
    new = {test: why for test, why in sorted(outcome["bad"].items()) if not expected.find(suite.name, test)}
    count = {kind: sum(o == kind for o, _ in outcome["baseline"].values()) for kind in WORSE}
    print(f"{suite.name:16} {count['passed']:5} pass without the module, {count['failed']:3} fail, {count['skipped']:4} are "
          f"skipped; with it {len(outcome['bad']) - len(new):3} fail as expected, {len(new):3} are new", flush=True)
    for test, why in new.items():
        print(f"    NEW  {test}")
        for line in why.strip().splitlines()[-6:]:
            print(f"         {line[:200]}")
    for test in outcome["unsteady"]:
        print(f"    not each time  {test}")
    if not count["passed"]:
        print(f"    not one test passes without the module: see build/clients/{suite.name}-plain.log")
        return 1
    return len(new)


def run_all(options):
    os.makedirs(BUILD, exist_ok=True)
    chosen = [suite for suite in SUITES if not options.suites or suite.name in options.suites]
    expected = Expected(os.path.join(HERE, "expected.txt"), ["suite", "test", "reason"])
    folders = sources()
    new = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(compare, suite, folders, options.mode, expected): suite for suite in chosen}
        try:
            for future in concurrent.futures.as_completed(futures):
                new += report(futures[future], future.result(), expected)
        finally:
            stop_all()
            pool.shutdown(cancel_futures=True)
    if options.mode != "plain":
        expected.print_unused([[suite.name] for suite in chosen])
    print(f"{new} new failures")
    return new == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["plain", "prefixes"], default="prefixes")
    parser.add_argument("--jobs", type=int, default=2, help="suites at a time")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(suite.name for suite in SUITES))
    options = parser.parse_args()
    if unknown := set(options.suites) - {suite.name for suite in SUITES}:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return 0 if run_all(options) else 1


if __name__ == "__main__":
    sys.exit(main())
