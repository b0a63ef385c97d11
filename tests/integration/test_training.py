"""Dictionaries: trained by themselves and on demand, pages brought up to date, nothing changed by it."""

import os
import signal
import threading
import time
from itertools import chain
from random import Random

import pytest

from server import MODULE
from helpers import assert_stored, cpu_seconds, held_up, info, is_error, load, noise, reply, texts, threads_of, wait_for


def json_rows(count):
    return [b'{"id": %d, "first_name": "name %d", "email": "name.%d@example.com", "active": %s}'
            % (i, i * 7919 % 1000, i, b"true" if i % 3 else b"false") for i in range(count)]


def test_train_and_optimize(own_server):
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        stored = load(r, texts(20_000), ttl=100_000)
        before = info(r)
        assert before["dictionaries"] == 0
        assert before["trainings"] == 0
        assert r.execute_command("CKV", "TRAIN") == b"OK"
        trained = info(r)
        assert trained["trainings"] == 1
        assert trained["dictionaries"] >= 1
        assert trained["dictionary_bytes"] > 0
        assert r.execute_command("CKV", "OPTIMIZE") == b"OK"
        after = info(r)
        assert after["pages_to_reencode"] == 0
        assert after["page_bytes"] < before["page_bytes"] * 0.8
        assert after["bytes_per_record"] < before["bytes_per_record"]
        assert after["compression_ratio"] > before["compression_ratio"]
        assert after["records"] == before["records"] == len(stored)
        assert_stored(r, stored)


def test_trained_by_itself(own_server):
    with own_server({"ckv.train-after": "256kb"}).client() as r:
        stored = load(r, texts(20_000))
        wait_for(lambda: info(r)["dictionaries"] >= 1, what="the first dictionary")
        assert info(r)["trainings"] >= 1
        # Writes go on with it, and old pages follow in the background.
        stored |= load(r, texts(2000, seed=3), first=50_000)
        wait_for(lambda: info(r)["pages_to_reencode"] == 0, what="re-encoding in the background")
        assert_stored(r, stored)


@pytest.mark.slow
def test_every_database_is_learned_from(own_server):
    """Also where another one alone has more than a sample takes."""
    with own_server({"ckv.train-after": "1gb"}) as server:
        for db, rows in ((0, texts(100_000) * 4), (1, json_rows(60_000))):
            with server.client(db=db) as r:
                load(r, rows)
        with server.client(db=1) as r:
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")
            with_both = info(r)["page_bytes"]
            r.execute_command("FLUSHDB")
            assert (with_both - info(r)["page_bytes"]) / 60_000 < 20


def test_not_trained_before_its_time(own_server):
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        load(r, texts(20_000))
        time.sleep(0.3)
        assert info(r)["trainings"] == 0


def test_trained_on_other_data(own_server):
    """Data that changes its kind: old dictionaries stay as long as a page needs them."""
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        stored = load(r, texts(5000))
        r.execute_command("CKV", "TRAIN")
        stored |= load(r, json_rows(5000), key=b"json:%d")
        r.execute_command("CKV", "TRAIN")
        assert_stored(r, stored)
        r.execute_command("CKV", "OPTIMIZE")
        assert_stored(r, stored)
        assert info(r)["trainings"] == 2
        # Only the current dictionaries (one for keys, one for values at most) are left.
        assert info(r)["dictionaries"] <= 2


