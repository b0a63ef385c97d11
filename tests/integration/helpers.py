"""Small things that several test files use."""

import contextlib
import os
import random
import re
import threading
import time

import redis

from server import PATIENCE_S

# What goes by itself is deleted with DEL. Valkey's default is UNLINK.
EAGER = {"lazyfree-lazy-expire": "no", "lazyfree-lazy-eviction": "no"}

# ckv command -> the command of Redis' string that it follows.
NATIVE = {
    "CSET": "SET",
    "CGET": "GET",
    "CMSET": "MSET",
    "CMGET": "MGET",
    "CDEL": "DEL",
    "CEXISTS": "EXISTS",
    "CSTRLEN": "STRLEN",
    "CTTL": "TTL",
    "CPTTL": "PTTL",
    "CEXPIRETIME": "EXPIRETIME",
    "CPEXPIRETIME": "PEXPIRETIME",
    "CEXPIRE": "EXPIRE",
    "CPEXPIRE": "PEXPIRE",
    "CEXPIREAT": "EXPIREAT",
    "CPEXPIREAT": "PEXPIREAT",
    "CPERSIST": "PERSIST",
    "CGETDEL": "GETDEL",
    "CGETEX": "GETEX",
    "CGETSET": "GETSET",
    "CSETNX": "SETNX",
    "CSETEX": "SETEX",
    "CPSETEX": "PSETEX",
    "CMSETNX": "MSETNX",
    "CMSETEX": "MSETEX",
    "CAPPEND": "APPEND",
    "CGETRANGE": "GETRANGE",
    "CSETRANGE": "SETRANGE",
    "CINCR": "INCR",
    "CDECR": "DECR",
    "CINCRBY": "INCRBY",
    "CDECRBY": "DECRBY",
    "CINCRBYFLOAT": "INCRBYFLOAT",
    "CUNLINK": "UNLINK",
    "CDELEX": "DELEX",
    "CTOUCH": "TOUCH",
    "CSCAN": "SCAN",
    "CKEYS": "KEYS",
    "CRANDOMKEY": "RANDOMKEY",
    "CDBSIZE": "DBSIZE",
}

# A record may live longer than was asked for by 0.1% and 2 ms, never shorter; who asks is told the asked time or one
# that is earlier by as much, never a later one.
LATE_MS = 2


def late_by(ttl_ms):
    """By how much a record may outlive a TTL of `ttl_ms`, and what is told of it fall short, ms."""
    return LATE_MS + ttl_ms // 1000 + 1


def now_ms():
    return time.time_ns() // 1_000_000


def reply(r, *args):
    """A command's reply; an error reply is returned, not raised."""
    try:
        return r.execute_command(*args)
    except redis.ResponseError as error:
        return error


def at_one_moment(r, *commands):
    """The replies of a transaction, in which time stands still: no pause of the machine comes between."""
    pipe = r.pipeline(transaction=True)
    for command in commands:
        pipe.execute_command(*command)
    return pipe.execute()


def is_error(value, text=None):
    return isinstance(value, redis.ResponseError) and (text is None or text in str(value))


def comparable(value, command):
    """A reply in a form in which ckv's and Redis' own can be compared: errors name the command."""
    if isinstance(value, redis.ResponseError):
        return "error: " + str(value).replace(f"'{command.lower()}'", "'<command>'")
    if isinstance(value, list):
        return [comparable(v, command) for v in value]
    return value


def twin(r, command, *args):
    """Runs a ckv command and its native counterpart, checks that the replies agree, returns them."""
    ours = reply(r, command, *args)
    theirs = reply(r, NATIVE[command], *args)
    assert comparable(ours, command) == comparable(theirs, NATIVE[command]), (
        f"{command} {args!r}: ckv says {ours!r}, redis says {theirs!r}"
    )
    return ours


def wait_for(condition, what="the condition"):
    """Polls until `condition()` is true, returns its value."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come true in {PATIENCE_S} s"
        time.sleep(0.01)


def held_up(server):
    """Seconds that the server's main thread, and this one, have been ready to run while others had the processors: a
    client waits for these as well. 0 where the system does not tell."""
    pid = server.process.pid
    waited_ns = 0
    for path in f"/proc/{pid}/task/{pid}/schedstat", f"/proc/self/task/{threading.get_native_id()}/schedstat":
        with contextlib.suppress(FileNotFoundError), open(path) as f:
            waited_ns += int(f.read().split()[1])
    return waited_ns / 1e9


def threads_of(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def cpu_seconds(r):
    """What the server's main thread has used so far: what else the machine does is not in it."""
    cpu = r.info("cpu")
    return cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"]


