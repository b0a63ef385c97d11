"""How many machines records take, and how long what operators do takes, worked out from what was measured on one: files and
loading by `scale`, slots and failovers by `make test-fleet`. Nothing is measured here."""

import math
import os

from report import replaced, result, table
from server import ROOT

PAGE = os.path.join(ROOT, "docs", "operations.md")

BILLIONS = (1, 10, 100)
NODE_BYTES = 64 << 30
# The rest is for what a snapshot copies under writes, for replicas' buffers and the system.
DATA_SHARE = 0.6
LINK_BYTES = 10e9 / 8  # a second
FEWEST_PRIMARIES = 3   # that agree about a failover

VERBS = {"strings": "SET", "ckv": "CSET"}


def measured(store):
    """Seconds and bytes of one record, and the seconds of a failover."""
    scale, cluster = result("scale"), result("cluster")
    files = scale["files"]
    saved = {what: value / files["records"] for what, value in files["figures"][VERBS[store]].items() if what != "save_spent"}
    row = max(scale["density"]["tweets.txt"], key=lambda row: (row["records"] == files["records"], row["records"]))
    slots = cluster["slots"][store]
    return {"memory": slots["bytes_per_record"], "fill": 1 / row[store]["per_second"], "save": saved["save"], "load": saved["load"],
            "file": saved["bytes"], "move": slots["move_seconds"] / slots["records"],
            "failover": cluster["cluster"][store]["killed"]["seconds"]}


def plan(store, records):
    one = measured(store)
    primaries = max(FEWEST_PRIMARIES, math.ceil(records * one["memory"] / (NODE_BYTES * DATA_SHARE)))
    here = records / primaries
    return {"primaries": primaries, "memory": records * one["memory"], "node": here * one["memory"], "failover": one["failover"],
            # A primary sends its snapshot while it is made; the replica loads it when it has all of it.
            "sync": max(here * one["save"], here * one["file"] / LINK_BYTES) + here * one["load"],
            **{what: here * one[what] for what in ("fill", "save", "load", "move")}}


def duration(seconds):
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def fleet():
    rows = []
    for billions in BILLIONS:
        for store in VERBS:
            found = plan(store, billions * 1_000_000_000)
            times = [duration(found[what]) for what in ("fill", "save", "load", "sync", "move", "failover")]
            rows.append([f"{billions} billion", store, found["primaries"], found["memory"] / 1e9, found["node"] / 1e9, *times])
    return "\n\n".join([
        table({"records": "", "store": "", "primaries": "", "GB in all": ",.0f", "GB a primary": ".1f", "fill": "", "save": "",
               "load": "", "sync a replica": "", "move its slots": "", "fail over": ""}, rows),
        sources()])


def run(about):
    return (f"`{about['command']}`, {about['server']}, {about['machine']} at a load of {about['load_average']:.0f}, {about['date']}")


def sources():
    """Each figure of a record, and where it comes from."""
    scale, cluster = result("scale"), result("cluster")
    files, slots = scale["files"], cluster["slots"]
    ours, theirs = measured("ckv"), measured("strings")
    by_scale = f"`make bench-scale`, {files['records']:,} records of tweets.txt, {scale['run']['date']}"
    by_slots = f"{slots['ckv']['slots']} slots as large as those of a billion records of {slots['about']['data']}: {run(slots['about'])}"
    by_cluster = f"12 nodes, `cluster-node-timeout` 15 s: {run(cluster['cluster']['about'])}"
    rows = [["bytes in memory", theirs["memory"], ours["memory"], by_slots], ["bytes in a file", theirs["file"], ours["file"], by_scale]]
    for name, what, where in (("us to fill, from one machine", "fill", by_scale), ("us to save", "save", by_scale),
                              ("us to load", "load", by_scale), ("us to move by redis-cli", "move", by_slots)):
        rows.append([name, theirs[what] * 1e6, ours[what] * 1e6, where])
    rows.append(["s of a failover", theirs["failover"], ours["failover"], by_cluster])
    return table({"measured, of one record": "", "strings": ".2f", "ckv": ".2f", "by": ""}, rows)


def generated(page):
    """The page with its part made anew."""
    return replaced(page, {"fleet": fleet()})