def test_taken_only_if_worth_it(own_server):
    """Data that grows and does not change keeps its dictionaries; another kind of data gets new ones."""
    server = own_server({"ckv.train-after": "256kb", "ckv.dictionary-size": "64kb"})
    with server.client() as r:
        # Keys and values of both halves are alike, and mostly what nobody can learn: no dictionary is better by chance.
        random = Random(1)
        ids = random.sample(range(10**8, 10**9), 6000)
        records = [(b"json:%d" % i, b'{"id": %d, "token": "%0200x"}' % (i, random.getrandbits(800))) for i in ids]
        r.execute_command("CMSET", *chain.from_iterable(records[:3000]))
        r.execute_command("CKV", "TRAIN")
        trained = info(r)["trainings"]
        r.execute_command("CMSET", *chain.from_iterable(records[3000:]))
        wait_for(lambda: "not taken" in server.log(), what="a training for nothing")
        assert info(r)["trainings"] == trained
        stored = dict(records) | load(r, texts(8000))
        wait_for(lambda: info(r)["trainings"] > trained, what="dictionaries for the new kind of data")
        assert_stored(r, stored)


def test_nothing_to_learn(own_server):
    """Noise gets no dictionaries; what comes in its place later does."""
    server = own_server({"ckv.train-after": "256kb"})
    with server.client() as r:
        load(r, [noise(400, seed) for seed in range(3000)], key=b"%d")
        wait_for(lambda: "not taken" in server.log(), what="a training for nothing")
        assert info(r)["dictionaries"] == 0
        stored = load(r, texts(10_000), key=b"%d")
        wait_for(lambda: info(r)["dictionaries"] > 0, what="dictionaries for the new kind of data")
        assert_stored(r, stored)


def test_what_was_in_vain_is_not_tried_again_before_a_quarter_is_new(own_server):
    """However little the first training looks at."""
    server = own_server({})

    def in_vain():
        """How often, when no more comes: less has to be new where nothing is written for three seconds. A timer may be late."""
        counts = []
        while len(counts) < 3 or len(set(counts[-3:])) > 1:
            counts.append(server.log().count("not taken"))
            time.sleep(4)
            wait_for(lambda: info(r)["training"] == 0)
        return counts[-1]

    with server.client() as r:
        load(r, [noise(200, seed) for seed in range(20_000)], key=b"%d")
        before = in_vain()
        assert before > 0
        for part in range(2):
            load(r, [noise(200, seed) for seed in range(20_000 + part * 1750, 21_750 + part * 1750)], key=b"%d")
            time.sleep(4)
        assert in_vain() == before


def test_what_comes_while_nothing_is_learned(own_server):
    """What has been written over noise while that was being learned is there to be learned, though no more comes."""
    server = own_server({"ckv.train-after": "1gb", "ckv.encode-threads": 0})  # no thread but the one that learns begins
    with server.client() as r:
        # As long as the texts, or half of it goes and nothing is confirmed; none of them young, which count when they are
        # encoded, after the training.
        load(r, [noise(160, seed) for seed in range(12_500)], key=b"%d")
        some = texts(25_000)
        lines = [b" ".join(some[i : i + 2]) for i in range(0, 25_000, 2)]
        before = threads_of(server)
        r.config_set("ckv.train-after", "256kb")
        # What is learned from has been taken: a thread learns from it.
        wait_for(lambda: threads_of(server) > before or "not taken" in server.log(), what="a training")
        stored = load(r, lines, key=b"%d")
        wait_for(lambda: "not taken" in server.log(), what="a training for nothing")
        wait_for(lambda: info(r)["dictionaries"] > 0, what="dictionaries for the new kind of data")
        assert_stored(r, stored)


# Stores that have no value short enough to learn from, and but one key to keep for a comparison, or none that is kept encoded.
NOTHING = {
    "one value": {b"big": noise(2_000_000)},
    "neighbours": {b"img:011%02d" % i: noise(100_000, i) for i in range(60)},
    "long keys": {b"k" * 2000 + b":%d:x" % i: noise(70_000, i) for i in range(50)},
}


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_to_learn_from(own_server, kind):
    """That is said once, not found out again and again; what comes later is learned."""
    server = own_server()
    with server.client() as r:
        for key, value in NOTHING[kind].items():
            r.execute_command("CSET", key, value)
        wait_for(lambda: "nothing to learn from" in server.log(), what="a training for nothing")
        time.sleep(0.5)
        assert server.log().count("nothing to learn from") == 1 and "failed" not in server.log()
        assert info(r)["training"] == 0
        stored = NOTHING[kind] | load(r, texts(100_000), key=b"%d:x")
        wait_for(lambda: info(r)["dictionaries"] > 0, what="dictionaries for other data")
        assert_stored(r, stored)


