"""Keys and values that somebody has chosen so that they fall together."""

import random

from helpers import assert_stored, cpu_seconds, info

FLOOD = 100_000
MAPS = 1024

# --- ckv's own way from a key to a map, which has no secret: anybody can compute it ---

MASK = (1 << 64) - 1
PARTITION_SECRET = (0x636B762D70617274, 0x6974696F6E2D6B31)


def siphash13(data, secret):
    """SipHash-1-3 (Aumasson, Bernstein), 64 bits."""

    def rotate(x, n):
        return (x << n | x >> (64 - n)) & MASK

    def mix():
        nonlocal v0, v1, v2, v3
        v0 = (v0 + v1) & MASK
        v1 = rotate(v1, 13) ^ v0
        v0 = rotate(v0, 32)
        v2 = (v2 + v3) & MASK
        v3 = rotate(v3, 16) ^ v2
        v0 = (v0 + v3) & MASK
        v3 = rotate(v3, 21) ^ v0
        v2 = (v2 + v1) & MASK
        v1 = rotate(v1, 17) ^ v2
        v2 = rotate(v2, 32)

    v0, v1 = secret[0] ^ 0x736F6D6570736575, secret[1] ^ 0x646F72616E646F6D
    v2, v3 = secret[0] ^ 0x6C7967656E657261, secret[1] ^ 0x7465646279746573
    whole = len(data) // 8 * 8
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 255) << 56)
    for word in words:
        v3 ^= word
        mix()
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(3):
        mix()
    return v0 ^ v1 ^ v2 ^ v3


def chosen_keys():
    """Keys of one map. A stem of one map, and all that its last two digits may be, are a hundred at once."""
    keys, n = [], 10_000
    while len(keys) < FLOOD:
        stem = b"flood:%d" % n
        n += 1
        if siphash13(stem, PARTITION_SECRET) % MAPS == 7:
            keys += [stem + b"%02d" % suffix for suffix in range(100)]
    return keys


def seconds_for(r, command, keys, *more):
    """Of the server's main thread, the best of some rounds, so that what else the machine does counts little."""
    best = float("inf")
    for _ in range(4):
        pipe = r.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command(command, key, *more)
        start = cpu_seconds(r)
        pipe.execute()
        best = min(best, cpu_seconds(r) - start)
    return best


def test_keys_of_one_map(own_server):
    """They are in one map by their sender's choice, and no slower there than 1024 maps' worth of others:
    the hash within a map is keyed."""
    flood = chosen_keys()
    with own_server({"ckv.maps": MAPS}).client() as r:
        scattered = [b"other:%d:key" % i for i in range(FLOOD)]
        for keys in (flood, scattered):
            for start in range(0, FLOOD, 5000):
                r.execute_command("CMSET", *[x for key in keys[start : start + 5000] for x in (key, b"a value of " + key)])
        assert r.execute_command("CDBSIZE") == 2 * FLOOD
        # All of them are where they were aimed at.
        assert r.execute_command("DEBUG", "OBJECT", "ckv:7")
        size = r.execute_command("MEMORY", "USAGE", "ckv:7")
        assert size > info(r)["page_bytes"] * 0.2
        for command, more in (("CGET", ()), ("CSET", (b"another value",)), ("CEXISTS", ()), ("CPTTL", ())):
            together = seconds_for(r, command, flood[::20], *more)
            apart = seconds_for(r, command, scattered[::20], *more)
            assert together < 2.5 * apart, f"{command}: {together:.3f} s against {apart:.3f} s"
        assert_stored(r, {key: b"another value" for key in flood[::20]})


def colliding(n):
    """2^n keys with the same value under djb2 and its like (x33): blocks of two that are worth the same."""
    keys = [b""]
    for _ in range(n):
        keys = [key + block for key in keys for block in (b"Ez", b"FY")]
    return keys


