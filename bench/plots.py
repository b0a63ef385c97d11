"""The plots of docs/results.md, docs/<name>.png, from the same JSON as its tables."""

import os
import statistics

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend is chosen first

import peers  # noqa: E402
import report  # noqa: E402
from caches_report import floor  # noqa: E402
from server import ROOT  # noqa: E402

# Told apart by everybody, and in grey as well.
OURS, OTHERS, QUIET = "#0065a8", "#c4c4c4", "#666666"


def bars(name, groups, series, unit):
    """For each series (name -> a height per group, or None) a bar beside each other's."""
    figure, axes = plt.subplots(figsize=(10, 4.5))
    width = 0.8 / len(series)
    for i, (label, heights) in enumerate(series.items()):
        axes.bar([x + i * width for x in range(len(groups))], [h or 0 for h in heights], width, label=label)
    axes.set_xticks([x + 0.4 - width / 2 for x in range(len(groups))], groups, rotation=30, ha="right")
    finish(name, figure, axes, unit, legend=len(series) > 1)


def bar_table(name, title, corner, rows, columns, cells, longest):
    """A table whose figures stand at the ends of bars. rows: the texts before the bars, by what cells are keyed; columns:
    their heads, likewise; cells: (row, column) -> a number, or nothing; longest: of each column, the number whose bar is as
    long as bars get. As wide as GitHub shows a page, with text as large as the page's small one."""
    head, line, labels, gap = 0.8, 0.19, 2.15, 0.12  # inches
    wide, high = 9, head + line * len(rows) + 0.08
    plt.rcParams["font.size"] = 8.5
    figure = plt.figure(figsize=(wide, high), dpi=200)
    figure.text(0.08 / wide, 1 - 0.1 / high, title, va="top", fontsize=11, fontweight="bold")
    figure.text((labels - 0.08) / wide, 1 - (head - 0.06) / high, corner, va="bottom", ha="right", color=QUIET)
    width = (wide - labels) / len(columns)
    for i, (column, text) in enumerate(columns.items()):
        axes = figure.add_axes(((labels + i * width) / wide, 0.08 / high, (width - gap) / wide, line * len(rows) / high))
        axes.set_xlim(0, longest[column] * width / (width - 0.5))  # room for the figure
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.text(0, -0.75, text, va="bottom", **style(column))
        axes.axvline(0, color=QUIET, linewidth=1)
        axes.set_axis_off()
        for y, (row, texts) in enumerate(rows.items()):
            for n, before in enumerate(reversed(texts) if i == 0 else ()):
                beside(axes, before, 0, y, -6 - 36 * n, ha="right", **style(row))
            number = cells.get((row, column))
            if number is None:
                continue
            published = "published" in (row, column)  # and not measured: an outline
            axes.barh(y, number, 0.72, color=OURS if "ckv" in (row, column) else "white" if published else OTHERS,
                      edgecolor=QUIET if published else "none", linestyle="--")
            beside(axes, f"{number:,.0f}", number, y, 3, **style(row, column))
    save(name, figure)
    plt.rcdefaults()


def style(*keys):
    return {"color": OURS, "fontweight": "bold"} if "ckv" in keys else {}


def beside(axes, text, x, y, points, **how):
    axes.annotate(text, (x, y), xytext=(points, 0), textcoords="offset points", va="center", **how)


def curves(name, series, what, unit):
    """For each series (name -> {x: y}) a line; x grows by factors."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for label, points in series.items():
        axes.plot(list(points), list(points.values()), "o-", label=label)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(what)
    axes.grid(True, alpha=0.3)
    finish(name, figure, axes, unit, legend=True)


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
    finish(name, figure, axes, unit, legend=False)


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
    finish(name, figure, axes, unit, legend=False)


def finish(name, figure, axes, unit, legend):
    axes.set_ylabel(unit)
    if legend:
        axes.legend()
    figure.tight_layout()
    save(name, figure)


def save(name, figure):
    figure.savefig(os.path.join(ROOT, "docs", f"{name}.png"), metadata={"Software": None})
    plt.close(figure)


def by_store(rows, group, value):
    """Groups, and each store's values in their order."""
    series = {}
    for row in rows:
        series.setdefault(row["store"], []).append(value(row))
    return list(dict.fromkeys(group(row) for row in rows)), series


def cache(found):
    """Files in the order of what is left by ckv, stores in that of their median."""
    used, names = peers.used_memory(found["rows"]), peers.names(found)
    strings = {data: used[data, "strings"] for data, store in used if store == "strings"}
    shares = {(data, store): 100 * n / strings[data] for (data, store), n in used.items() if store != "strings"}
    middle = {store: statistics.median(n for (_, s), n in shares.items() if s == store) for _, store in shares}
    bar_table("cache", "RAM of a record, in per cent of what a Redis string takes", "bytes as\na string",
              {data: [data, f"{strings[data]:,.0f}"] for data in sorted(strings, key=lambda data: shares[data, "ckv"])},
              {store: names[store] for store in sorted(middle, key=middle.get)}, shares, dict.fromkeys(middle, max(shares.values())))


def choice(found):
    used, names = peers.used_memory(found["rows"]), peers.names(found)
    kinds = {row["data"]: f"{peers.KINDS[row['data']]}:\nvalues of {row['value_bytes']:.0f} bytes" for row in found["rows"]}
    bar_table("choice", "Bytes of RAM a record: key, value and expiry", "",
              {store: [names[store].replace("\n", " ")] for store in peers.most_first(used)}, kinds,
              {(store, kind): n for (kind, store), n in used.items()},
              {kind: max(n for (data, _), n in used.items() if data == kind) for kind in kinds})


def draw():
    rows = {name: report.result(name)["rows"] for name in ("latency", "uuid", "fans")}
    cache(report.result("cache"))
    if report.measured("choice"):
        choice(report.result("choice"))
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
    published_caches(floor(report.result("caches")))
    curves("scale", {f"ckv, {name}": {row["records"]: row["ckv"]["used_memory"] for row in rows}
                     for name, rows in report.result("scale")["density"].items()}, "records", "bytes of used_memory per record")