def test_asked_for_where_there_is_nothing_to_learn_from(own_server):
    server = own_server()
    with server.client() as r:
        r.execute_command("CSET", b"k" * 2000, noise(100_000))
        for _ in range(3):
            assert is_error(reply(r, "CKV", "TRAIN"), "the training failed")


def test_a_training_that_fails_is_not_tried_again_at_once(own_server, faults):
    """But when somebody asks for it."""
    server = own_server({"ckv.train-after": "256kb"}, env=faults.env)
    failure = "a training failed: can't start a thread"
    with server.client() as r:
        faults.set(no_threads=True)
        stored = load(r, texts(10_000))
        wait_for(lambda: failure in server.log(), what="a training that fails")
        time.sleep(0.5)
        assert server.log().count(failure) == 1
        assert is_error(reply(r, "CKV", "TRAIN"), "the training failed")
        faults.set()
        assert r.execute_command("CKV", "TRAIN") == b"OK"
        assert_stored(r, stored)


def test_many_trainings(own_server):
    with own_server().client() as r:
        stored = load(r, texts(3000))
        for i in range(12):
            assert r.execute_command("CKV", "TRAIN") == b"OK"
            stored |= load(r, texts(200, seed=i), first=i * 100)
        assert info(r)["trainings"] >= 12
        assert_stored(r, stored)
        r.execute_command("CKV", "OPTIMIZE")
        assert info(r)["dictionaries"] <= 2
        assert_stored(r, stored)


@pytest.mark.parametrize("count", [0, 1, 5, 50])
def test_train_on_next_to_nothing(own_server, count):
    """Too little to learn from: says so or does it, and stays sane."""
    with own_server().client() as r:
        stored = load(r, texts(count))
        try:
            r.execute_command("CKV", "TRAIN")
        except Exception as error:
            assert any(word in str(error) for word in ("too few", "not enough", "no records")), error
        assert r.execute_command("CKV", "OPTIMIZE") == b"OK"
        assert_stored(r, stored)


def test_train_on_odd_data(own_server):
    with own_server().client() as r:
        kinds = {
            b"empty:%d": [b""] * 3000,
            b"same:%d": [b"the same value for all"] * 3000,
            b"one:%d": [bytes([i % 256]) for i in range(3000)],
            b"zero:%d": [bytes(i % 500) for i in range(3000)],
        }
        stored = {}
        for key, values in kinds.items():
            stored |= load(r, values, key=key)
            try:
                r.execute_command("CKV", "TRAIN")
            except Exception as error:
                assert "ERR" not in type(error).__name__
            r.execute_command("CKV", "OPTIMIZE")
            assert_stored(r, stored)


def test_while_others_work(own_server):
    """OPTIMIZE and TRAIN reply when done; meanwhile everybody else is served."""
    server = own_server({"ckv.train-after": "1gb"})
    with server.client() as r, server.client() as other:
        stored = load(r, texts(60_000))

        def slowest_answer(command):
            slowest = 0
            done = threading.Event()
            answers = []

            def run():
                answers.append(r.execute_command("CKV", command))
                done.set()

            thread = threading.Thread(target=run)
            thread.start()
            served = 0
            while not done.is_set():
                asked, before = time.monotonic(), held_up(server)
                key = b"KEY:%d" % (served * 7 % len(stored))
                if served % 3:
                    assert other.execute_command("CGET", key) == stored[key]
                else:
                    stored[key] = b"written during " + command.encode() + b" %d" % served
                    assert other.execute_command("CSET", key, stored[key]) == b"OK"
                took = time.monotonic() - asked
                slowest = max(slowest, took - (held_up(server) - before))
                served += 1
            thread.join()
            assert answers == [b"OK"]
            return slowest

        for command in ("TRAIN", "OPTIMIZE"):
            slowest = []
            # Generous; and if the machine was busy with something else, it won't be each time.
            while not slowest or min(slowest) >= 0.25:
                assert len(slowest) < 20, slowest
                slowest.append(slowest_answer(command))
        assert_stored(r, stored)


