"""Plots for docs/results.md. One part of the page is drawn as docs/<name>.png."""

import os

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend is chosen first

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


def save(name, figure, axes, unit, legend):
    axes.set_ylabel(unit)
    if legend:
        axes.legend()
    figure.tight_layout()
    figure.savefig(os.path.join(ROOT, "docs", f"{name}.png"), metadata={"Software": None})
    plt.close(figure)
