"""Random programs for test_transparent_model: commands of every family over few keys of all types, by three clients.

A program is a list of steps, the same one for the same seed:

    (client, argument, argument, ...)   a command that a client sends
    ("prefixes", text)                  CONFIG SET ckv.prefixes, where there is such a setting
    ("dump", db, key, to)               DUMP, and RESTORE of the payload of the other server
    ("scan", db, option, ...)           a whole iteration
    ("random", db)                      RANDOMKEY
    ("expire", db, key, value)          SET with a time so short that it is over by the next step
    ("compare",)                        all keys of all databases
    ("rewrite",), ("restart",)          AOF rewrite; restart from the RDB or the AOF
    ("replica",)                        the replica holds what the server holds
    ("load_aof",)                       a server without the module loads the AOF and holds it as well
    ("ours", argument, ...)             a command for the server under test alone, to see that it is noticed
"""

import random
import time

from helpers import texts

CLIENTS = 3
DATABASES = 2
PREFIXES = ["", "c:", "c: d:", "*", "d:", "c:s c:l", "d: nothing:", "c:str:1"]

# A word in small letters stands for something random (Program.<word>), all others for themselves.
FAMILIES = {
    # family: (how often, its commands)
    "string": (30, """
        SET str value | SET str value NX | SET str value XX GET | SET str value EX ttl | SET str value PX pttl KEEPTTL
        SET str value PX pttl | SET str value EXAT at | SET str value PXAT pat GET | SET str value KEEPTTL | SET str number
        SET key value | SET key value NX GET | SETNX key value | SETEX str ttl value | PSETEX str pttl value | GET str | GET str
        GET key | GETSET str value | GETDEL str | GETEX str | GETEX str EX ttl | GETEX str PERSIST | MGET strings | MGET keys
        MSET pairs | MSETNX pairs | STRLEN str | APPEND str value | GETRANGE str int int | SUBSTR str int int
        SETRANGE str offset value | INCR str | DECR str | INCRBY str number | DECRBY str number | INCRBYFLOAT str float
        LCS str str | LCS str str LEN | LCS str str IDX MINMATCHLEN 3 WITHMATCHLEN | SETRANGE str -1 value
        SET str value EX 0 | SET str value PX -5 | SET str value EX ttl PX pttl | SET str value PERSIST | GETEX str EX nonsense
        MSETEX 2 str value str value EX ttl | DELEX str | DELEX str IFEQ value | DIGEST str | INCRBY str nonsense"""),
    "generic": (25, """
        DEL keys | UNLINK keys | EXISTS keys | TOUCH keys | TYPE key | RENAME key key | RENAME str key | RENAMENX key key
        COPY key key | COPY key key REPLACE | COPY str str DB 1 REPLACE | MOVE key 1 | MOVE key 0 | DBSIZE | KEYS *
        KEYS pattern | OBJECT REFCOUNT key | OBJECT IDLETIME key | OBJECT FREQ key | MEMORY USAGE key
        SORT list | SORT list ALPHA DESC | SORT list ALPHA LIMIT 1 3 | SORT list BY c:w_* ALPHA GET c:w_* GET # GET d:str:*
        SORT list BY d:w_* GET d:w_* GET c:w_* | SORT zset BY nosort GET c:w_* | SORT set ALPHA STORE key | SORT_RO list ALPHA | SORT str | SORT zset ALPHA GET c:w_*
        DUMP str | DUMP key | RESTORE str 0 nonsense | SELECT db | PING | ECHO value"""),
    "expiry": (15, """
        EXPIRE key ttl | PEXPIRE key pttl | EXPIREAT key at | PEXPIREAT key pat | EXPIRE key ttl NX | EXPIRE key ttl XX
        EXPIRE key other_ttl GT | EXPIRE key other_ttl LT | EXPIRE str other_ttl XX GT | EXPIRE key -1 | PEXPIREAT str 1
        TTL key | PTTL str | PTTL key | EXPIRETIME key | PEXPIRETIME str | PERSIST key | PERSIST str | EXPIRE key nonsense
        EXPIRE str ttl | EXPIRE key ttl NX GT"""),
    "list": (8, """
        LPUSH list members | RPUSH list members | RPUSH key members | LPOP list | RPOP list 2 | LRANGE list 0 -1 | LLEN key
        LINDEX list int | LINSERT list BEFORE member member | LREM list 0 member | LSET list int member | LTRIM list 0 7
        LMOVE list list LEFT RIGHT | RPOPLPUSH list key | LPOS list member | LPUSHX key member | LMPOP 2 key list LEFT
        BLPOP list key 0.01 | BLMOVE list list LEFT RIGHT 0.01 | BRPOP str 0.01"""),
    "hash": (8, """
        HSET hash pairs_of_fields | HSET key pairs_of_fields | HGET hash field | HMGET hash field field | HGETALL hash
        HDEL hash field | HLEN key | HKEYS hash | HVALS hash | HEXISTS hash field | HINCRBY hash field number
        HINCRBYFLOAT hash field float | HSETNX hash field value | HSTRLEN hash field | HSCAN hash 0 COUNT 1000"""),
    "set": (8, """
        SADD set members | SADD key members | SREM set member | SMEMBERS set | SCARD key | SISMEMBER set member
        SMISMEMBER set member member | SINTER set set | SUNION set set | SDIFF set set | SINTERSTORE key set set
        SUNIONSTORE set set key | SMOVE set set member | SPOP set 1000 | SRANDMEMBER set 1000 | SINTERCARD 2 set key
        SSCAN set 0 COUNT 1000"""),
    "zset": (8, """
        ZADD zset scored | ZADD key scored | ZADD zset XX GT CH scored | ZREM zset member | ZRANGE zset 0 -1 WITHSCORES
        ZSCORE zset member | ZINCRBY zset score member | ZCARD key | ZRANK zset member | ZCOUNT zset 0 50
        ZRANGEBYSCORE zset -inf 50 | ZPOPMIN zset | ZPOPMAX zset 2 | ZUNIONSTORE key 2 zset set | ZINTER 2 zset set
        ZDIFFSTORE zset 2 zset key | ZRANGESTORE key zset 0 2 | ZMPOP 2 key zset MIN | GEOADD zset 13.36 38.11 member
        GEOPOS zset member | GEOSEARCHSTORE key zset FROMLONLAT 13 38 BYRADIUS 200 km"""),
    "stream": (3, """
        XADD stream id field value | XADD key id field value | XLEN stream | XRANGE stream - + | XTRIM stream MAXLEN 3
        XDEL stream 1-1 | XREAD COUNT 2 STREAMS stream 0 | XGROUP CREATE stream g 0 | XINFO GROUPS key"""),
    "bits": (8, """
        SETBIT bits offset bit | SETBIT str offset bit | GETBIT str offset | BITCOUNT str | BITCOUNT bits 0 5 | BITPOS str bit
        BITOP AND bits str bits | BITOP OR key str str | BITOP NOT str str | BITOP XOR key bits str
        BITFIELD bits INCRBY u8 offset 200 GET u4 0 | BITFIELD str SET i5 offset 3 | BITFIELD_RO str GET u8 0 | BITCOUNT key"""),
    "hll": (5, """
        PFADD hll members | PFADD str members | PFCOUNT hll | PFCOUNT hll hll | PFMERGE hll hll hll | PFMERGE key hll | GET hll
        STRLEN hll | PFCOUNT key"""),
    "server": (1, "FLUSHDB | SWAPDB 0 1 | FLUSHALL | UNWATCH | GETT str"),
}

