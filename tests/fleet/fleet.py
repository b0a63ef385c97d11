"""Many machines on one: a cluster that loses a primary, grows and shrinks while clients read and write, with ckv and with
strings.

    python tests/fleet/fleet.py [--records 1000000] [--data FILE] [--stores ckv,strings] [--parts cluster,slots] [--json FILE]

cluster   6 primaries with a replica each. One primary is killed: what WAIT 1 has acknowledged is there. Two primaries are added
          and a quarter of the slots moved to them by redis-cli; they are emptied again, by an atomic migration where the
          server has one, and removed. In the end every record is looked at: none may be lost, none wrong.
slots     Slots as large as those of a billion records: bytes per record, and the time to move them to another node.

The figures go into --json, from which `bench/compare.py fleet` works out fleets. Ends with 0 if all was well."""

import argparse
import json
import os
import platform
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from atomic import move, ranges, way_of  # noqa: E402
from cli import Cli  # noqa: E402
from cluster import SLOTS, Cluster, Node, slot_of  # noqa: E402
from helpers import texts, wait_for  # noqa: E402
from load import STORES, Bulk, Load, Model, keys_of_slots, lines  # noqa: E402

PRIMARIES, ADDED = 6, 2
BILLION = 1_000_000_000
# The server's own, so that the time of a failover is that of a fleet; and a slot that moves as one value holds a node up.
CONFIG = {"cluster-node-timeout": 15_000}


def report(what, **figures):
    shown = ", ".join(f"{name} {value:,.1f}" if isinstance(value, float) else f"{name} {value:,}" for name, value in figures.items())
    print(f"{what}: {shown}", flush=True)
    return figures


def used_memory(nodes):
    """Without what is kept for replicas."""
    found = [node.ask("INFO", "memory") for node in nodes]
    return sum(memory["used_memory"] - memory["mem_total_replication_buffers"] for memory in found)


def settle(store, nodes):
    """To where ckv gets by itself in the background, a while after a bulk load."""
    for node in nodes if store.name == "ckv" else ():
        with node.client(timeout=600) as r:
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")


# --- the cluster ---


def kill_a_primary(cluster, loads):
    """Seconds until its replica serves its slots. It comes back as a replica of that one."""
    victim, replica = cluster.primaries[1], cluster.replicas[1]
    for load in loads:
        load.wait_for_replica = True
    time.sleep(2)
    began = time.monotonic()
    victim.kill()
    wait_for(lambda: replica.ask("ROLE")[0] == b"master" and replica.info()["cluster_state"] == "ok", "the failover")
    seconds = time.monotonic() - began
    cluster.wait()
    time.sleep(2)  # clients go on with the new primary
    for load in loads:
        load.wait_for_replica = False
    victim.start()
    wait_for(lambda: victim.ask("INFO", "replication").get("master_link_status") == "up", "the replica that was a primary")
    cluster.primaries[1], cluster.replicas[1] = replica, victim
    return report("a primary killed", seconds=seconds, **longest(loads))


def longest(loads):
    """The longest that a client waited for an answer, tries included, since this was asked last."""
    return {"longest_ms": 1000 * max(load.take_longest() for load in loads)}


def records_of(store, node):
    return node.ask(store.count)