def test_keys_that_collide_under_a_common_hash(own_server):
    """Times 33, as unkeyed tables of many programs have it."""
    flood = colliding(17)[:FLOOD]
    djb2 = {0}
    for key in flood[:1000]:
        value = 5381
        for byte in key:
            value = (value * 33 + byte) & 0xFFFFFFFF
        djb2.add(value)
    assert len(djb2) == 2  # 0 and theirs
    with own_server().client() as r:
        scattered = [b"%034d" % (i * 7919 * 7919) for i in range(FLOOD)]
        for keys in (flood, scattered):
            for start in range(0, FLOOD, 5000):
                r.execute_command("CMSET", *[x for key in keys[start : start + 5000] for x in (key, b"v")])
        together, apart = seconds_for(r, "CGET", flood[::20]), seconds_for(r, "CGET", scattered[::20])
        assert together < 2.5 * apart, f"{together:.3f} s against {apart:.3f} s"


def test_neighbours_share_a_bucket_and_no_more(own_server):
    """Who knows the rule for stems can't make a group of more than a hundred."""
    with own_server({"ckv.maps": 1}).client() as r:
        groups = [b"%s%02d" % (b"0" * zeros + b"1", suffix) for zeros in range(300) for suffix in range(100)]
        r.execute_command("CMSET", *[x for key in groups for x in (key, b"v")])
        others = [b"key-%dx" % i for i in range(len(groups))]
        r.execute_command("CMSET", *[x for key in others for x in (key, b"v")])
        together, apart = seconds_for(r, "CGET", groups[::10]), seconds_for(r, "CGET", others[::10])
        assert together < 4 * apart, f"{together:.3f} s against {apart:.3f} s"


# --- words of values, which become phrases of the dictionary: its table has a secret ---

WORDS = 3000
WORD_VALUES = 12_000
GOLDEN = 0x9E3779B97F4A7C15


def words_of_the_hash_without_a_secret():
    """Of one home and one fingerprint where hashes of words are (x ^ x >> 29) * GOLDEN, x being the word and a constant."""
    words = []
    for low in random.sample(range(1 << 28), WORDS):
        product = (1 << 62 | 0x155 << 28 | low) * pow(GOLDEN, -1, 1 << 64) & MASK
        x = product
        for _ in range(3):
            x = product ^ x >> 29
        words.append((x - 8 * 0x9FB21C651E98DF25 & MASK).to_bytes(8, "little"))
    return words


def words_of_the_known_secret():
    """Of one 64th of the table under the secret that programs have which choose none."""
    words = []
    while len(words) < WORDS:
        word = random.getrandbits(64)
        product = (word + 8 * 0x243F6A8885A308D3 & MASK) * GOLDEN
        if (product ^ product >> 64) & MASK < 1 << 58:
            words.append(word.to_bytes(8, "little"))
    return words


def seconds_to_encode(own_server, words):
    """What a server that has learned values of such words takes to store such values."""
    values = [b"".join(random.choices(words, k=25)) for _ in range(WORD_VALUES)]
    keys = [b"w:%d" % i for i in range(WORD_VALUES)]
    with own_server({"ckv.train-after": "1gb"}).client() as r:
        for start in range(0, WORD_VALUES, 1000):
            r.execute_command("CMSET", *[x for pair in zip(keys[start : start + 1000], values[start:]) for x in pair])
        r.execute_command("CKV", "TRAIN")
        assert info(r)["dictionaries"] == 1
        return seconds_for(r, "CSET", keys[:2000], b"".join(words[:25]))


def test_words_of_values(own_server):
    """The phrases of a dictionary are its writer's choice, but not where in its table they go."""
    random.seed(1)
    usual = seconds_to_encode(own_server, [random.randbytes(8) for _ in range(WORDS)])
    for choose in words_of_the_hash_without_a_secret, words_of_the_known_secret:
        chosen = seconds_to_encode(own_server, choose())
        assert chosen < 2.5 * usual, f"{choose.__name__}: {chosen:.3f} s against {usual:.3f} s"
