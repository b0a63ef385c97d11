"""Commands that another module calls, also when it is told of an event: under prefixes they do and say what they do and say on a
plain server."""

import re
import time

import pytest

from helpers import info, is_error, load, noise, reply, rewrite_aof, texts, wait_for, wait_for_replica
from mover_data import wait_moved

# Modifiers of RM_Call: replicate, errors as replies, what scripts may, as the user.
MODIFIERS = ("!", "!E", "!ES", "!EC")
COMMANDS = """
GET none|SET a 1|GET a|GET wrong|INCR a|APPEND a 23|STRLEN a|SET b v EX 100|TTL b|SET b w XX GET|GETDEL a|EXISTS a b
MSET a 1 b 2|MGET a b wrong|TYPE a|RENAME a c|COPY c a|DEL a c|SETBIT b 7 1|PFADD h x|PFCOUNT h|LPUSH a x
LPUSH b x|GETRANGE b 0 1|DBSIZE|UNLINK h|SETEX b 0 v|SET b|NOSUCH b|EXPIRE b 100|PERSIST b|BITOP NOT d b|GET d
"""
REFUSALS = ("no permissions to", "acl verification failed", "can't run this command", "can't access at least one")
# Who calls: a user, and what the call stands in.
AROUND = ("alone", "multi", "script")
USERS = {"default": "nopass ~* +@all", "reader": "~a ~b +@read +caller.call +eval +multi +exec", "nobody": "+caller.call"}


def ask(r, around, words):
    if around == "script":
        return reply(r, "EVAL", "return redis.pcall(unpack(ARGV))", 0, *words)
    if around == "multi":
        return [reply(r, "MULTI"), reply(r, *words), reply(r, "EXEC")]
    return reply(r, *words)


def told(answer):
    """A refusal has other words where a script has called the module (on Valkey 9.1 by what errno is left from before), and on Redis 7.0."""
    return "refused" if any(words in str(answer).lower() for words in REFUSALS) else repr(answer)


def said(server, user, around, modifiers):
    with server.client() as r:
        r.flushall()
        r.lpush("wrong", "x")
        r.acl_setuser(user, reset=False)
        r.execute_command("ACL", "SETUSER", user, "on", ">pw", *USERS[user].split())
    with server.client() as r:
        r.execute_command("AUTH", user, "pw")
        for line in COMMANDS.strip().replace("\n", "|").split("|"):
            words = ["CALLER.CALL", modifiers, *line.split()]
            yield line, told(ask(r, around, words))


@pytest.fixture
def servers(own_server, caller):
    ours = own_server({"loadmodule": caller, "ckv.prefixes": "*", "ckv.maps": 16})
    plain = own_server({"loadmodule": caller}, module=False)
    return ours, plain


def test_a_module_notices_nothing(servers):
    for user in USERS:
        for around in AROUND:
            for modifiers in MODIFIERS:
                for ours, theirs in zip(*(said(s, user, around, modifiers) for s in servers)):
                    assert ours == theirs, f"{user}, {around}, {modifiers}"


@pytest.mark.parametrize("name", ("CALLER.PUSH", "caller.push"))
def test_a_command_that_was_named_in_upper_case_finds_strings(servers, name):
    for server in servers:
        with server.client() as r:
            r.set("k", "value")
            assert is_error(reply(r, name, "k", "element"), "WRONGTYPE")
            assert r.get("k") == b"value"
            r.execute_command("MULTI")
            r.execute_command(name, "k", "element")
            assert is_error(r.execute_command("EXEC")[0], "WRONGTYPE")
            assert r.get("k") == b"value"


def test_a_call_on_behalf_of_a_user_where_the_default_user_has_a_password(servers):
    for server in servers:
        with server.client() as r, server.client() as user:
            r.set("k", "value")
            r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "~*", "+get", "+caller.call")
            user.execute_command("AUTH", "u", "pw")
            r.execute_command("ACL", "SETUSER", "default", "resetpass", ">word")
            answer = reply(user, "CALLER.CALL", "CE", "GET", "k")
            r.execute_command("ACL", "SETUSER", "default", "nopass")  # as it is shut down
            assert answer == b"value"


