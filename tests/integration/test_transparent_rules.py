"""Rules of users that change, under prefixes: what counts is what holds when a command runs."""

import time

import redis
import pytest

from helpers import info, is_error, reply, times_run, wait_for
from transparent_users import Replies, admin


@pytest.mark.parametrize("way", ["queued", "held back", "held back, EXEC"])
def test_rules_that_change_between_look_and_run_count(prefixes, way):
    """A command is looked at when it is queued or a pause holds it back, and runs when a user may not run it any more."""
    r = admin(prefixes)
    r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*")
    user, other = Replies(prefixes, "u"), admin(prefixes)
    assert user.ask([["GET", "k"]]) == [b"secret"]
    if way == "queued":
        assert user.ask([["MULTI"], ["GET", "k"]]) == [b"OK", b"QUEUED"]
        r.execute_command("ACL", "SETUSER", "u", "-get")
        answer = user.ask([["EXEC"]])[0][0]
    else:
        if "EXEC" in way:
            for command in (("MULTI",), ("ACL", "SETUSER", "u", "-get"), ("SET", "other", "v")):
                other.execute_command(*command)
        r.execute_command("CLIENT", "PAUSE", 2000, "ALL")
        for command in [("EXEC",)] if "EXEC" in way else [("ACL", "SETUSER", "u", "-get")]:
            other.connection.send_command(*command)
        time.sleep(0.5)
        answer = user.ask([["GET", "k"]])[0]
        other.connection.read_response()
    assert isinstance(answer, redis.RedisError), answer
    for _ in range(2):
        assert isinstance(user.ask([["GET", "k"]])[0], redis.RedisError)
        assert "no permissions" in str(user.ask([["GET", "none"]])[0])
    user.close()


def test_rules_that_change_when_nothing_is_served_any_more(own_server):
    """What was queued still runs by our names, and ran by the rules of before: without the filter nobody saw new ones."""
    server = own_server({"ckv.prefixes": "p:"})
    with server.client() as r:
        r.set("p:k", "secret")
        r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*")
        user = Replies(server, "u")
        assert user.ask([["MULTI"], ["GET", "p:k"]]) == [b"OK", b"QUEUED"]
        r.config_set("ckv.prefixes", "")
        r.get("p:k")
        wait_for(lambda: info(r)["prefixes_leaving"] == "", what="that the prefix has left")
        r.execute_command("ACL", "SETUSER", "u", "-get")
        assert is_error(user.ask([["EXEC"]])[0][0])
        user.close()


def test_rules_that_a_transaction_from_before_the_prefixes_changes(prefixes):
    r, other = admin(prefixes), admin(prefixes)
    r.execute_command("CONFIG", "SET", "ckv.prefixes", "")
    r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*")
    user = Replies(prefixes, "u")
    for command in (("MULTI",), ("ACL", "SETUSER", "u", "-get")):
        other.execute_command(*command)
    r.execute_command("CONFIG", "SET", "ckv.prefixes", "*")
    assert user.ask([["GET", "k"]]) == [b"secret"]
    other.execute_command("EXEC")
    assert isinstance(user.ask([["GET", "k"]])[0], redis.RedisError)
    user.close()


def test_a_password_that_is_set_by_config_counts_at_once(prefixes):
    r = admin(prefixes)
    r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "+get", "~*")
    stranger = Replies(prefixes)
    assert stranger.ask([["GET", "k"]]) == [b"secret"]
    stranger.close()
    r.execute_command("CONFIG", "SET", "requirepass", "word")
    stranger = Replies(prefixes)
    answers = stranger.ask([["GET", "k"], ["MGET", "k"], ["DBSIZE"], ["KEYS", "*"]])
    assert all("Authentication required" in str(a) for a in answers), answers
    stranger.close()


def looks(r):
    """How often all users were looked at."""
    return times_run(r, "acl|list")


def test_rules_that_may_change_are_not_all_looked_at_for_each_command(prefixes):
    """Where somebody had queued an ACL command, or one that was refused, each command of each EXEC asked for the rules of all."""
    r = admin(prefixes)
    user, other = Replies(prefixes, "admin"), Replies(prefixes, "admin")
    assert other.ask([["MULTI"], ["ACL", "SETUSER", "new", "on"]]) == [b"OK", b"QUEUED"]
    before = looks(r)
    for _ in range(3):
        assert user.ask([["MULTI"], *[["GET", "k"]] * 50, ["EXEC"]])[-1] == [b"secret"] * 50
    assert looks(r) <= before + 10
    assert other.ask([["EXEC"]]) == [[b"OK"]]
    for client in (user, other):
        client.close()


def test_what_a_stranger_is_refused_changes_no_rules(prefixes):
    r = admin(prefixes)
    if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")):
        pytest.skip("this server does not tell a filter who sends a command")
    r.execute_command("ACL", "SETUSER", "default", "resetpass", ">word")
    for i in range(300):
        r.execute_command("ACL", "SETUSER", f"user{i}", "on", ">pw", "+get", f"~{i}:*")
    user, stranger = Replies(prefixes, "admin"), Replies(prefixes)
    user.ask([["GET", "k"]])
    stranger.ask([["MULTI"], ["ACL", "SETUSER", "new", "on"]])
    before = looks(r)
    for _ in range(50):
        assert user.ask([["MULTI"], ["GET", "k"], ["EXEC"], ["GET", "k"]])[2:] == [[b"secret"], b"secret"]
    for _ in range(50):  # who has not said who he is is cut off by newer servers if he lets 1 KB of replies wait
        stranger.ask([["ACL", "SETUSER", "new", "on"], ["GET", "k"]])
    assert looks(r) <= before + 20
    user.close()
    stranger.close()


