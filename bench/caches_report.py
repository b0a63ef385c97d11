"""What is told of published caches (caches.py): by server, as rows and as means over all."""

import re
import statistics

from tables import table


def server_of(row):
    """The product and its minor version, as of `redis-server --version`."""
    return " ".join(re.match(r"(\w+) server v=(\d+\.\d+)", row["server"]).groups())


def by_server(rows):
    """The floor first, Redis 7.0, as they are sorted."""
    return {name: [row for row in rows if server_of(row) == name] for name in dict.fromkeys(map(server_of, rows))}


def floor(rows):
    return next(iter(by_server(rows).values()))


# What of a cache must not be above.
CACHE_LIMITS = {"memory_ratio": ("RAM", 0.40), "cpu_ratio": ("time", 1.10), "p999_ratio": ("p99.9", 1.2)}


def weighted(rows, field, weight=lambda row: 1):
    return sum(row[field] * weight(row) for row in rows) / sum(map(weight, rows)) if rows else float("nan")


def fleet(rows):
    """Means over the caches: by their working sets, alike, by their requests a second."""
    def requests(row):
        return row["kilo_requests_per_second"]

    asked = [row for row in rows if row["hits_strings"] is not None]
    return {"memory": weighted(rows, "memory_ratio", lambda row: row["working_set_mb"] or 0.5),
            "memory_each": weighted(rows, "memory_ratio"), "rss_each": weighted(rows, "rss_ratio"),
            "cpu": weighted(rows, "cpu_ratio", requests), "cpu_each": weighted(rows, "cpu_ratio"),
            **{hits: weighted(asked, hits, requests) for hits in ("hits_strings", "hits_ckv", "hits_strings_more")},
            "random_memory": weighted(rows, "random_memory_ratio"), "random_cpu": weighted(rows, "random_cpu_ratio", requests)}


def above(rows):
    """Caches by what they are above, the worst first."""
    lines = []
    for field, (what, limit) in CACHE_LIMITS.items():
        worst = sorted((row for row in rows if row[field] > limit), key=lambda row: -row[field])
        lines.append(f"{what} above {limit:g}: {len(worst)} of {len(rows)}"
                     + (" (" + ", ".join(f"{row['cluster']} {row[field]:.2f}" for row in worst) + ")" if worst else ""))
    lower = [row for row in rows if row["hits_strings"] is not None and row["hits_ckv"] < row["hits_strings"] - 0.0005]
    lines.append(f"hit rate below that of strings by more than 0.05%: {len(lower)}"
                 + (" (" + ", ".join(str(row["cluster"]) for row in lower) + ")" if lower else ""))
    return "; ".join(lines) + "."


def caches_for_readme(rows):
    return f"{caches_in_short(floor(rows))} ([docs/results.md](docs/results.md#fifty-three-published-caches))."


def caches_in_short(rows):
    f = fleet(rows)
    return (f"{len(rows)} workloads after the statistics that Twitter published of its caches, by plain `SET` and `GET` with "
            f"`ckv.prefixes \"*\"` and no other setting changed: **{f['memory_each']:.2f} of the RAM of strings on average, "
            f"{f['memory']:.2f} weighted by working set; {f['cpu']:.2f} of the main thread's time weighted by requests; hits at a third "
            f"of the RAM that strings would need {f['hits_ckv']:.1%}, strings {f['hits_strings']:.1%}**")


def each_server(servers):
    """The fleet on each server that was measured, and what is not within the limits there."""
    lines = []
    for name, rows in servers.items():
        f = fleet(rows)
        load = statistics.mean(row["load_average"] for row in rows)
        lines.append([name, len(rows), rows[-1]["date"], load, f["memory_each"], f["memory"], f["rss_each"], f["cpu_each"], f["cpu"], f["hits_strings"],
                      f["hits_ckv"], f["hits_strings_more"], f["random_memory"], f["random_cpu"]])
    found = table({"server": "", "caches": "", "date": "", "load average": ".1f", "RAM": ".2f", "by working set": ".2f", "RSS": ".2f", "time": ".2f",
                   "by requests": ".2f", "hits, strings": ".1%", "hits, ckv": ".1%", "hits, strings x 2.5": ".1%", "random: RAM": ".3f", "random: time": ".2f"}, lines)
    return "\n\n".join([found, *(f"Not within the limits set, {name}: {above(rows)}" for name, rows in servers.items())])


def caches(all_rows):
    rows = floor(all_rows)
    f, first = fleet(rows), rows[0]
    loads = [row["load_average"] for row in rows]
    asked = (first["strings"]["requests"] - first["strings"]["follow_ups"]) / first["rate"]
    head = (f"`bench/compare.py caches --scale {first['scale']:g} --seconds {asked:.2g}`, {first['date']}, {first['machine']}, "
            f"{first['server']}; {sum(row['seconds'] for row in rows) / 60:.0f} minutes. The load average was {min(loads):.1f} to {max(loads):.1f} "
            "before each cache began: above 2 something else ran beside it.")
    text = (f"{caches_in_short(rows)} (strings with 2.5 times as much: {f['hits_strings_more']:.1%}). RSS {f['rss_each']:.2f} on average. "
            f"Values of random bytes: RAM {f['random_memory']:.3f}, time {f['random_cpu']:.3f}.")
    lines = [[row["cluster"], row["key_bytes"], row["value_bytes"], row["sets"], row["working_set_mb"], row["objects"], row["speed"],
              row["memory_ratio"], row["peak_memory_ratio"], row["rss_ratio"], row["strings"]["cpu_us"], row["cpu_ratio"],
              row["strings"]["us"]["p999"] / 1000, row["p999_ratio"], row["hits_strings"], row["hits_ckv"], row["hits_strings_more"],
              row["never_encoded"], row["dictionaries"], row["random_memory_ratio"], row["random_cpu_ratio"]] for row in rows]
    return "\n\n".join([
        head, text, "![RAM and time, a dot a cache](caches.png)", "![hit rates](caches_hits.png)",
        each_server(by_server(all_rows)),
        table({"cache": "", "key": ".0f", "value": ".0f", "sets": ".2f", "working set MB": ",.0f", "objects": ",", "time faster": ".1f",
               "RAM": ".2f", "at its peak": ".2f", "RSS": ".2f", "us, strings": ".1f", "us, ratio": ".2f", "p99.9 ms, strings": ".2f",
               "p99.9, ratio": ".2f", "hits, strings": ".1%", "hits, ckv": ".1%", "hits, strings x 2.5": ".1%", "never encoded": ",", "dictionaries": "",
               "random: RAM": ".3f", "random: us": ".2f"}, lines)])
