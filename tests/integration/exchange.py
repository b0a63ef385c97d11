"""Kinds of servers, of another release or for another processor, that load each other's files and follow each other."""

import os
import sys
from typing import NamedTuple

import server as servers
from conftest import Compared
from helpers import is_in_sync, late_by, now_ms, wait_for, wait_for_replica
from test_golden import place_aof, place_rdb
from traffic import records

sys.path.insert(0, os.path.join(servers.ROOT, "tests", "golden"))

import make as golden  # noqa: E402

FILES = list(golden.FILES)


class Kind(NamedTuple):
    module: str = servers.MODULE
    binary: str = servers.BINARY

    def start(self, own_server, config=None, **options):
        """By the fixture of that name."""
        return own_server({"loadmodule": self.module, **(config or {})}, module=False, binary=self.binary, **options)

    def write(self, name):
        """One of FILES: its bytes, and what golden.describe() tells of what is in it."""
        kept = servers.MODULE, servers.BINARY
        servers.MODULE, servers.BINARY = self
        try:
            data, entry = golden.make(name)
        finally:
            servers.MODULE, servers.BINARY = kept
        return data, entry["records"]

    def load(self, own_server, name, data):
        """A server with the records of a file that write() has returned, not in a cluster."""
        config = {key: value for key, value in golden.FILES[name][1].items() if key != "cluster-enabled"}
        server = self.start(own_server, config, start=False)
        if name.endswith(".rdb"):
            place_rdb(server, data)
        elif name.endswith(".aof"):
            place_aof(server, data)
        server.start()
        if name.endswith(".dump"):
            with server.client() as r:
                assert r.execute_command("RESTORE", "ckv:0", 0, data) == b"OK"
        return server


def assert_holds(server, wanted):
    """What golden.describe() told of another server; times may be told otherwise by what a record may outlive them."""
    with server.client() as r:
        found = golden.describe(r)
    assert wanted and found.keys() == wanted.keys()
    for db, rows in wanted.items():
        assert [row[:3] for row in found[db]] == [row[:3] for row in rows]
        for (*_, told), (key, _, _, at_ms) in zip(found[db], rows):
            assert (told is None) == (at_ms is None), key
            assert at_ms is None or abs(told - at_ms) <= late_by(at_ms - now_ms()), key


def following(primary):
    """The setting of a replica."""
    return {"replicaof": f"127.0.0.1 {primary.port}"}


def assert_agree(primary, replica):
    """They hold the same records once the replica has caught up."""
    with primary.client() as a, replica.client() as b:
        wait_for(lambda: is_in_sync(b), what="the link")
        wait_for_replica(a)
        first = records(a)
        assert first
        Compared.assert_agree(first, records(b))
        Compared.assert_agree(records(b), records(a))
