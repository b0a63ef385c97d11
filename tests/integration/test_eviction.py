"""Records are evicted one by one, within maxmemory, and the server never evicts a map."""

import os
import random
import time

import pytest

from helpers import PATIENCE_S, info, is_error, is_in_sync, load, noise, reply, texts, wait_for, wait_for_replica

MB = 1 << 20
POLICIES = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"]


def counted(memory):
    """What the server holds against maxmemory. A backlog of replicas, which a test before may have left, is not counted
    where it is more than its setting: by up to a block of it, as large as a large write."""
    return memory["used_memory"] - memory["mem_not_counted_for_evict"]


@pytest.fixture
def limited(r):
    """A function that sets maxmemory to `room` bytes above what counts, and a policy."""

    def limit(policy, room):
        r.config_set("maxmemory-policy", policy)
        wait_for(lambda: r.info("memory")["lazyfree_pending_objects"] == 0)
        most = counted(r.info("memory")) + room
        r.config_set("maxmemory", most)
        return most

    yield limit
    r.config_set("maxmemory", 0)
    r.config_set("ckv.maxmemory", 0)
    r.config_set("maxmemory-policy", "noeviction")


def evicted(r):
    """What has been evicted by now: records, other keys, keys by the server."""
    figures = info(r)
    return figures["evicted_records"], figures["evicted_other_keys"], r.info("stats")["evicted_keys"]


def write(r, first, count, ttl=None, native_every=0, seed=1):
    """CSETs of mixed sizes that do not compress, some as large as a page; and a native key now and then.
    Returns the most that counted()."""
    rng = random.Random(seed)
    most = 0
    for start in range(first, first + count, 200):
        pipe = r.pipeline(transaction=False)
        for i in range(start, start + 200):
            value = rng.randbytes(rng.randrange(1000, 4000) if rng.random() < 0.01 else rng.randrange(20, 80))
            pipe.execute_command("CSET", f"KEY:{i}", value, *(("EX", ttl) if ttl else ()))
            if native_every and i % native_every == 0:
                pipe.set(f"native:{i}", value, ex=ttl)
        pipe.info("memory")
        most = max(most, counted(pipe.execute()[-1]))
    return most


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_stays_within_the_limit(r, limited, policy):
    before = evicted(r)
    limit = limited(policy, 4 * MB)  # of which a training may take 1 MB meanwhile
    most = write(r, 0, 100_000, ttl=10_000 if policy.startswith("volatile") else None)
    assert most <= limit * 1.01
    records, others, by_server = (now - then for now, then in zip(evicted(r), before))
    assert records > 10_000 and others == 0 and by_server == 0
    assert r.execute_command("CDBSIZE") > 20_000  # not more than was needed
    figures = info(r)
    assert figures["records"] + figures["evicted_records"] - before[0] == 100_000
    assert all(key.startswith(b"ckv:") for key in r.execute_command("KEYS", "*"))


@pytest.mark.parametrize("lazy", ["no", "yes"])
def test_maps_of_one_record_make_room_as_well(own_server, lazy):
    """What is left of such a map is most of what it takes, and must be free by the time that memory is looked at."""
    with own_server({"lazyfree-lazy-server-del": lazy, "maxmemory-policy": "allkeys-random"}).client() as r:
        r.execute_command("CSET", "the first takes more", "x")
        r.config_set("maxmemory", r.info("memory")["used_memory"] + 200 * 1024)
        for i in range(1000):
            assert r.execute_command("CSET", os.urandom(8), "x") == b"OK"
        before = evicted(r)
        left = r.execute_command("CDBSIZE")
        after = evicted(r)  # what INFO replies takes memory as well, and may cost some records
        assert before[0] <= 1001 - left <= after[0]
        assert left > 200 and after[2] == 0


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-ttl"])
def test_other_keys_are_evicted_in_proportion(r, limited, policy):
    limit = limited(policy, 6 * MB)
    ttl = 10_000 if policy.startswith("volatile") else None
    before = evicted(r)
    most = write(r, 0, 80_000, ttl=ttl, native_every=8)
    assert most <= limit * 1.01
    records, others, by_server = (now - then for now, then in zip(evicted(r), before))
    records_left = r.execute_command("CDBSIZE") / 80_000
    others_left = (r.dbsize() - info(r)["maps"]) / 10_000
    assert by_server == 0
    assert records > 1000 and others > 100
    assert 0.5 < others_left / records_left < 2


