"""Writes golden files: what this version of ckv saves, for every later version to load.

    CKV_MODULE=build/ckv.so REDIS_SERVER=redis-server python tests/golden/make.py v1 [whole.dump ...]

A folder for each change of the format, with all files or those that it changed, written once by a build of
that time and never again. Use the
oldest server that is supported: newer ones read its files, it does not read theirs. tests/integration/test_golden.py
loads all folders.

    <folder>/<name>.{rdb,aof,dump}.gz    the files, packed because a giant value is saved as it is
    <folder>/manifest.json               what is in them: for each file the settings that it was written with, and
                                         of every record [key, length and hash of the value,
                                         expiry in ms since 1970 or null]

damaged.rdb.gz was not made by this: a file that tests/integration/test_persistence.py had flipped a bit of.
"""

import gzip
import hashlib
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from cluster import SLOTS, Node  # noqa: E402
from helpers import wait_for  # noqa: E402
from server import Server  # noqa: E402

YEAR_MS = 31_556_952_000
YEAR_2100_MS = 4_102_444_800_000
WORDS = """
    account active address after again amount answer archive arrived asked before begin blue board bridge called
    camera careful center change child circle city clear closed coast common corner count country cover delivered
    distance door early east engine evening every family field final forest found garden glass green ground harbour
    heavy hotel house invoice island journey kitchen ladder large later letter library light little machine market
    meeting message middle minute mirror month morning mountain number office order paper parcel people picture place
    pocket point present quarter question quiet rain record red report river round school season second shelf shipped
    short signal silver small sound south spring square station still stone street summer table ticket time touch
    tower town travel under valley village waiting water weather week west window winter wood word yellow yesterday
""".split()


class Source:
    """Data that is the same for the same seed with every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.seed = seed

    def below(self, n):
        return int(self.random() * n)

    def words(self, least, most):
        return " ".join(WORDS[self.below(len(WORDS))] for _ in range(least + self.below(most - least + 1)))

    def noise(self, size):
        return hashlib.shake_128(b"%d %d" % (self.seed, size)).digest(size)

    def message(self):
        return f"@{WORDS[self.below(len(WORDS))]}{self.below(1000)} {self.words(3, 12)}".encode()

    def document(self, fields):
        parts = (f'"field_{i}": {{"id": {self.below(100000)}, "text": "{self.words(2, 6)}"}}' for i in range(fields))
        return f'{{"type": "parcel", {", ".join(parts)}}}'.encode()

    def profile(self):
        """Says its name in every address, which no dictionary can know."""
        name = "".join(chr(97 + self.below(26)) for _ in range(6 + self.below(10)))
        address = f"https://example.org/people/{name}"
        return (f'{{"name": "{name}", "home": "{address}", "friends": "{address}/friends", "photos": "{address}/photos", '
                f'"about": "{self.words(2, 6)}"}}').encode()

    def letter(self):
        """Says the same number in every line, which zstd sees and a phrase dictionary cannot know."""
        number = "".join(f"{self.below(1 << 32):08x}" for _ in range(4))
        lines = (f"{self.words(2, 5)} {number} {self.words(2, 5)}\n" for _ in range(8 + self.below(8)))
        return "".join(lines).encode()

    def row(self):
        """A line of a table of numbers, which has nothing in common with words."""
        return ";".join(str(self.below(10**digits)) for digits in (6, 3, 3, 9, 2, 5)).encode()

    def moment(self):
        """A time from 2100 to 2250."""
        return YEAR_2100_MS + self.below(150 * YEAR_MS)


# --- what is stored ---


def messages(seed, count, key=b"message:%d"):
    source = Source(seed)
    return {key % (1000 + 7 * i): source.message() for i in range(count)}


def documents(seed, count, fields):
    source = Source(seed)
    return {b"document:%d:%d" % (fields, i): source.document(fields) for i in range(count)}


def profiles(seed, count):
    source = Source(seed)
    return {b"profile:%d" % (1000 + 3 * i): source.profile() for i in range(count)}


def odd():
    """What lies on the edges of the formats of keys and values."""
    source = Source(1)
    records = {
        b"": b"the empty key",
        b"the empty value": b"",
        b"7": b"one digit",
        b"99": b"two digits",
        b"100": b"no stem but a digit",
        b"\x00\xfe\xff": bytes(range(256)),
        b"\xff\xff": b"\xfe\xff",
        b"k" * 255: b"a long key",
        b"k" * 3000: b"a key that is longer than a bucket's small parts",
    }
    return records | {b"noise:%d" % n: source.noise(n) for n in (1, 2, 253, 254, 255, 256, 257, 800, 1000)}


def large():
    """More than 1 KB when encoded: records by themselves. Over 64 KB zstd's, over 1 MB as they are."""
    source = Source(2)
    records = {b"large:%d" % n: source.noise(n) for n in (1100, 1500, 3584, 10_000, 66_000)}
    records |= {b"long document:%d" % fields: source.document(fields) for fields in (60, 250)}
    records[b"zstd:100"] = source.document(1500)
    records[b"zstd:101"] = b"nearly a giant " * 69_000
    records[b"giant:100"] = b"a giant, kept as it is; " * 44_000
    records[b"large key " + b"k" * 5000] = b"small value"
    return records


