"""Slots moved by MIGRATE while clients read and write: nothing is missed, nothing is lost."""

import time

import pytest
import redis

from cluster import Cluster, Held, Writer, asking, end_move, is_try_again, keys_of, map_name, migrate, other, slot_of, start_move
from helpers import is_error, reply, wait_for


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        yield cluster


@pytest.mark.parametrize("records", (0, 1, 2000))
def test_slow_motion(cluster, records):
    """0 records: no map ever arrives."""
    slot = slot_of(b"slow %d" % records)
    keys = keys_of(slot, max(records, 20))
    source = cluster.owner(slot)
    target = other(cluster, source)
    writers = [Writer(cluster, keys[i::2], i) for i in range(2)]
    for writer in writers:
        for key in writer.keys[:records]:
            writer.command("CSET", key, b"first")
            writer.stored[key] = b"first"
    if records == 0:
        start_move(source, target, slot)
    for writer in writers:
        writer.start()
    if records > 0:
        start_move(source, target, slot)
    time.sleep(0.3)
    moved = migrate(source, target, slot)
    time.sleep(0.3)
    end_move(cluster, target, slot)
    time.sleep(0.3)
    for writer in writers:
        writer.finish()
    print(f"{sum(w.done for w in writers)} commands, {sum(w.refused for w in writers)} sent away, moved {moved}")
    assert not any(w.refused for w in writers)
    assert cluster.owner(slot) is target
    assert not source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10)


SINGLE = [
    ("CGET", "k"),
    ("CSET", "k", "v"),
    ("CSET", "k", "v", "NX", "GET"),
    ("CSETNX", "k", "v"),
    ("CSETEX", "k", "10", "v"),
    ("CGETSET", "k", "v"),
    ("CGETDEL", "k"),
    ("CGETEX", "k", "PERSIST"),
    ("CMGET", "k"),
    ("CMSET", "k", "v"),
    ("CMSETNX", "k", "v"),
    ("CMSETEX", "1", "k", "v"),
    ("CDEL", "k"),
    ("CUNLINK", "k"),
    ("CDELEX", "k", "IFEQ", "v"),
    ("CEXISTS", "k"),
    ("CTOUCH", "k"),
    ("CTTL", "k"),
    ("CPEXPIRETIME", "k"),
    ("CEXPIRE", "k", "10"),
    ("CPERSIST", "k"),
    ("CAPPEND", "k", "v"),
    ("CSTRLEN", "k"),
    ("CGETRANGE", "k", "0", "1"),
    ("CSETRANGE", "k", "0", "v"),
    ("CINCR", "k"),
    ("CINCRBYFLOAT", "k", "1"),
]


@pytest.fixture
def moving(cluster):
    """(source, target) of a slot that is being moved: that of "k", with two records on the source."""
    slot = slot_of(b"k")
    source = cluster.owner(slot)
    target = other(cluster, source)
    source.ask("CMSET", "k", "before", "{k}stays", "v")
    start_move(source, target, slot)
    yield source, target
    for node in (source, target):
        if not node.alive():
            node.start()
    cluster_ready(cluster)
    migrate(source, target, slot)
    end_move(cluster, target, slot)
    cluster.wait()
    target.ask("CDEL", "k", "{k}stays")
    target.ask("DEL", "k")  # a string of that name, which a test has set


def cluster_ready(cluster):
    wait_for(lambda: all(n.info()["cluster_state"] == "ok" for n in cluster.alive()))


def test_target_answers_nothing_before_the_map_is_there(moving):
    source, target = moving
    started = time.monotonic()
    held = {command: Held(target, *command) for command in SINGLE}
    for command in SINGLE:
        assert isinstance(reply(source.client(), *command), redis.exceptions.AskError), command
    for command in SINGLE:
        assert is_try_again(held[command].answer()), command
    assert time.monotonic() - started > 1
    assert target.ask("CLUSTER", "GETKEYSINSLOT", slot_of(b"k"), 10) == []
    migrate(source, target, slot_of(b"k"))
    assert asking(target, "CGET", "k") == b"before"
    for command in SINGLE:
        # Each works, on a record that is new and on one that is there.
        assert not is_error(asking(target, "CSET", "k", "1")), command
        assert not is_try_again(asking(target, *command)), command


def held_in_time(cluster, attempt):
    """attempt(source, target, key) moves a key's slot and tells what those who were held meanwhile were answered. They are
    held for a second; if the machine stood still for that long, it is another key's turn."""
    for n in range(10):
        key = f"held {n}"
        slot = slot_of(key)
        source = cluster.owner(slot)
        target = other(cluster, source)
        answers = attempt(source, target, key)
        cluster.wait()
        if not any(is_try_again(answer) for answer in answers):
            return answers, target, key
    raise AssertionError("nobody is held")


