#!/usr/bin/env python3
"""Writes the generated parts of docs/results.md and its plots from the JSON files in bench/results that PARTS names.

A part stands between <!-- name:begin --> and <!-- name:end -->. A further part needs one function and its pair of
markers in the page."""

import json
import os
import re
import sys

import plots
import report_scale
from markdown import table
from server import ROOT, Failed

PAGE = os.path.join(ROOT, "docs", "results.md")
RESULTS = os.path.join(ROOT, "bench", "results")

# Bytes per record that Memcarrot's authors publish for data sets of these names. Theirs are not the files
# measured here: what they hold is of the same kind, the records and their number differ.
PUBLISHED = {"airbnb": 419, "amazon_product_reviews": 222, "arxiv": 540, "dblp": 124, "github": 75, "ohio": 41.6,
             "reddit": 333, "spotify_charts": 100, "twitter": 540, "tweets": 51.1}


def source(report, what="records"):
    return (f"`{report['command']}`, {report['date']}, {report['machine']}; {'; '.join(report['servers'])}; "
            f"{report['records']:,} {what}, {report['seconds']:.0f} s.")


def by_data(report):
    found = {}
    for row in report["rows"]:
        found.setdefault(row["data"], {})[row["store"]] = row
    return found


def verdict(data):
    """Where ckv is not ahead, from the figures."""
    behind = []
    for name, stores in data.items():
        ours = stores["ckv"]["bytes"]["used_memory"]
        peers = {store: row["bytes"]["used_memory"] for store, row in stores.items() if store != "ckv"}
        if name in PUBLISHED:
            peers["the published figure"] = PUBLISHED[name]
        behind += [f"{name} ({ours:.1f} bytes, {peer} {b:.1f})" for peer, b in peers.items() if b <= ours]
    if behind:
        return "**ckv is not ahead in bytes per record on: " + "; ".join(behind) + ".**"
    return f"ckv takes the fewest bytes per record on each of the {len(data)} data sets measured."


def unseen(data):
    """Files have fewer lines than the records stored, and a dictionary that has seen a value stores it in less.
    What values cost that were kept from the training, by the codec's benchmark; where even that, without key
    and expiry, is no less than the published figure."""
    with open(os.path.join(RESULTS, "codec.json")) as f:
        held_out = {os.path.splitext(row["name"])[0]: row["best"]["bytes"] for row in json.load(f)}
    behind = [f"{name} ({held_out[name]:.1f} bytes for the value alone, published {PUBLISHED[name]})"
              for name in data if name in PUBLISHED and held_out[name] >= PUBLISHED[name]]
    text = ("Most of these files have fewer lines than there are records here and are gone through again, which "
            "flatters ckv: its dictionaries have seen the values. [The codec alone](#the-codec-alone) is measured on "
            "values kept from the training.")
    return text + (f" **By that measure it is behind the published figure on {'; '.join(behind)}.**" if behind else "")


