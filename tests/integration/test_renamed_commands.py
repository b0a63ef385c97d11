"""Commands that redis.conf has renamed (rename-command): whoever knows the new name gets what the own one gets, nobody else does."""

import time

import pytest
import redis

from helpers import reply, wait_for
from server import MODULE, ServerFailed, free_port

RENAMED = {"KEYS": "k33p", "EXISTS": "b840fc02d524045429941cc15f59e41cb7be6c52", "GET": "fetch", "SETBIT": "flip", "DBSIZE": "SIZE", "MEMORY": "remember"}


@pytest.fixture(params=["one-user", "users"])
def client(own_server, tmp_path, request):
    names = tmp_path / "names.conf"
    names.write_text("".join(f"rename-command {old} {new}\n" for old, new in RENAMED.items()))
    server = own_server({"ckv.prefixes": '"k: l"', "include": names})
    with server.client() as r:
        if request.param == "users":
            r.execute_command("ACL", "SETUSER", "some", "on", ">pw", "~*", "+@all", "-object")
            r.execute_command("AUTH", "some", "pw")
        yield r


def test_a_renamed_command_does_what_it_did(client):
    assert reply(client, "SET", "k:1", "v") == reply(client, "SET", "other", "w") == b"OK"
    assert [reply(client, "fetch", key) for key in ("k:1", "other", "k:2")] == [b"v", b"w", None]
    assert sorted(reply(client, "K33P", "*")) == [b"k:1", b"other"]
    assert reply(client, "size") == 2
    assert reply(client, "flip", "k:1", 7, 1) == 0
    assert reply(client, "Fetch", "k:1") == b"w"
    assert reply(client, "remember", "usage", "k:1") > 0
    assert reply(client, RENAMED["EXISTS"], "k:1", "other", "k:2") == 2
    assert reply(client, "DEL", "k:1", "other", "k:2") == 2
    assert reply(client, "size") == 0
    assert [reply(client, *c) for c in (("MULTI",), ("SET", "k:1", "v"), ("fetch", "k:1"), ("EXEC",))][-1] == [b"OK", b"v"]
    assert reply(client, "EVAL", "return {redis.call('set','k:9','x'), redis.call('fetch','k:9')}", 0)[1] == b"x"


@pytest.mark.parametrize("to", ["", "fetch"])
def test_values_of_the_servers_own_are_found_without_get(own_server, to):
    """MGET found none before the new name had been sent."""
    server = own_server({"rename-command": f'GET "{to}"', "ckv.prefixes": '"*"'})
    with server.client() as r:
        assert r.mset({"a": "value", "n": 7, "in": "ckv"})
        r.rename("a", "outside")
        r.rename("n", "number")
        r.lpush("list", 1)
        assert r.mget("outside", "number", "in", "list", "none") == [b"value", b"7", b"ckv", None, None]


def test_its_own_name_is_unknown(client):
    reply(client, "SET", "k:1", "v")
    for command in (("KEYS", "*"), ("EXISTS", "k:1"), ("GET", "k:1"), ("SETBIT", "k:1", 7, 1), ("DBSIZE",), ("nonsense",), ("k\0",), ("x" * 100,)):
        assert "unknown command" in str(reply(client, *command))
    assert reply(client, "fetch", "k:1") == b"v"


@pytest.mark.parametrize("name", ["CDEL", "CMOVEOUT", "ckv.get", "ckv+moving"])
def test_a_name_of_ours_that_is_taken(own_server, name):
    """The module is refused, and the server goes on as if it had never been asked."""
    server = own_server({"rename-command": f"DEL {name}", "enable-module-command": "yes"}, module=False)
    with server.client() as r:
        assert isinstance(reply(r, "MODULE", "LOAD", MODULE), redis.ResponseError)
        r.set("k", "v")
        assert reply(r, "BGSAVE").startswith(b"Background")
        wait_for(lambda: not r.info("persistence")["rdb_bgsave_in_progress"])
        assert reply(r, "FLUSHALL") == reply(r, "CONFIG", "SET", "maxmemory", "100mb") == b"OK"
        assert reply(r, "SWAPDB", 0, 1) == b"OK" and reply(r, "PING") == b"PONG"
        time.sleep(0.3)  # timers that were left behind would have come
        assert reply(r, "PING") == b"PONG"


NEEDED = {name: {} for name in ("COMMAND", "CLIENT", "SET", "DEL", "LRANGE", "ACL")}
NEEDED |= {name: {"cluster-enabled": "yes"} for name in ("CLUSTER", "OBJECT")}


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("to", ["", "other"])
def test_prefixes_need_some_commands_under_their_names(own_server, name, to):
    config = {"rename-command": f'{name} "{to}"', **NEEDED[name]}
    server = own_server({**config, "cluster-port": free_port()} if NEEDED[name] else config)
    with server.client() as r:
        if name == "ACL" and not r.info("server")["redis_version"].startswith("7.0."):
            pytest.skip("tells a module what a user may")
        refused = reply(r, "CONFIG", "SET", "ckv.prefixes", "k:")
        assert f"rename-command must leave '{name.lower()}' its name" in str(refused)
        assert reply(r, "CONFIG", "GET", "ckv.prefixes") == [b"ckv.prefixes", b""]
        assert reply(r, "CONFIG", "SET", "ckv.prefixes", "") == b"OK"
    server.stop()
    server.config["ckv.prefixes"] = "k:"
    with pytest.raises(ServerFailed, match=f"must leave '{name.lower()}' its name"):
        server.start()
