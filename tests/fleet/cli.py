"""Slots move between the nodes of a cluster as operators move them, by redis-cli."""

import os
import shutil
import subprocess

from helpers import wait_for
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
        wait_for(lambda: node.id in of.knows(), "an introduction")

    def reshard(self, source, target, slots):
        """`source` is a node, or "all"."""
        source = source if source == "all" else source.id
        self.run("reshard", self.address(target), "--cluster-from", source, "--cluster-to", target.id,
                 "--cluster-slots", slots, "--cluster-yes")

    def delete_node(self, node, of):
        self.run("del-node", self.address(of), node.id)