@pytest.mark.parametrize("policy", ["volatile-lru", "volatile-ttl", "volatile-random"])
def test_records_without_an_expiry_stay(r, limited, policy):
    kept = load(r, texts(5000, seed=2), key=b"stays:%d")
    limit = limited(policy, 3 * MB)
    assert write(r, 0, 60_000, ttl=10_000) <= limit * 1.01
    assert r.execute_command("CEXISTS", *kept) == len(kept)


def test_nothing_to_evict_is_oom(r, limited):
    before = evicted(r)
    limited("volatile-lru", 1 * MB)
    refused = None
    for start in range(0, 200_000, 500):
        pipe = r.pipeline(transaction=False)
        for i in range(start, start + 500):
            pipe.execute_command("CSET", f"KEY:{i}", "v" * 50)
        answers = pipe.execute(raise_on_error=False)
        refused = next((a for a in answers if a != b"OK"), None)
        if refused is not None:
            break
    assert is_error(refused, "command not allowed when used memory > 'maxmemory'")
    assert r.execute_command("CGET", "KEY:1") == b"v" * 50
    assert r.execute_command("CDEL", "KEY:1") == 1
    assert evicted(r) == before


def test_hot_records_outlive_cold_ones(r, limited):
    for policy in ["allkeys-lru", "allkeys-lfu"]:
        r.flushall()
        limited(policy, 2 * MB)
        hot = [f"KEY:{i}" for i in range(0, 10_000, 10)]
        write(r, 0, 10_000)
        for start in range(10_000, 120_000, 2000):
            r.execute_command("CMGET", *hot)
            write(r, start, 2000)
        left = r.execute_command("CEXISTS", *hot)
        assert left > 950, (policy, left)
        assert r.execute_command("CDBSIZE") < 90_000


