"""Scripts in a cluster that use keys of other slots than those they have declared, as old ones do: servers look keys up in the
slot of the command that runs, which the filter is asked before."""

import pytest
from redis.exceptions import ResponseError

from cluster import Cluster
from helpers import is_error, reply, wait_for, wait_for_replica

KEYS = [b"precious:%d" % i for i in range(8)]

CALLS = {
    "reads a string": ["BITCOUNT", 0],
    "reads a part": ["GETBIT", 0, 7],
    "writes a part": ["SETBIT", 0, 7, 1],
    "of another type": ["LPUSH", 0, "item"],
    "of another type, reads": ["HGET", 0, "field"],
    "takes its value away": ["LPOP", 0],
    "renames": ["RENAME", 0, b"{precious:0}new"],
    "sorts": ["SORT", 0],
    "is served": ["APPEND", 0, "!"],
    "has no such option": ["SET", 0, "v", "NO"],
    "has too few arguments": ["GETBIT", 0],
    "is none for scripts": ["WATCH", 0],
    "moves": ["MOVE", 0, 2],
}


@pytest.fixture(scope="module")
def clusters():
    with Cluster(primaries=1, replicas=1, config={"ckv.prefixes": '"precious:"'}) as served, Cluster(primaries=1, module=False) as plain:
        yield served, plain


def words(call):
    """The number of a key by its name, others as text."""
    return [KEYS[word] if i == 1 else str(word) if isinstance(word, int) else word for i, word in enumerate(call)]


def state(r):
    """What is there, each key as often as it is told."""
    names = [key for key in sorted(reply(r, "KEYS", "*")) if not key.startswith(b"ckv:")]
    kinds = [reply(r, "TYPE", key) for key in names]
    values = [reply(r, "GET", key) if kind == b"string" else reply(r, "LRANGE", key, 0, -1) for key, kind in zip(names, kinds)]
    return list(zip(names, kinds, values, [reply(r, "TTL", key) > 0 for key in names]))


def fill(r):
    r.execute_command("FLUSHALL")
    for i, key in enumerate(KEYS):
        r.execute_command("SET", key, b"value %d" % i, *(["EX", 10000] if i % 2 else []))


def same(a, b):
    """Errors alike: who words them differs."""
    return is_error(a) == is_error(b) if is_error(a) or is_error(b) else a == b


def scripts(call):
    args = words(call)
    one = "return redis.pcall(unpack(ARGV))"
    after = "redis.call('GET', '{other}x') return redis.pcall(unpack(ARGV))"
    return [
        ("EVAL", one, 1, "{other}declared", *args),
        ("EVAL", after, 1, "{other}declared", *args),
        ("EVAL", one, 1, args[1], *args),
        ("EVAL", one, 0, *args),
    ]


@pytest.mark.parametrize("which", CALLS)
def test_keys_of_another_slot(clusters, which):
    served, plain = clusters
    for n in range(4):
        for within in (False, True):
            seen = []
            for cluster in (served, plain):
                with cluster.primaries[0].client() as r:
                    fill(r)
                    script = scripts(CALLS[which])[n]
                    if within:
                        r.execute_command("MULTI")
                        r.execute_command("SET", "{other}y", 1)
                        r.execute_command(*script)
                        replies = reply(r, "EXEC")  # which is refused where the script has declared the keys
                        seen.append((replies if is_error(replies) else replies[-1], state(r)))
                    else:
                        seen.append((reply(r, *script), state(r)))
            assert same(seen[0][0], seen[1][0]), (script, seen[0][0], seen[1][0])
            assert seen[0][1] == seen[1][1], script


def test_keys_of_several_slots():
    """Of a cluster of its own: after such a call Valkey 9.1 refuses all that scripts call on keys, ckv or not."""
    with Cluster(primaries=1, config={"ckv.prefixes": '"precious:"'}) as cluster, cluster.primaries[0].client() as r:
        fill(r)
        before = state(r)
        assert is_error(reply(r, "EVAL", "return redis.call('PFCOUNT', ARGV[1], ARGV[2])", 0, *KEYS[:2]))
        assert state(r) == before


