"""Real records once as SET key value EX and once as CSET key value EX, side by side.

Two fresh servers of the same binary, one after the other, with the module loaded in both. Each one is loaded, read back
(every value is compared byte by byte), measured, saved, started again and read back once more. Both go through exactly
the same code; only the names of the commands differ, and that between loading and reading CKV TRAIN and CKV OPTIMIZE
bring the pages up to date (the last row of the table). Needs nothing but Python and a server."""

import sys
import time

import load
import measure
import report
from load import progress
from server import Failed, Server, command

TTL = 86400


def one(options, values, set_, get, expiretime):
    """One way of storing the records."""
    ckv = set_ == "CSET"
    records, count = options.records, len(values)
    info = {}

    def key(i):
        return b"KEY:%d" % (100_000_000 + i)

    def fill(server):
        return load.send(server, records, lambda i: command(set_, key(i), values[i % count], "EX", TTL))

    def read(server):
        return load.send(server, records, lambda i: command(get, key(i)),
                         lambda i: b"$%d\r\n%b\r\n" % (len(values[i % count]), values[i % count]))

    def set_others(server):
        """A time that was just set is told to the ms until as many others were, or a restart; behind this all are told as they are kept."""
        others = [b"another:%d" % i for i in range(10_000)]
        load.send(server, len(others), lambda i: command(set_, others[i], b"v", "EX", TTL))
        server.call("CDEL", *others)

    def expiries(server):
        """The absolute expiry of every hundredth record, ms."""
        if ckv and not info:
            info.update((k, v) for k, v in server.info("ckv").items() if k.startswith("ckv_"))
            set_others(server)
        found = [server.call(expiretime, key(i)) for i in range(0, records, 100)]
        if min(found) < 0:
            raise Failed("a record has lost its expiry")
        return found

    with Server(options) as server:
        about = server.info("server")
        version = ("Valkey " + about["valkey_version"]) if "valkey_version" in about else "Redis " + about["redis_version"]
        found = measure.life(f"{set_:>4}", server, records, ckv, fill, read, expiries)
    size = found.pop("bytes")
    ready, loaded = found.pop("restart_seconds"), found.pop("file_load_seconds")
    return {"server": version, **found, "used_memory_per_record": size["used_memory"], "rss_per_record": size["rss"],
            "ready_seconds": ready, "start_seconds": loaded, "both_seconds": found["save_seconds"] + loaded,
            **({"info": info} if ckv else {})}


def run(options):
    data = load.Data.first(options)
    values = data.values
    used = [values[i % len(values)] for i in range(options.records)] if options.records < len(values) else values
    results = {"SET": one(options, values, "SET", "GET", "PEXPIRETIME"),
               "CSET": one(options, values, "CSET", "CGET", "CPEXPIRETIME")}
    progress.end()
    print("Every value read back identical, before and after the restart.\n", file=sys.stderr)
    found = {"records": options.records, "data": data.name, "different_values": len(set(used)),
             "raw_bytes_per_value": sum(map(len, used)) / len(used), "ttl": TTL, "pipeline": load.DEPTH,
             "connections": load.CONNECTIONS, "date": time.strftime("%Y-%m-%d"), "machine": measure.machine(),
             "results": results, "server": results["CSET"]["server"]}
    if options.update_readme:
        report.rewrite(options.update_readme, lambda page: report.replaced(page, {"demo": report.demo(found)}))
    return found
