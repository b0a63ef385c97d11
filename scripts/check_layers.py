#!/usr/bin/env python3
"""Who includes whom: only downward through the layers of scripts/layers.txt, and never in a circle.

    scripts/check_layers.py [root]      the folder that has module/, bench/, tools/ and scripts/layers.txt

A unit is a file of C and its header: map.c and map.h are one. What several files of a family share and nobody else
sees is in X_inside.h: it stands on X.h, and X.c may include it, which is no circle. Complains about

    up        an include of a layer above
    outside   an include of a file that is not core's in core, whatever its layer
    unlisted  a unit of module/ that has no layer
    circle    units that include each other, also within a layer, also in bench/ and tools/

and ends with 1 if there is anything to complain about.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
# Not ours, and below everything; core has no business with it.
FOREIGN = {"redismodule.h"}
# Where each part of the tree finds what it includes, as the Makefile says, behind the file's own folder.
SEARCHED = {"module/core/": ["module/core"], "module/": ["module", "module/core"], "bench/": ["bench", "module/core", "module"],
            "tools/": ["bench", "module/core"]}


def read_layers(path):
    """[["core/base/"], ..., ["config", "load"]], from the bottom to the top."""
    with open(path) as f:
        return [line.split() for line in f if line.strip() and not line.startswith("#")]


def sources(root):
    """The C files of module/, bench/ and tools/, as paths below the root."""
    for top in ("module", "bench", "tools"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def unit(path):
    return path.rsplit(".", 1)[0]


def find(root, path, name):
    """The file that an include names, as a path below the root; None if it is not there."""
    folders = next(where for start, where in SEARCHED.items() if path.startswith(start))
    for folder in [os.path.dirname(path), *folders]:
        candidate = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def includes(root):
    """[(file, line, included file or None, its name in the source)]"""
    found = []
    for path in sources(root):
        with open(os.path.join(root, path), errors="replace") as f:
            for number, line in enumerate(f, 1):
                match = INCLUDE.match(line)
                if match:
                    found.append((path, number, find(root, path, match[1]), match[1]))
    return found


def layer_of(layers, path):
    """The index of a file's layer; None: it has none."""
    name = unit(path).removeprefix("module/")
    for i, members in enumerate(layers):
        if any(name.startswith(m) if m.endswith("/") else name == m for m in members):
            return i
    return None


def is_core(path):
    return path.startswith("module/core/")


def check_layers(layers, edges):
    """Complaints about single includes."""
    for path, number, target, name in edges:
        where = f"{path}:{number}"
        if is_core(path) and not (target and is_core(target)):
            yield f'{where}: outside: core includes "{name}"'
        elif target is None and name not in FOREIGN:
            yield f'{where}: outside: "{name}" is not found'
        elif path.startswith("module/") and target:
            mine, other = layer_of(layers, path), layer_of(layers, target)
            if None not in (mine, other) and other > mine:
                yield f'{where}: up: {" ".join(layers[mine])} includes "{name}" of {" ".join(layers[other])}'


def check_listed(layers, root):
    units = {unit(p) for p in sources(root) if p.startswith("module/")}
    for name in sorted(units):
        if layer_of(layers, name + ".c") is None:
            yield f"{name}: unlisted: no layer of scripts/layers.txt has it"


def knots(graph):
    """Sets of units that reach each other (Tarjan's strongly connected components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            knot = set()
            while name not in knot:
                knot.add(stack.pop())
            if len(knot) > 1:
                found.append(knot)

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def shortest_circle(graph, knot):
    """A shortest way from some unit of a knot back to itself."""
    best = None
    for start in sorted(knot):
        ways, seen = [[start]], {start}
        while ways and (best is None or len(ways[0]) < len(best)):
            way = ways.pop(0)
            for other in sorted(graph[way[-1]]):
                if other == start:
                    best = way
                    ways = []
                    break
                if other in knot and other not in seen:
                    seen.add(other)
                    ways.append(way + [other])
    return best


def check_circles(edges):
    graph, places = {}, {}
    for path, number, target, _ in edges:
        mine = unit(path)
        graph.setdefault(mine, set())
        if target and unit(target) not in (mine, mine + "_inside"):
            graph[mine].add(unit(target))
            graph.setdefault(unit(target), set())
            places.setdefault((mine, unit(target)), f"{path}:{number}")
    for knot in knots(graph):
        way = shortest_circle(graph, knot)
        for i, name in enumerate(way):
            other = way[(i + 1) % len(way)]
            yield f"{places[name, other]}: circle: {name} includes {other}"
        if len(knot) > len(way):
            yield f"  and more circles among these {len(knot)}: {' '.join(sorted(knot))}"


def check(root):
    """All complaints."""
    layers = read_layers(os.path.join(root, "scripts", "layers.txt"))
    edges = includes(root)
    return [*check_listed(layers, root), *check_layers(layers, edges), *check_circles(edges)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    complaints = check(root)
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
