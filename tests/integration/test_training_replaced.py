"""Data that other data takes the place of while dictionaries are learned from it: these are no good for what is there."""

from contextlib import contextmanager

import pytest

from helpers import assert_stored, at_one_moment, info, load, texts, threads_of, wait_for


def rows(count):
    """What looks like nothing in texts(), as long as these."""
    return [b'{"id":%d,"mail":"n.%d@example.com","code":"%08X","score":%d.%02d,"on":%s}'
            % (i, i * 7919 % 100_000, i * 2654435761 % 2**32, i % 971, i % 89, b"true" if i % 3 else b"false")
            for i in range(count)]


@contextmanager
def learning(own_server, count):
    """A server that learns from texts, a client of it, and the connection that has asked for that. It learns on a thread
    of its own, and has no others that come and go."""
    server = own_server({"ckv.train-after": "1gb", "ckv.encode-threads": 0})
    with server.client() as r, server.socket() as asked:
        load(r, texts(count), key=b"TEXT:%d")
        before = threads_of(server)
        asked.sendall(b"CKV TRAIN\r\n")
        wait_for(lambda: threads_of(server) > before or info(r)["trainings"], what="a training")
        yield server, r, asked


def settled_bytes(r):
    r.execute_command("CKV", "OPTIMIZE")
    return info(r)["page_bytes"]


def was_learning(figures):
    return dict(zip(figures[::2], figures[1::2]))[b"training"]


STATS, FLUSH = ("CKV", "STATS"), ("FLUSHALL",)
INTO_THE_OTHER, BACK = ("SELECT", 1), ("SELECT", 0)


def filled_afterwards(r, sets):
    return at_one_moment(r, STATS, FLUSH)[0], at_one_moment(r, *sets)


def filled_at_once(r, sets):
    """There is never less than before, as far as anybody can see who looks between commands."""
    return at_one_moment(r, STATS, FLUSH, *sets)


def filled_beside(r, sets):
    at_one_moment(r, INTO_THE_OTHER, *sets, BACK)
    return at_one_moment(r, STATS, ("SWAPDB", 0, 1), INTO_THE_OTHER, ("FLUSHDB",), BACK)


@pytest.mark.parametrize("fill", [filled_afterwards, filled_at_once, filled_beside])
def test_flushed_and_filled_anew(own_server, fill):
    """What was learned is not taken; who asked for it is told why."""
    stored = {b"KEY:%d" % i: row for i, row in enumerate(rows(30_000))}
    in_time = False
    while not in_time:
        with learning(own_server, 40_000) as (server, r, asked):
            in_time = was_learning(fill(r, [("CSET", *record) for record in stored.items()])[0])
            answer = asked.recv(100)
            assert answer == b"-ERR most of the data that was learned from is gone\r\n" or not in_time
            raw = settled_bytes(r)
            assert r.execute_command("CKV", "TRAIN") == b"OK" and settled_bytes(r) < raw / 2
            assert_stored(r, stored)
    assert server.log().count("nothing is taken of it") == 1


def test_given_up(own_server):
    """When all that it learns from has gone, the thread does not go on to its end."""
    computed = []
    for flush in False, True:
        with learning(own_server, 40_000) as (_, r, asked):
            if flush:
                r.flushall()
            answer = asked.recv(100)
            computed.append(r.info("cpu")["used_cpu_user"])
            assert answer.startswith(b"-ERR most" if flush else b"+OK")
    assert computed[1] < computed[0] / 2


def test_what_comes_and_goes_beside(own_server):
    """Nothing of what is learned from has gone, however much has."""
    sets = [("CSET", b"KEY:%d" % i, row) for i, row in enumerate(rows(5000))]
    in_time = False
    while not in_time:
        with learning(own_server, 40_000) as (_, r, asked):
            in_time = was_learning(at_one_moment(r, INTO_THE_OTHER, *[*sets, ("FLUSHDB",)] * 10, BACK, STATS)[-1])
            assert asked.recv(100) == b"+OK\r\n"


def test_replaced_by_a_full_sync(own_server):
    """The dictionary of the primary comes with its data, and stays."""
    primary = own_server({"repl-diskless-sync-delay": 0})
    with primary.client() as p:
        stored = load(p, rows(30_000))
        p.execute_command("CKV", "TRAIN")
        there = settled_bytes(p)
        in_time = False
        while not in_time:
            with learning(own_server, 100_000) as (_, r, _):
                r.execute_command("REPLICAOF", "127.0.0.1", primary.port)
                wait_for(lambda: r.info("replication")["master_link_status"] == "up", what="the sync")
                in_time = info(r)["trainings"] == 0
                wait_for(lambda: not info(r)["training"], what="the end of the training")
                assert settled_bytes(r) < there * 1.15 and info(r)["trainings"] == 0 or not in_time
                assert_stored(r, stored)