KINDS = ("str", "list", "hash", "set", "zset", "stream", "bits", "hll")
TTLS = [1000 * 4**i for i in range(1, 10)]
SENTENCES = texts(60, seed=16)

# Runs each of the commands in ARGV, which come with the number of their arguments.
SCRIPT = b"""local out, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  out[#out + 1] = redis.pcall(unpack(ARGV, i + 1, i + n))
  i = i + n + 1
end
return out"""


def templates(family):
    return [t.split() for line in FAMILIES[family][1].splitlines() for t in line.split("|") if t.strip()]


class Program:
    """A generator of steps. `events` are steps that are no commands, by how often they come in 1000. Of the commands half are
    `documented` ones, if there are such."""

    def __init__(self, seed, length, events, documented=None):
        self.rng = random.Random(seed)
        self.documented = documented
        self.events = events
        self.now = int(time.time())
        self.ids = 1
        self.others = 0
        self.families = [(name, FAMILIES[name][0]) for name in FAMILIES]
        self.templates = {name: templates(name) for name in FAMILIES}
        self.in_multi = [False] * CLIENTS
        self.steps = []
        while len(self.steps) < length:
            self.stretch()
        self.steps.append(("compare",))

    # --- steps ---

    def stretch(self):
        """What one client does before it is another's turn."""
        for name, share in self.events.items():
            if self.rng.random() < share / 1000 * 6:
                self.steps.append(getattr(self, f"event_{name}")())
        client = self.rng.randrange(CLIENTS)
        for _ in range(self.rng.choice((1, 2, 3, 8, 16))):
            self.steps.append((client, *self.next_command(client)))

    def next_command(self, client):
        chance = self.rng.random()
        if self.in_multi[client]:
            if chance < 0.2:
                self.in_multi[client] = False
                return (b"EXEC",) if chance < 0.17 else (b"DISCARD",)
        elif chance < 0.04:
            self.in_multi[client] = True
            return (b"MULTI",)
        elif chance < 0.07:
            return (b"WATCH", *self.keys())
        if 0.95 < chance < 0.99:
            return self.script()
        return self.command(broken=chance > 0.99)

    def command(self, broken=False):
        """A random command; a broken one has an argument too many or too few."""
        if self.documented and self.rng.random() < 0.5:
            args = self.documented.command(self)
        else:
            args = self.filled(self.rng.choices([f for f, _ in self.families], [w for _, w in self.families])[0])
        args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
        if broken:
            # Without how many, these two answer what they choose.
            shorter = len(args) > 1 and args[0] not in (b"SPOP", b"SRANDMEMBER") and self.rng.random() < 0.5
            args = args[:-1] if shorter else [*args, b"stray"]
        return tuple(args)

    def filled(self, family):
        """A template of a family."""
        args = []
        for word in self.rng.choice(self.templates[family]):
            made = getattr(self, word)() if word.islower() and hasattr(self, word) else word
            args.extend(made if isinstance(made, list) else [made])
        return args

    def script(self):
        packed = []
        for _ in range(self.rng.choice((1, 2, 4))):
            command = self.command()
            while command[0] in (b"FLUSHALL", b"UNWATCH") or command[0].startswith(b"B"):
                command = self.command()
            packed += [b"%d" % len(command), *command]
        return (b"EVAL", SCRIPT, b"0", *packed)

    def event_prefixes(self):
        return ("prefixes", self.rng.choice(PREFIXES))

    def event_dump(self):
        return ("dump", self.db(), self.key(), self.key())

    def event_scan(self):
        options = self.rng.choice([(), ("TYPE", "string"), ("MATCH", self.pattern()), ("COUNT", "3"), ("TYPE", "hash")])
        return ("scan", self.db(), *options)

    def event_random(self):
        return ("random", self.db())

    def event_expire(self):
        return ("expire", self.db(), self.key(), self.value())

    def event_compare(self):
        return ("compare",)

    def event_rewrite(self):
        return ("rewrite",)

    def event_restart(self):
        self.in_multi = [False] * CLIENTS
        return ("restart",)

    def event_replica(self):
        return ("replica",)

    # --- words of the templates ---

    def key(self, kind=None):
        """Of the kind in its name, mostly."""
        if kind is None or self.rng.random() < 0.12:
            kind = self.rng.choice(KINDS)
        if self.rng.random() < 0.02:
            return self.rng.choice([b"", b"c:", b"c", b"\x00\xff c:", b"d:" + b"long" * 60])
        if kind == "str" and self.rng.random() < 0.2:
            return b"%s:w_%d" % (self.rng.choice([b"c", b"d"]), self.rng.randint(1, 4))
        return b"%s:%s:%d" % (self.rng.choice([b"c", b"c", b"d", b"n"]), kind.encode(), self.rng.randint(1, 3))

    def keys(self):
        return [self.key() for _ in range(self.rng.randint(1, 4))]

    def strings(self):
        return [self.key("str") for _ in range(self.rng.randint(1, 4))]

    def pairs(self):
        return [x for key in self.rng.choice((self.keys, self.strings))() for x in (key, self.value())]

    def value(self):
        kind = self.rng.randrange(12)
        if kind < 5:
            return self.rng.choice(SENTENCES)
        if kind < 8:
            return self.number()
        if kind == 8:
            return self.rng.randbytes(self.rng.randint(0, 40))
        if kind == 9:
            return b"".join(self.rng.choices(SENTENCES, k=self.rng.randint(2, 30)))
        return self.rng.choice([b"", b"a", b"10", b"-1", b"1.5", b"007", b"x" * 4100, b" 12", b"9223372036854775807", b"Ada"])

    def number(self):
        return b"%d" % self.rng.choice([0, 1, -1, 7, 12, 255, 10_000, 9_999_999_999, -(2**63), self.rng.randint(-500, 500)])

    def float(self):
        return self.rng.choice([b"0.5", b"-1.25", b"3", b"1e3", b"10.125", b"nan"])

    def int(self):
        return self.rng.choice([0, 1, 2, 5, -1, -3, 30, 10_000])

    def offset(self):
        return self.rng.choice([0, 1, 7, 8, 31, 100, 333])

    def bit(self):
        return self.rng.randrange(2)

    def field(self):
        return b"f%d" % self.rng.randrange(6)

    def pairs_of_fields(self):
        return [x for _ in range(self.rng.randint(1, 3)) for x in (self.field(), self.value())]

    def member(self):
        return self.rng.choice([b"1", b"2", b"3", b"4", b"two", b"three", b"10"])

    def members(self):
        return [self.member() for _ in range(self.rng.randint(1, 4))]

    def score(self):
        return self.rng.choice([1, 2, -3, 40, 1.5])

    def scored(self):
        return [x for _ in range(self.rng.randint(1, 3)) for x in (self.score(), self.member())]

    def id(self):
        self.ids += 1
        return b"%d-1" % self.ids

    def db(self):
        return int(self.rng.random() < 0.1)

    def pattern(self):
        return self.rng.choice([b"c:*", b"*str*", b"[cd]:list:?", b"d:str:1", b"*:1", b"nothing*"])

    def nonsense(self):
        return self.rng.choice([b"nonsense", b"", b"1.5", b"99999999999999999999"])

    # Times are so far away, and from each other, that 0.1% and a slow machine change no reply but a time's own.

    def ttl(self):
        return self.rng.choice(TTLS)

    def pttl(self):
        return self.ttl() * 1000

    def other_ttl(self):
        """Never the same twice, as GT and LT take one of two times that are nearly equal by chance."""
        self.others += 1
        return int(TTLS[self.others // 69 % len(TTLS)] * 2 * 1.01 ** (self.others % 69))

    def at(self):
        return self.now + self.ttl()

    def pat(self):
        return self.at() * 1000


for _kind in KINDS:
    setattr(Program, _kind, lambda self, kind=_kind: self.key(kind))
