"""How each test of a suite ended, as lines of JSON in $CKV_CLIENTS_REPORT: a plugin of pytest.

A line is [test, "passed" | "failed" | "skipped", why]; a test whose set-up or end fails has several, the worst counts.
"""

import json
import os


def write(test, outcome, why=""):
    with open(os.environ["CKV_CLIENTS_REPORT"], "a", encoding="utf-8") as f:
        f.write(json.dumps([test, outcome, why[-1500:]]) + "\n")


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        write(report.nodeid, report.outcome, report.longreprtext if report.outcome == "failed" else "")


def pytest_collectreport(report):
    if report.failed:
        write(report.nodeid, "failed", report.longreprtext)