WORDS = """
    the of and to in is that it was for on are with as be at one have this from or had by hot but some what
    there we can out other were all your when up use word how said an each she which do their time if will
    way about many then them would write like so these her long make thing see him two has look more day
    could go come did my sound no most number who over know water than call first people may down side been
    now find any new work part take get place made live where after back little only round man year came
    show every good me give our under name very through just form much great think say help low line before
    turn cause same mean differ move right boy old too does tell sentence set three want air well also play
""".split()


def is_in_sync(replica):
    return replica.info("replication")["master_link_status"] == "up"


def wait_for_replica(r):
    """Until a replica has all that was written so far, by whomever. WAIT alone knows of its own connection's last
    command only, and where that wrote nothing newer servers answer at once. One that is still loading has told 0."""
    written = max(1, r.info("replication")["master_repl_offset"])

    def has_it():
        r.execute_command("WAIT", 1000, 1)  # asks the replicas how far they are, which they tell once a second
        replicas = [v for k, v in r.info("replication").items() if re.fullmatch(r"slave\d+", k)]
        return any(v["state"] == "online" and int(v["offset"]) >= written for v in replicas)

    wait_for(has_it, what="a replica in step")


def texts(count, seed=1):
    """Short messages with a shape that a dictionary can learn, the same ones for the same seed."""
    rng = random.Random(seed)
    out = []
    for i in range(count):
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(5, 18)))
        out.append(f"@user{rng.randint(0, 99999)} {words}{rng.choice(['', '!', '...', ' http://t.co/x'])}".encode())
    return out


def noise(size, seed=0):
    """Bytes of which nothing can be learned, the same ones for the same arguments."""
    return random.Random(size * 31 + seed).randbytes(size)


def load(r, values, first=0, ttl=None, key=b"KEY:%d", batch=500):
    """CSETs `values` under KEY:<first>... in pipelines; returns {key: value}."""
    stored = {}
    for start in range(0, len(values), batch):
        pipe = r.pipeline(transaction=False)
        for i, value in enumerate(values[start : start + batch], first + start):
            name = key % i
            stored[name] = value
            pipe.execute_command("CSET", name, value, *(("EX", ttl) if ttl else ()))
        assert all(ok == b"OK" for ok in pipe.execute())
    return stored


def assert_stored(r, stored, batch=500):
    """Every record of `stored` reads back as it is."""
    keys = list(stored)
    for start in range(0, len(keys), batch):
        part = keys[start : start + batch]
        got = r.execute_command("CMGET", *part)
        wrong = [(k, stored[k], v) for k, v in zip(part, got) if stored[k] != v]
        assert not wrong, f"{len(wrong)} of {len(part)} differ, the first: {wrong[0]!r:.500}"


def all_keys(r):
    """Of the records of the selected database, as CSCAN lists them."""
    cursor, keys = None, []
    while cursor != b"0":
        cursor, some = r.execute_command("CSCAN", cursor or "0", "COUNT", 10_000)
        keys += some
    return keys


def expiries(r, stored):
    pipe = r.pipeline(transaction=False)
    for key in stored:
        pipe.execute_command("CPEXPIRETIME", key)
    return dict(zip(stored, pipe.execute()))


def forget_exact_times(r, count=10_000):
    """A time that was just set is told to the ms, which is kept nowhere else: gives times to so many others that what is told is what is stored."""
    load(r, [b"v"] * count, ttl=1000, key=b"another:%d")
    assert r.execute_command("CDEL", *(b"another:%d" % i for i in range(count))) == count


def info(r):
    """INFO ckv, without the prefix of the field names."""
    fields = r.execute_command("INFO", "ckv")
    return {k.removeprefix("ckv_"): v for k, v in fields.items() if k.startswith("ckv_")}


def times_run(r, command):
    """How often a command ran, the module's own calls included, which INFO leaves out."""
    histogram = r.execute_command("LATENCY", "HISTOGRAM", command)
    return histogram[1][1] if histogram else 0


def rewrite_aof(r):
    """And waits until that is done."""
    def idle():
        fields = r.info("persistence")
        return not fields["aof_rewrite_in_progress"] and not fields["aof_rewrite_scheduled"]

    wait_for(idle, what="a rewrite before")
    r.execute_command("BGREWRITEAOF")
    wait_for(idle, what="the rewrite")
    assert r.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def map_keys(r):
    """The Redis keys that hold ckv's maps in the selected database."""
    return sorted(r.execute_command("KEYS", "ckv:*"))
