"""Wrong arguments, unknown words, settings out of range: a clear error, and the server goes on."""

import pytest
import redis

from helpers import NATIVE, assert_stored, info, is_error, load, reply, texts
from server import MODULE, ServerFailed

SETTINGS = {
    "ckv.maps": (1, 65536, 1024),
    "ckv.dictionary-size": (64 << 10, 64 << 20, 8 << 20),
    "ckv.compression-level": (1, 19, 3),
    "ckv.train-after": (64 << 10, 1 << 30, 1 << 20),
}
CHANGEABLE = [name for name in SETTINGS if name != "ckv.maps"]


ALONE = {"CDBSIZE", "CRANDOMKEY"}


@pytest.mark.parametrize("command", [c for c in NATIVE if c not in ALONE])
def test_no_arguments(r, command):
    assert is_error(reply(r, command), f"wrong number of arguments for '{command.lower()}' command")
    assert r.execute_command("PING") == b"PONG"


@pytest.mark.parametrize("command", sorted(ALONE))
def test_too_many_arguments(r, command):
    answer = reply(r, command, "x")
    assert is_error(answer, f"wrong number of arguments for '{command.lower()}' command")


# --- CKV ---


def test_ckv_without_a_subcommand(r):
    assert is_error(reply(r, "CKV"), "wrong number of arguments for 'ckv' command")


def test_ckv_unknown_subcommand(r):
    answer = reply(r, "CKV", "NONSENSE")
    assert is_error(answer)
    assert "nonsense" in str(answer).lower()


@pytest.mark.parametrize("subcommand", ["STATS", "TRAIN", "OPTIMIZE", "HELP"])
def test_ckv_with_too_many_arguments(r, subcommand):
    answer = reply(r, "CKV", subcommand, "extra")
    assert is_error(answer)
    assert "wrong number of arguments" in str(answer)


def test_ckv_help(r):
    lines = r.execute_command("CKV", "HELP")
    text = b"\n".join(lines).decode()
    for word in ("STATS", "TRAIN", "OPTIMIZE", "HELP"):
        assert word in text
    assert r.execute_command("CKV", "help") == lines


# --- settings ---


@pytest.mark.parametrize("name", SETTINGS)
def test_default(own_server, name):
    with own_server().client() as r:
        value = r.execute_command("CONFIG", "GET", name)
        assert int(value[1]) == SETTINGS[name][2]


@pytest.mark.parametrize("name", CHANGEABLE)
def test_the_ends_of_the_range(own_server, name):
    low, high, default = SETTINGS[name]
    with own_server().client() as r:
        for value in (low, high, default):
            assert r.execute_command("CONFIG", "SET", name, value) == b"OK"
            assert int(r.execute_command("CONFIG", "GET", name)[1]) == value


@pytest.mark.parametrize("name", CHANGEABLE)
@pytest.mark.parametrize("value", ["below", "above", "-1", "abc", "", "1.5", "99999999999999999999", "64 kb"])
def test_a_wrong_value(own_server, name, value):
    low, high, default = SETTINGS[name]
    wrong = {"below": str(low - 1), "above": str(high + 1)}.get(value, value)
    with own_server().client() as r:
        answer = reply(r, "CONFIG", "SET", name, wrong)
        assert is_error(answer), answer
        assert name in str(answer)
        assert int(r.execute_command("CONFIG", "GET", name)[1]) == default
        assert r.execute_command("CSET", "k", "v") == b"OK"


def test_maps_cannot_be_changed_later(own_server):
    with own_server({"ckv.maps": 16}).client() as r:
        stored = load(r, texts(500))
        answer = reply(r, "CONFIG", "SET", "ckv.maps", "32")
        assert is_error(answer)
        assert "ckv.maps" in str(answer)
        assert r.execute_command("CONFIG", "GET", "ckv.maps")[1] == b"16"
        assert_stored(r, stored)


