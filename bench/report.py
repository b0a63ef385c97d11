"""Tables of what was measured, from the JSON that the verbs of compare.py write: for a terminal, for the generated parts of
docs/results.md and for the README. A part of a page stands between <!-- name:begin --> and <!-- name:end -->; a further one
needs one function here and its pair of markers there."""

import json
import os
import re
import statistics

from caches_report import caches, caches_for_readme
from peers import KINDS, PUBLISHED, against_published, most_first, names, used_memory, verdict, versions
from server import ROOT, Failed
from tables import cell, table

PAGE = os.path.join(ROOT, "docs", "results.md")
README = os.path.join(ROOT, "README.md")
RESULTS = os.path.join(ROOT, "bench", "results")


def result(name):
    with open(os.path.join(RESULTS, f"{name}.json")) as f:
        return json.load(f)


def kept(path, otherwise):
    """What was kept there before."""
    if not os.path.exists(path):
        return otherwise
    with open(path) as f:
        return json.load(f)


def keep(path, found):
    if path:
        with open(path, "w") as f:
            json.dump(found, f, indent=1)
            f.write("\n")


def show(text):
    """Markdown for a terminal: columns stand below each other, and pictures are left out."""
    for block in re.split(r"((?:^\|.*\n?)+)", text, flags=re.M):
        if not block.startswith("|"):
            print(re.sub(r"^!\[.*\n+", "", block, flags=re.M), end="")
            continue
        rows = [[re.sub("[*`]", "", text).strip() for text in line[1:-1].split("|")] for line in block.splitlines()
                if not line.startswith("|---")]
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            print("  ".join([row[0].ljust(widths[0])] + [text.rjust(n) for text, n in zip(row[1:], widths[1:])]))
    print()


def stem(name):
    return name.rsplit(".", 1)[0]


# ---- the demo --------------------------------------------------------------------------------------------


# What, field, how to print it, whether more is better.
DEMO_ROWS = [
    ("bytes per record (used_memory)", "used_memory_per_record", ",.1f", False),
    ("bytes per record (RSS)", "rss_per_record", ",.1f", False),
    ("records loaded per second", "load_per_second", ",.0f", True),
    ("records read per second", "read_per_second", ",.0f", True),
    ("seconds to save (SAVE)", "save_seconds", ",.3f", False),
    ("seconds to load the file", "start_seconds", ",.3f", False),
    ("seconds to save and load", "both_seconds", ",.3f", False),
    ("size of the file, MB", "file_megabytes", ",.1f", False),
    ("seconds for CKV TRAIN and CKV OPTIMIZE", "optimize_seconds", ",.1f", False),
]


def demo(report):
    lines = [f"{report['records']:,} records: key `KEY:<n>`, a value of {report['raw_bytes_per_value']:.0f} bytes on average "
             f"({report['data']}, {report['different_values']:,} different ones), `EX {report['ttl']}`; {report['server']}, "
             f"{report['date']}, {report['machine']}.", "", "| | `SET` | `CSET` | `CSET` against `SET` |", "|---|---:|---:|---|"]
    for what, field, form, more_is_better in DEMO_ROWS:
        a, b = ({**r, "file_megabytes": r["file_bytes"] / 1e6}.get(field) for r in map(report["results"].get, ("SET", "CSET")))
        ratio = ""
        if a and more_is_better:
            ratio = f"{b / a:.2f} of the speed"
        elif a is not None and b > 0 and not more_is_better:
            ratio = f"{a / b:.1f} times less" if a >= b else f"{b / a:.1f} times more"
        lines.append(f"| {what} | {cell(a, form)} | {cell(b, form)} | {ratio} |")
    return "\n".join(lines)


# ---- stores side by side ---------------------------------------------------------------------------------


def source(report, what="records"):
    return (f"`{report['command']}`, {report['date']}, {report['machine']}; {'; '.join(report['servers'])}; "
            f"{report['records']:,} {what}, {report['seconds']:.0f} s.")


