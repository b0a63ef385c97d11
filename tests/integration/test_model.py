"""Random commands, pauses and restarts against a plain dictionary.

The model knows for each record its value and between which two moments it must expire (the clock of
this process and the server's are the same; a command takes effect somewhere between sending it and
its answer). Before the first moment the record must be there, after the second it must be gone,
in between both are right and the model takes over what the server says.
"""

import os
import time

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from helpers import late_by, now_ms, texts
from server import Server

NEVER = None

# Shrinking a failure starts the server hundreds of times; HYPOTHESIS_PROFILE=long does it.
settings.register_profile(
    "ci", max_examples=50, stateful_step_count=60, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("long", max_examples=2000, stateful_step_count=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Few keys, so that they meet: neighbours of one stem, odd bytes, long ones.
keys = st.sampled_from(
    [b"KEY:1%02d" % i for i in range(12)]
    + [b"user:%d:profile" % i for i in range(4)]
    + [b"", b"\x00", b"\xff" * 3, b"long" * 75, b"00", b"000", b"100", b"0100"]
)
SENTENCES = texts(300, seed=8)


class Value(bytes):
    """Its repr, which a failure prints for every step, stays short."""

    def __repr__(self):
        return super().__repr__() if len(self) < 40 else f"<{self[:16]!r}... {len(self)} bytes>"


values = st.one_of(
    st.sampled_from(SENTENCES),
    st.binary(max_size=60),
    st.tuples(st.integers(0, 255), st.sampled_from([0, 1, 255, 256, 1000, 1100, 4090, 9000])).map(lambda t: bytes([t[0]]) * t[1]),
    st.integers(0, 6000).map(lambda n: b"".join(SENTENCES)[:n]),
).map(Value)
# Short ones expire within a run, the others only have to be kept.
ttls = st.one_of(st.integers(1, 60), st.integers(1, 60), st.sampled_from([7_999, 8_000, 100_000, 86_400_000, 10**11]))
conditions = st.sampled_from([(), ("NX",), ("XX",)])
expire_conditions = st.sampled_from([(), (), ("NX",), ("XX",), ("GT",), ("LT",), ("XX", "GT"), ("XX", "LT")])

GONE, UNSURE, THERE = range(3)
_server = None


def server():
    global _server
    if _server is None or not _server.alive():
        _server = Server({"ckv.train-after": "64kb", "ckv.young-memory": "64kb"})
    return _server


def teardown_module():
    if _server is not None:
        _server.close()


class Store(RuleBasedStateMachine):
    @initialize(maps_full=st.booleans())
    def begin(self, maps_full):
        self.r = server().client()
        self.r.execute_command("FLUSHALL")
        self.model = {}  # key -> (value, earliest expiry, latest expiry) or (value, NEVER, NEVER)
        if maps_full:
            self.fill()

    def teardown(self):
        if hasattr(self, "r"):
            self.check_all()
            self.r.close()
            assert server().alive()

    def fill(self):
        """Company for the keys under test: more pages, and something to train on."""
        pairs = [x for i, text in enumerate(SENTENCES) for x in (b"KEY:2%03d" % i, text)]
        self.r.execute_command("CMSET", *pairs)
        self.model |= {b"KEY:2%03d" % i: (text, NEVER, NEVER) for i, text in enumerate(SENTENCES)}

    def call(self, *args):
        """Returns the answer, and between which moments the command was carried out."""
        before = now_ms()
        answer = self.r.execute_command(*args)
        return answer, before, now_ms() + 1

    def state(self, key, before, after):
        """Whether a command between these moments had to find the record."""
        if key not in self.model:
            return GONE
        _, earliest, latest = self.model[key]
        if earliest is NEVER or after < earliest:
            return THERE
        return GONE if before > latest else UNSURE

    def settle(self, key, present, before, after):
        """The server saw the record, or saw none: checks that it may, and the model follows."""
        state = self.state(key, before, after)
        assert state != (GONE if present else THERE), (
            f"{key!r} is {'there' if present else 'missing'}; model {self.model.get(key)!r:.200}, asked {before}..{after}"
        )
        if not present:
            self.model.pop(key, None)

    @staticmethod
    def expiry(ttl, before, after):
        return before + ttl, after + ttl + late_by(ttl)

    # --- reads ---

    @rule(key=keys)
    def get(self, key):
        got, before, after = self.call("CGET", key)
        self.settle(key, got is not None, before, after)
        if got is not None:
            assert got == self.model[key][0]

    @rule(some=st.lists(keys, min_size=1, max_size=8))
    def mget(self, some):
        got, before, after = self.call("CMGET", *some)
        for key, value in zip(some, got):
            self.settle(key, value is not None, before, after)
            if value is not None:
                assert value == self.model[key][0]

    @rule(key=keys)
    def exists_and_strlen(self, key):
        got, before, after = self.call("CEXISTS", key)
        self.settle(key, got == 1, before, after)
        got, before, after = self.call("CSTRLEN", key)
        if key in self.model and self.state(key, before, after) == THERE:
            assert got == len(self.model[key][0])

    @rule(key=keys)
    def expiretime(self, key):
        got, before, after = self.call("CPEXPIRETIME", key)
        self.settle(key, got != -2, before, after)
        if got != -2:
            _, earliest, latest = self.model[key]
            if earliest is NEVER:
                assert got == -1
            else:
                # What is told is as much before the time that was asked for as the expiry may be after it.
                span = latest - earliest
                assert earliest - span <= got <= latest
                self.model[key] = self.model[key][0], max(earliest, got), min(latest, got + span)

    # --- writes ---

    @rule(key=keys, value=values, condition=conditions, ttl=st.one_of(st.none(), ttls), get=st.booleans())
    def set(self, key, value, condition, ttl, get):
        args = ["CSET", key, value, *condition]
        if get:
            args.append("GET")
        if ttl:
            args += ["PX", ttl]
        old = self.model.get(key)
        got, before, after = self.call(*args)
        if get:
            self.settle(key, got is not None, before, after)
            if got is not None:
                assert got == old[0]
            done = not condition or (got is None) == (condition == ("NX",))
        else:
            done = got == b"OK"
            if condition:
                self.settle(key, done == (condition == ("XX",)), before, after)
            else:
                assert done
        if done:
            self.model[key] = (value, *(self.expiry(ttl, before, after) if ttl else (NEVER, NEVER)))

    @rule(key=keys, value=values)
    def set_keepttl(self, key, value):
        old = self.call("CPEXPIRETIME", key)
        self.settle(key, old[0] != -2, *old[1:])
        _, before, after = self.call("CSET", key, value, "KEEPTTL")
        state = self.state(key, before, after)
        if state == THERE:
            self.model[key] = (value, *self.model[key][1:])
        elif state == GONE:
            self.model[key] = value, NEVER, NEVER
        else:  # it expired in between, or it did not: ask
            got, before, after = self.call("CPEXPIRETIME", key)
            if got == -1:
                self.model[key] = value, NEVER, NEVER
            elif got == -2:
                self.model.pop(key)
            else:
                self.model[key] = (value, *self.model[key][1:])

    @rule(pairs=st.lists(st.tuples(keys, values), min_size=1, max_size=6))
    def mset(self, pairs):
        assert self.call("CMSET", *[x for pair in pairs for x in pair])[0] == b"OK"
        for key, value in pairs:
            self.model[key] = value, NEVER, NEVER

    @rule(some=st.lists(keys, min_size=1, max_size=4, unique=True))
    def delete(self, some):
        for key in some[1:]:
            self.get(key)
        got, before, after = self.call("CDEL", *some)
        states = [self.state(key, before, after) for key in some]
        assert states.count(THERE) <= got <= len(some) - states.count(GONE)
        for key in some:
            self.model.pop(key, None)

    @rule(key=keys, ttl=st.one_of(ttls, st.sampled_from([0, -5])), condition=expire_conditions, absolute=st.booleans())
    def expire(self, key, ttl, condition, absolute):
        self.expiretime(key)
        old = self.model.get(key)
        base = now_ms()
        got, before, after = self.call("CPEXPIREAT" if absolute else "CPEXPIRE", key,
                                       base + ttl if absolute else ttl, *condition)
        state = self.state(key, before, after)
        if got == 1:
            assert state != GONE
            earliest = base if absolute else before
            self.model[key] = (old[0], earliest + ttl, (base if absolute else after) + ttl + late_by(max(ttl, 0)))
            if "NX" in condition:
                assert old[1] is NEVER
            if "XX" in condition or "GT" in condition:
                assert old[1] is not NEVER
            if ttl <= 0:
                assert self.call("CEXISTS", key)[0] == 0
                self.model.pop(key)
            # GT and LT are decided between times that differ by more than the error, elsewhere either is right.
            elif "GT" in condition:
                assert after + ttl + late_by(ttl) >= old[1]
            elif "LT" in condition and old[1] is not NEVER:
                assert before + ttl - 1 <= old[2]
        elif state == THERE:
            assert condition, "refused without a condition"
            if "NX" in condition:
                assert old[1] is not NEVER
            elif "XX" in condition and old[1] is NEVER:
                pass
            elif "GT" in condition:
                assert old[1] is NEVER or before + ttl <= old[2] + late_by(0)
            elif "LT" in condition:
                assert old[1] is not NEVER and after + ttl + late_by(max(ttl, 0)) >= old[1]
            else:
                assert condition == ("XX",) and old[1] is NEVER

    @rule(key=keys)
    def persist(self, key):
        got, before, after = self.call("CPERSIST", key)
        state = self.state(key, before, after)
        if got == 1:
            assert state != GONE and self.model[key][1] is not NEVER
            self.model[key] = self.model[key][0], NEVER, NEVER
        elif state == THERE:
            assert self.model[key][1] is NEVER
        else:
            self.model.pop(key, None)

    # --- the world around ---

    @rule(ms=st.integers(1, 40))
    def pause(self, ms):
        time.sleep(ms / 1000)

    @rule()
    def train(self):
        try:
            self.call("CKV", "TRAIN")
        except Exception as error:
            assert len(self.model) < 200, error

    @rule()
    def optimize(self):
        assert self.call("CKV", "OPTIMIZE")[0] == b"OK"

    @precondition(lambda self: len(self.model) < 100)
    @rule()
    def more(self):
        self.fill()

    @rule()
    def reload(self):
        assert self.call("DEBUG", "RELOAD")[0] == b"OK"

    @rule()
    def check_all(self):
        every = list(self.model)
        if every:
            got, before, after = self.call("CMGET", *every)
            for key, value in zip(every, got):
                expected = self.model[key][0]
                self.settle(key, value is not None, before, after)
                assert value is None or value == expected
        size, before, after = self.call("CDBSIZE")
        there = sum(self.state(key, before, after) == THERE for key in self.model)
        assert size >= there

    @rule(how=st.sampled_from(["SAVE", "NOSAVE after SAVE"]), sure=st.integers(0, 4))
    def restart(self, how, sure):
        if sure:  # a process start costs more than all else
            return
        self.r.close()
        if how == "SAVE":
            server().restart(save=True)
        else:
            with server().client() as r:
                r.execute_command("SAVE")
            server().restart(save=False)
        self.r = server().client()
        self.check_all()


TestStore = Store.TestCase
TestStore.settings = settings(deadline=None, suppress_health_check=list(HealthCheck))