def test_pages_wait_while_a_child_saves(own_server):
    """But for somebody who waits for them."""
    server = own_server({"ckv.train-after": "1gb", "ckv.maps": 16, "rdb-key-save-delay": 60_000_000})
    with server.client() as r:
        stored = load(r, texts(20_000))
        r.execute_command("BGSAVE")
        r.execute_command("CKV", "TRAIN")
        waiting = info(r)["pages_to_reencode"]
        time.sleep(0.5)
        assert info(r)["pages_to_reencode"] == waiting > 0
        assert r.execute_command("CKV", "OPTIMIZE") == b"OK"
        assert info(r)["pages_to_reencode"] == 0
        r.execute_command("CKV", "TRAIN")
        assert info(r)["pages_to_reencode"] > 0
        assert r.info("persistence")["rdb_bgsave_in_progress"] == 1
        with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as f:
            os.kill(int(f.read()), signal.SIGKILL)
        wait_for(lambda: info(r)["pages_to_reencode"] == 0, what="re-encoding when the child is gone")
        assert_stored(r, stored)


def test_pages_are_written_anew_by_the_encoders(own_server):
    """Nearly all of what it takes was the main thread's."""
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        stored = load(r, texts(30_000) + [b" ".join(texts(40, seed=i)) for i in range(1000)])
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        r.execute_command("CKV", "TRAIN")
        before, main = r.info("cpu"), cpu_seconds(r)
        r.execute_command("CKV", "OPTIMIZE")
        main, after = cpu_seconds(r) - main, r.info("cpu")
        whole = sum(after[name] - before[name] for name in ("used_cpu_user", "used_cpu_sys"))
        assert main < whole / 2
        assert info(r)["pages_to_reencode"] == 0 and info(r)["dictionaries"] == 1
        assert_stored(r, stored)


def test_what_was_encoded_fast_is_written_anew_later(own_server):
    """While clients wait for short values these are encoded fast; when nothing is written any more, the cheapest way."""
    rng = Random(3)
    syllables = ["".join(rng.choices("aeiourstnlm", k=rng.randint(1, 3))) for _ in range(200)]
    # Phrases of these overlap in many ways: the cheapest way takes 7% less, whatever is learned. Of texts() it is 1 to 2%.
    values = ["".join(rng.choices(syllables, k=rng.randint(20, 60))).encode() for _ in range(50_000)]
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        stored = load(r, values[:40_000])
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        r.config_set("ckv.encode-threads", 0)
        stored |= load(r, values[10_000:])  # over the others: what grows is a reason to learn anew
        written, trainings = info(r)["page_bytes"], info(r)["trainings"]
        time.sleep(4)
        assert info(r)["page_bytes"] == written
        r.config_set("ckv.encode-threads", 1)
        wait_for(lambda: info(r)["page_bytes"] < written * 0.96, what="pages written anew")
        wait_for(lambda: info(r)["pages_to_reencode"] == 0, what="the end of that")
        assert info(r)["trainings"] == trainings
        assert_stored(r, stored)