def store(r, records, at_ms=None, db=0):
    """CSETs them, all with an expiry if `at_ms` makes one."""
    names = list(records)
    for start in range(0, len(names), 1000):
        pipe = r.pipeline(transaction=False)
        pipe.execute_command("SELECT", db)  # a pipeline's connection is not r's
        for key in names[start : start + 1000]:
            pipe.execute_command("CSET", key, records[key], *(("PXAT", at_ms()) if at_ms else ()))
        pipe.execute()


def train(r):
    r.execute_command("CKV", "TRAIN")


# --- files ---


def plain(r):
    """Nothing learned, two databases."""
    store(r, odd() | messages(3, 300))
    store(r, messages(4, 50), Source(4).moment, db=3)


def two_codecs(r):
    """Pages of two codecs, saved without the server's own compression."""
    store(r, odd() | messages(5, 700) | documents(6, 120, 6) | documents(7, 30, 16))
    train(r)
    store(r, messages(8, 900, b"other/%d/message"))
    pipe = r.pipeline(transaction=False)
    pipe.execute_command("CKV", "TRAIN")
    pipe.execute_command("SAVE")
    pipe.info("ckv")
    assert pipe.execute()[2]["ckv_dictionaries"] == 2, "the first dictionary was gone before the file was saved"


def copies(r):
    """A dictionary with copies: half of the records are encoded the cheapest way, half the fast one."""
    store(r, odd() | profiles(28, 2000))
    train(r)
    r.execute_command("CKV", "OPTIMIZE")
    store(r, {b"later " + key: value for key, value in profiles(29, 200).items()}, Source(28).moment)


def every_dictionary(r):
    """One codec with all that one can have. It takes much data to be worth it, of which little stays."""
    short, source = messages(26, 50_000), Source(27)
    letters = {b"letter:%d" % i: source.letter() for i in range(8000)}
    rows = {b"row:%d" % i: source.row() for i in range(90_000)}
    store(r, short | letters | rows)
    train(r)
    assert r.info("ckv").get("ckv_value_kinds", 2) > 1  # older modules had a dictionary for short values and one for long ones
    for records in (short, letters, rows):
        gone = list(records)[150:]
        for i in range(0, len(gone), 1000):
            r.execute_command("CDEL", *gone[i : i + 1000])


def larges(r):
    store(r, messages(9, 800) | documents(10, 60, 8))
    train(r)
    store(r, large(), Source(2).moment)
    store(r, {b"no expiry " + key: value for key, value in large().items() if len(value) < 5000})


