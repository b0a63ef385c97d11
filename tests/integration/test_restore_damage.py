"""RESTORE of payloads that something or somebody has changed, with a checksum that fits: an error, or
a sane map; never a crash, never memory for more than the payload can hold."""

import os
import random
import re
import struct
import zlib

import pytest

from damage import flipped, seal
from helpers import all_keys, assert_stored, load, reply, texts

SEED = int(os.environ.get("CKV_SEED", "1"))
# Of address space, for whatever it is needed: libc reserves 128 MB for a thread that first allocates.
# How large single blocks may be is fuzz_rdb's to see.
HONEST = 256 << 20
# A kind of value that Redis 8.6 itself does not survive if it is made up (rdbLoadCheckModuleValue).
KEY_METADATA = 243


def length(n):
    """A number as Redis writes lengths."""
    return b"\x81" + struct.pack(">Q", n)


class Reader:
    """As much of the server's own reading as it takes to know which lengths it will believe."""

    def __init__(self, body):
        self.body, self.at, self.largest = body, 0, 0

    def take(self, n):
        if self.at + n > len(self.body):
            raise EOFError
        part = self.body[self.at : self.at + n]
        self.at += n
        return part

    def length(self):
        """(number, whether it is the kind of a special string)"""
        first = self.take(1)[0]
        kind = first >> 6
        if kind == 0:
            return first & 63, False
        if kind == 1:
            return (first & 63) << 8 | self.take(1)[0], False
        if kind == 3:
            return first & 63, True
        size = {0x80: 4, 0x81: 8}.get(first)
        if size is None:
            raise EOFError
        return int.from_bytes(self.take(size), "big"), False

    def string(self):
        n, special = self.length()
        if special:
            if n != 3:
                self.take(1 << n)
                return
            n, _ = self.length()
            self.largest = max(self.largest, self.length()[0])
        self.largest = max(self.largest, n)
        self.take(n)

    def read(self):
        self.take(10)  # type, name of the module's type
        while True:
            opcode = self.length()[0]
            if opcode == 2:
                self.length()
            elif opcode == 5:
                self.string()
            else:
                return


def server_asks_for(body):
    """The largest string that the server itself makes room for before the module sees it."""
    reader = Reader(body[:-2])
    try:
        reader.read()
    except EOFError:
        pass
    return reader.largest


def address_space(server):
    with open(f"/proc/{server.process.pid}/status") as f:
        return int(re.search(r"VmPeak:\s*(\d+) kB", f.read()).group(1)) << 10


@pytest.fixture(params=["yes", "no", "clients"])
def server(own_server, request):
    """One map, so that whatever a record's key becomes, its record is where it belongs."""
    return own_server({"ckv.maps": 1, "ckv.train-after": "1gb", "sanitize-dump-payload": request.param})


def check_what_came(r):
    """Every record that is listed can be read, and the map can be written, saved and dumped."""
    keys = all_keys(r)
    values = r.execute_command("CMGET", *keys, b"nothing")
    assert not [k for k, v in zip(keys, values) if v is None]
    assert r.execute_command("CDBSIZE") >= len(set(keys)) == len(keys)
    for key in keys[::7]:
        assert r.execute_command("CSET", key, b"written anew") == b"OK"
    for key in keys[::5]:
        assert r.execute_command("CDEL", key) == 1
    if r.execute_command("CDBSIZE"):
        assert r.execute_command("DUMP", "ckv:0")


def small(r):
    """Some records of each kind; what a DUMP of them begins with, without its checksum."""
    load(r, texts(12))
    load(r, [b"", b"x", b"0123456789" * 20], key=b"name-%d")
    load(r, texts(4, seed=2), key=b"expiring:%d", ttl=1000)
    return r.execute_command("DUMP", "ckv:0")[:-8]


def large(r):
    load(r, texts(400))
    r.execute_command("CSET", "large", random.Random(1).randbytes(9000))
    return r.execute_command("DUMP", "ckv:0")[:-8]


def restore_all(server, r, variants):
    """RESTOREs each; returns how many were taken."""
    taken = 0
    base = address_space(server)
    for body in variants:
        answer = reply(r, "RESTORE", "ckv:0", 0, seal(body), "REPLACE")
        if answer != b"OK":
            assert "Bad data format" in str(answer) or "checksum" in str(answer), answer
            continue
        taken += 1
        if r.execute_command("TYPE", "ckv:0") != b"ckv-map-1":
            continue
        check_what_came(r)
        assert address_space(server) < base + HONEST, f"too much memory for {bytes(body).hex()}"
    assert address_space(server) < base + HONEST, "too much memory was asked for on the way to an error"
    assert r.execute_command("PING") == b"PONG"
    return taken