def test_what_is_written_while_pages_are_written_anew(own_server):
    """By more and less encoders, in many maps and few, and in between none at all."""
    rng = Random(5)
    values = texts(3000) + [b" ".join(texts(count, seed=count)) for count in range(20, 600, 10)] + [noise(2000, i) for i in range(20)]
    with own_server({"ckv.train-after": "1gb", "ckv.maps": 4}).client() as r:
        stored = {}

        def write(count):
            pipe = r.pipeline(transaction=False)
            for _ in range(count):
                key = b"KEY:%d" % rng.randrange(8000)
                if rng.random() < 0.2:
                    stored.pop(key, None)
                    pipe.execute_command("CDEL", key)
                    continue
                stored[key] = rng.choice(values)
                expiry = rng.choice([(), ("EX", rng.randrange(1000, 10**6))])
                pipe.execute_command("CSET", key, stored[key], *expiry)
            pipe.execute()

        write(20_000)
        for threads in (1, 2, 0, 4, 1):
            r.execute_command("CKV", "TRAIN")
            for _ in range(20):
                write(rng.choice([1, 50, 500]))
                r.config_set("ckv.encode-threads", rng.choice([threads, threads, 0, 3]))
            if rng.random() < 0.5:
                r.execute_command("DEBUG", "RELOAD")
            r.execute_command("CKV", "OPTIMIZE")
            assert info(r)["pages_to_reencode"] == 0 and info(r)["dictionaries"] == 1
            assert r.execute_command("CDBSIZE") == len(stored)
            assert_stored(r, stored)