# An event, what leads to it, and a write that it comes in the midst of: the record before has expired, is not there, or has no map yet.
TOLD = {
    "expired": ("DEBUG SET-ACTIVE-EXPIRE 0|SET k old PX 20|sleep", "SET k AAAAAAAA"),
    "keymiss": ("SET first 1", "GETSET k AAAAAAAA"),
    "keymiss of SET": ("", "SET k AAAAAAAA GET"),
    "new": ("SET first 1", "SET k AAAAAAAA"),
    "new, the map as well": ("", "SET k AAAAAAAA"),
    "set": ("", "SET k AAAAAAAA"),
}
# What is called then; on the key itself not where a plain server crashes as well.
CALLED = {"SET other ZZZZZZZZ": "expired keymiss new set", "APPEND other ZZ": "expired keymiss new set", "GET nothing": "expired new set",
          "SET = ZZZZZZZZ": "expired keymiss", "DEL =": "expired keymiss", "GET =": "expired new set"}


def skip_if_not_told_of_new_keys(r, called):
    valkey = r.info("server").get("valkey_version")
    if "RM_StringSet" in called and valkey and tuple(map(int, valkey.split(".")[:2])) < (9, 1):
        pytest.skip("ckv does not listen to new keys on this server: docs/transparent.md")


@pytest.mark.parametrize("called", CALLED)
def test_who_is_told_may_call(own_server, caller, called):
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "ckv.maps": 1})
    with server.client() as r:
        for told, (before, sent) in TOLD.items():
            event = re.match("[a-z]+", told).group()
            if event not in CALLED[called]:
                continue
            r.flushall()
            for line in filter(None, before.split("|")):
                time.sleep(0.05) if line == "sleep" else r.execute_command(*line.split())
            r.execute_command("CALLER.ON", event, *called.split())
            r.execute_command(*sent.split())
            assert r.execute_command("CALLER.ON") > 0, told
            assert r.get("k") == b"AAAAAAAA", told
            other = r.get("other")
            assert other is None or other == b"Z" * len(other), told
            assert r.delete("k") == 1 and r.get("k") is None, told
            assert r.dbsize() == r.exists("first", "other", "nothing"), told
            r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")


# An event of a key of the server's own, what leads to it, and the command that this module has the server run for it.
OWN_TOLD = {
    "del": ("RPUSH p:own a", "DEL p:own p:record"),
    "expire": ("RPUSH p:own a", "EXPIRE p:own 100"),
    "set": ("RPUSH p:own a", "SET p:own v"),
    "append": ("SETBIT p:own 7 0", "APPEND p:own v"),
    "incrby": ("SETBIT p:own 7 0|SETRANGE p:own 0 7", "INCR p:own"),
}


@pytest.mark.parametrize("event", OWN_TOLD)
def test_who_is_told_of_the_servers_own_keys_is_served(own_server, caller, event):
    """What is called in the midst of a command of ours was left to the server, which knows nothing of the records."""
    before, sent = OWN_TOLD[event]
    ours = own_server({"loadmodule": caller, "ckv.prefixes": "p:", "ckv.maps": 1})
    plain = own_server({"loadmodule": caller}, module=False)
    for called in ("INCR p:count", "APPEND p:count 0", "SET p:other v EX 100", "SET = v", "GETSET = w", "INCR ="):
        said = []
        for server in (ours, plain):
            with server.client() as r:
                r.flushall()
                r.mset({"p:record": "v", "p:count": 5})
                for line in before.split("|"):
                    r.execute_command(*line.split())
                r.execute_command("CALLER.ON", event, *called.split())
                said.append([repr(reply(r, *sent.split())), r.execute_command("CALLER.ON"), r.get("p:count"), r.get("p:other"),
                             repr(reply(r, "GET", "p:own")), r.ttl("p:other"), sorted(r.keys("*")), r.dbsize()])
        assert said[0] == said[1], called


