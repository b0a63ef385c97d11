"""Loading, overwriting and reading values of a data file by plain SET and GET: the server's main thread as strings, and with
ckv.prefixes "*". Values over 256 bytes are young at first, with room for all of them: what it costs when that room is used up is
another measurement (scale)."""

import statistics
import struct
import tempfile
from types import SimpleNamespace

from load import CONNECTIONS, DEPTH, bench, progress
from measure import by_file, cpu_seconds, settle
from server import Server

SERVERS = {"strings": {"loadmodule": None}, "ckv": {"ckv.prefixes": "*", "ckv.young-memory": "4gb"}}
PIPELINES = (DEPTH, 1)
CLIENTS = 32  # one by one


def main_thread_us(server, data, records, depth, *how):
    """A record."""
    before = cpu_seconds(server)
    bench(server, "strings", data, records, "--pipeline", depth, "--clients", CONNECTIONS if depth > 1 else CLIENTS, *how)
    return (cpu_seconds(server) - before) / records * 1e6


def turned(data):
    """The same values, each for the key before: to be written over them."""
    f = tempfile.NamedTemporaryFile(suffix=".u32le")
    for value in data.values[1:] + data.values[:1]:
        f.write(struct.pack("<I", len(value)) + value)
    f.flush()
    return SimpleNamespace(path=f.name, file=f)


# What is measured one after the other. Before some, all is empty, or what is young is encoded, in servers that do that.
READ = "--mode", "read"
PHASES = {"load": ("empty", "data", ()), "over young": ("", "other", ()), "over settled": ("settled", "data", ()),
          "read, all alike": ("settled", "data", READ), "read, Zipf 0.99": ("", "data", (*READ, "--zipf", 0.99))}


def prepare(name, server, state):
    if state == "empty":
        server.call("FLUSHALL")
    elif state == "settled" and name == "ckv":
        server.call("CKV", "OPTIMIZE")


def file(options, data):
    """Rounds by turns, so that what else the machine does hits all alike."""
    other = turned(data)
    servers = {name: Server(options, **config) for name, config in SERVERS.items()}
    try:
        for server in servers.values():
            server.start()
        found = {depth: {name: {} for name in servers} for depth in PIPELINES}
        for depth in PIPELINES:
            for phase, (state, values, how) in PHASES.items():
                progress.step(f"{data.name}, {depth} in a pipeline: {phase}")
                runs = {name: [] for name in servers}
                for _ in range(options.rounds):
                    for name, server in servers.items():
                        prepare(name, server, state)
                        runs[name].append(main_thread_us(server, {"data": data, "other": other}[values], options.records, depth, *how))
                for name, us in runs.items():
                    found[depth][name][phase] = statistics.median(us)
                if phase == "over young":
                    settle(servers["ckv"])
        return found
    finally:
        other.file.close()
        for server in servers.values():
            server.close()


def run(options):
    return by_file(options, file, f"long_values --records {options.records} --rounds {options.rounds}")
