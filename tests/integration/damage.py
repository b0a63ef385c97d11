"""Bits that are flipped in files and payloads, and what is done to maps that come of them."""

import re
import struct

from helpers import all_keys, is_error, noise, reply


def crc64_table():
    """Of Redis' CRC64 (Jones), reflected."""
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x95AC9329AC4BC9B5 if n & 1 else 0)
        table.append(n)
    return table


CRC64 = crc64_table()


def seal(body):
    """A payload from what stands before its checksum."""
    crc = 0
    for byte in body:
        crc = CRC64[(crc ^ byte) & 255] ^ crc >> 8
    return bytes(body) + struct.pack("<Q", crc)


def flipped(rng, data, first=0, end=None, most=3):
    """A copy with one to `most` bits of data[first:end] flipped, but none in a map's key: of two keys of one name in a
    file Redis dies itself ("Guru Meditation: Duplicated key found in RDB file")."""
    keys = {at.start() + i for at in re.finditer(rb"\x05ckv:\d", data) for i in range(len(at.group()))}
    places = [at for at in range(first, len(data) if end is None else end) if at not in keys]
    bad = bytearray(data)
    for _ in range(rng.randint(1, most)):
        bad[rng.choice(places)] ^= 1 << rng.randrange(8)
    return bytes(bad)


def read_all(r):
    """Every record that is listed has a value, unless that itself is what is damaged."""
    keys = all_keys(r)
    pipe = r.pipeline(transaction=False)
    for key in keys:
        pipe.execute_command("CGET", key)
        pipe.execute_command("CSTRLEN", key)
    replies = pipe.execute(raise_on_error=False)
    for key, value, length in zip(keys, replies[::2], replies[1::2]):
        # None: found at another place than where it lies, because its key is not what it was.
        assert value is None or is_error(value, "damaged") or len(value) == length, f"{key}: {value!r:.100}, {length}"


def exercise(r, stored, round):
    """Reads, rewrites, re-encodes and deletes what may be damaged; any answer will do."""
    keys = list(stored)
    read_all(r)
    reply(r, "CMGET", *keys)
    for i, key in enumerate(keys[round::37]):
        reply(r, "CSET", key, noise(i * 7), *(("EX", 100) if i % 2 else ()))
        reply(r, "CPEXPIRETIME", key)
    reply(r, "CKV", "OPTIMIZE")
    reply(r, "CDEL", *keys[::5])
    reply(r, "CMGET", *keys)
    reply(r, "CKV", "TRAIN")
    reply(r, "CKV", "OPTIMIZE")
    reply(r, "SAVE")
    reply(r, "FLUSHALL")
    assert r.execute_command("PING") == b"PONG"
