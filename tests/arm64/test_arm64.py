"""The module built for arm64 in Debian's arm64 server under qemu's user mode, beside this machine's: each loads what the
other writes, and follows it.

`make test-arm64` names module and server in CKV_ARM64_MODULE and CKV_ARM64_SERVER."""

import os
import platform

import pytest

from exchange import FILES, Kind, assert_agree, assert_holds, following
from helpers import assert_stored, info, load, texts

ARM64 = Kind(os.environ["CKV_ARM64_MODULE"], os.environ["CKV_ARM64_SERVER"])
KINDS = {"arm64": ARM64, platform.machine(): Kind()}
LEARNING = {"ckv.train-after": "64kb"}


@pytest.fixture(params=[("arm64", platform.machine()), (platform.machine(), "arm64")], ids=lambda p: f"{p[0]}-to-{p[1]}")
def kinds(request):
    return [KINDS[name] for name in request.param]


def test_smoke(own_server):
    """Stored, learned, expired, saved and loaded again."""
    server = ARM64.start(own_server, LEARNING)
    with server.client() as r:
        assert r.info("server")["os"].endswith("aarch64")
        stored = load(r, texts(3000)) | load(r, texts(500, seed=2), ttl=1000, key=b"session:%d")
        r.execute_command("CSET", "short", "lived", "PX", 1)
        r.execute_command("CKV", "TRAIN")
        r.execute_command("CKV", "OPTIMIZE")
        assert info(r)["dictionaries"] == 1 and info(r)["compression_ratio"] > 1.5
        assert_stored(r, stored)
        assert r.execute_command("CGET", "short") is None
    server.restart(save=True)
    with server.client() as r:
        assert_stored(r, stored)
        assert r.execute_command("CDBSIZE") == len(stored)


@pytest.mark.parametrize("name", FILES)
def test_files(own_server, kinds, name):
    writer, reader = kinds
    if writer is ARM64 and name == "every_dictionary.rdb":
        pytest.skip("learning of all that its dictionaries need takes many minutes where it is emulated")
    data, records = writer.write(name)
    assert_holds(reader.load(own_server, name, data), records)


def test_a_replica(own_server, kinds):
    """First by a file, then by what is written."""
    one, two = kinds
    primary = one.start(own_server, LEARNING)
    with primary.client() as r:
        load(r, texts(2000))
        replica = two.start(own_server, {**LEARNING, **following(primary)})
        assert_agree(primary, replica)
        load(r, texts(2000, seed=3), first=1000, ttl=1000)
    assert_agree(primary, replica)