def expiry(r):
    source = Source(11)
    store(r, messages(12, 200))
    store(r, messages(13, 400, b"expires:%d"), source.moment)
    store(r, {b"expires:%d" % (200_000 + i): b"soon after 2100" for i in range(200)},
          lambda: YEAR_2100_MS + source.below(100_000))
    store(r, {b"never:%d" % (300 + i): b"was to expire" for i in range(50)}, source.moment)
    for i in range(50):
        r.execute_command("CPERSIST", b"never:%d" % (300 + i))


def uses(r):
    """Pages that count how often their records are read."""
    records = messages(14, 600)
    store(r, records)
    store(r, messages(15, 100, b"expires:%d"), Source(15).moment)
    keys = list(records)
    for times, some in ((1, keys[::2]), (2, keys[::3]), (5, keys[::7])):
        for _ in range(times):
            r.execute_command("CMGET", *some)


def three_maps(r):
    store(r, messages(16, 700))
    train(r)
    store(r, messages(17, 100, b"expires:%d") | {b"large:1": Source(17).noise(2000)}, Source(17).moment)


def commands(r):
    """Commands: those that a rewrite writes, and behind them those that change records one by one."""
    source = Source(18)
    store(r, odd() | messages(19, 200))
    store(r, messages(20, 100, b"expires:%d"), source.moment)
    r.execute_command("BGREWRITEAOF")
    wait_for(lambda: not any(r.info("persistence")[f"aof_rewrite_{what}"] for what in ("in_progress", "scheduled")))
    store(r, messages(21, 50, b"later:%d"), source.moment)
    for i in range(50):
        r.execute_command("CAPPEND", b"message:%d" % (1000 + 7 * i), " and more")
        r.execute_command("CINCRBY", b"counter:%d" % i, i * i)
    r.execute_command("CINCRBYFLOAT", "counter:float", "1.25")
    r.execute_command("CSETRANGE", b"counter:7", 5, "padded")
    r.execute_command("CDEL", *(b"message:%d" % (1000 + 7 * i) for i in range(100, 120)))
    r.execute_command("CGETDEL", b"message:%d" % (1000 + 7 * 120))
    r.execute_command("CPERSIST", b"expires:1000")
    r.execute_command("CPEXPIREAT", b"expires:1007", source.moment())
    r.execute_command("CGETEX", b"expires:1014", "PXAT", source.moment())
    r.execute_command("CMSET", "pair:1", "one", "pair:2", "two")
    r.execute_command("CGETSET", "pair:1", "another one")
    r.execute_command("CSETNX", "pair:3", "three")


def payload(r):
    store(r, odd() | messages(22, 300))
    store(r, messages(23, 50, b"expires:%d") | {b"large:1": Source(23).noise(2000)}, Source(23).moment)


def whole(r):
    """Enough to be dumped with its dictionary, which shrinks most of it to little."""
    source = Source(30)
    store(r, odd() | messages(31, 500) | {b"letter:%d" % i: source.letter() * 10 for i in range(600)})
    train(r)
    r.execute_command("CKV", "OPTIMIZE")
    store(r, messages(32, 50, b"expires:%d") | {b"large:1": source.noise(2000)}, source.moment)


def clustered(r):
    store(r, odd() | messages(24, 400))
    train(r)
    store(r, messages(25, 50, b"{one tag}:%d") | {b"large:1": Source(25).noise(2000)}, Source(25).moment)


