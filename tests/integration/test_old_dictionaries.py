"""Dictionaries are there as long as some page needs them, in memory and in files."""

import random

import pytest

from helpers import assert_stored, info, load, map_keys, reply, texts, wait_for


def learn(r):
    r.execute_command("CKV", "TRAIN")
    r.execute_command("CKV", "OPTIMIZE")


def test_a_map_that_is_away_keeps_one_dictionary(own_server):
    """However often is trained: there are numbers for 254."""
    with own_server({"ckv.train-after": "64kb", "ckv.maps": 1}).client() as r:
        stored = load(r, texts(600))
        learn(r)
        r.execute_command("RENAME", "ckv:0", "aside")
        load(r, texts(40, seed=2))
        for i in range(12):
            learn(r)
            assert info(r)["trainings"] == i + 2
            assert info(r)["dictionaries"] <= 3
        r.execute_command("RENAME", "aside", "ckv:0")
        assert_stored(r, stored)
        # What has come back moves to the newest one, and the other goes.
        wait_for(lambda: info(r)["dictionaries"] == 1)
        assert_stored(r, stored)


def test_a_reload_adds_no_dictionaries(own_server):
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        stored = load(r, texts(2000))
        learn(r)
        bytes_of_one = info(r)["dictionary_bytes"]
        pipe = r.pipeline(transaction=False)
        for _ in range(10):
            pipe.execute_command("DEBUG", "RELOAD")
        assert pipe.execute() == [b"OK"] * 10
        assert info(r)["dictionaries"] == 1 and info(r)["dictionary_bytes"] == bytes_of_one
        assert_stored(r, stored)


def test_a_file_has_the_dictionaries_in_use_only(own_server):
    """Nothing has come by to free the other one between the commands of a pipeline."""
    server = own_server({"ckv.train-after": "64kb", "ckv.maps": 1})
    with server.client() as r:
        load(r, texts(1000))
        learn(r)
        pipe = r.pipeline(transaction=False)
        for command in (("CKV", "TRAIN"), ("RENAME", "ckv:0", "aside"), ("DEL", "aside"), ("CSET", "k", "v"), ("SAVE",)):
            pipe.execute_command(*command)
        pipe.execute()
    server.restart(save=False)
    with server.client() as r:
        assert info(r)["dictionaries"] <= 1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_dictionaries_go_with_the_last_map_that_needs_them(own_server, asynchronous):
    """Even if the maps are freed on another thread, after the pass that has left no other page behind."""
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        load(r, texts(5000))
        learn(r)
        names = map_keys(r)
        for name in names:
            r.execute_command("RENAME", name, b"aside:" + name)
        load(r, texts(3000, seed=5))
        learn(r)
        assert info(r)["dictionaries"] == 2
        r.execute_command("UNLINK" if asynchronous else "DEL", *(b"aside:" + name for name in names))
        wait_for(lambda: info(r)["dictionaries"] == 1)


def fill(r, count=100_000):
    """So much data of so many words that its dictionary is of some hundred KB."""
    rng = random.Random(1)
    words = [rng.randbytes(4).hex() for _ in range(20_000)]
    stored = load(r, [" ".join(rng.choices(words, k=8)).encode() for _ in range(count)])
    learn(r)
    assert info(r)["dictionary_bytes"] > 150_000
    return stored


def test_a_dictionary_of_deleted_data_does_not_lock_the_store(own_server):
    """With a limit below its size, nothing but the dictionary could go."""
    with own_server({"ckv.maps": 16}).client() as r:
        stored = fill(r)
        keys = list(stored)
        for start in range(0, len(keys) - 1000, 1000):
            r.execute_command("CDEL", *keys[start:start + 1000])
        r.config_set("ckv.maxmemory", info(r)["dictionary_bytes"] * 9 // 10)
        wait_for(lambda: reply(r, "CSET", "new", "value") == b"OK")
        wait_for(lambda: info(r)["dictionary_bytes"] < 100_000)
        assert_stored(r, {k: stored[k] for k in keys[len(keys) // 1000 * 1000:]})


def test_a_dictionary_shrinks_with_its_data(own_server):
    with own_server({"ckv.maps": 16}).client() as r:
        stored = fill(r)
        keys = list(stored)
        for start in range(10, len(keys), 1000):
            r.execute_command("CDEL", *keys[start:start + 1000])
        wait_for(lambda: 0 <= info(r)["dictionary_bytes"] <= 128 << 10)
        assert_stored(r, {k: stored[k] for k in keys[:10]})


def test_a_dictionary_of_hardly_any_data_is_given_up(own_server):
    with own_server({"ckv.maps": 16}).client() as r:
        stored = fill(r)
        keys = list(stored)
        pipe = r.pipeline(transaction=True)  # no training in between, whose dictionary would be small enough to stay
        for start in range(10, len(keys), 1000):
            pipe.execute_command("CDEL", *keys[start:start + 1000])
        pipe.execute()
        wait_for(lambda: info(r)["dictionaries"] == 0)
        assert_stored(r, {k: stored[k] for k in keys[:10]})