@pytest.mark.parametrize("called", ("INCR =", "SET = x", "DEL =", "GET =", "APPEND other x", "GETSET = x"))
def test_who_is_told_that_a_string_has_moved_may_write_it(own_server, caller, called):
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "ckv.maps": 4})
    with server.client() as r:
        valkey = r.info("server").get("valkey_version", "0.0")
        if called != "GET =" and "=" in called and tuple(map(int, valkey.split(".")[:2])) < (8, 1):
            pytest.skip("this server counts on a string that it has just set, also for its own SET")
        for i in range(100):
            r.set(f"k{i}", i, ex=100)
        r.execute_command("CALLER.ON", "new", *called.split())
        for i in range(100):
            r.setbit(f"k{i}", 1, 1) if i % 2 else r.execute_command("DUMP", f"k{i}")
        r.config_set("ckv.prefixes", "")
        for i in range(100):
            r.object("encoding", f"k{i}")
        r.config_set("ckv.prefixes", "*")
        assert r.execute_command("CALLER.ON") > 0
        assert r.dbsize() == len(r.keys("*"))


@pytest.mark.parametrize("called", ("SET other VALUE-OF-ANOTHER-KEY", "BITCOUNT only", "SET = again", "SETBIT = 7 1", "RM_StringSet = own",
                                    "DEL only", "FLUSHALL"))
def test_who_is_told_that_a_key_of_the_servers_own_has_expired_may_call(own_server, caller, called):
    """SET asks the server whether it has such a key, which is when it finds that it has expired: the value to be written was in memory
    that another one took, and the map might be gone."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "ckv.maps": 1})
    with server.client() as r:
        skip_if_not_told_of_new_keys(r, called)
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.set("only", "one")
        for key in ("k", "other"):
            r.setbit(key, 7, 1)
        r.pexpire("k", 100)
        r.execute_command("CALLER.ON", "expired", *called.split())
        time.sleep(0.2)
        assert r.set("k", "MY-OWN-VALUE")
        assert r.execute_command("CALLER.ON") == 1
        assert r.get("k") == b"MY-OWN-VALUE"
        assert r.get("other") == (None if called == "FLUSHALL" else b"VALUE-OF-ANOTHER-KEY" if "VALUE" in called else b"\x01")
        assert r.dbsize() == len(r.keys("*")) == r.exists("k", "other", "only")
        assert r.delete("k") and r.get("k") is None


def test_who_is_told_of_a_string_may_write_it_in_its_own_way(own_server, caller):
    """A listener that puts another string in its place: there were two values of one name."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*"})
    with server.client() as r:
        skip_if_not_told_of_new_keys(r, "RM_StringSet")
        r.execute_command("CALLER.ON", "set", "RM_StringSet", "=", "normalised")
        r.set("k", "raw")
        assert r.execute_command("CALLER.ON") == 1
        assert (r.get("k"), r.dbsize()) == (b"normalised", 1)
        assert (r.delete("k"), r.get("k"), r.dbsize()) == (1, None, 0)


# An event that comes in the midst of writing a record, what is written, and what is there then.
OVER = {
    "SET": ("expired", "CALLER.CALL ! SET k AAAAAAAA", b"AAAAAAAA"),
    "INCR": ("expired", "CALLER.CALL ! INCR k", b"1"),
    "APPEND": ("expired", "CALLER.CALL ! APPEND k AAAA", b"AAAA"),
    "SET GET": ("keymiss", "SET k AAAAAAAA GET", b"AAAAAAAA"),
    "GETSET": ("keymiss", "GETSET k AAAAAAAA", b"AAAAAAAA"),
}


@pytest.mark.parametrize("called", ("RM_StringSet k own", "SETBIT k 7 1", "LPUSH k x"))
@pytest.mark.parametrize("case", OVER)
def test_who_is_told_may_put_a_key_of_the_servers_own_there(own_server, caller, case, called):
    """Where a record was about to be written: there were two values of one name."""
    event, sent, value = OVER[case]
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "ckv.maps": 1, "appendonly": "yes", "appendfsync": "always"})
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}", "ckv.prefixes": "*"})
    with server.client() as r, replica.client() as q:
        wait_for_replica(r)
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        if event == "expired":
            r.set("k", 41, px=1)
            time.sleep(0.01)
        r.execute_command("CALLER.ON", event if "RM_" in called else f"!{event}", *called.split())
        r.execute_command(*sent.split())
        assert r.execute_command("CALLER.ON") > 0
        assert (r.get("k"), r.dbsize()) == (value, 1)
        wait_for_replica(r)
        assert (q.get("k"), q.dbsize()) == (value, 1)
    server.kill()
    server.start()
    with server.client() as r:
        assert (r.get("k"), r.dbsize()) == (value, 1)
        assert (r.delete("k"), r.get("k"), r.dbsize()) == (1, None, 0)