def by_data(report):
    found = {}
    for row in report["rows"]:
        found.setdefault(row["data"], {})[row["store"]] = row
    return found


def unseen(data):
    """Files have fewer lines than the records stored, and a dictionary that has seen a value stores it in less.
    What values cost that were kept from the training, by the codec's benchmark; where even that, without key
    and expiry, is no less than the published figure."""
    held_out = {stem(row["name"]): row["best"]["bytes"] for row in result("codec")}
    behind = [f"{name} ({held_out[name]:.1f} bytes for the value alone, published {PUBLISHED[name]})"
              for name in data if name in PUBLISHED and held_out[name] >= PUBLISHED[name]]
    text = ("Most of these files have fewer lines than there are records here and are gone through again, which "
            "flatters ckv: its dictionaries have seen the values. [The codec alone](#the-codec-alone) is measured on "
            "values kept from the training.")
    return text + (f" **By that measure it is behind the published figure on {'; '.join(behind)}.**" if behind else "")


def slower(data):
    """What ckv does at a lower rate than strings in the same run."""
    loads = {name: rows["ckv"]["load_per_second"] / rows["strings"]["load_per_second"] for name, rows in data.items()}
    groups = {"loading (of the rate: {})": loads,
              "large objects stored one at a time (by clients: {})": latency_ratios(result("latency"))}
    behind = [text.format(", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < 1))
              for text, ratios in groups.items() if min(ratios.values()) < 1]
    return f"**It is slower than strings at {'; '.join(behind)}.**" if behind else "It loads and stores no slower than strings."


def head(report):
    """The page's first paragraph."""
    data, used = by_data(report), used_memory(report["rows"])
    return " ".join([verdict(used), against_published(used), slower(data), unseen(data)])


def cache(report):
    data = by_data(report)
    stores = list(next(iter(data.values())))
    sizes, files, rates = [], [], []
    for name, rows in data.items():
        used = [rows[s]["bytes"]["used_memory"] for s in stores]
        sizes.append([name, *used, str(PUBLISHED.get(name, "")), used[stores.index("ckv")]])
        rates.append([name] + [rows[s]["load_per_second"] for s in stores])
        pairs = [(rows["strings"][f], rows["ckv"][f]) for f in ("save_seconds", "file_load_seconds", "restart_seconds")]
        files.append([name] + [n for pair in pairs for n in pair]
                     + [" / ".join(f"{theirs / ours:.1f}" for theirs, ours in pairs if ours > 0)])
    return "\n\n".join([
        source(report), "![RAM in per cent of strings'](cache.png)",
        "Bytes per record by used_memory (memcached: items and hash table as its `stats` count them), expiry included "
        "except in hashes, whose fields have none. Published: Memcarrot's own figures for data of the same name, "
        "not measured here, on other records than these. At small numbers of records ckv's dictionaries weigh most. "
        "GB per billion is the figure extrapolated as it is.",
        table({"data": "", **dict.fromkeys(stores, ".1f"), "published": "", "ckv, GB per billion": ".0f"}, sizes),
        "Records loaded per second, 50 in a pipeline (memcached: one by one, its client waits for each answer):",
        table({"data": "", **dict.fromkeys(stores, ",.0f")}, rates),
        "Snapshots, seconds; the last column is how many times faster to save / load / restart. A restart is the "
        "time until the server answers, the start of the process included.",
        table({"data": "", **dict.fromkeys(["save strings", "save ckv", "load strings", "load ckv", "restart strings",
                                            "restart ckv"], ".3f"), "times": ""}, files)])


def published(report):
    """For the README: what is published, and what was measured on data of the same name."""
    used = used_memory(report["rows"])
    rows = [[data, used[data, "strings"], n, f"**{used[data, 'ckv']:.1f}**"] for (data, store), n in used.items() if store == "published"]
    return "\n\n".join([
        f"What Memcarrot's authors publish for data of these names (not the same records, and not measured here), and ckv's bytes a record "
        f"(used_memory; {report['records']:,} records of each, {report['date']}). {against_published(used)}",
        table({"data": "", "strings": ",.1f", "Memcarrot, published": "", "ckv": ""}, rows)])


def about_choice(report):
    """What is stored: whoever looks at a picture first asks that."""
    bytes_of = {row["data"]: row["value_bytes"] for row in report["rows"]}
    servers = ", ".join(f"{product} {version}" for product, version in versions(report).items())
    return (f"{report['records']:,} records of each kind with `EX 86400`, growth of used_memory, {servers}, {report['date']}. Tweets: tweets.txt "
            f"under `KEY:<n>`, gone through again, so that ckv's dictionaries have seen some. Sessions, each another: JSON of {bytes_of['sessions']:.0f} bytes on average as the session stores of web frameworks keep it, "
            "generated (`bench/generated.py`), under UUIDs. Id pairs: a random number of up to 12 digits under `KEY:<n>`, generated. Hashes are "
            "buckets of a thousand records or fewer, and their fields have no expiry. What is published was not measured here.")


def choice(report):
    used, called = used_memory(report["rows"]), names(report)
    kinds = list(dict.fromkeys(data for data, _ in used))
    rows = [[called[store].replace("\n", " "), *(used.get((kind, store)) for kind in kinds)] for store in most_first(used)]
    return "\n\n".join([f"{source(report)} {verdict(used)}", "![bytes a record](choice.png)", about_choice(report),
                        table({"bytes a record": "", **{KINDS[kind]: ",.1f" for kind in kinds}}, rows)])


def choice_in_short(report):
    return "![Bytes of RAM a record: tweets, sessions, id pairs](docs/choice.png)\n\n" + about_choice(report)


def latency_ratios(report):
    """ckv's rate against strings', by the number of clients."""
    speed = {(r["clients"], r["store"]): r["per_second"] for r in report["rows"]}
    return {n: rate / speed[n, "strings"] for (n, store), rate in speed.items() if store == "ckv"}


def latency(report):
    ratios = ", ".join(f"{ratio:.2f}" for ratio in latency_ratios(report).values())
    rows = [[r["clients"], r["store"], r["per_second"]] + [r["us"][p] / 1000 for p in ("median", "p95", "p99")]
            for r in report["rows"]]
    return "\n\n".join([source(report) + f" ckv's stores/s against strings', by clients: {ratios}.",
                        "![stores per second](latency.png)",
                        table({"clients": "", "store": "", "stores/s": ",.0f", "median ms": ".3f", "p95 ms": ".3f",
                               "p99 ms": ".3f"}, rows)])


def uuid(report):
    rows = [[r["store"], r["bucket"], r["bytes"]["used_memory"] / 1000, r["bytes"]["rss"] / 1000, r["load_per_second"]]
            for r in report["rows"]]
    return "\n\n".join([source(report), "![GB per million](uuid.png)",
                        table({"store": "", "characters of the hash's key": "", "GB per million (used_memory)": ".4f",
                               "GB per million (RSS)": ".4f", "records loaded per second": ",.0f"}, rows)])


def fans(report):
    rows = [[r["store"], r["transport"], r["seconds"], r["per_second"], r["bytes"] / 1e6 if "bytes" in r else None]
            for r in report["rows"]]
    return "\n\n".join([source(report, "profiles"),
                        f"{report['rows'][0]['pairs']:,} pairs of pages, a read and a write each; the rows at the end were the same "
                        "in all stores that keep any.", "![seconds](fans.png)",
                        table({"store": "", "over": "", "seconds": ".1f", "pairs per second": ",.0f", "MB of rows": ".2f"}, rows)])


# ---- transparent mode ------------------------------------------------------------------------------------


def transparent(report):
    """Times are the main thread's: rates depend on what else the machine does."""
    rows = []
    for depth, commands in report["speed"].items():
        for command, servers in commands.items():
            base, *others = (m["cpu_us"] for m in servers.values())
            rows.append([command, depth, base] + [ratio(base, cpu) for cpu in others])
    names = list(next(iter(next(iter(report["speed"].values())).values())))
    used = {verb: m["used_memory"] for verb, m in report["memory"].items()}
    return "\n\n".join([
        source(report),
        f"Bytes per record (used_memory) of values of {report['data']}: {used['CSET']:.1f} by CSET, {used['SET']:.1f} by SET with "
        f"prefixes `*`, {used['SET'] / used['CSET'] - 1:+.1%}.",
        f"CPU time of the server's main thread per command {names[0]}, and how much of that speed is left:",
        table({"command": "", "pipeline": "", "CPU us": ".2f", **dict.fromkeys(names[1:], ".2f")}, rows)])


def long_values(report):
    """Of a file: what of a string's speed is left, by the main thread's time."""
    rows = []
    for name, depths in report["files"].items():
        for depth, servers in depths.items():
            strings, ckv = servers["strings"], servers["ckv"]
            rows.append([name, depth] + [text for what in strings for text in (strings[what], ratio(strings[what], ckv[what]))])
    heads = [(head, form) for what in strings for head, form in ((f"{what}: us as a string", ".1f"), ("speed left", ".2f"))]
    return "\n\n".join([source(report), table([("data", ""), ("pipeline", ""), *heads], rows)])


def sustained(report):
    """Of a file: what is written for minutes, what threads take for it, and memory."""
    rows = []
    for name, row in report["files"].items():
        early, late, mean = row["early"], row["late"], row["mean"] / 1e6
        encoded = late["young_encoded"] + late["encoded_at_once"]
        rows.append([name, row["mean"], row["strings"], early["written"], late["written"], late["written"] * mean, late["young_encoded"] * mean,
                     f"{late['encoded_at_once'] / encoded:.0%}" if encoded else "", late["main"], late["all"] - late["main"],
                     row["settled"], row["young_limit"] / 2**20, f"{row['above']:+.1%}"])
    return "\n\n".join([source(report), table(
        {"data": "", "bytes a value": ",.0f", "strings: records/s": ",.0f", "first second: records/s": ",.0f", "later: records/s": ",.0f",
         "MB/s": ".0f", "of these by the encoder: MB/s": ".0f", "encoded at once": "", "main thread, cores": ".2f",
         "other threads, cores": ".2f", "settled, bytes a record": ".1f", "young memory, MB": ",.0f",
         "used above settled and young": ""}, rows)])


def moving(report):
    """p99.9: the median of runs of some seconds, and the worst."""
    def latency(what, runs, against=None):
        runs, middle = sorted(runs), statistics.median(runs)
        ratio = middle / statistics.median(against) if against else None
        return [what, len(runs), middle, runs[-1], ratio]

    both = [report[way] for way in ("in", "out")]
    ways = [[f"moving {name}", way["moved"], way["seconds"], way["moved"] / max(way["seconds"], 1)]
            for name, way in zip(("in", "out"), both)]
    memory = [float(m) / 2**20 for m in report["memory"].values()]
    return "\n\n".join([
        source(report),
        f"Strings, every second request a SET, each reply compared. used_memory: at most {max(memory):,.0f} MB, at least {min(memory):,.0f} MB.",
        table({"": "", "strings moved by the walk": ",", "s": ",", "a second": ",.0f"}, ways),
        table({"us": "", "runs of 10 s": "", "p99.9": ".0f", "worst run": ".0f", "against the same without": ".2f"},
              [latency("strings", report["before"]), latency("while they move in", report["in"]["p999_us"], report["before"]),
               latency("strings in ckv", report["within"]), latency("while they move out", report["out"]["p999_us"], report["after"]),
               latency("strings again", report["after"])]),
        "![used_memory over time](moving.png)"])


# ---- ckv-estimate ----------------------------------------------------------------------------------------


def estimate(report):
    def off(estimated, measured):
        return f"{estimated / measured - 1:+.1%}"

    rows = [[row["data"], row["now"], off(row["bytes_now"], row["now"]), row["then"], row["bytes_with_ckv"],
             off(row["bytes_with_ckv"], row["then"]), f"{row['low']:.1f} to {row['high']:.1f}", row["sampled"], row["few"]["sampled"],
             off(row["few"]["bytes_with_ckv"], row["then"]), row["few"]["seconds"], row["few"]["cpu_seconds"]]
            for row in report["rows"]]
    return source(report) + "\n\n" + table(
        [("data", ""), ("strings", ",.1f"), ("off", ""), ("ckv", ",.1f"), ("estimated", ",.1f"), ("off", ""), ("interval", ""),
         ("values read", ","), ("fewer", ","), ("off", ""), ("s", ".0f"), ("s of CPU", ".0f")], rows)


# ---- cache duty ------------------------------------------------------------------------------------------


def expiry(e):
    return (f"{e['records']:,} records with TTLs of 1-60 s, written in {e['seconds']} s. At most {e['worst_expired_share']:.1%} of "
            f"the stored ones had expired; {e['returned_expired']} expired ones were returned. When all were gone the server took "
            f"{e['bytes_after']:,} bytes, {e['bytes_after'] / e['empty_bytes'] - 1:+.1%} of what it took empty. "
            f"Active expiry took {e['expire_seconds']:.0f} s of CPU.\n\n"
            + table({"after s": ".0f", "stored": ",", "expired": ".1%"}, e["samples"][2::3]))


def hits(h):
    rows = [[run["alpha"], run["policy"], run["strings"], run["strings_records"], run["ckv"], run["ckv_records"],
             run["ckv_equal"], run["exact_lru"], run["ckv_equal_records"]] for run in h["runs"]]
    return (f"Hit rates: reads of {h['keys']:,} keys by Zipf's law, what is missing is written back; maxmemory "
            f"{h['maxmemory'] >> 20} MB, which holds a tenth of the keys as strings. Then ckv in less memory, so that it holds about "
            "as many records as strings did, beside an exact LRU list of as many. (With alpha 1.1 all that is ever read fits.)\n\n"
            + table([("alpha", ""), ("policy", ""), ("strings", ".2%"), ("records", ","), ("ckv", ".2%"), ("records", ","),
                     ("ckv in less", ".2%"), ("exact LRU", ".2%"), ("records", ",")], rows))


def limit(runs):
    rows = [[r["policy"] + (" with strings" if r["others"] else ""), r["writes"], r["highest"], r["evicted_by_server"],
             r["kept_records"], r["kept_strings"]] for r in runs]
    return ("Writes of mixed sizes at maxmemory, and how much of what was written is left:\n\n"
            + table({"policy": "", "writes": ",", "most used_memory / maxmemory": ".1%", "keys evicted by the server": "",
                     "records left": ".1%", "strings left": ".1%"}, rows))


def cache_duty(report):
    about = report["about"]
    return "\n\n".join([f"`{about['command']}`, {about['date']}; values of {about['data']}."] + parts(report, CACHE_DUTY))


# ---- scale -----------------------------------------------------------------------------------------------


def told(part):
    return f"{part['records']:,} records"


def density(rows_by_file):
    def line(records, ours, strings):
        return [records, ours["used_memory"], ours["rss"], int(ours["info"]["ckv_page_bytes"]) / records,
                int(ours["info"]["ckv_dictionary_bytes"]) / records, ours["per_second"], strings["used_memory"]]

    return "\n\n".join(table({f"{name}: records": ",", "used_memory": ".2f", "RSS": ".2f", "in pages": ".2f",
                              "dictionaries": ".2f", "loaded per second": ",.0f", "SET used_memory": ".2f"},
                             [line(row["records"], row["ckv"], row["strings"]) for row in rows])
                       for name, rows in rows_by_file.items())


def pairs(part):
    return table({f"pairs, {told(part)}": "", "used_memory": ".2f", "RSS": ".2f"},
                 [[what, r["used_memory"], r["rss"]] for what, r in part["figures"].items()])


def ratio(a, b):
    """None of what was too short to be measured."""
    return a / b if b else None


def speed(part):
    rows = []
    for depth, verbs in part["figures"].items():
        for verb, m in verbs.items():
            native = verbs[verb.removeprefix("C")]
            rows.append([verb, depth, m["per_second"], m["cpu_us"], m["p999_ms"], m["per_second"] / native["per_second"],
                         ratio(native["cpu_us"], m["cpu_us"]), ratio(m["p999_ms"], native["p999_ms"])])
    return table({f"speed, {told(part)}": "", "pipeline": "", "requests/s": ",.0f", "CPU us": ".2f", "p99.9 ms": ".2f",
                  "ratio of requests/s": ".2f", "ratio of CPU": ".2f", "ratio of p99.9": ".2f"}, rows)


def pause(part):
    rounds = [(verb, r) for verb, rounds in part["figures"].items() for r in rounds]
    bounds = sorted({bound for _, r in rounds for bound in r["histogram"]}, key=float)
    rows = [[verb, r["own_worst_ms"], r["worst_ms"]] + [r["histogram"].get(bound, 0) for bound in bounds]
            + [", ".join(f"{name} {longest} ms" for name, _, _, longest, *_ in r["latency"]), r["stolen_seconds"]]
            for verb, r in rounds]
    names = ["longer" if float(bound) > 1e6 else f"to {float(bound):g} ms" for bound in bounds]
    return table({f"PINGs during a load, {told(part)}": "", "longest ms with nothing stolen": ".1f", "longest ms": ".1f",
                  **dict.fromkeys(names, ""), "LATENCY LATEST, the longest": "", "s stolen by the host": ".1f"}, rows)


def churn(part):
    r = part["figures"]
    return table({"churn: bytes per record left": ".2f", "freshly loaded": ".2f", "difference": "+.1%"},
                 [[r["churned"], r["fresh"], r["churned"] / r["fresh"] - 1]])


def files(part):
    figures = part["figures"]
    both = {verb: r["save"] + r["load"] for verb, r in figures.items()}
    rows = [[verb, r["save"], r["load"], both[verb], r["bytes"] / 1e6, r["bytes"] / r["used_memory"]]
            for verb, r in figures.items()]
    text = table({f"files, {told(part)}": "", "SAVE s": ".2f", "load s": ".2f", "both s": ".2f", "file MB": ".1f",
                  "file / used_memory": ".2f"}, rows)
    spent = figures["CSET"]["save_spent"]
    return (f"{text}\n\nSaving and loading: **{both['SET'] / both['CSET']:.1f} times** faster."
            f" Of ckv's SAVE, {spent['user']:.2f} s are the processor's in the server (walking pages, and the file's "
            f"CRC64: without that, `rdbchecksum no`, the whole takes {spent['unchecked']:.2f} s), {spent['system']:.2f} s "
            f"the kernel's (writing), the rest waiting for the disk. Loading reads, checks each page and copies it.")


def drift(part):
    return table({f"{told(part)} of each": "", "alone": ".2f", "together": ".2f", "difference": "+.1%"},
                 [[kind, r["alone"], r["together"], r["together"] / r["alone"] - 1] for kind, r in part["figures"].items()])


def scale(report):
    run = report["run"]
    return "\n\n".join([f"`make bench-scale`, last on {run['date']}, {run['cores']} cores; CKV TRAIN and CKV OPTIMIZE after each load.",
                        "![bytes per record](scale.png)"] + parts(report, [part for part in SCALE if part != "drift"]))


def kinds(report):
    return drift(report["drift"])


# ---- what runs without a server --------------------------------------------------------------------------


def layout(report):
    key = report["tag"] + report["stems_and_keys"]
    overhead = {"free space in pages": report["free"], "length of the value": report["length"],
                "dictionaries": report["dictionaries"], "directories of the maps": report["directories"],
                "page headers": report["page_headers"], "tags and lengths of groups": report["groups"]}
    total = report["pages"] + report["directories"] + report["dictionaries"]
    rows = [["encoded value", report["value"]], ["expiry", report["expiry"]],
            ["encoded key: one byte of suffix, and the share of a group's stem", key],
            ["**overhead**", f"**{sum(overhead.values()):.2f}**"]]
    rows += [[f"of it {what}", n] for what, n in sorted(overhead.items(), key=lambda item: -item[1])]
    return (f"How the {total:.1f} bytes of a record of {report['data']} with `KEY:<n>` and `EX 86400` at {report['records']:,} records are "
            "made up, by `make bench-layout`, which adds up what every byte of every page is for. (What the server itself "
            "grows by is the difference to `used_memory` above.)\n\n" + table({"": "", "bytes": ".2f"}, rows))


def codec(report):
    rows = []
    for r in report:
        phrase, zstd, training = r["phrase"], r["zstd"], r["phrase_training"]
        fast = r.get("phrase_fast", phrase)  # keys know no other way
        rows.append([stem(r["name"]), r["raw"], zstd["bytes"], r["zstd_pages"]["bytes"] if "zstd_pages" in r else None,
                     fast["bytes"], phrase["bytes"], f"**{r['best']['bytes']:.2f}**", training.get("kinds", 1), training["table_bytes"] / 1024,
                     training["seconds"], f"{fast['encode_mb_s']:.0f}, {phrase['encode_mb_s']:.0f} ({zstd['encode_mb_s']:.0f})",
                     f"{phrase['decode_mb_s']:.0f} ({zstd['decode_mb_s']:.0f})"])
    return table({"data": "", "raw": ".1f", "zstd, one record": ".2f", "zstd, 8 KB pages": ".2f", "phrases, fast": ".2f",
                  "phrases, cheapest": ".2f", "best of both": "", "kinds": "", "tables KB": ".0f", "training s": ".2f",
                  "encode MB/s: fast, cheapest (zstd)": "", "decode MB/s (zstd)": ""}, rows)


# ---- pages -----------------------------------------------------------------------------------------------


SCALE = {"density": density, "pairs": pairs, "speed": speed, "pause": pause, "churn": churn, "files": files, "drift": drift}
CACHE_DUTY = {"expiry": expiry, "hits": hits, "limit": limit}


def parts(report, names):
    """Those of a report of several parts."""
    return [{**SCALE, **CACHE_DUTY}[name](report[name]) for name in names]


# The part's name: the JSON file it is made of, and how.
PARTS = {"head": ("cache", head), "choice": ("choice", choice), "cache": ("cache", cache), "latency": ("latency", latency), "uuid": ("uuid", uuid),
         "fans": ("fans", fans), "transparent": ("transparent", transparent), "moving": ("moving", moving),
         "long_values": ("long_values", long_values), "sustained": ("sustained", sustained),
         "estimate": ("estimate", estimate), "cache_duty": ("cache_duty", cache_duty), "caches": ("caches", caches),
         "codec": ("codec", codec),
         "scale": ("scale", scale), "kinds": ("scale", kinds), "layout": ("layout", layout)}
# The README's; the demo writes its own.
README_PARTS = {"choice": ("choice", choice_in_short), "published": ("cache", published), "caches": ("caches", caches_for_readme)}


def measured(name):
    """Whether a verb has been run: what it tells stands as it is until then."""
    return os.path.exists(os.path.join(RESULTS, f"{name}.json"))


def generated(page, parts=PARTS):
    """The page with all of its parts made anew."""
    return replaced(page, {name: render(result(of)) for name, (of, render) in parts.items() if measured(of)})


def in_short(readme):
    return generated(readme, README_PARTS)


def replaced(page, texts):
    for name, text in texts.items():
        page, count = re.subn(f"(<!-- {name}:begin[^>]*-->\n).*?(<!-- {name}:end -->)",
                              lambda m: m.group(1) + text + "\n" + m.group(2), page, flags=re.S)
        if count != 1:
            raise Failed(f"there are no markers <!-- {name}:begin --> and <!-- {name}:end -->")
    return page


def rewrite(path, change):
    with open(path) as f:
        page = change(f.read())
    with open(path, "w") as f:
        f.write(page)