def test_records_that_expire_soonest_go_first(r, limited):
    soon = load(r, texts(10_000, seed=3), ttl=100, key=b"soon:%d")
    late = load(r, texts(10_000, seed=4), ttl=100_000, key=b"late:%d")
    limited("volatile-ttl", MB // 4)
    for start in range(0, 100_000, 200):
        write(r, start, 200, ttl=50_000)
        if r.execute_command("CEXISTS", *soon) < 8000:
            break
    assert r.execute_command("CEXISTS", *soon) < 8000
    assert r.execute_command("CEXISTS", *late) > 9500


def test_evictions_are_announced_and_replicated(r, own_server, limited):
    r.config_set("repl-backlog-size", "32kb")  # it counts as used memory, and grows
    port = r.connection_pool.connection_kwargs["port"]
    replica = own_server(config={"replicaof": f"127.0.0.1 {port}"}).client()
    wait_for(lambda: is_in_sync(replica))
    r.config_set("notify-keyspace-events", "Ee")
    listener = r.pubsub()
    listener.subscribe("__keyevent@0__:evicted")
    assert listener.get_message(timeout=PATIENCE_S)["type"] == "subscribe"
    before = evicted(r)
    limited("allkeys-lru", 4 * MB)
    heard = set()
    for start in range(0, 80_000, 2000):
        write(r, start, 2000)
        # What waits to be heard takes memory as well.
        while (message := listener.get_message(timeout=0.01)) is not None:
            heard.add(message["data"])
    r.config_set("maxmemory", 0)
    count = evicted(r)[0] - before[0]
    r.execute_command("PUBLISH", "__keyevent@0__:evicted", "the end")
    while (key := listener.get_message(timeout=PATIENCE_S)["data"]) != b"the end":
        heard.add(key)
    assert [key for key in heard if not key.startswith(b"KEY:")] == []
    assert len(heard) == count > 1000
    r.config_set("notify-keyspace-events", "")
    wait_for_replica(r)
    assert replica.execute_command("CDBSIZE") == r.execute_command("CDBSIZE")
    assert evicted(r)[1:] == before[1:]
    assert evicted(replica) == (0, 0, 0)
    assert reply(replica, "CEXISTS", *list(heard)[:100]) == 0


# --- a limit of ckv's own ---


def test_own_limit_with_eviction(r, limited):
    before = evicted(r)
    r.config_set("maxmemory-policy", "allkeys-lru")
    r.config_set("ckv.maxmemory", 3 * MB)
    r.set("other", "x" * (4 * MB))
    write(r, 0, 80_000)
    figures = info(r)
    assert figures["page_bytes"] + figures["large_bytes"] + figures["dictionary_bytes"] <= 3 * MB * 1.01
    assert figures["records"] > 20_000
    assert figures["records"] + figures["evicted_records"] - before[0] == 80_000
    assert r.exists("other") == 1 and evicted(r)[1:] == before[1:]


def test_own_limit_without_eviction(r, limited):
    r.config_set("ckv.maxmemory", 1 * MB)
    answers = []
    for start in range(0, 100_000, 500):
        answers += [reply(r, "CMSET", *sum(([f"KEY:{i}", noise(60, i)] for i in range(start, start + 500)), []))]
        if answers[-1] != b"OK":
            break
    assert is_error(answers[-1], "command not allowed when used memory > 'ckv.maxmemory'")
    stored = (len(answers) - 1) * 500
    assert r.execute_command("CDBSIZE") == stored  # all or nothing
    assert is_error(reply(r, "CAPPEND", "KEY:1", "x"), "ckv.maxmemory")
    assert r.execute_command("CGET", "KEY:1") == noise(60, 1)
    assert r.set("native", "is not concerned")
    assert r.execute_command("CDEL", *[f"KEY:{i}" for i in range(stored // 2)]) == stored // 2
    wait_for(lambda: reply(r, "CSET", "KEY:1", "again") == b"OK")


def test_own_limit_refuses_all_keys_or_none(own_server):
    """A key of the server's own was written before a record was refused, and no replica heard of it."""
    server = own_server({"ckv.prefixes": "p:"})
    with server.client() as r:
        load(r, [noise(400, i) for i in range(4000)])
        r.hset("p:hash", "f", "v")
        r.config_set("ckv.maxmemory", 1 * MB)
        assert is_error(reply(r, "MSET", "p:hash", "v", "p:new", "v"), "ckv.maxmemory")
        assert (r.type("p:hash"), r.exists("p:new")) == (b"hash", 0)


def test_a_limit_lowered_at_run_time(r, limited):
    limited("allkeys-lru", 10 * MB)
    write(r, 0, 60_000)
    used, before = counted(r.info("memory")), evicted(r)
    r.config_set("maxmemory", used - 2 * MB)
    wait_for(lambda: r.config_get("maxmemory")[1] == b"%d" % (used - 2 * MB))
    assert counted(r.info("memory")) <= (used - 2 * MB) * 1.01
    assert evicted(r)[0] > before[0] + 1000 and evicted(r)[1:] == before[1:]


def test_a_setting_that_is_not_about_memory_evicts_nothing(r, limited):
    """Saving a file changes rdbcompression, map by map, and no record may go meanwhile. A string brings the server nearer
    to the limit than it keeps away by itself. In a transaction, between whose commands nothing else makes room."""
    limit = limited("allkeys-lru", 2 * MB)
    write(r, 0, 30_000)
    wait_for(lambda: info(r)["training"] == 0)  # which takes and gives back a megabyte
    free = max(0, limit - counted(r.info("memory")))  # much of it if one has just ended
    pipe = r.pipeline(transaction=True)
    pipe.execute_command("SETRANGE", "native", free + 200_000, "x")
    pipe.info("memory")
    pipe.execute_command("CDBSIZE")
    for value in ("no", "yes"):
        pipe.config_set("rdbcompression", value)
        pipe.execute_command("CDBSIZE")
    _, memory, before, _, after_one, _, after_both = pipe.execute()
    assert counted(memory) > limit - 32 * MB // 100, "there was no reason to evict"
    assert before == after_one == after_both


def test_no_eviction_while_paused(r, limited):
    limited("allkeys-lru", 2 * MB)
    write(r, 0, 30_000)
    wait_for(lambda: info(r)["training"] == 0)
    r.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")
    before = evicted(r)
    r.config_set("maxmemory", r.info("memory")["used_memory"] - MB)  # more than clients and buffers give back meanwhile
    time.sleep(0.2)
    assert evicted(r) == before
    r.execute_command("CLIENT", "UNPAUSE")
    wait_for(lambda: evicted(r)[0] > before[0])
    assert evicted(r)[1:] == before[1:]


def test_an_empty_store_gives_its_dictionaries_back(r):
    load(r, texts(20_000), ttl=None)
    r.execute_command("CKV", "TRAIN")
    assert info(r)["dictionary_bytes"] > 10_000
    r.flushall()
    wait_for(lambda: info(r)["dictionaries"] == 0)
    stored = load(r, texts(20_000))
    r.execute_command("CKV", "TRAIN")
    assert r.execute_command("CGET", b"KEY:5") == stored[b"KEY:5"]


# It stops after some milliseconds, of which another process may take all.
TIMES = 20


@pytest.mark.parametrize("around", ["multi", "script"])
def test_cevict_leaves_its_client_where_it_is(own_server, around):
    """What is evicted may be in another database, as all is that expires."""
    with own_server({"ckv.train-after": "1gb", "maxmemory-policy": "volatile-lru"}).client() as r:
        pipe = r.pipeline(transaction=False)
        pipe.select(3)
        for i in range(20_000):
            pipe.execute_command("CSET", f"KEY:{i}:x", random.Random(i).randbytes(300), "EX", 10_000)
        pipe.select(0)
        pipe.execute()
        r.execute_command("CKV", "OPTIMIZE")  # what is young would only be encoded, to make room
        r.config_set("maxmemory", r.info("memory")["used_memory"] + 2 * MB)
        big = [random.Random(i).randbytes(100_000) for i in range(40)]  # which encoding does not make smaller meanwhile
        if around == "multi":
            pipe = r.pipeline(transaction=True)
            for i, value in enumerate(big):
                pipe.execute_command("CSET", f"big:{i}", value)
            for _ in range(TIMES):
                pipe.execute_command("CEVICT")
            pipe.set("plain", 1)
            gone = sum(pipe.execute()[-1 - TIMES:-1])
        else:
            script = "for i = 2, #ARGV do redis.call('CSET', i, ARGV[i]) end " \
                     "local gone = 0 for i = 1, ARGV[1] do gone = gone + redis.call('CEVICT') end " \
                     "redis.call('SET', 'plain', 1) return gone"
            gone = r.eval(script, 0, TIMES, *big)
        assert gone > 0
        assert r.get("plain") == b"1"


def lower_limit(r, late, limit=None):
    """After `late` seconds during which no timer runs; by 1 MB if not told to what."""
    pipe = r.pipeline(transaction=False)
    pipe.execute_command("DEBUG", "SLEEP", late)
    pipe.config_set("maxmemory", limit or r.info("memory")["used_memory"] - MB)
    pipe.execute()


@pytest.mark.parametrize("late", [0, 0.3])
def test_a_lowered_limit_takes_records_and_no_maps(own_server, late):
    """The server has a timer of its own to make room, and would take maps; ours must come first, also when timers are late."""
    rng = random.Random(3)
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        load(r, [rng.randbytes(300) for _ in range(40_000)])
        r.execute_command("CKV", "OPTIMIZE")  # what is young would only be encoded, to make room
        r.config_set("maxmemory-policy", "allkeys-lru")
        for _ in range(5):
            before = evicted(r)[0]
            lower_limit(r, late)
            wait_for(lambda: evicted(r)[0] > before)
            assert r.info("stats")["evicted_keys"] == 0


@pytest.mark.parametrize("late", [0, 0.3])
def test_a_lowered_limit_encodes_what_is_young_and_takes_no_maps(own_server, late):
    rng = random.Random(3)
    with own_server({"ckv.train-after": "1gb", "maxmemory-policy": "allkeys-lru"}).client() as r:
        pipe = r.pipeline()  # within a transaction nothing is encoded in the background
        for i in range(40_000):
            pipe.execute_command("CSET", b"KEY:%d" % i, rng.randbytes(300))
        pipe.execute_command("INFO", "memory")
        limit = pipe.execute()[-1]["used_memory"] - MB
        lower_limit(r, late, limit)
        wait_for(lambda: r.info("memory")["used_memory"] <= limit)
        assert evicted(r)[0] == r.info("stats")["evicted_keys"] == 0
        assert r.execute_command("CDBSIZE") == 40_000


def test_a_lowered_limit_is_not_replicated(own_server):
    """What goes because of it is; the setting is each server's own."""
    primary = own_server({"appendonly": "yes"})
    replica = own_server({"replicaof": f"127.0.0.1 {primary.port}", "replica-read-only": "yes"})
    with primary.client() as r, replica.client() as other:
        load(r, texts(50_000), ttl=1000)
        r.execute_command("CKV", "TRAIN")  # or what is learned meanwhile makes room as well
        r.execute_command("CKV", "OPTIMIZE")
        r.config_set("maxmemory-policy", "allkeys-lru")
        limit = r.info("memory")["used_memory"] - MB
        r.config_set("maxmemory", limit)
        wait_for(lambda: r.info("memory")["maxmemory"] == limit)
        r.config_set("maxmemory", 0)
        assert r.info("stats")["evicted_keys"] == 0 < info(r)["evicted_records"]
        r.execute_command("CSET", "last", "one")
        wait_for_replica(r)
        assert other.config_get("maxmemory") == [b"maxmemory", b"0"]
        assert other.execute_command("CDBSIZE") == r.execute_command("CDBSIZE") < 50_000
        folder = os.path.join(primary.dir, "appendonlydir")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as f:
                assert b"maxmemory" not in f.read().lower().replace(b"ckv.maxmemory", b"")


def test_a_limit_lowered_a_little_takes_little(own_server):
    """Of a small limit, too, only a small share is kept free."""
    left = {}
    for prefix in ("", "C"):
        server, rng = own_server({"maxmemory-policy": "allkeys-lru"}), random.Random(1)
        with server.client() as r:
            for i in range(300):
                r.execute_command(prefix + "SET", f"k:{i}", rng.randbytes(800))
            r.config_set("maxmemory", r.info("memory")["used_memory"] - 40 * 1024)
            time.sleep(0.5)  # the background has its turn as well
            left[prefix] = sum(r.execute_command(prefix + "EXISTS", f"k:{i}") for i in range(300))
    assert left["C"] >= left[""] - 60


@pytest.mark.parametrize("policy", ["volatile-lru", "volatile-ttl", "volatile-random"])
@pytest.mark.parametrize("room", [60, 100, 200, 300])
def test_a_little_room_is_enough(own_server, policy, room):
    """While every record may go, no write is refused."""
    server, rng = own_server({"maxmemory-policy": policy}), random.Random(1)
    with server.client() as r:
        for i in range(1000):
            r.execute_command("CSET", f"w:{i}", rng.randbytes(50), "EX", 1000)
        r.config_set("maxmemory", r.info("memory")["used_memory"] + room * 1024)
        # Newer servers keep what they have parsed of a pipeline in memory, by their luck of it more or less.
        for start in range(0, 10_000, 4):
            pipe = r.pipeline(transaction=False)
            for i in range(start, start + 4):
                pipe.execute_command("CSET", f"k:{i}", rng.randbytes(50), "EX", 1000)
            pipe.execute()
        assert r.execute_command("CDBSIZE") > 400 and r.info("stats")["evicted_keys"] == 0


def test_memory_that_something_else_took_is_not_made_good_by_one_command(own_server):
    """A command makes room for two milliseconds at most; the timer goes on. Meanwhile the setting stands above what is
    used, so that the server takes no maps."""
    with own_server({"maxmemory-policy": "volatile-lru", "ckv.train-after": "1gb"}).client() as r:
        rng = random.Random(5)
        load(r, [rng.randbytes(30) for _ in range(300_000)], ttl=1000)
        limit = r.info("memory")["used_memory"]
        r.config_set("maxmemory", limit)
        pipe = r.pipeline(transaction=False)
        pipe.execute_command("SETRANGE", "large", 4 * MB, "x").execute_command("CDBSIZE")
        assert pipe.execute()[1] > 200_000
        wait_for(lambda: r.config_get("maxmemory")[1] == b"%d" % limit and r.info("memory")["used_memory"] <= limit)
        assert r.strlen("large") == 4 * MB + 1 and 50_000 < r.execute_command("CDBSIZE") < 200_000
        assert r.info("stats")["evicted_keys"] == 0


def test_keys_of_the_server_that_come_fast(own_server):
    """By the time that a timer runs the server would have evicted some itself, and a map as well as any other."""
    with own_server({"maxmemory-policy": "allkeys-random"}).client() as r:
        r.execute_command("CONFIG", "SET", "maxmemory", r.info("memory")["used_memory"] + 20 * MB)
        load(r, [os.urandom(100) for _ in range(60_000)])
        for start in range(0, 12_000, 3000):
            pipe = r.pipeline(transaction=False)
            for i in range(start, start + 3000):
                pipe.execute_command("SET", f"native:{i}", os.urandom(4000))
            pipe.execute()
        # Where there are no records any more, the server is left to itself.
        assert r.execute_command("CDBSIZE") > 0
        assert info(r)["evicted_other_keys"] > 0 and r.info("stats")["evicted_keys"] == 0


def test_what_comes_behind_a_setting_takes_no_maps(own_server):
    """Whenever the setting is set, the server looks how much is used by the time that the commands behind it are done."""
    with own_server({"maxmemory-policy": "allkeys-random", "ckv.train-after": "1gb"}).client() as r:
        rng = random.Random(5)
        load(r, [rng.randbytes(300) for _ in range(40_000)])
        r.execute_command("CKV", "OPTIMIZE")
        for room in (MB, -MB):
            limit = r.info("memory")["used_memory"] + room
            pipe = r.pipeline(transaction=False)
            pipe.config_set("maxmemory", limit)
            pipe.execute_command("SETRANGE", "large", 4 * MB, "x")
            pipe.execute()
            wait_for(lambda: r.info("memory")["maxmemory"] == limit >= r.info("memory")["used_memory"])
            assert r.info("stats")["evicted_keys"] == 0
            r.config_set("maxmemory", 0)
            r.delete("large")
        assert r.execute_command("CDBSIZE") > 0
