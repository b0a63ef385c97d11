"""What a user may do: categories, key patterns, selectors; and that no command lets anybody look beyond."""

import pytest

from helpers import is_error, reply

# A call of each command that names a key, with {k} for it; they may fail otherwise, but not for permission.
KEYED = {
    "CSET": "{k} v", "CGET": "{k}", "CGETDEL": "{k}", "CGETEX": "{k}", "CGETSET": "{k} v", "CSETNX": "{k} v",
    "CSETEX": "{k} 100 v", "CPSETEX": "{k} 100 v", "CMSET": "{k} v", "CMSETNX": "{k} v", "CMSETEX": "1 {k} v",
    "CMGET": "{k}", "CSTRLEN": "{k}", "CAPPEND": "{k} v", "CGETRANGE": "{k} 0 1", "CSETRANGE": "{k} 0 v",
    "CINCR": "{k}", "CDECR": "{k}", "CINCRBY": "{k} 1", "CDECRBY": "{k} 1", "CINCRBYFLOAT": "{k} 1",
    "CDEL": "{k}", "CUNLINK": "{k}", "CDELEX": "{k}", "CEXISTS": "{k}", "CTOUCH": "{k}", "CTTL": "{k}",
    "CPTTL": "{k}", "CEXPIRETIME": "{k}", "CPEXPIRETIME": "{k}", "CEXPIRE": "{k} 9", "CPEXPIRE": "{k} 9000",
    "CEXPIREAT": "{k} 9999999999", "CPEXPIREAT": "{k} 9999999999999", "CPERSIST": "{k}", "CMOVEOUT": "{k}", "CMOVEIN": "{k}",
}
UNKEYED = {"CSCAN": "0", "CKEYS": "*", "CRANDOMKEY": "", "CDBSIZE": "", "CKV": "STATS", "CEVICT": ""}


def words(command, key="k"):
    rest = {**KEYED, **UNKEYED}[command].format(k=key).split()
    return [command, *rest]


@pytest.fixture
def user(r, shared):
    """A function that gives user `u` some rules and returns a client of his."""
    clients = []

    def become(*rules):
        r.execute_command("ACL", "SETUSER", "u", "reset", "on", "nopass", *rules)
        client = shared.client()
        clients.append(client)
        client.execute_command("AUTH", "u", "any")
        return client

    yield become
    for client in clients:
        client.close()
    r.execute_command("ACL", "DELUSER", "u")


def ours(r):
    return {c[0].decode().upper() for c in r.execute_command("COMMAND", "INFO", *KEYED, *UNKEYED) if c}


def refused(answer):
    return is_error(answer, "No permissions") or is_error(answer, "NOPERM") or is_error(answer, "no permissions")


def test_every_command_is_listed_here(r):
    listed = r.execute_command("COMMAND", "LIST", "FILTERBY", "MODULE", "ckv")
    sent = [c for c in listed if not c.startswith((b"ckv.", b"ckv+"))]
    assert {c.decode().upper() for c in sent} - {"CPLAIN", "CPREFIXES"} == KEYED.keys() | UNKEYED.keys() == ours(r)


def test_what_is_for_a_file_is_nobodys(r, user):
    r.execute_command("CSET", "secret", "7")
    assert refused(reply(user("+@all", "~user:*"), "CPLAIN", 1, "SET", "secret", "8"))
    assert is_error(reply(user("+@all", "~*"), "CPLAIN", 1, "SET", "secret", "8"), "CPLAIN is for append-only files")
    assert is_error(reply(r, "CPREFIXES", "secret"), "CPREFIXES is for append-only files")
    assert r.execute_command("CGET", "secret") == b"7"


@pytest.mark.parametrize("command", [*KEYED, *UNKEYED])
def test_another_users_records_are_out_of_reach(r, user, command):
    u = user("+@all", "~user:*")
    r.execute_command("CSET", "secret", "7", "EX", 1000)
    there, missing = reply(u, *words(command, "secret")), reply(u, *words(command, "none"))
    assert refused(there) and refused(missing)
    assert str(there).replace("secret", "") == str(missing).replace("none", "")
    assert r.execute_command("CMGET", "secret") == [b"7"] and r.execute_command("CTTL", "secret") > 900
    if command in KEYED:
        assert not refused(reply(u, *words(command, "user:1")))