def test_clients_are_held_until_the_map_is_there(cluster):
    def attempt(source, target, key):
        source.ask("CSET", key, "before")
        start_move(source, target, slot_of(key))
        held = [Held(target, *command) for command in (("CGET", key), ("CAPPEND", key, " and after"), ("CGET", key))]
        given_up = Held(target, "CSET", key, "nobody waits for this")
        given_up.r.close()
        time.sleep(0.05)
        early = [h.answer() for h in held if h.answered()]
        assert all(is_try_again(answer) for answer in early)
        migrate(source, target, slot_of(key))
        answers = early or [h.answer() for h in held]
        end_move(cluster, target, slot_of(key))
        return answers

    answers, target, key = held_in_time(cluster, attempt)
    assert answers == [b"before", 16, b"before and after"]
    assert target.ask("CGET", key) == b"before and after"


def test_clients_are_held_until_the_slot_is_closed(cluster):
    """It holds no record."""
    replicas = []

    def attempt(source, target, key):
        start_move(source, target, slot_of(key))
        replicas.append(cluster.add_replica(target))
        held = [Held(target, "CSET", key, "replicated"), Held(target, "CGET", key)]
        end_move(cluster, target, slot_of(key))
        return [h.answer() for h in held]

    answers, target, key = held_in_time(cluster, attempt)
    assert answers == [b"OK", b"replicated"]
    assert target.ask("CGET", key) == b"replicated"
    wait_for(lambda: replicas[-1].ask("CDBSIZE") == target.ask("CDBSIZE") > 0, what="the replica")
    for replica in replicas:
        replica_id = replica.id
        replica.close()
        cluster.nodes.remove(replica)
        for node in cluster.primaries:
            node.ask("CLUSTER", "FORGET", replica_id)


def test_nothing_is_written_during_a_pause(cluster):
    slot = slot_of(b"pause")
    source = cluster.owner(slot)
    target = other(cluster, source)
    start_move(source, target, slot)
    held = Held(target, "CSET", "pause", "v")
    target.ask("CLIENT", "PAUSE", 60_000, "WRITE")
    end_move(cluster, target, slot)
    assert is_try_again(held.answer())
    target.ask("CLIENT", "UNPAUSE")
    assert target.ask("CGET", "pause") is None


@pytest.fixture
def down(moving):
    """(source, target) as those of `moving`; down() is the end of the cluster for the target, for want of a slot."""
    source, target = moving
    given = []

    def down():
        given.append(slots_of(target)[0])
        target.ask("CLUSTER", "DELSLOTS", *given)
        wait_for(lambda: target.info()["cluster_state"] == "fail", what="a cluster that is down")

    yield source, target, down
    if given:
        target.ask("CLUSTER", "ADDSLOTS", *given)


def slots_of(node):
    ranges = next(fields for fields in node.knows().values() if "myself" in fields[2])[8:]
    ends = [[int(end) for end in r.split("-")] for r in ranges if not r.startswith("[")]
    return [slot for e in ends for slot in range(e[0], e[-1] + 1)]


def test_who_is_held_when_the_cluster_goes_down_is_not_served(down):
    """The server refuses whatever is asked of it then, and does not say whose the slot is."""
    source, target, down = down
    held = [Held(target, "CGET", "k"), Held(target, "CSET", "k", "lost")]
    down()
    answers = [h.answer() for h in held]  # or CLUSTERDOWN: most servers send those away who wait
    assert all(is_error(answer) for answer in answers), answers
    assert target.ask("CLUSTER", "GETKEYSINSLOT", slot_of(b"k"), 10) == []


def test_reading_while_the_cluster_is_down(down):
    source, target, down = down
    at_home = b"absent:" + keys_of(slots_of(target)[-1], 1)[0]
    target.ask("CONFIG", "SET", "cluster-allow-reads-when-down", "yes")
    try:
        down()
        assert is_error(asking(target, "CGET", "k"))
        assert target.ask("CGET", at_home) is None
    finally:
        target.ask("CONFIG", "SET", "cluster-allow-reads-when-down", "no")


def test_who_is_held_when_the_node_becomes_a_replica_writes_nothing():
    with Cluster(2, replicas=1) as cluster:
        slot = slot_of(b"k")
        source = cluster.owner(slot)
        target = other(cluster, source)
        source.ask("CSET", "k", "before")
        successor = next(n for n in cluster.replicas if n.knows()[n.id][3] == target.id)
        start_move(source, target, slot)
        held = Held(target, "CSET", "k", "lost")
        successor.ask("CLUSTER", "FAILOVER", "TAKEOVER")
        wait_for(lambda: "slave" in target.knows()[target.id][2], what="another primary")
        try:
            assert is_error(held.answer())
        except redis.ConnectionError:
            pass  # other servers send all away who wait
        assert target.ask("CLUSTER", "GETKEYSINSLOT", slot_of(b"k"), 10) == []


