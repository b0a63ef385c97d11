"""All of it as a user would, under load from clients that check every reply: what would be saved, the module loaded, strings moved in,
a failover, strings moved out again."""

import json
import os
import subprocess

import pytest

from checking import THEIRS, checking
from helpers import info, is_in_sync, wait_for, wait_for_replica
from mover_data import assert_same, fill, state, wait_moved
from server import MODULE, ROOT

# What the module takes once, for however many records: its work space, the maps, the server's list of its commands.
ONCE_BYTES = 2 << 20


@pytest.fixture
def nodes(own_server):
    """A primary and its replica, without the module."""
    config = {"enable-module-command": "yes"}
    primary = own_server(config, module=False)
    return primary, own_server({**config, "replicaof": f"127.0.0.1 {primary.port}"}, module=False)


def would_save(server):
    """What ckv-estimate says of the strings under the prefix, bytes."""
    program = [os.path.join(ROOT, "build", "ckv-estimate"), "-p", str(server.port), "--json", "--rate", "0"]
    said = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
    strings = next(f for f in said["families"] if f["family"] == "user" and f["type"] == "string")
    return strings["bytes_now"] - strings["bytes_with_ckv"]


def used(r):
    """What clients write is kept for replicas as well: that grows with the load."""
    memory = r.info("memory")
    return memory["used_memory"] - memory["mem_total_replication_buffers"]


def set_prefixes(nodes, prefixes, way):
    for r in nodes:
        r.config_set("ckv.prefixes", prefixes)
    for r in nodes:
        wait_moved(r, way)


def fail_over(r, second, replica):
    """As an operator does: the replica has all that was written."""
    r.execute_command("FAILOVER", "TO", "127.0.0.1", replica.port)
    wait_for(lambda: second.info("replication")["role"] == "master" and r.info("replication")["role"] == "slave", what="the failover")
    wait_for(lambda: is_in_sync(r), what="the old primary in step")


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_estimate_move_in_fail_over_move_out(nodes, count):
    primary, replica = nodes
    with primary.client() as r, replica.client() as second:
        fill(r, count)
        before = state(r)
        wait_for_replica(r)
        with checking(nodes, 500) as clients:
            told, at_first = would_save(primary), used(r)
            for client in (second, r):
                client.execute_command("MODULE", "LOAD", MODULE)
                client.config_set("ckv.move-cpu", 50)
            set_prefixes((second, r), "user:", b"in")
            for client in (second, r):
                client.execute_command("CKV", "TRAIN")
                client.execute_command("CKV", "OPTIMIZE")
            assert used(r) == pytest.approx(at_first - told, abs=0.1 * told + ONCE_BYTES)
            assert info(second)["records"] > 0.8 * count
            assert_same(before, state(r, THEIRS))
            fail_over(r, second, replica)
            done = [client.count for client in clients]
            assert_same(before, state(second, THEIRS))
            set_prefixes((second, r), "", b"out")
            wait_for(lambda: all(now.count > before + 100 for now, before in zip(clients, done)), what="commands behind the failover")
        wait_for_replica(second)
        for client in (second, r):
            assert info(client)["records"] == 0
            assert_same(before, state(client, THEIRS))