@pytest.mark.parametrize("called", ("DUMP k:10", "OBJECT ENCODING k:10", "MEMORY USAGE k:10", "BITCOUNT k:10"))
@pytest.mark.parametrize("sent", ("DEL k:11", "MSET k:11 v k:12 v", "SET k:11 v"))
def test_an_aof_knows_what_another_module_has_moved(own_server, caller, called, sent):
    """In the midst of a command that the server runs for us: what was lent is taken back, and what stays out is told."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "k:", "appendonly": "yes"})
    with server.client() as r:
        r.set("k:10", "first ")
        rewrite_aof(r)
        r.lpush("k:11", "x")
        r.execute_command("CALLER.ON", "del" if sent.startswith("DEL") else "set", *called.split())
        reply(r, *sent.split())
        assert r.execute_command("CALLER.ON") > 0
        r.append("k:10", "and last")
    server.restart()
    with server.client() as r:
        assert r.get("k:10") == b"first and last"


# Commands that are called, of which nobody is to be told: "CALLER.CALL" without "!".
UNTOLD = {"a sort": ("SORT", "list", "BY", "nosort", "GET", "*"), "a script": ("EVAL", "return redis.call('getbit', 'k', 0)", 0), "a script that reads": ("EVAL_RO", "return redis.call('bitcount', 'k')", 0),
          "itself": ("GETBIT", "k", 0), "a call within a call": ("CALLER.CALL", "!", "GETBIT", "k", 0)}


@pytest.mark.parametrize("expired", (False, True), ids=("there", "expired"))
@pytest.mark.parametrize("called", UNTOLD)
def test_an_aof_knows_what_has_moved_where_nobody_was_to_be_told(own_server, caller, called, expired):
    """The record was in the AOF's base still, and INCR behind it missed it, or went on from what had expired."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "appendonly": "yes"})
    with server.client() as r:
        if "a call" in called and "valkey_version" not in r.info("server") and r.info("server")["redis_version"].startswith("7.0"):
            pytest.skip("Redis 7.0 does not tell that it is called")
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.set("k", 100, px=1 if expired else None)
        r.rpush("list", "k")
        time.sleep(0.01)
        rewrite_aof(r)
        pipe = r.pipeline(transaction=False)
        pipe.execute_command("CALLER.CALL", "", *UNTOLD[called])
        pipe.execute_command("INCR", "k")
        assert pipe.execute()[-1] == (1 if expired else 101)
    server.restart()
    with server.client() as r:
        assert r.get("k") == (b"1" if expired else b"101")


# What changes a string that has moved out within the same transaction or script, of which nobody was to be told.
CHANGES = ("INCR k", "APPEND k 7", "EXPIRE k 1000", "SET k 7 XX", "GETDEL k", "DEL k", "CALLER.CALL ! INCR k", "CALLER.CALL ! SETBIT k 7 1",
           "CALLER.CALL ! RENAME k l")


def change_in_multi(r, key, words, silently=("EVAL", "return redis.call('getbit', KEYS[1], 0)", 1)):
    pipe = r.pipeline(transaction=True)
    pipe.execute_command("CALLER.CALL", "", *silently, key)
    pipe.execute_command(*words)
    pipe.execute(raise_on_error=False)


def change_behind_a_call(r, key, words):
    change_in_multi(r, key, words, ("CALLER.CALL", "!", "BITCOUNT"))


def change_in_script(r, key, words):
    silently = "redis.call('caller.call', '', 'caller.call', '!', 'getbit', KEYS[1], 0)"
    r.eval(f"{silently} redis.pcall(unpack(ARGV))", 1, key, *words)


