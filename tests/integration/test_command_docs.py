"""COMMAND INFO, DOCS and GETKEYS: against docs/commands.md, and against the native counterparts."""

import os
import re

import pytest

from helpers import NATIVE, is_error, reply
from server import ROOT


def names(r):
    listed = r.execute_command("COMMAND", "LIST", "FILTERBY", "MODULE", "ckv")
    # Those that the filter puts in the place of the server's own are told of in docs/transparent.md.
    return sorted(name.decode() for name in listed if not name.startswith((b"ckv.", b"ckv+")))


def as_dict(flat):
    return dict(zip(flat[::2], flat[1::2]))


def docs(r, name):
    return as_dict(as_dict(r.execute_command("COMMAND", "DOCS", name))[name.encode()])


def infos(r):
    """{name: its COMMAND INFO} of the module's commands."""
    every = names(r)
    return dict(zip(every, r.execute_command("COMMAND", "INFO", *every)))


def key_specs(info):
    """[(its flags in order, everything else)] of each key spec."""
    specs = [as_dict(spec) for spec in info[8]]
    return [(sorted(spec.pop(b"flags")), spec) for spec in specs]


def rendered(arg):
    """An argument of COMMAND DOCS as it is written in a page."""
    arg = as_dict(arg)
    token = arg.get(b"token", b"").decode()
    flags = arg.get(b"flags", [])
    kind = arg[b"type"]
    if kind in (b"oneof", b"block"):
        text = (" | " if kind == b"oneof" else " ").join(rendered(a) for a in arg[b"arguments"])
        if kind == b"oneof" and b"optional" not in flags:
            text = f"<{text}>"
    elif kind == b"pure-token":
        text = token
    else:
        text = f"{token} {arg[b'name'].decode()}".strip()
    if b"multiple" in flags:
        text += f" [{text} ...]"
    return f"[{text}]" if b"optional" in flags else text


def test_the_page_the_docs_and_the_table_agree(r):
    with open(os.path.join(ROOT, "docs", "commands.md")) as f:
        page = f.read()
    for name in names(r):
        if name == "ckv":  # its subcommands have a heading each
            continue
        args = " ".join(rendered(a) for a in docs(r, name).get(b"arguments", []))
        line = f"{name.upper()} {args}".strip()
        assert re.search(rf"^    {re.escape(line)}$", page, flags=re.M), f"docs/commands.md lacks {line!r}"


def test_the_page_names_every_subcommand(r):
    with open(os.path.join(ROOT, "docs", "commands.md")) as f:
        page = f.read()
    subcommand, *_ = docs(r, "ckv")[b"arguments"]
    for arg in as_dict(subcommand)[b"arguments"]:
        assert f"## CKV {as_dict(arg)[b'token'].decode()}\n" in page


def test_everything_is_told(r):
    for name, info in infos(r).items():
        told = docs(r, name)
        assert told[b"module"] == b"ckv"
        assert re.fullmatch(r"\d+\.\d+\.\d+", told[b"since"].decode())
        assert told[b"summary"].endswith(b".") and told[b"complexity"].startswith(b"O("), name
        if name != "ckv":  # which is about the server
            assert (b"write" in info[2]) != (b"readonly" in info[2]), name
        has_keys = any(as_dict(a)[b"type"] in (b"key", b"block") for a in told.get(b"arguments", []))
        assert has_keys == bool(info[8]), name


def native(r, name):
    """COMMAND INFO of the counterpart, None if this server has none."""
    counterpart = NATIVE.get(name.upper())
    return r.execute_command("COMMAND", "INFO", counterpart)[0] if counterpart else None


def test_as_the_native_counterparts(r):
    compared = 0
    for name, ours in infos(r).items():
        theirs = native(r, name)
        if theirs is None:
            continue
        compared += 1
        assert ours[1] == theirs[1], f"arity of {name}"
        assert ours[3:6] == theirs[3:6], f"keys of {name}"
        for flag in (b"write", b"readonly", b"denyoom"):
            assert (flag in ours[2]) == (flag in theirs[2]), f"{flag} of {name}"
        for (our_flags, our_spec), (their_flags, their_spec) in zip(key_specs(ours), key_specs(theirs)):
            # SET's depend on its options; CMSETEX and CDELEX stand for newer commands.
            if b"variable_flags" not in their_flags and b"incomplete" not in our_flags:
                assert our_flags == their_flags, f"key flags of {name}"
            assert our_spec == {k: v for k, v in their_spec.items() if k in our_spec}, f"key spec of {name}"
        assert len(ours[8]) == len(theirs[8]), name
    assert compared >= 35


def test_categories(r):
    """Where the server lets a module have them, those of the counterparts and one of its own."""
    ours = infos(r)
    if not ours["cget"][6]:
        pytest.skip("this server has no categories for modules")
    own = not is_error(reply(r, "ACL", "CAT", "ckv"))
    for name, info in ours.items():
        theirs = native(r, name)
        categories = set(info[6])
        assert (b"@ckv" in categories) == own
        if theirs is not None and name not in ("cmsetex", "cdelex"):
            # "fast" is a promise about speed, and APPEND and SET are promised less.
            speed = {b"@fast", b"@slow", b"@ckv"}
            assert categories - speed == {c for c in theirs[6] if c not in speed}, name
    told = r.info("server")
    name, lists = ("valkey_version", (8, 1)) if "valkey_version" in told else ("redis_version", (8, 0))
    if own and tuple(map(int, told[name].split(".")[:2])) >= lists:  # before, none of a module's are listed
        assert {n.decode() for n in r.execute_command("ACL", "CAT", "ckv")} == set(ours)


@pytest.mark.parametrize(
    "call, keys",
    [
        ("CSET k v NX GET EX 10", "k"),
        ("CGET k", "k"),
        ("CMGET a b c", "a b c"),
        ("CMSET a 1 b 2 c 3", "a b c"),
        ("CMSETNX a 1 b 2", "a b"),
        ("CMSETEX 1 a 1", "a"),
        ("CMSETEX 3 a 1 b 2 c 3 NX EX 10", "a b c"),
        ("CDEL a b", "a b"),
        ("CUNLINK a b", "a b"),
        ("CDELEX a IFEQ b", "a"),
        ("CEXISTS a b", "a b"),
        ("CTOUCH a b", "a b"),
        ("CGETEX k EX 10", "k"),
        ("CSETRANGE k 10 v", "k"),
        ("CINCRBYFLOAT k 1.5", "k"),
        ("CPEXPIREAT k 1 NX", "k"),
    ],
)
def test_getkeys(r, call, keys):
    assert r.execute_command("COMMAND", "GETKEYS", *call.split()) == keys.encode().split()


@pytest.mark.parametrize("call", ["CSCAN 0 MATCH a*", "CKEYS *", "CRANDOMKEY", "CDBSIZE", "CKV STATS",
                                  "CMSETEX 0 a 1", "CMSETEX x a 1"])
def test_getkeys_where_there_are_none(r, call):
    assert is_error(reply(r, "COMMAND", "GETKEYS", *call.split()))


def test_getkeys_of_half_a_pair(r):
    """Redis with an MSETEX finds such keys itself and does not ask; the others are told that it is no call."""
    ours, theirs = (reply(r, "COMMAND", "GETKEYS", name, "2", "a", "1", "b") for name in ("CMSETEX", "MSETEX"))
    asks = is_error(theirs) or "valkey_version" in r.info("server")
    assert is_error(ours) if asks else ours == theirs
