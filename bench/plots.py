"""The plots of docs/results.md, docs/<name>.png, from the same JSON as its tables."""

import os

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend is chosen first

import report  # noqa: E402
from server import ROOT  # noqa: E402


def bars(name, groups, series, unit):
    """For each series (name -> a height per group, or None) a bar beside each other's."""
    figure, axes = plt.subplots(figsize=(10, 4.5))
    width = 0.8 / len(series)
    for i, (label, heights) in enumerate(series.items()):
        axes.bar([x + i * width for x in range(len(groups))], [h or 0 for h in heights], width, label=label)
    axes.set_xticks([x + 0.4 - width / 2 for x in range(len(groups))], groups, rotation=30, ha="right")
    save(name, figure, axes, unit, legend=len(series) > 1)


def curves(name, series, what, unit):
    """For each series (name -> {x: y}) a line; x grows by factors."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for label, points in series.items():
        axes.plot(list(points), list(points.values()), "o-", label=label)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(what)
    axes.grid(True, alpha=0.3)
    save(name, figure, axes, unit, legend=True)


def dots(name, points, what, unit, lines):
    """(x, y, label, size) each; dotted lines at `lines`, pairs of x values and of y values."""
    figure, axes = plt.subplots(figsize=(7, 6))
    axes.scatter([p[0] for p in points], [p[1] for p in points], [p[3] for p in points], alpha=0.6)
    for x, y, label, _ in points:
        axes.annotate(label, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
    for line in lines:
        axes.plot(*line, ":", color="gray")
    axes.set_xlabel(what)
    axes.grid(True, alpha=0.3)
    save(name, figure, axes, unit, legend=False)


def published_caches(rows):
    dots("caches", [(row["memory_ratio"], row["cpu_ratio"], row["cluster"], 15 + row["working_set_mb"] / 20) for row in rows],
         "RAM for the same content, of strings' (a dot's area: the working set)", "main thread's time a request, of strings'",
         [([1, 1], [0, 1]), ([0, 1], [1, 1])])
    asked = [row for row in rows if row["hits_strings"] is not None]
    dots("caches_hits", [(row["hits_strings"], row["hits_ckv"], row["cluster"], 15 + row["kilo_requests_per_second"] * 4) for row in asked],
         "hit rate of strings in a third of the RAM that they need (a dot's area: requests a second)", "hit rate of ckv in as much",
         [([0, 1], [0, 1])])


def course(name, points, unit):
    """A line over the seconds."""
    figure, axes = plt.subplots(figsize=(10, 3.5))
    axes.plot(list(points), list(points.values()))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.grid(True, alpha=0.3)
    save(name, figure, axes, unit, legend=False)


def save(name, figure, axes, unit, legend):
    axes.set_ylabel(unit)
    if legend:
        axes.legend()
    figure.tight_layout()
    figure.savefig(os.path.join(ROOT, "docs", f"{name}.png"), metadata={"Software": None})
    plt.close(figure)


def by_store(rows, group, value):
    """Groups, and each store's values in their order."""
    series = {}
    for row in rows:
        series.setdefault(row["store"], []).append(value(row))
    return list(dict.fromkeys(group(row) for row in rows)), series


def draw():
    rows = {name: report.result(name)["rows"] for name in ("cache", "latency", "uuid", "fans")}
    bars("cache", *by_store(rows["cache"], lambda r: r["data"], lambda r: r["bytes"]["used_memory"]), "bytes per record")
    bars("latency", *by_store(rows["latency"], lambda r: f"{r['clients']} clients", lambda r: r["per_second"]),
         "objects stored per second")
    bars("uuid", [f"{r['store']} {r['bucket'] or ''}" for r in rows["uuid"]],
         {what: [r["bytes"][what] / 1000 for r in rows["uuid"]] for what in ("used_memory", "rss")}, "GB per million records")
    if report.measured("moving"):
        course("moving", {float(s): m / 2**20 for s, m in report.result("moving")["memory"].items()}, "used_memory, MB")
    bars("fans", [f"{r['store']} {r['transport']}" for r in rows["fans"]],
         {"seconds": [r["seconds"] for r in rows["fans"]]}, "seconds")
    codec = report.result("codec")
    bars("codec", [report.stem(r["name"]) for r in codec],
         {what: [100 * r[of]["bytes"] / r["raw"] if of in r else None for r in codec]
          for what, of in (("zstd with a dictionary, one record", "zstd"), ("the same, pages of 8 KB", "zstd_pages"),
                           ("ckv: the best of phrases and zstd", "best"))}, "% of the raw record")
    published_caches(report.result("caches"))
    curves("scale", {f"ckv, {name}": {row["records"]: row["ckv"]["used_memory"] for row in rows}
                     for name, rows in report.result("scale")["density"].items()}, "records", "bytes of used_memory per record")