LEARNING = {"ckv.train-after": "64kb"}
FILES = {
    "plain.rdb": (plain, {"ckv.maps": 1024}),
    "two_codecs.rdb": (two_codecs, {"ckv.maps": 16, "rdbcompression": "no", **LEARNING}),
    "every_dictionary.rdb": (every_dictionary, {"ckv.maps": 16, "rdbcompression": "no", "ckv.train-after": "1gb",
                                                "ckv.compression-level": 1}),
    "copies.rdb": (copies, {"ckv.maps": 16, "rdbcompression": "no", "ckv.train-after": "1gb"}),
    "large.rdb": (larges, {"ckv.maps": 4, **LEARNING}),
    "expiry.rdb": (expiry, {"ckv.maps": 8}),
    "uses.rdb": (uses, {"ckv.maps": 8, "maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"}),
    "three_maps.rdb": (three_maps, {"ckv.maps": 3, **LEARNING}),
    "cluster.rdb": (clustered, {"cluster-enabled": "yes", **LEARNING}),
    "commands.aof": (commands, {"ckv.maps": 64, "appendonly": "yes", "aof-use-rdb-preamble": "no"}),
    "payload.dump": (payload, {"ckv.maps": 1}),
    "whole.dump": (whole, {"ckv.maps": 1, "ckv.train-after": "1gb"}),
}


def describe(r):
    """All records of all databases, as the manifest has them: {db: [[key, length, hash, expiry], ...]}"""
    found = {}
    for db in range(1 if r.info("cluster")["cluster_enabled"] else 16):
        if db:
            r.execute_command("SELECT", db)
        keys, cursor = [], None
        while cursor != b"0":
            cursor, some = r.execute_command("CSCAN", cursor or "0", "COUNT", 10_000)
            keys += some
        if keys:
            found[str(db)] = [describe_record(r, key) for key in sorted(keys)]
    return found


def describe_record(r, key):
    value, at_ms = r.execute_command("CGET", key), r.execute_command("CPEXPIRETIME", key)
    digest = hashlib.sha256(value).hexdigest()[:16]
    return [key.decode("latin-1"), len(value), digest, None if at_ms == -1 else at_ms]


def saved(server, r, name):
    """The bytes of the file that is wanted of a server."""
    if name.endswith(".dump"):
        return r.execute_command("DUMP", "ckv:0")
    if name.endswith(".aof"):
        folder = os.path.join(server.dir, "appendonlydir")
        parts = [f for kind in (".base.aof", ".incr.aof") for f in sorted(os.listdir(folder)) if f.endswith(kind)]
        return b"".join(open(os.path.join(folder, f), "rb").read() for f in parts)
    if name != "two_codecs.rdb":  # which is saved at a moment of its own
        r.execute_command("SAVE")
    return open(server.rdb_path, "rb").read()


def make(name):
    """Returns a file's bytes and what the manifest says of it."""
    fill, config = FILES[name]
    in_cluster = "cluster-enabled" in config
    with (Node if in_cluster else Server)(config) as server, server.client() as r:
        if in_cluster:
            r.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
            wait_for(lambda: server.info()["cluster_state"] == "ok")
        fill(r)
        data = saved(server, r, name)
        # The ports of a cluster's node are no part of it.
        return data, {"config": config, "server": r.info("server")["redis_version"], "records": describe(r)}


def text(manifest):
    """JSON with a line for each record."""
    parts = []
    for name, entry in manifest.items():
        records = ",\n".join(
            f"{json.dumps(db)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for db, rows in entry["records"].items()
        )
        head = json.dumps({k: v for k, v in entry.items() if k != "records"})[:-1]
        parts.append(f'{json.dumps(name)}: {head}, "records": {{\n{records}\n}}}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    folder = os.path.join(HERE, sys.argv[1])
    os.makedirs(folder)  # what is there already stays as it is
    manifest = {}
    for name in sys.argv[2:] or FILES:
        data, manifest[name] = make(name)
        with open(os.path.join(folder, name + ".gz"), "wb") as f:
            f.write(gzip.compress(data, 9, mtime=0))
        print(f"{name}: {len(data)} bytes, {sum(map(len, manifest[name]['records'].values()))} records")
    with open(os.path.join(folder, "manifest.json"), "w") as f:
        f.write(text(manifest))


if __name__ == "__main__":
    main()
