"""The transparent mode against a plain server: whatever three clients do, no reply is another.

CKV_MODEL_PROGRAMS=<n> runs n programs of each kind, CKV_MODEL_STEPS=<n> makes them that long. Every kind runs with
the module on neither side as well: what differs then is a fault of these tests.
"""

import collections
import os

import pytest

from documented import Documented
from transparent_compare import AOF, Run, Side, check
from transparent_programs import FAMILIES, Program, templates

PROGRAMS = int(os.environ.get("CKV_MODEL_PROGRAMS", 2))
STEPS = int(os.environ.get("CKV_MODEL_STEPS", 4000))

ALWAYS = {"prefixes": 4, "dump": 10, "scan": 5, "random": 5, "expire": 3, "compare": 1}


@pytest.fixture(params=["plain", "prefixes"])
def world(request, own_server):
    """A factory of servers: with the module's prefixes, or to try the tests themselves without the module."""

    def make(config=(), replica=False):
        with_module = request.param == "prefixes"
        moving = {"ckv.move-cpu": 100} if with_module else {}
        ours = own_server({**dict(config), **moving}, module=with_module)
        with ours.client() as r:
            if with_module and not r.execute_command("CONFIG", "GET", "ckv.prefixes"):
                pytest.skip("this module has no ckv.prefixes")
        theirs = Side(own_server(dict(config), module=False))
        second = None
        if replica:
            second = Side(own_server({"replicaof": f"127.0.0.1 {ours.port}"}, module=with_module))
        ours = Side(ours)
        return lambda **more: Run(ours, theirs, second, **more)

    return make


def program(run, seed, length, events):
    """Every other one has commands that the server documents."""
    documented = None
    if seed % 2:
        with run().theirs.server.client() as r:
            documented = Documented(r)
    return Program(seed, length, events, documented).steps


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_three_clients(world, seed):
    run = world()
    check(run, program(run, seed, STEPS, ALWAYS))


@pytest.mark.parametrize("seed", range(PROGRAMS))
@pytest.mark.parametrize("config", [{}, AOF], ids=["rdb", "aof"])
def test_restarts(world, seed, config):
    events = {**ALWAYS, "restart": 1, "rewrite": 1 if config else 0}
    run = world(config)
    check(run, program(run, 100 + seed, STEPS // 2, events))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_replica(world, seed):
    run = world(replica=True)
    check(run, program(run, 200 + seed, STEPS // 2, {**ALWAYS, "replica": 2}) + [("replica",)])


@pytest.mark.parametrize("seed", range(PROGRAMS))
@pytest.mark.parametrize("end", [("load_aof",), ("rewrite",)], ids=["written", "rewritten"])
def test_the_aof_loads_without_the_module(world, seed, end):
    run = world(AOF)
    check(run, program(run, 300 + seed, STEPS // 2, ALWAYS) + [end, ("load_aof",)])


# --- the tests themselves ---


def plain_run(own_server, **more):
    ours, theirs = (Side(own_server(module=False)) for _ in range(2))
    return lambda: Run(ours, theirs, **more)


def test_every_command_comes_and_succeeds(own_server):
    counts = collections.Counter()
    plain_run(own_server, counts=counts)().program(Program(300, 12_000, ALWAYS).steps)
    wanted = {words[0] for family in FAMILIES for words in templates(family)} | {"EVAL", "EXEC", "WATCH"}
    never = [command for command in wanted if not counts[command.encode(), False]]
    with own_server(module=False).client() as r:
        known = r.execute_command("COMMAND", "INFO", "GET", *never)[1:]
    assert not [command for command, about in zip(never, known) if about]


WRONG = [
    ("DEL", "c:str:1"),
    ("APPEND", "c:str:1", "x"),
    ("SETRANGE", "c:str:1", "0", "w"),
    ("PERSIST", "c:list:1"),
    ("EXPIRE", "c:list:1", "10100"),
    ("EXPIRE", "c:list:1", "5000"),
    ("RPUSH", "c:list:1", "1"),
    ("SADD", "new", "1"),
    ("SHUTDOWN", "NOSAVE"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong[0])
def test_a_wrong_key_is_noticed_and_told_with_few_commands(own_server, wrong):
    steps = Program(400, 400, {}).steps
    begin = [(0, b"DISCARD"), (0, b"DEL", b"c:list:1"), (0, b"RPUSH", b"c:list:1", b"a")]
    begin += [(0, b"EXPIRE", b"c:list:1", b"10000"), (0, b"SET", b"c:str:1", b"v")]
    with pytest.raises(AssertionError) as failed:
        check(plain_run(own_server), [*steps[:-1], *begin, ("ours", *wrong), steps[-1]])
    told = str(failed.value).splitlines()
    assert told[0] == "the servers differ after" and len(told) <= 7, told
