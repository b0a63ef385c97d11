"""New values at full speed for minutes, over old ones once all keys are there, by SET with ckv.prefixes "*" and default settings: what one
encoder thread keeps up with, what all threads take for it, and how far memory is above what the records take when all is settled."""

import contextlib
import itertools
import os
import subprocess
import threading
import time

from load import BENCH, CONNECTIONS, DEPTH, progress
from measure import by_file, settle, used_memory
from server import Failed, Server

STRINGS_SECONDS = 5  # of which the rate is taken
FIRST = 100_000_000  # key
PAUSE = 0.25  # between looks


@contextlib.contextmanager
def writing(server, data, records):
    """Each round begins a key later, so that every key has another value."""
    line = [BENCH, "--server", "strings", "--data", data.path, "--records", str(records), "--port", str(server.port),
            "--pipeline", str(DEPTH), "--clients", str(CONNECTIONS)]
    over, failed = threading.Event(), []

    def write():
        for turn in itertools.count():
            process = subprocess.Popen([*line, "--first", str(FIRST + turn)], stdout=subprocess.DEVNULL)
            while process.poll() is None and not over.wait(0.01):
                pass
            if over.is_set():
                process.kill()
                process.wait()
                return
            if process.returncode:
                failed.append(process.returncode)
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()
    if failed:
        raise Failed(f"{' '.join(line)} ended with {failed[0]}")


def note_threads(server, seconds):
    """CPU time by thread; one that has ended keeps what was noted last."""
    tasks = f"/proc/{server.process.pid}/task"
    for task in os.listdir(tasks):
        with contextlib.suppress(FileNotFoundError), open(f"{tasks}/{task}/schedstat") as f:
            seconds[int(task)] = int(f.read().split()[0]) / 1e9


def commands(server):
    return int(server.info("stats")["total_commands_processed"])


def look(server, seconds):
    ckv = server.info("ckv")
    note_threads(server, seconds)
    found = {"used": used_memory(server), "written": commands(server), "main": seconds[server.process.pid], "all": sum(seconds.values()),
             "at": time.monotonic()}
    return found | {name: int(ckv[f"ckv_{name}"]) for name in ("records", "young_encoded", "encoded_at_once", "young_limit")}


def looks(server, data, options):
    """Of a server that is written to for so long."""
    seconds = {}
    found = [look(server, seconds)]
    with writing(server, data, options.records):
        while found[-1]["at"] < found[0]["at"] + options.seconds:
            time.sleep(PAUSE)
            found.append(look(server, seconds))
    return found


def rates(first, last):
    """A second, between two looks."""
    return {name: (last[name] - first[name]) / (last["at"] - first["at"])
            for name in ("written", "young_encoded", "encoded_at_once", "main", "all")}


def above(looks, used_before, settled):
    """How far memory is above what so many records take when settled and all young memory, as a share of both: the most."""
    return max((look["used"] - used_before) / (look["records"] * settled + look["young_limit"]) for look in looks) - 1


def string_rate(options, data):
    with Server(options, loadmodule=None) as server, writing(server, data, options.records):
        time.sleep(1)
        began, before = time.monotonic(), commands(server)
        time.sleep(min(STRINGS_SECONDS, options.seconds))
        return (commands(server) - before) / (time.monotonic() - began)


def file(options, data):
    progress.step(f"{data.name}: strings")
    found = {"strings": string_rate(options, data)}
    progress.step(f"{data.name}: ckv")
    with Server(options, **{"ckv.prefixes": "*"}) as server:
        before = used_memory(server)
        seen = looks(server, data, options)
        time.sleep(PAUSE)
        records = int(server.info("ckv")["ckv_records"])
        settle(server)
        settled = (used_memory(server) - before) / records
    early = next(look for look in seen if look["at"] >= seen[0]["at"] + 1)
    late = seen[len(seen) // 2:]
    return found | {"early": rates(seen[0], early), "late": rates(late[0], late[-1]), "settled": settled,
                    "young_limit": seen[-1]["young_limit"], "above": above(late, before, settled), "mean": data.mean(records)}


def run(options):
    return by_file(options, file, f"sustained --records {options.records} --seconds {options.seconds:.0f}")