def test_two_optimizes_at_once(own_server):
    server = own_server()
    with server.client() as r:
        stored = load(r, texts(20_000))
        r.execute_command("CKV", "TRAIN")
        answers = []

        def run(command):
            with server.client() as c:
                answers.append(c.execute_command("CKV", command))

        threads = [threading.Thread(target=run, args=(c,)) for c in ("OPTIMIZE", "TRAIN", "OPTIMIZE", "TRAIN")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert answers == [b"OK"] * 4
        assert_stored(r, stored)


def test_client_that_leaves(own_server):
    """A client that hangs up while it waits for TRAIN or OPTIMIZE."""
    server = own_server()
    with server.client() as r:
        stored = load(r, texts(20_000))
        for command in ("TRAIN", "OPTIMIZE"):
            with server.socket() as s:
                s.sendall(b"CKV %s\r\n" % command.encode())
        time.sleep(0.2)
        assert r.execute_command("CKV", "OPTIMIZE") == b"OK"
        assert_stored(r, stored)


def test_flushed_while_training(own_server):
    server = own_server()
    with server.client() as r:
        for _ in range(5):
            load(r, texts(10_000))
            with server.socket() as s:
                s.sendall(b"CKV TRAIN\r\nCKV OPTIMIZE\r\n")
                r.execute_command("FLUSHALL")
                stored = load(r, json_rows(100))
            assert_stored(r, stored)
            assert r.execute_command("CKV", "OPTIMIZE") == b"OK"
            assert_stored(r, stored)


def test_in_a_transaction_or_script(own_server):
    """Where a client cannot wait, it is answered at once: with a result or with a reason."""
    with own_server().client() as r:
        stored = load(r, texts(3000))
        for command in ("TRAIN", "OPTIMIZE"):
            pipe = r.pipeline(transaction=True)
            pipe.execute_command("CKV", command)
            answer = pipe.execute(raise_on_error=False)[0]
            assert answer == b"OK" or isinstance(answer, Exception), answer
            try:
                r.execute_command("EVAL", f"return redis.call('CKV', '{command}')", 0)
            except Exception as error:
                assert "CKV" in str(error) or "script" in str(error) or "block" in str(error).lower(), error
        assert_stored(r, stored)


def test_info_and_stats_agree(own_server):
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        load(r, texts(3000), ttl=1000)
        load(r, texts(3000), first=3000)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        fields = info(r)
        stats = r.execute_command("CKV", "STATS")
        stats = dict(zip((k.decode() for k in stats[::2]), stats[1::2]))
        expected = ["records", "records_with_expiry", "raw_key_bytes", "raw_value_bytes", "page_bytes",
                    "bytes_per_record", "compression_ratio", "dictionaries", "dictionary_bytes",
                    "dictionary_age_seconds", "trainings", "pages_to_reencode", "expired_records", "maps",
                    "buckets", "pages"]
        assert list(fields) == list(stats)
        assert set(expected) <= set(fields)
        assert set(expected) <= set(stats)
        for field in ("records", "records_with_expiry", "raw_key_bytes", "raw_value_bytes", "maps", "buckets"):
            assert int(stats[field]) == fields[field]
        assert fields["records"] == 6000
        assert fields["records_with_expiry"] == 3000
        assert fields["raw_key_bytes"] == sum(len("KEY:%d" % i) for i in range(6000))
        assert fields["raw_value_bytes"] == sum(map(len, texts(3000))) * 2
        assert 0 < fields["maps"] <= 1024
        assert fields["maps"] <= fields["buckets"]
        assert 0 < fields["pages"]
        assert fields["compression_ratio"] > 1


def test_figures_follow_every_change(own_server):
    """The sums are kept along the way; they must be those of a count from scratch."""
    with own_server().client() as r:
        stored = load(r, texts(3000), ttl=1000)
        for i, key in enumerate(list(stored)):
            if i % 3 == 0:
                r.execute_command("CDEL", key)
                del stored[key]
            elif i % 3 == 1:
                stored[key] = b"x" * (i % 2000)
                r.execute_command("CSET", key, stored[key])

        def check():
            fields = info(r)
            assert fields["records"] == len(stored)
            assert fields["records_with_expiry"] == 1000
            assert fields["raw_key_bytes"] == sum(map(len, stored))
            assert fields["raw_value_bytes"] == sum(map(len, stored.values()))

        check()
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        check()
        r.execute_command("DEBUG", "RELOAD")
        check()
        r.execute_command("FLUSHALL")
        fields = info(r)
        for field in ("records", "records_with_expiry", "raw_key_bytes", "raw_value_bytes", "page_bytes",
                      "maps", "buckets", "pages", "pages_to_reencode"):
            assert fields[field] == 0, field


def test_memory_is_freed(own_server):
    """Loading and flushing again and again does not grow."""
    with own_server({"ckv.train-after": "64kb"}).client() as r:
        used = []
        for i in range(6):
            load(r, texts(10_000, seed=i))
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")
            r.execute_command("FLUSHALL", "SYNC")
            used.append(r.info("memory")["used_memory"])
        assert used[-1] < used[1] * 1.1 + 500_000


@pytest.mark.parametrize("level", [1, 19])
@pytest.mark.parametrize("size", ["64kb", "64mb"])
def test_settings_at_their_ends(own_server, level, size):
    config = {"ckv.compression-level": level, "ckv.dictionary-size": size, "ckv.train-after": "64kb"}
    with own_server(config).client() as r:
        stored = load(r, texts(5000))
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        assert_stored(r, stored)


def test_settings_changed_at_run_time(own_server):
    with own_server().client() as r:
        stored = load(r, texts(5000))
        for level in (1, 19, 3):
            assert r.execute_command("CONFIG", "SET", "ckv.compression-level", level) == b"OK"
            assert r.execute_command("CONFIG", "SET", "ckv.dictionary-size", "128kb") == b"OK"
            r.execute_command("CKV", "TRAIN")
            r.execute_command("CKV", "OPTIMIZE")
            assert_stored(r, stored)


@pytest.mark.slow
def test_more_than_one_dictionary_knows_by_heart(own_server):
    """Values that come again and again are learned whole: where one dictionary has no room for all of them, several
    share them, though all are alike."""
    rng = Random(1)
    different = [rng.randbytes(1200).hex().encode() for _ in range(2000)]
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        stored = load(r, different * 50)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        assert info(r)["value_kinds"] > 1
        assert info(r)["page_bytes"] / len(stored) < 1000  # digits by themselves take 1200
        assert_stored(r, stored)


def test_threads_begin_without_memory():
    """The C library ends the server if it has none for variables of a thread's own that it makes as they are used."""
    with open(MODULE, "rb") as module:
        assert b"__tls_get_addr" not in module.read()