def add_primaries(cluster, store, cli, loads):
    added = []
    for _ in range(ADDED):
        node = Node(cluster.config)
        cluster.nodes.append(node)
        cli.add_node(node, cluster.primaries[0])
        added.append(node)
        cluster.wait()
    began = time.monotonic()
    for node in added:
        cli.reshard("all", node, SLOTS // 4 // ADDED)
        cluster.wait()
    seconds = time.monotonic() - began
    moved = sum(records_of(store, node) for node in added)
    report("a quarter of the slots moved by redis-cli", seconds=seconds, records=moved, per_second=moved / seconds)
    return added, {"seconds": seconds, "records": moved, "slots": SLOTS // 4, **longest(loads)}


def remove_primaries(cluster, store, cli, added, loads):
    way = way_of(added[0])
    how = "atomically" if way else "by redis-cli"
    moved = sum(records_of(store, node) for node in added)
    began = time.monotonic()
    for node, target in zip(added, cluster.primaries):
        if way:
            move(cluster, way, node, target, *(bound for slots in ranges(node) for bound in slots))
        else:
            cli.reshard(node, target, SLOTS // 4 // ADDED)
        cluster.wait()
    seconds = time.monotonic() - began
    for node in added:
        cli.delete_node(node, cluster.primaries[0])
        cluster.nodes.remove(node)
        node.close()
    cluster.wait()
    report(f"and back {how}", seconds=seconds, records=moved, per_second=moved / seconds)
    return {"how": how, "seconds": seconds, "records": moved, "slots": SLOTS // 4, **longest(loads)}


def check_replicas(cluster, store):
    for primary, replica in zip(cluster.primaries, cluster.replicas):
        wait_for(lambda: records_of(store, replica) == records_of(store, primary), "a replica with all records")


def run_cluster(store, values, records):
    model = Model(values, records)
    with Cluster(PRIMARIES, replicas=1, config=CONFIG) as cluster:
        cli = Cli(cluster)
        before = used_memory(cluster.primaries)
        bulk = Bulk(cluster, store)
        seconds = bulk.fill(model)
        settle(store, cluster.primaries)
        found = report(f"{store.name}: {records:,} records", fill_per_second=records / seconds,
                       bytes_per_record=(used_memory(cluster.primaries) - before) / records)
        loads = [Load(cluster, store, model, share, 2) for share in range(2)]
        for load in loads:
            load.start()
        found["killed"] = kill_a_primary(cluster, loads)
        added, found["added"] = add_primaries(cluster, store, cli, loads)
        found["removed"] = remove_primaries(cluster, store, cli, added, loads)
        found["operations"] = sum(load.finish() for load in loads)
        found["lost"], found["wrong"] = Bulk(cluster, store).check(model)
        found["wrong"] += sum(len(load.wrong) for load in loads)
        stored = sum(records_of(store, node) for node in cluster.primaries)
        check_replicas(cluster, store)
    report(f"{store.name}: in the end", operations=found["operations"], lost=found["lost"], wrong=found["wrong"])
    assert found["lost"] == found["wrong"] == 0, [load.wrong[:3] for load in loads]
    assert stored == records, f"{stored} records are counted"
    return found


# --- large slots ---


def run_slots(store, values, records):
    slots = max(1, round(records * SLOTS / BILLION))
    keys = list(keys_of_slots(slots, BILLION))
    assert all(slot_of(key) < slots for key in keys[::1000])
    with Cluster(2, config=CONFIG) as cluster:
        one, two = cluster.primaries
        before = used_memory([one])
        Bulk(cluster, store).send(one, [(store.set, key, values[i % len(values)], "EX", "86400") for i, key in enumerate(keys)])
        settle(store, [one])
        # A node of a fleet has hundreds of times as many records to share its dictionaries.
        dictionaries = one.ask("INFO", "ckv").get("ckv_dictionary_bytes", 0)
        used = (used_memory([one]) - before - dictionaries) / len(keys)
        began = time.monotonic()
        Cli(cluster).reshard(one, two, slots)
        seconds = time.monotonic() - began
        cluster.wait()
        assert records_of(store, two) == len(keys) and records_of(store, one) == 0
    return report(f"{store.name}: {slots} slots of a billion records", records=len(keys), slots=slots, bytes_per_record=used,
                  move_seconds=seconds, moved_per_second=len(keys) / seconds)


# --- the whole ---

PARTS = {"cluster": run_cluster, "slots": run_slots}


def about(args):
    with Node() as node:
        server = node.ask("INFO", "server")
    return {"date": time.strftime("%Y-%m-%d"), "machine": f"{os.cpu_count()} cores of {platform.machine()}",
            "load_average": os.getloadavg()[2], "records": args.records,
            "command": f"make test-fleet N={args.records}" + (f" DATA={os.path.basename(args.data)}" if args.data else ""),
            "server": f"{server.get('server_name', 'redis')} {server.get('valkey_version', server['redis_version'])}",
            "data": os.path.basename(args.data) if args.data else "generated texts"}


def keep(path, part, found):
    """Parts that are not measured stay as they are."""
    kept = {}
    if os.path.exists(path):
        with open(path) as f:
            kept = json.load(f)
    with open(path, "w") as f:
        json.dump({**kept, part: found}, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--data", help="values, one a line")
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--json")
    args = parser.parse_args()
    values = lines(args.data) if args.data else texts(20_000)
    for part in args.parts.split(","):
        found = {"about": about(args)}
        found.update({name: PARTS[part](STORES[name], values, args.records) for name in args.stores.split(",")})
        if args.json:
            keep(args.json, part, found)


if __name__ == "__main__":
    main()
