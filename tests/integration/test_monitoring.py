"""The Grafana dashboard against what docs/grafana/ckv.lua, run as redis_exporter runs it, gets from the server."""

import json
import os
import re

from server import ROOT


def read(name):
    with open(os.path.join(ROOT, "docs", "grafana", name)) as f:
        return f.read()


def test_the_dashboards_fields_exist(r):
    r.execute_command("CSET", "a", "b")
    answer = [x.decode() for x in r.execute_command("EVAL", read("ckv.lua"), 0)]
    found = dict(zip(answer[::2], answer[1::2]))
    assert float(found["ckv_records"]) == 1
    texts = {"ckv_prefixes", "ckv_prefixes_leaving", "ckv_moving_in", "ckv_moving_out"}
    assert {name for name in r.execute_command("INFO", "ckv") if name.startswith("ckv_")} - texts == set(found)
    expressions = [t["expr"] for panel in json.loads(read("ckv.json"))["panels"] for t in panel["targets"]]
    assert expressions
    for expression in expressions:
        fields = re.findall(r'redis_script_values\{key="(\w+)"', expression)
        assert fields and set(fields) <= set(found), expression
