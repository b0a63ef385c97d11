"""scripts/check_layers.py, which `make lint` runs, finds what it is there for: in trees that are made up."""

import os
import subprocess
import sys

import pytest

from server import PATIENCE_S, ROOT

SCRIPT = os.path.join(ROOT, "scripts", "check_layers.py")
LAYERS = "# a comment\n\ncore/base/\ncore/map/\nckv\nkeyspace/\nconfig load\n"
SOUND = {
    "module/core/base/mem.h": "#include <stddef.h>\n",
    "module/core/base/mem.c": '#include "base/mem.h"\n',
    "module/core/map/map.h": '#include "base/mem.h"\n',
    "module/core/map/map.c": '#include "map/map.h"\n#include "map/map_inside.h"\n#include "map/page.h"\n',
    "module/core/map/map_inside.h": '#include "map/map.h"\n',
    "module/core/map/page.h": "",
    "module/core/map/page.c": '#include "map/page.h"\n',
    "module/ckv.h": '#include "core/map/map.h"\n#include "redismodule.h"\n',
    "module/keyspace/maps.h": '#include "ckv.h"\n',
    "module/keyspace/maps.c": '#include "keyspace/maps.h"\n#include "core/base/mem.h"\n',
    "module/load.c": '#include "config.h"\n#include "keyspace/maps.h"\n',
    "module/config.h": "",
    "bench/one.c": '#include "two.h"\n#include "core/map/map.h"\n',
    "bench/two.h": "",
    "tools/one/two.h": "",
}


@pytest.fixture
def complaints(tmp_path):
    """A function: what the script says of the sound tree with some files changed, line by line."""

    def check(changed):
        for name, text in {**SOUND, "scripts/layers.txt": LAYERS, **changed}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.stderr == "" and done.returncode == (1 if done.stdout else 0)
        return done.stdout.splitlines()

    return check


def test_a_sound_tree(complaints):
    assert complaints({}) == []


def test_an_include_that_points_up(complaints):
    assert complaints({"module/ckv.c": '\n#include "keyspace/maps.h"\n'})[0] == (
        'module/ckv.c:2: up: ckv includes "keyspace/maps.h" of keyspace/'
    )


def test_up_within_core(complaints):
    found = complaints({"module/core/base/sort.c": '#include "map/page.h"\n'})
    assert found == ['module/core/base/sort.c:1: up: core/base/ includes "map/page.h" of core/map/']


@pytest.mark.parametrize("name", ["redismodule.h", "../../ckv.h", "../../config.h", "nowhere.h", "core/map/map.h"])
def test_core_includes_something_else(complaints, name):
    found = complaints({"module/core/map/bucket.c": f'#include "map/map.h"\n#  include "{name}"\n'})
    assert f'module/core/map/bucket.c:2: outside: core includes "{name}"' in found


def test_what_is_not_there(complaints):
    assert complaints({"module/info.c": '#include "nowhere.h"\n', "scripts/layers.txt": LAYERS + "info\n"}) == [
        'module/info.c:1: outside: "nowhere.h" is not found'
    ]


def test_a_file_without_a_layer(complaints):
    assert complaints({"module/stray.c": ""}) == ["module/stray: unlisted: no layer of scripts/layers.txt has it"]


def test_a_circle_through_a_header_and_a_source(complaints):
    """No file includes itself in the end, but the pairs stand on each other."""
    assert complaints({"module/core/map/page.c": '#include "map/page.h"\n#include "map/map.h"\n'}) == [
        "module/core/map/map.c:3: circle: module/core/map/map includes module/core/map/page",
        "module/core/map/page.c:2: circle: module/core/map/page includes module/core/map/map",
    ]


def test_a_circle_of_three_within_a_folder(complaints):
    found = complaints({
        "module/keyspace/a.c": '#include "b.h"\n',
        "module/keyspace/a.h": "",
        "module/keyspace/b.h": '\n#include "keyspace/c.h"\n',
        "module/keyspace/c.h": "",
        "module/keyspace/c.c": '#include "keyspace/a.h"\n',
    })
    assert found == [
        "module/keyspace/a.c:1: circle: module/keyspace/a includes module/keyspace/b",
        "module/keyspace/b.h:2: circle: module/keyspace/b includes module/keyspace/c",
        "module/keyspace/c.c:1: circle: module/keyspace/c includes module/keyspace/a",
    ]


def test_a_larger_knot_is_named_whole(complaints):
    found = complaints({f"module/keyspace/{a}.h": f'#include "keyspace/{b}.h"\n#include "keyspace/a.h"\n'
                        for a, b in ("ab", "bc", "ca")})
    assert "  and more circles among these 3" in found[-1]


def test_a_circle_in_bench(complaints):
    assert len(complaints({"bench/two.c": '#include "one.h"\n', "bench/one.h": ""})) == 2


def test_tools_see_core_and_not_the_module(complaints):
    found = complaints({"tools/one/one.c": '#include "map/page.h"\n#include "two.h"\n#include "ckv.h"\n'})
    assert found == ["tools/one/one.c:3: outside: \"ckv.h\" is not found"]


def test_an_inner_header_is_no_way_around(complaints):
    """map.c may include map_inside.h; what map.h stands on may not."""
    found = complaints({"module/core/map/page.c": '#include "map/map_inside.h"\n'})
    assert len(found) == 3 and all("circle" in line for line in found)