@pytest.mark.parametrize("expired", (False, True), ids=("there", "expired"))
@pytest.mark.parametrize("change", (change_in_multi, change_behind_a_call, change_in_script))
def test_an_aof_knows_what_has_moved_before_the_same_transaction_changes_it(own_server, caller, change, expired):
    """It was told before the next command of a client: INCR began anew, and the record was lost or, later, its change."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "appendonly": "yes", "appendfsync": "always"})
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}", "ckv.prefixes": "*"})
    keys = {sent: f"k{i}" for i, sent in enumerate(CHANGES)}

    def kept(of):
        with of.client() as r:
            return {sent: (r.mget(key, f"l{key}"), r.ttl(key) > 0) for sent, key in keys.items()}

    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for key in keys.values():
            r.set(key, 100, px=1 if expired else None)
        time.sleep(0.01)
        wait_for_replica(r)
        rewrite_aof(r)
        for sent, key in keys.items():
            change(r, key, sent.replace(" k", f" {key}").replace(" l", f" l{key}").split())
        before = kept(server)
        assert before["INCR k"][0] == [b"1" if expired else b"101", None]
        wait_for_replica(r)
    assert kept(replica) == before
    server.kill()
    server.start()
    assert kept(server) == before


@pytest.mark.parametrize("transaction", (False, True), ids=("alone", "multi"))
@pytest.mark.parametrize("called", (("APPEND", "k", "z" * 5000), ("SETRANGE", "k", 6000, "z")), ids=lambda called: called[0])
def test_an_aof_knows_what_a_call_made_too_long_for_ckv(own_server, caller, called, transaction):
    """Of which nobody was to be told: what the next APPEND was to go behind was lost."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "appendonly": "yes", "appendfsync": "always"})
    with server.client() as r:
        r.set("k", 100)
        rewrite_aof(r)
        pipe = r.pipeline(transaction)
        pipe.execute_command("CALLER.CALL", "", *called)
        pipe.append("k", "x")
        assert pipe.execute()[-1] > 5000
    server.kill()
    server.start()
    with server.client() as r:
        assert r.get("k") == b"100x"


# How commands are called, and what they say of a key that has expired.
MET_EXPIRED = {" GET k": None, " EXISTS k": 0, " DEL k": 0, " SET k v XX": None, " GETDEL k": None, " EVAL return{redis.call('get','k')} 0": [None],
               " EVAL return{redis.call('unlink','k')} 0": [0], " CALLER.CALL ! GET k": None, " CGET k": None, "C GET k": None,
               " SCAN 0 MATCH k COUNT 1000": [b"0", []], " CSCAN 0 MATCH k COUNT 1000": [b"0", []], "! GET k": None, "! DEL k": 0,
               "! EVAL return{redis.call('get','k')} 0": [None], "! INCR k": 1, "! SET k 7": b"OK", "! MSET k 7 l 7": b"OK", "! APPEND k 7": 1,
               "! EVAL return{redis.call('incr','k')} 0": [1]}


@pytest.mark.parametrize("aof", ("no", "yes"))
def test_a_replica_and_an_aof_are_told_of_what_a_call_met_expired(own_server, caller, aof):
    """Also where they are not told of the call: the next command was carried out there on what had expired."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "appendonly": aof})
    replica = own_server({"replicaof": f"127.0.0.1 {server.port}", "ckv.prefixes": "*"})
    with server.client() as r, replica.client() as q:
        wait_for_replica(r)
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        keys = {called: f"k{i}" for i, called in enumerate(MET_EXPIRED)}
        for key in keys.values():
            r.set(key, 41, px=1)
        time.sleep(0.01)
        if aof == "yes":  # behind a file with records
            rewrite_aof(r)
        for called, key in keys.items():
            words = called.replace(" k", f" {key}").replace("'k'", f"'{key}'").split(" ")
            assert reply(r, "CALLER.CALL", *words) == MET_EXPIRED[called], called
            r.incr(key)
        wait_for_replica(r)
        values = r.mget(keys.values())
        assert q.mget(keys.values()) == values
        assert [q.ttl(key) for key in keys.values()] == [-1] * len(keys)
        assert info(r)["expired_records"] == len(keys)
    server.restart()
    with server.client() as r:
        assert aof == "no" or r.mget(keys.values()) == values


@pytest.mark.parametrize("called", ("RANDOMKEY", "CRANDOMKEY"))
def test_what_a_call_for_any_key_meets_expired_stays_for_who_may_tell(own_server, caller, called):
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*"})
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.set("k", 41, px=1)
        time.sleep(0.01)
        assert r.execute_command("CALLER.CALL", "", called) is None
        assert (r.dbsize(), r.execute_command(called), r.dbsize()) == (1, None, 0)


def test_a_clients_script_deletes_what_it_meets_expired(own_server):
    server = own_server({"ckv.prefixes": "*"})
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        r.set("k", 41, px=1)
        time.sleep(0.01)
        assert r.eval("redis.call('get', 'k') return redis.call('dbsize')", 0) == 0


@pytest.mark.parametrize("sent", ("DEL p:own", "MSET p:own v p:two v"))
def test_what_another_module_replicates_is_told(own_server, caller, sent):
    """In the midst of a command of which we tell replicas ourselves."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "p:", "appendonly": "yes"})
    with server.client() as r:
        r.lpush("p:own", "x")
        r.execute_command("CALLER.ON", "!del" if sent.startswith("DEL") else "!set", "INCR", "count")
        reply(r, *sent.split())
        count = r.get("count")
        assert count == b"%d" % r.execute_command("CALLER.ON")
    server.restart()
    with server.client() as r:
        assert r.get("count") == count


