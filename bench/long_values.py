"""Loading, overwriting and reading values of a data file by plain SET and GET: the server's main thread as strings, and with
ckv.prefixes "*". Values over 256 bytes are young at first, with room for all of them: what it costs when that room is used up is
another measurement (scale)."""

import struct
import tempfile
from types import SimpleNamespace

from load import CONNECTIONS, DEPTH, bench, progress
from measure import by_file, cpu_seconds, medians, settle
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


def rounds_of(servers, options, data, other, depth):
    def measure(server, data, *how):
        return main_thread_us(server, data, options.records, depth, *how)

    read = "--mode", "read", "--operations", options.records
    for name, server in servers.items():
        server.call("FLUSHALL")
        found = {"load": measure(server, data)}
        found["over young"] = measure(server, other)
        if name == "ckv":
            settle(server)
        found["over settled"] = measure(server, data)
        if name == "ckv":
            settle(server)
        found["read, all alike"] = measure(server, data, *read)
        found["read, Zipf 0.99"] = measure(server, data, *read, "--zipf", 0.99)
        yield name, found


def file(options, data):
    other = turned(data)
    servers = {name: Server(options, **config) for name, config in SERVERS.items()}
    try:
        for server in servers.values():
            server.start()
        found = {}
        for depth in PIPELINES:
            runs = {name: [] for name in servers}
            for i in range(options.rounds):
                progress.step(f"{data.name}, {depth} in a pipeline, round {i + 1}")
                for name, figures in rounds_of(servers, options, data, other, depth):
                    runs[name].append(figures)
            found[depth] = {name: medians(rounds) for name, rounds in runs.items()}
        return found
    finally:
        other.file.close()
        for server in servers.values():
            server.close()


def run(options):
    return by_file(options, file, f"long_values --records {options.records} --rounds {options.rounds}")