def test_the_server_says_the_same(r, user):
    """Where ckv looks itself at what a user may read, and where the server does."""
    u = user("+@all", "~user:*")
    assert str(reply(u, "CSCAN", "0")) == str(reply(u, "CKEYS", "*")) == str(reply(u, "GET", "secret"))


@pytest.mark.parametrize("command", ["CMSET", "CMSETNX", "CMGET", "CDEL", "CEXISTS"])
def test_every_key_of_a_command_is_checked(r, user, command):
    u = user("+@all", "~user:*")
    rest = ["user:1", "v", "secret", "v"] if "SET" in command else ["user:1", "secret"]
    assert refused(reply(u, command, *rest))
    assert refused(reply(u, "CMSETEX", 2, "user:1", "v", "secret", "v"))


def test_reading_and_writing_apart(r, user):
    reads = {"CGET", "CMGET", "CGETRANGE"}
    looks = {"CSTRLEN", "CEXISTS", "CTOUCH", "CTTL", "CPTTL", "CEXPIRETIME", "CPEXPIRETIME"}
    both = {"CGETDEL", "CGETEX", "CGETSET"}
    reader, writer = user("+@all", "%R~*"), None
    for command in KEYED:
        answer = reply(reader, *words(command))
        if command in reads:
            assert not refused(answer), command
        elif command not in looks:
            assert refused(answer), command
    writer = user("+@all", "%W~*")
    for command in KEYED:
        answer = reply(writer, *words(command))
        if command in reads | both:
            assert refused(answer), command
    assert not refused(reply(writer, "CSET", "k", "v"))


def test_selectors(r, user):
    u = user("+cget", "~a:*", "(+cset ~b:*)")
    assert not refused(reply(u, "CGET", "a:1")) and refused(reply(u, "CSET", "a:1", "v"))
    assert not refused(reply(u, "CSET", "b:1", "v")) and refused(reply(u, "CGET", "b:1"))


def test_all_keys_for_the_commands_that_reach_all(r, user):
    for rules, allowed in [(["~*"], True), (["%R~*"], True), (["~user:*"], False), (["~user:*", "(+@all ~*)"], True)]:
        u = user("+@all", *rules)
        for command in set(UNKEYED) - {"CEVICT"}:
            assert refused(reply(u, *words(command))) != allowed, (command, rules)


def test_categories(r, user):
    def of(category):
        return {c.decode().upper() for c in r.execute_command("ACL", "CAT", category)}

    if "CGET" not in of("read"):
        pytest.skip("RM_SetCommandACLCategories is missing: Redis 7.2 has it")
    assert {"CGET", "CMGET", "CSCAN"} <= of("read") and "CSET" not in of("read")
    assert {"CSET", "CDEL", "CINCR", "CEXPIRE"} <= of("write") and "CGET" not in of("write")
    assert {"CGET", "CSET"} <= of("fast") and "CKEYS" in of("slow") and "CKEYS" in of("dangerous")
    u = user("~*", "+@read", "-@dangerous")
    assert not refused(reply(u, "CGET", "k")) and refused(reply(u, "CSET", "k", "v")) and refused(reply(u, "CKEYS", "*"))
    if b"ckv" in r.execute_command("ACL", "CAT"):
        assert of("ckv") - {"CPLAIN", "CPREFIXES"} == ours(r)
        u = user("~*", "+@ckv")
        assert reply(u, "CSET", "k", "v") == b"OK" and refused(reply(u, "GET", "k"))


def test_scripts_and_transactions_have_the_users_rights(r, user):
    r.execute_command("CSET", "secret", "v")
    u = user("+@all", "~user:*")
    for call in ["'CGET', 'secret'", "'CDBSIZE'", "'CSCAN', 0"]:
        answer = reply(u, "EVAL", f"return redis.call({call})", 0)
        assert is_error(answer) and b"secret" not in str(answer).encode()
    u.execute_command("MULTI")
    assert refused(reply(u, "CGET", "secret"))
    assert is_error(reply(u, "EXEC"))


def test_the_log_names_who_was_refused(r, user):
    r.execute_command("ACL", "LOG", "RESET")
    u = user("+@all", "~user:*")
    reply(u, "CGET", "secret")
    reply(u, "CSCAN", "0")
    entries = r.execute_command("ACL", "LOG")
    assert len(entries) == 2
    assert all(b"u" in entry and b"key" in entry for entry in entries)