def test_rules_that_change_all_the_time_count_at_once(prefixes):
    r = admin(prefixes)
    for i in range(30):
        r.execute_command("ACL", "SETUSER", "one", "reset", "on", ">pw", "~*", "+get" if i % 3 else "+@all")
        r.execute_command("ACL", "SETUSER", "default", "resetpass", ">pw" if i % 2 else "nopass")
        user, stranger = Replies(prefixes, "one"), Replies(prefixes)
        assert user.ask([["GET", "k"]]) == [b"secret"]
        answers = stranger.ask([["GET", "k"], ["KEYS", "*"]])
        assert all(isinstance(a, redis.RedisError) for a in answers) if i % 2 else answers == [b"secret", [b"k"]]
        r.execute_command("ACL", "SETUSER", "one", "-get")
        assert isinstance(user.ask([["GET", "k"]])[0], redis.RedisError)
        user.close()
        stranger.close()


def test_rules_that_are_again_what_they_were(prefixes):
    """The default user was without a password only for a moment, in which somebody looked."""
    r = admin(prefixes)
    for i in range(200):
        r.execute_command("ACL", "SETUSER", f"u{i}", "on", "nopass", "+get", f"~{i}:*")
    r.execute_command("ACL", "SETUSER", "default", "resetpass", ">word")
    r.execute_command("GET", "k")
    time.sleep(1)  # all users can be looked at again
    user, stranger = Replies(prefixes, "admin"), Replies(prefixes)
    user.ask([["ACL", "SETUSER", "u0", "on"], ["GET", "k"], ["ACL", "SETUSER", "default", "nopass"], ["GET", "k"],
              ["ACL", "SETUSER", "default", "resetpass", ">word"]])
    time.sleep(1)
    assert user.ask([["GET", "k"]]) == [b"secret"]
    answers = stranger.ask([["GET", "k"], ["SET", "k", "mine"], ["DEL", "k"]])
    assert all("Authentication required" in str(a) for a in answers)
    user.close()
    stranger.close()


def test_a_default_user_with_a_password_is_served_beside_users_of_single_commands(prefixes):
    """One such user, and all that the default user touched moved out."""
    r = admin(prefixes)
    if is_error(reply(r, "CLIENT", "NO-TOUCH", "OFF")):
        pytest.skip("this server does not tell a filter who sends a command")
    r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "+get", "~*")
    r.execute_command("ACL", "SETUSER", "default", "resetpass", ">word")
    user, stranger = Replies(prefixes), Replies(prefixes)
    assert user.ask([["AUTH", "word"]]) == [b"OK"]
    moved = info(r)["moved_out"]
    assert user.ask([["GET", "k"], ["SET", "new", "v"], ["APPEND", "k", "s"], ["MGET", "k", "new"]]) == [b"secret", b"OK", 7, [b"secrets", b"v"]]
    assert user.ask([["MULTI"], ["GET", "k"], ["EXEC"]]) == [b"OK", b"QUEUED", [b"secrets"]]
    commands = [["GET", "k"], ["SET", "k", "mine"], ["DEL", "k"], ["MGET", "k"], ["DBSIZE"]]
    assert all("Authentication required" in str(a) for a in stranger.ask(commands))
    # Two rules for keys, one for commands: as a user of these would be.
    r.execute_command("ACL", "SETUSER", "default", "resetkeys", "~k")
    answers = user.ask([["GET", "k"], ["GET", "new"], ["MGET", "k", "new"]])
    assert answers[0] == b"secrets" and all(is_error(a, "NOPERM") for a in answers[1:])
    assert info(r)["moved_out"] == moved and r.execute_command("CDBSIZE") == 2
    user.close()
    stranger.close()


def test_rules_that_a_transaction_changes_count_behind_it(prefixes):
    r = admin(prefixes)
    r.execute_command("ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*")
    user = Replies(prefixes, "u")
    assert user.ask([["GET", "k"]]) == [b"secret"]
    for command in (("MULTI",), ("EVAL", "return redis.call('get', 'k')", 0), ("ACL", "SETUSER", "u", "-get"), ("EXEC",)):
        answer = reply(r, *command)
    assert answer == [b"secret", b"OK"]
    assert is_error(user.ask([["GET", "k"]])[0], "NOPERM")
    user.close()


def test_what_was_allowed_at_first_is_asked_about_again(own_server):
    """The filter's answer is for the command that it came by, and for no other of the same sender."""
    server = own_server({"ckv.prefixes": "*", "enable-debug-command": "yes"})
    with server.client() as r, server.client() as user:
        r.mset({"cache:1": "a", "other:1": "b"})
        r.execute_command("ACL", "SETUSER", "her", "on", ">secret", "~cache:*", "+get", "+eval", "+multi", "+exec")
        user.execute_command("AUTH", "her", "secret")
        assert user.get("cache:1") == b"a"
        assert is_error(reply(user, "GET", "other:1"))
        script = "return redis.call('get', '%s')"
        assert user.eval(script % "cache:1", 0) == b"a" and user.get("cache:1") == b"a"
        assert is_error(reply(user, "EVAL", script % "other:1", "0"))
        user.execute_command("MULTI")
        user.execute_command("GET", "cache:1")
        r.execute_command("ACL", "SETUSER", "her", "resetkeys", "~none:*")
        (answer,) = user.execute_command("EXEC")
        assert is_error(answer) and is_error(reply(user, "GET", "cache:1"))
