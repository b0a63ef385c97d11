"""Commands as the server under test documents them (COMMAND DOCS), with random arguments: also such as no template of
transparent_programs has, and those of servers that are newer than it."""

# Groups and commands whose replies are the server's own choice, or another at another time, or that block or end connections.
LEFT_OUT = {"cluster", "connection", "module", "pubsub", "scripting", "sentinel", "server", "stream", "transactions"}
LEFT_OUT |= set(
    # Redis 8.6 ends when a field comes twice in HSETEX.
    "hsetex blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin dump hexpiretime hpexpiretime hpttl hrandfield hscan httl keys"
    " migrate object pfdebug pfselftest randomkey restore scan sort sort_ro spop srandmember sscan wait waitaof zrandmember"
    " zscan".split()
)
# What of a program's keys a group's commands are about, mostly.
KINDS = {"bitmap": "bits", "geo": "zset", "hyperloglog": "hll", "sorted-set": "zset", "string": "str"}
# Redis 8.6 answers twice where these options have no digest, and GET is there.
LEFT_OUT_OPTIONS = {"IFDNE", "IFDEQ"}


def fields(flat):
    """A map, of what documents a command or an argument."""
    return dict(zip([name.decode() for name in flat[::2]], flat[1::2]))


class Documented:
    def __init__(self, client):
        docs = client.execute_command("COMMAND", "DOCS")
        self.arguments, self.kinds = {}, {}
        for name, about in zip(docs[::2], map(fields, docs[1::2])):
            name, group = name.decode(), about["group"].decode()
            if not {name, group} & LEFT_OUT and "subcommands" not in about:
                self.arguments[name.upper()] = [self.argument(a) for a in about.get("arguments", [])]
                self.kinds[name.upper()] = KINDS.get(group, group if group in ("hash", "list", "set") else None)
        self.names = sorted(self.arguments)

    def argument(self, flat):
        about = fields(flat)
        parts = [self.argument(a) for a in about.get("arguments", [])]
        return {
            "name": about["name"].decode(),
            "type": about["type"].decode(),
            "token": about["token"].decode() if "token" in about else None,
            "flags": {flag.decode() for flag in about.get("flags", [])},
            "arguments": [a for a in parts if a["token"] not in LEFT_OUT_OPTIONS],
        }

    def command(self, program):
        """One that fits its documentation; the words of a program are what its arguments are made of."""
        name = program.rng.choice(self.names)
        self.kind = self.kinds[name]
        words = [word for argument in self.arguments[name] for word in self.words(program, argument)]
        for at, word in enumerate(words):
            if word is NUMBER_OF_KEYS:
                words[at] = self.count(words[at + 1 :])
        return [name, *words]

    @staticmethod
    def count(words):
        """How many keys come next."""
        n = 0
        while n < len(words) and isinstance(words[n], Key):
            n += 1
        return n

    def words(self, program, argument):
        flags, token = argument["flags"], argument["token"]
        if "optional" in flags and program.rng.random() < 0.6:
            return []
        words, each = [], "multiple_token" in flags
        for time in range(program.rng.choice((1, 1, 2, 3)) if "multiple" in flags else 1):
            if token is not None and (time == 0 or each):
                words.append(token)
            words += self.value(program, argument)
        return words

    def value(self, program, argument):
        kind, name = argument["type"], argument["name"]
        if kind == "block":
            return [word for part in argument["arguments"] for word in self.words(program, part)]
        if kind == "oneof":
            return self.words(program, program.rng.choice(argument["arguments"])) if argument["arguments"] else []
        if kind == "pure-token":
            return []
        if kind == "integer" and name in ("numkeys", "num-keys"):
            return [NUMBER_OF_KEYS]
        return [getattr(self, kind.replace("-", "_"), self.string)(program, name)]

    # --- by the types that arguments have ---

    def key(self, program, _):
        return Key(program.key(self.kind))

    def pattern(self, program, _):
        return program.pattern()

    def integer(self, program, name):
        if "seconds" in name:
            return program.rng.choice((program.other_ttl(), program.other_ttl() * 1000, program.nonsense()))
        return program.rng.choice((program.int(), program.offset(), program.number(), program.db()))

    def double(self, program, _):
        return program.rng.choice((program.float(), program.score()))

    def unix_time(self, program, name):
        return (program.now + program.other_ttl()) * (1000 if "milli" in name else 1)

    def string(self, program, _):
        return program.rng.choice((program.value, program.number, program.member, program.field))()


class Key(bytes):
    pass


NUMBER_OF_KEYS = object()
