"""Atomic slot migration, as the servers have it: Redis 8.4 and newer, Valkey 9 and newer."""

import contextlib
import os
import signal

from helpers import is_error, reply, wait_for


class Valkey:
    """CLUSTER MIGRATESLOTS, which the node is told that has the slots."""

    asked = "source"
    states = {b"waiting-for-paused": "arrived", b"success": "done", b"failed": "failed", b"cancelled": "failed"}

    @staticmethod
    def has_it(node):
        return not is_error(reply(node.client(), "CLUSTER", "GETSLOTMIGRATIONS"))

    @staticmethod
    def start(source, target, *bounds):
        assert source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *bounds, "NODE", target.id) == b"OK"

    @staticmethod
    def newest(node):
        """{field: what the node tells of its newest migration}"""
        told = node.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]
        return dict(zip(told[::2], told[1::2]))

    @staticmethod
    def cancel(source, target):
        assert source.ask("CLUSTER", "CANCELSLOTMIGRATIONS") == b"OK"

    @staticmethod
    def halt(source, halted):
        """Whether a migration stops before the slots change hands."""
        source.ask("DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", str(int(halted)))

    @staticmethod
    @contextlib.contextmanager
    def paused(source, target, *bounds):
        """Starts, until the source pauses writes, as long as the target may not take over."""
        target.ask("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "1")
        try:
            Valkey.start(source, target, *bounds)
            ahead = (b"failover-paused", b"failover-granted", b"success", b"failed")
            wait_for(lambda: Valkey.newest(source)[b"state"] in ahead, "the pause")
            yield
        finally:
            target.ask("DEBUG", "SLOTMIGRATION", "PREVENT-FAILOVER", "0")


class Redis:
    """CLUSTER MIGRATION, which the node is told that is to have the slots."""

    asked = "target"
    states = {b"wait-stream-eof": "arrived", b"completed": "done", b"failed": "failed", b"canceled": "failed"}

    @staticmethod
    def has_it(node):
        return not is_error(reply(node.client(), "CLUSTER", "MIGRATION", "STATUS", "ALL"))

    @staticmethod
    def start(source, target, *bounds):
        target.ask("CLUSTER", "MIGRATION", "IMPORT", *bounds)

    @staticmethod
    def newest(node):
        """{field: what the node tells of its newest migration}"""
        known = node.ask("CLUSTER", "MIGRATION", "STATUS", "ALL") or [[b"state", b"failed"]]  # it was restarted
        return dict(zip(known[0][::2], known[0][1::2]))

    @staticmethod
    def cancel(source, target):
        assert target.ask("CLUSTER", "MIGRATION", "CANCEL", "ALL") == 1

    @staticmethod
    def halt(source, halted):
        source.ask("DEBUG", "ASM-FAILPOINT", *(("migrate-main-channel", "handoff-prep") if halted else ("", "")))

    @staticmethod
    @contextlib.contextmanager
    def paused(source, target, *bounds):
        """Starts, until the source pauses writes, as long as the target is stopped; it may have just taken over."""
        Redis.start(source, target, *bounds)
        ahead = (b"handoff-prep", b"handoff", b"stream-eof", b"completed", b"failed")
        wait_for(lambda: Redis.newest(source)[b"state"] in ahead, "the pause")
        os.kill(target.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(target.process.pid, signal.SIGCONT)


def way_of(node):
    """How its server does it, None if it does not."""
    return next((way for way in (Valkey, Redis) if way.has_it(node)), None)


def ranges(node):
    """[(first, last)] of the slots that it has."""
    fields = node.knows()[node.id]
    return [tuple(map(int, (f.split("-") * 2)[:2])) for f in fields[8:] if not f.startswith("[")]


def state(way, node):
    """"running", "arrived": all of it but what is written meanwhile, "done" or "failed"."""
    return way.states.get(way.newest(node)[b"state"], "running")


def ended(way, node):
    return state(way, node) in ("done", "failed")


def move(cluster, way, source, target, *bounds, meanwhile=lambda: None):
    """The slots from bounds[0] to bounds[1], and so on, and waits until all nodes know."""
    way.start(source, target, *bounds)
    meanwhile()
    # The one that was not asked may know of no more than the migration before yet.
    for node in (source, target) if way.asked == "source" else (target, source):
        wait_for(lambda node=node: ended(way, node), "the end of a migration")
        assert state(way, node) == "done", way.newest(node)
    cluster.wait()