def test_beside_a_filter_that_calls_commands(own_server, caller):
    """It is asked before ours about commands that we call, too; and what it calls, a write of a list, we have the server run."""
    server = own_server({"loadmodule": caller})
    with server.client() as r:
        r.lpush("list", "x")
        r.execute_command("CALLER.FILTER")
        r.config_set("ckv.prefixes", "*")
        r.set("k", "v")
        assert (r.get("k"), r.bitcount("k"), sorted(r.scan()[1]), r.delete("k"), r.delete("list")) == (b"v", 5, [b"k", b"list"], 1, 1)


def test_a_filter_that_writes_names_anew(own_server, caller):
    """What we called ourselves was taken for somebody else's, which led to the next call, without end."""
    server = own_server({"loadmodule": caller})
    with server.client() as r:
        r.execute_command("CALLER.FILTER", "UPPER")
        r.config_set("ckv.prefixes", "*")
        r.set("k", "v")
        r.execute_command("cset", "record", "v")
        assert (r.get("k"), r.bitcount("k"), r.bitcount("record"), is_error(reply(r, "lpush", "k", "x")), r.get("k")) == (b"v", 5, 5, True, b"v")


def test_a_value_that_is_loaded_when_it_is_missed_is_there(own_server, caller):
    ours = own_server({"loadmodule": caller, "ckv.prefixes": "*"})
    plain = own_server({"loadmodule": caller}, module=False)
    said = []
    for server in (ours, plain):
        with server.client() as r:
            r.execute_command("CALLER.ON", "keymiss", "SET", "=", "loaded")
            said.append((reply(r, "SET", "k", "mine", "NX", "GET"), r.execute_command("CALLER.ON"), r.get("k")))
    assert said[0] == said[1]


@pytest.mark.parametrize("called", ("GET nothing", "SET told yes"))
def test_who_is_told_of_an_eviction_may_call(own_server, caller, called):
    server = own_server({"loadmodule": caller, "ckv.prefixes": "*", "maxmemory-policy": "allkeys-lru"})
    with server.client() as r:
        r.execute_command("CALLER.ON", "evicted", *called.split())
        r.config_set("maxmemory", r.info("memory")["used_memory"] + (2 << 20))
        for first in range(0, 40000, 1000):
            pipeline = r.pipeline(transaction=False)
            for i in range(first, first + 1000):
                pipeline.set(f"key:{i}", noise(100, i))
            pipeline.execute()
        assert r.execute_command("CALLER.ON") > 1000
        assert r.get("key:39999") == noise(100, 39999)