def test_an_unknown_setting(own_server):
    with own_server().client() as r:
        answer = reply(r, "CONFIG", "SET", "ckv.nonsense", "1")
        assert is_error(answer)
        assert "ckv.nonsense" in str(answer)
        assert r.execute_command("CONFIG", "GET", "ckv.nonsense") == []


@pytest.mark.parametrize("line", [
    ("ckv.maps", "0"),
    ("ckv.maps", "65537"),
    ("ckv.maps", "many"),
    ("ckv.dictionary-size", "1"),
    ("ckv.compression-level", "20"),
    ("ckv.train-after", "2gb"),
    ("ckv.nonsense", "1"),
], ids=" ".join)
def test_a_wrong_line_in_the_configuration(own_server, line):
    """The server does not start with it, and says which line it was."""
    with pytest.raises(ServerFailed) as failed:
        own_server(dict([line]))
    assert failed.value.returncode > 0
    # Of a name that no module knows the server says only that much.
    assert line[0].split(".")[1] in failed.value.log or "Module Configuration detected" in failed.value.log


def test_an_argument_of_loadmodule(own_server):
    """The module has none; an unknown word is not passed over in silence."""
    server = own_server(start=False)
    server.module = False
    server.config["loadmodule"] = f"{MODULE} nonsense 1"
    with pytest.raises(ServerFailed) as failed:
        server.start()
    assert failed.value.returncode > 0
    assert "nonsense" in failed.value.log


def test_settings_survive_config_rewrite(own_server):
    server = own_server()
    with server.client() as r:
        r.execute_command("CONFIG", "SET", "ckv.compression-level", 7)
        r.execute_command("CONFIG", "SET", "ckv.train-after", 200_000)
        assert r.execute_command("CONFIG", "REWRITE") == b"OK"
    with open(server.dir + "/redis.conf") as f:
        text = f.read()
    assert "ckv.compression-level 7" in text
    assert "ckv.train-after 200000" in text


# --- the server stays as it was ---


def test_nothing_is_lost_by_bad_input(r):
    stored = load(r, texts(300), ttl=1000)
    key = next(iter(stored))
    for args in [("CSET",), ("CSET", key), ("CSET", key, "v", "EX", "0"), ("CSET", key, "v", "NX", "XX"),
                 ("CSET", key, "v", "EX", "x"), ("CMSET", key), ("CMSET", key, "v", "b"), ("CEXPIRE", key, "x"),
                 ("CEXPIRE", key, "10", "NX", "GT"), ("CPERSIST",), ("CKV", "X"), ("CGET", key, key),
                 ("CEXPIRE", key, "9" * 30), ("CONFIG", "SET", "ckv.maps", "-1")]:
        assert is_error(reply(r, *args)), args
    assert_stored(r, stored)
    assert info(r)["records"] == len(stored)
    assert info(r)["records_with_expiry"] == len(stored)


def test_out_of_memory_as_set_has_it(own_server):
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        stored = load(r, texts(2000))
        r.execute_command("CONFIG", "SET", "maxmemory", "1mb")
        for args in [("SET", "n", "v"), ("CSET", "n", "v"), ("CMSET", "n", "v")]:
            assert isinstance(reply(r, *args), redis.exceptions.OutOfMemoryError), args
        assert_stored(r, stored)
        assert r.execute_command("CDEL", next(iter(stored))) == 1
        r.execute_command("CONFIG", "SET", "maxmemory", "0")
        assert r.execute_command("CSET", "n", "v") == b"OK"


# --- what the filter sends may be typed as well ---


def test_no_command_of_the_module_takes_arguments_for_granted(own_server):
    with own_server({"ckv.prefixes": "*"}).client() as r:
        names = [name.decode() for name in r.execute_command("COMMAND", "LIST", "FILTERBY", "MODULE", "ckv")]
        assert {"cget", "ckv.get", "ckv+get", "ckv.keys"} <= set(names)
        for name in names:
            for count in range(5):
                reply(r, name, *["1"] * count)
        assert r.ping()
