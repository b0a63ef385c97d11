"""Slots move between the nodes of a cluster, as operators move them: by redis-cli, or by the server's atomic migration."""

import os
import shutil
import subprocess

from helpers import is_error, reply, wait_for
from server import BINARY


class Cli:
    """redis-cli --cluster, the one beside the server if there is one."""

    def __init__(self, cluster):
        beside = os.path.join(os.path.dirname(shutil.which(BINARY) or ""), "redis-cli")
        self.program = beside if os.path.exists(beside) else "redis-cli"
        self.cluster = cluster

    def run(self, command, *args):
        line = [self.program, "--cluster", command, *map(str, args)]
        done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{' '.join(line)}\n{done.stdout[-3000:]}"

    @staticmethod
    def address(node):
        return f"127.0.0.1:{node.port}"

    def add_node(self, node, of):
        self.run("add-node", self.address(node), self.address(of))
        wait_for(lambda: node.id in of.knows(), 60, "an introduction")

    def reshard(self, source, target, slots):
        """`source` is a node, or "all"."""
        source = source if source == "all" else source.id
        self.run("reshard", self.address(target), "--cluster-from", source, "--cluster-to", target.id,
                 "--cluster-slots", slots, "--cluster-yes")

    def delete_node(self, node, of):
        self.run("del-node", self.address(of), node.id)


def ranges(node):
    fields = node.knows()[node.id]
    return [tuple(map(int, (f.split("-") * 2)[:2])) for f in fields[8:] if not f.startswith("[")]


def of_valkey(node):
    return not is_error(reply(node.client(), "CLUSTER", "GETSLOTMIGRATIONS"))


def of_redis(node):
    return not is_error(reply(node.client(), "CLUSTER", "MIGRATION", "STATUS", "ALL"))


def moves_atomically(node):
    return of_valkey(node) or of_redis(node)


def move_atomically(source, target):
    """All slots of `source`, and waits until they have."""
    bounds = [n for pair in ranges(source) for n in pair]
    if of_valkey(source):
        source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *bounds, "NODE", target.id)
    else:
        target.ask("CLUSTER", "MIGRATION", "IMPORT", *bounds)
    wait_for(lambda: not ranges(source), 600, "the migration")