def test_who_tracks_keys_is_not_held(moving):
    """The server would not note that the key was read."""
    _, target = moving
    took = []
    while not took or min(took) >= 0.9:  # the second for which others are held
        assert len(took) < 5, took
        started = time.monotonic()
        assert is_try_again(Held(target, "CGET", "k", setup=[("CLIENT", "TRACKING", "ON", "NOLOOP")]).answer())
        took.append(time.monotonic() - started)


def test_nobody_waits_on_where_the_slot_is_given_back(moving):
    source, target = moving
    slot, took = slot_of(b"k"), []
    while not took or min(took) >= 0.9:
        assert len(took) < 5, took
        started = time.monotonic()
        held = [Held(target, "CGET", "k"), Held(target, "CSET", "k", "lost")]
        target.ask("CLUSTER", "SETSLOT", slot, "STABLE")
        assert all(is_try_again(h.answer()) for h in held)
        took.append(time.monotonic() - started)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    assert target.ask("CLUSTER", "GETKEYSINSLOT", slot, 10) == []


def test_transaction_and_script_on_the_target(moving):
    source, target = moving
    script = "return redis.call('CSET', KEYS[1], 'script')"
    assert is_error(asking(target, "EVAL", script, 1, "k"), "being moved")
    with target.client() as r:
        r.execute_command("ASKING")
        r.execute_command("MULTI")
        r.execute_command("CSET", "k", "transaction")
        answers = reply(r, "EXEC")
        assert is_error(answers) or all(is_try_again(a) for a in answers)
    migrate(source, target, slot_of(b"k"))
    assert asking(target, "CGET", "k") == b"before"


@pytest.mark.parametrize("which", ("source", "target", "both"))
@pytest.mark.parametrize("arrived", (False, True))
def test_restart_in_the_middle(cluster, moving, which, arrived):
    source, target = moving
    if arrived:
        migrate(source, target, slot_of(b"k"))
    for node in {"source": [source], "target": [target], "both": [source, target]}[which]:
        node.restart(save=True)
    cluster_ready(cluster)
    assert isinstance(reply(source.client(), "CGET", "k"), redis.exceptions.AskError)
    if not arrived:
        assert is_try_again(asking(target, "CGET", "k"))
        assert is_try_again(asking(target, "CSET", "k", "other"))
        migrate(source, target, slot_of(b"k"))
    assert asking(target, "CGET", "k") == b"before"


def test_string_of_the_same_name_on_the_source(moving):
    """The server finds the string and lets the command through, though the map has left."""
    source, target = moving
    source.ask("CLUSTER", "SETSLOT", slot_of(b"k"), "STABLE")
    source.ask("SET", "k", "a string")
    source.ask("CLUSTER", "SETSLOT", slot_of(b"k"), "MIGRATING", target.id)
    assert source.ask("CGET", "k") == b"before"
    name = map_name(slot_of(b"k"))
    assert source.ask("MIGRATE", "127.0.0.1", target.port, name, 0, 5000) == b"OK"
    with source.client() as r:
        assert is_try_again(reply(r, "CGET", "k"))
        assert is_try_again(reply(r, "CSET", "k", "lost"))
    assert asking(target, "CGET", "k") == b"before"


def test_missing_records_of_a_slot_that_is_at_home(cluster):
    """A slot without a map costs a question to the server; it is answered with no, and quietly."""
    slot = slot_of(b"nothing here")
    node = cluster.owner(slot)
    with node.client() as r:
        r.execute_command("CONFIG", "SET", "notify-keyspace-events", "KEAm")
        with r.pubsub() as events:
            events.psubscribe("__key*")
            misses = r.execute_command("INFO", "ckv")["ckv_misses"]
            assert r.execute_command("CGET", "nothing here") is None
            assert r.execute_command("CMGET", "nothing here") == [None]
            assert r.execute_command("CDEL", "nothing here") == 0
            assert r.execute_command("INFO", "ckv")["ckv_misses"] == misses + 2
            told = [events.get_message(timeout=0.2) for _ in range(8)]
            assert not [m for m in told if m and b"ckv:" in (m["channel"] + str(m["data"]).encode())]
        r.execute_command("CONFIG", "SET", "notify-keyspace-events", "")