def test_who_is_told_of_what_the_timer_evicts_may_evict(own_server, caller):
    """CEVICT gathered what it evicted among what was being told of."""
    server = own_server({"loadmodule": caller, "ckv.train-after": "1gb", "maxmemory-policy": "allkeys-lru"})
    with server.client() as r:
        load(r, [noise(300, i) for i in range(50_000)], key=b"KEY:%d:x")
        r.execute_command("CKV", "OPTIMIZE")  # what is young would only be encoded, to make room
        r.execute_command("CALLER.ON", "evicted", "CEVICT")
        r.config_set("maxmemory", r.info("memory")["used_memory"] // 2)
        wait_for(lambda: info(r)["evicted_records"] > 20_000, what="that room is made")
        r.config_set("maxmemory", 0)
        assert r.execute_command("CALLER.ON") > 0
        assert info(r)["evicted_records"] == 50_000 - r.execute_command("CDBSIZE")


@pytest.mark.parametrize("called", ("CSCAN 0 COUNT 900", "CSET other x"))
def test_who_is_told_of_what_a_scan_expires_may_scan(own_server, caller, faults, called):
    server = own_server({"loadmodule": caller, "ckv.maps": 4}, env=faults.env)
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        load(r, texts(6000), ttl=600, key=b"KEY%d:x")
        faults.set(seconds=3600)
        r.execute_command("CALLER.ON", "expired", *called.split())
        for _ in range(4):
            r.execute_command("CSCAN", 0, "COUNT", 300)
        told = r.execute_command("CALLER.ON")
        assert told > 0
        # Of what it meets, at times a bucket more than it was asked for, a command removes 1024 at most.
        while r.execute_command("CSCAN", 0, "COUNT", 500)[0] != b"0":
            pass
        assert r.execute_command("CDBSIZE") == (called[:4] == "CSET")


@pytest.mark.parametrize("scan", ("CSCAN 0 COUNT 1000", "CRANDOMKEY"))
def test_who_is_told_of_a_string_beside_an_expired_record_may_scan(own_server, caller, faults, scan):
    """Two values of one name, both expired: to look for the record was to have the server find the string, and who was told of
    that went over the same records."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "other:", "ckv.maps": 4}, env=faults.env)
    with server.client() as r:
        r.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        for i in range(50):
            r.execute_command("CSET", f"k{i}", "record", "EX", 600)
            r.execute_command("SET", f"k{i}", "string", "EX", 600)
        r.config_set("ckv.prefixes", "*")
        wait_moved(r, b"in")
        faults.set(seconds=3600)
        r.execute_command("CALLER.ON", "expired", *scan.split())
        while r.execute_command("CDBSIZE") > 0:
            r.execute_command(*scan.split())
        assert r.execute_command("CALLER.ON") > 0
        assert info(r)["expired_records"] == 50


MANY = ["MSET {} {v} {} {v} {} {v}", "MSETNX {} {v} {} {v} {} {v}", "CMSETEX 3 {} {v} {} {v} {} {v} PX 1000000"]


def told_and_written(own_server, caller, sent, prepare):
    """What a command of three keys, in two maps, says, and what of them is there, here and by the AOF."""
    server = own_server({"loadmodule": caller, "ckv.prefixes": "p:", "ckv.maps": 2, "appendonly": "yes"})
    with server.client() as r:
        here, there = sorted(two_maps(r).items())
        keys = here[1][0], there[1][0], here[1][1]
        prepare(r, keys)
        said = reply(r, *sent.format(*keys, v="v" * 1000).split())
        assert r.execute_command("CALLER.ON") > 0
        found = r.mget(keys)
    server.restart()
    with server.client() as r:
        assert r.mget(keys) == found
    return said, [value and len(value) for value in found]


def two_maps(r):
    """By the number of the map the names of two keys that are in it."""
    names = {0: [], 1: []}
    for i in range(1000):
        r.set(f"p:{i}:", "v")
        (number,) = (n for n in names if r.exists(f"ckv:{n}"))
        r.delete(f"p:{i}:")
        names[number].append(f"p:{i}:")
        if min(map(len, names.values())) > 1:
            return names


@pytest.mark.parametrize("sent", MANY, ids=lambda sent: sent.split()[0])
def test_who_is_told_of_the_first_of_many_may_call_when_the_limit_is_reached(own_server, caller, sent):
    """Whether they may be written was decided anew with each command that was called: half of them were, and no one was told."""

    def prepare(r, keys):
        r.execute_command("CALLER.ON", "set", "PING")
        r.config_set("ckv.maxmemory", info(r)["page_bytes"] + info(r)["large_bytes"] + 500)

    said, found = told_and_written(own_server, caller, sent, prepare)
    assert (said in (b"OK", 1), found) == (True, [1000] * 3)


@pytest.mark.parametrize("sent", MANY, ids=lambda sent: sent.split()[0])
def test_what_was_written_before_a_map_was_taken_is_told(own_server, caller, sent):
    """Who is told of the first puts something of his own where the map of the second would be."""

    def prepare(r, keys):
        r.execute_command("CALLER.ON", "set", "SET", "ckv:1", "mine")

    said, found = told_and_written(own_server, caller, sent, prepare)
    assert is_error(said, "WRONGTYPE")
    assert found == [1000, None, None]