def test_a_loop_over_many_slots(clusters):
    loop = "local n = 0 for i = 0, 7 do n = n + redis.call('BITCOUNT', 'precious:' .. i) redis.call('SETBIT', 'precious:' .. i, 7, 1) end return n"
    seen = []
    for cluster in clusters:
        with cluster.primaries[0].client() as r:
            fill(r)
            seen.append((reply(r, "EVAL", loop, 1, "{other}x"), state(r)))
            if cluster is clusters[0]:
                wait_for_replica(r)
                with cluster.replicas[0].client() as q:
                    q.execute_command("READONLY")
                    assert state(q) == seen[0][1]
                    counted = reply(q, "EVAL_RO", "return redis.call('BITCOUNT', 'precious:3') + redis.call('BITCOUNT', 'precious:4')", 1, "{other}x")
                    assert counted == r.bitcount(KEYS[3]) + r.bitcount(KEYS[4])
                    assert state(q) == seen[0][1]
                r.execute_command("SAVE")
                r.execute_command("DEBUG", "RELOAD")  # ends a server that has a key twice
                assert state(r) == seen[0][1]
    assert seen[0] == seen[1]


def test_who_may(clusters):
    """Whoever may run the command that the script calls, on that key, and nobody else."""
    rules = {
        "alone": ["~*", "+eval", "+bitcount"],
        "reads": ["%R~precious:*", "~{other}*", "+@all"],
        "writes": ["%W~precious:*", "~{other}*", "+@all"],
        "without": ["~*", "+@all", "-bitcount", "-lpop"],
        "elsewhere": ["~{other}*", "+@all"],
    }
    for user, rule in rules.items():
        for call in (["BITCOUNT", KEYS[0]], ["LPOP", KEYS[1]], ["SETBIT", KEYS[2], "7", "1"]):
            seen = []
            for cluster in clusters:
                with cluster.primaries[0].client() as r:
                    fill(r)
                    r.execute_command("ACL", "SETUSER", user, "reset", "on", "nopass", *rule)
                    with cluster.primaries[0].client() as q:
                        q.execute_command("AUTH", user, "any")
                        seen.append((reply(q, "EVAL", "return redis.pcall(unpack(ARGV))", 1, "{other}x", *call), state(r)))
                    r.execute_command("ACL", "DELUSER", user)
            assert same(seen[0][0], seen[1][0]), (user, call, seen[0][0], seen[1][0])
            assert seen[0][1] == seen[1][1], (user, call)


def test_only_the_filter_can_send_it(clusters):
    with clusters[0].primaries[0].client() as r:
        fill(r)
        for name in ("ckv+run", "ckv+run_ro"):
            assert str(reply(r, name, KEYS[0], "BITCOUNT", KEYS[0])).startswith("unknown command"), name
            assert is_error(reply(r, "EVAL", f"return redis.call('{name}', KEYS[1], 'FLUSHALL')", 1, KEYS[0]))
        assert r.bitcount(KEYS[0]) > 0


def test_who_watches_while_a_script_is_busy(clusters):
    """He is no script, and may."""
    with clusters[0].primaries[0].client() as r, clusters[0].primaries[0].client() as busy:
        fill(r)
        r.config_set("busy-reply-threshold", 1)
        busy.ping()
        busy.connection.send_command("EVAL", "while true do end", 1, "{other}x")
        wait_for(lambda: is_error(reply(r, "GET", "{other}x")))
        watched = reply(r, "WATCH", KEYS[1])
        r.execute_command("SCRIPT", "KILL")
        with pytest.raises(ResponseError):
            busy.connection.read_response()
        r.config_set("busy-reply-threshold", 5000)
        assert watched is True or watched == b"OK"
        assert r.get(KEYS[1]) == b"value 1"