@pytest.mark.parametrize("trained", [False, True], ids=["raw", "trained"])
def test_flipped_bits(server, trained):
    """Of 10,000 variants, those in which the server itself makes no room for a giant string first."""
    with server.client() as r:
        stored = load(r, texts(3000), first=10_000)
        if trained:
            r.execute_command("CKV", "TRAIN")
        r.execute_command("FLUSHALL")
        rng = random.Random(SEED)
        bodies = [(small(r), 1500)]
        r.execute_command("FLUSHALL")
        bodies.append((large(r), 170))
        for body, count in bodies:
            variants = [flipped(rng, body) for _ in range(count)]
            honest = [v for v in variants if server_asks_for(v) <= len(v)]
            assert len(honest) > count * 3 // 4
            taken = restore_all(server, r, honest)
            assert 0 < taken < len(honest)
            for giant in (v for v in variants if server_asks_for(v) > len(v)):
                reply(r, "RESTORE", "ckv:0", 0, seal(giant), "REPLACE")
        # What is not damaged still comes back.
        assert r.execute_command("RESTORE", "ckv:0", 0, seal(bodies[0][0]), "REPLACE") == b"OK"
        assert r.execute_command("CDBSIZE") == 19
        r.execute_command("FLUSHALL")
        load(r, list(stored.values()), first=10_000)
        assert_stored(r, stored)


def test_any_bytes(server):
    """Numbers and strings in the server's own form, but as chance has it."""
    rng = random.Random(SEED)
    with server.client() as r:
        valid = small(r)
        head, version = valid[:10], valid[-2:]

        def part():
            if rng.random() < 0.5:
                n = rng.choice([0, 1, 2, 3, 255, 256, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 64) - 1])
                return b"\x02" + length(n)
            text = rng.choice([b"", b"\x28\xb5\x2f\xfd", zlib.compress(b"x" * 50), rng.randbytes(rng.randrange(300))])
            return b"\x05" + length(len(text)) + text

        def variant():
            shape = rng.random()
            if shape < 0.1:
                return rng.randbytes(rng.randrange(100)) + version
            if shape < 0.2:
                return valid[: rng.randrange(10, len(valid) - 2)] + version
            kind = b"\x02" + length(rng.choice([1, 2, 2, 2, 3]))
            return head + kind + b"".join(part() for _ in range(rng.randrange(6))) + b"\x00" + version

        variants = [variant() for _ in range(2000)]
        sane = [v for v in variants if server_asks_for(v) <= len(v) and v[0] != KEY_METADATA]
        restore_all(server, r, sane)


def test_a_block_that_promises_more_than_it_holds(server):
    """A gigabyte is promised by a few bytes, in the block's head and in zstd's own; then by a frame
    of runs, which would have to be unpacked to be found out."""
    with server.client() as r:
        valid = small(r)
        head, version = valid[:10] + b"\x02\x02", valid[-2:]
        gigabyte = 1 << 30
        frame_head = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", gigabyte)  # single segment, 4 bytes of size
        window_head = b"\x28\xb5\x2f\xfd\x80\x70" + struct.pack("<I", gigabyte)  # with a window of 16 MB
        run = struct.pack("<I", (128 << 10) << 3 | 1 << 1)[:3] + b"x"
        variants = []
        for frame in (frame_head, window_head, frame_head + run * 3, window_head + run * 3):
            variants.append(head + b"\x02" + length(gigabyte) + b"\x05" + length(len(frame)) + frame + b"\x00" + version)
        base = address_space(server)
        for body in variants:
            assert "Bad data format" in str(reply(r, "RESTORE", "ckv:0", 0, seal(body), "REPLACE"))
            assert address_space(server) < base + HONEST


def test_large_records_come_back(server):
    """Blocks larger than the first room that is made for them."""
    with server.client() as r:
        stored = {b"runs": b"a" * 40_000_000, b"noise": random.Random(2).randbytes(3_000_000), b"text": b" ".join(texts(50_000))}
        for key, value in stored.items():
            r.execute_command("CSET", key, value)
        payload = r.execute_command("DUMP", "ckv:0")
        r.execute_command("FLUSHALL")
        assert r.execute_command("RESTORE", "ckv:0", 0, payload) == b"OK"
        assert_stored(r, stored)