def slower(data):
    """What ckv does at a lower rate than strings in the same run."""
    loads = {name: rows["ckv"]["load_per_second"] / rows["strings"]["load_per_second"] for name, rows in data.items()}
    with open(os.path.join(RESULTS, "latency.json")) as f:
        writes = latency_ratios(json.load(f))
    groups = {"loading (of the rate: {})": loads, "large objects stored one at a time (by clients: {})": writes}
    behind = [text.format(", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < 1))
              for text, ratios in groups.items() if min(ratios.values()) < 1]
    return f"**It is slower than strings at {'; '.join(behind)}.**" if behind else "It loads and stores no slower than strings."


def head(report):
    """The page's first paragraph."""
    data = by_data(report)
    return " ".join([verdict(data), slower(data), unseen(data)])


def cache(report):
    data = by_data(report)
    stores = list(next(iter(data.values())))
    plots.bars("cache", list(data), {store: [rows[store]["bytes"]["used_memory"] for rows in data.values()]
                                    for store in stores}, "bytes per record")
    sizes, files, rates = [], [], []
    for name, rows in data.items():
        used = {store: row["bytes"]["used_memory"] for store, row in rows.items()}
        sizes.append([name] + [f"{used[s]:.1f}" for s in stores]
                     + [f"{PUBLISHED[name]}" if name in PUBLISHED else "", f"{used['ckv']:.0f}"])
        rates.append([name] + [f"{rows[s]['load_per_second']:,.0f}" for s in stores])
        ours, theirs = rows["ckv"], rows["strings"]
        ratios = [theirs[f] / ours[f] for f in ("save_seconds", "file_load_seconds", "restart_seconds")
                  if ours[f] > 0]
        files.append([name] + [f"{r[f]:.3f}" for f in ("save_seconds", "file_load_seconds", "restart_seconds")
                               for r in (theirs, ours)]
                     + [" / ".join(f"{ratio:.1f}" for ratio in ratios)])
    return "\n\n".join([
        source(report), "![bytes per record](cache.png)",
        "Bytes per record by used_memory (memcached: items and hash table as its `stats` count them), expiry included "
        "except in hashes, whose fields have none. Published: Memcarrot's own figures for data of the same name, "
        "not measured here, on other records than these. At small numbers of records ckv's dictionaries weigh most. "
        "GB per billion is the figure extrapolated as it is.",
        table(["data"] + stores + ["published", "ckv, GB per billion"], sizes),
        "Records loaded per second, 50 in a pipeline (memcached: one by one, its client waits for each answer):",
        table(["data"] + stores, rates),
        "Snapshots, seconds; the last column is how many times faster to save / load / restart. A restart is the "
        "time until the server answers, the start of the process included.",
        table(["data", "save strings", "save ckv", "load strings", "load ckv", "restart strings", "restart ckv",
               "times"], files)])


def latency_ratios(report):
    """ckv's rate against strings', by the number of clients."""
    speed = {(r["clients"], r["store"]): r["per_second"] for r in report["rows"]}
    return {n: rate / speed[n, "strings"] for (n, store), rate in speed.items() if store == "ckv"}


def latency(report):
    rows = [[str(r["clients"]), r["store"], f"{r['per_second']:,.0f}"]
            + [f"{r['us'][p] / 1000:.3f}" for p in ("median", "p95", "p99")] for r in report["rows"]]
    speed = {(r["clients"], r["store"]): r["per_second"] for r in report["rows"]}
    ratios = ", ".join(f"{ratio:.2f}" for ratio in latency_ratios(report).values())
    stores, clients = list(dict.fromkeys(store for _, store in speed)), list(dict.fromkeys(n for n, _ in speed))
    plots.bars("latency", [f"{n} clients" for n in clients], {store: [speed[n, store] for n in clients] for store in stores},
              "objects stored per second")
    return "\n\n".join([source(report) + f" ckv's stores/s against strings', by clients: {ratios}.",
                        "![stores per second](latency.png)",
                        table(["clients", "store", "stores/s", "median ms", "p95 ms", "p99 ms"], rows)])


def uuid(report):
    rows = [[r["store"], str(r["bucket"] or ""), f"{r['bytes']['used_memory'] / 1000:.4f}",
             f"{r['bytes']['rss'] / 1000:.4f}", f"{r['load_per_second']:,.0f}"] for r in report["rows"]]
    plots.bars("uuid", [f"{r['store']} {r['bucket'] or ''}" for r in report["rows"]],
              {what: [r["bytes"][what] / 1000 for r in report["rows"]] for what in ("used_memory", "rss")},
              "GB per million records")
    return source(report) + "\n\n![GB per million](uuid.png)\n\n" + table(
        ["store", "characters of the hash's key", "GB per million (used_memory)", "GB per million (RSS)",
         "records loaded per second"], rows)


def fans(report):
    rows = [[r["store"], r["transport"], f"{r['seconds']:.1f}", f"{r['per_second']:,.0f}",
             f"{r['bytes'] / 1e6:.2f}" if "bytes" in r else ""] for r in report["rows"]]
    plots.bars("fans", [f"{r['store']} {r['transport']}" for r in report["rows"]],
              {"seconds": [r["seconds"] for r in report["rows"]]}, "seconds")
    return "\n\n".join([source(report, "profiles"),
                        f"{report['rows'][0]['pairs']:,} pairs of pages, a read and a write each; the rows at the end were the same "
                        "in all stores that keep any.", "![seconds](fans.png)",
                        table(["store", "over", "seconds", "pairs per second", "MB of rows"], rows)])


def cache_duty(report):
    e, h, about = report["expiry"], report["hits"], report["about"]
    samples = [[f"{second:.0f}", f"{stored:,}", f"{share:.1%}"] for second, stored, share in e["samples"][2::3]]
    hits = [[str(r["alpha"]), r["policy"], f"{r['strings']:.2%}", f"{r['strings_records']:,}", f"{r['ckv']:.2%}",
             f"{r['ckv_records']:,}", f"{r['ckv_equal']:.2%}", f"{r['exact_lru']:.2%}", f"{r['ckv_equal_records']:,}"]
            for r in h["runs"]]
    limits = [[r["policy"] + (" with strings" if r["others"] else ""), f"{r['writes']:,}", f"{r['highest']:.1%}",
               str(r["evicted_by_server"]), f"{r['kept_records']:.1%}",
               f"{r['kept_strings']:.1%}" if r["others"] else ""] for r in report["limit"]]
    return "\n\n".join([
        f"`{about['command']}`, {about['date']}; values of {about['data']}.",
        f"{e['records']:,} records with TTLs of 1-60 s, written in {e['seconds']} s. At most {e['worst_expired_share']:.1%} of "
        f"the stored ones had expired; {e['returned_expired']} expired ones were returned. When all were gone the server took "
        f"{e['bytes_after']:,} bytes, {e['bytes_after'] / e['empty_bytes'] - 1:+.1%} of what it took empty. "
        f"Active expiry took {e['expire_seconds']:.0f} s of CPU.",
        table(["after s", "stored", "expired"], samples),
        f"Hit rates: reads of {h['keys']:,} keys by Zipf's law, what is missing is written back; maxmemory "
        f"{h['maxmemory'] >> 20} MB, which holds a tenth of the keys as strings. Then ckv in less memory, so that it holds about "
        "as many records as strings did, beside an exact LRU list of as many. (With alpha 1.1 all that is ever read fits.)",
        table(["alpha", "policy", "strings", "records", "ckv", "records", "ckv in less", "exact LRU", "records"], hits),
        "Writes of mixed sizes at maxmemory, and how much of what was written is left:",
        table(["policy", "writes", "most used_memory / maxmemory", "keys evicted by the server", "records left",
               "strings left"], limits)])


# The part's name: the JSON file it is made of, and how.
PARTS = {"head": ("cache", head), "cache": ("cache", cache), "latency": ("latency", latency), "uuid": ("uuid", uuid),
         "fans": ("fans", fans), "cache_duty": ("cache_duty", cache_duty), "codec": ("codec", report_scale.codec),
         "scale": ("scale", report_scale.scale), "kinds": ("scale", report_scale.kinds),
         "layout": ("layout", report_scale.layout)}


def generated(page):
    """The page with all of its parts made anew; draws the plots as well."""
    for name, (result, render) in PARTS.items():
        with open(os.path.join(RESULTS, f"{result}.json")) as f:
            text = render(json.load(f))
        page, count = re.subn(f"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)",
                              lambda m: m.group(1) + text + "\n" + m.group(2), page, flags=re.S)
        if count != 1:
            raise Failed(f"{PAGE} has no markers <!-- {name}:begin --> and <!-- {name}:end -->")
    return page


def main():
    with open(PAGE) as f:
        page = f.read()
    page = generated(page)
    with open(PAGE, "w") as f:
        f.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
