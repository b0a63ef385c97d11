"""Each command gives one reply, also where a limit is reached: with a second one, every reply of the connection from then
on would be the answer to another command."""

import pytest

from helpers import is_error

COMMANDS = [
    ("CSET", "k", "new"), ("CSET", "k", "new", "GET"), ("CSET", "k", "new", "XX", "GET"), ("CSET", "k", "new", "NX", "GET"),
    ("CSET", "k", "new", "EX", 100, "GET"), ("CSET", "k", "new", "KEEPTTL", "GET"), ("CSET", "none", "new", "GET"),
    ("CSET", "k", "new", "IFEQ", "old", "GET"), ("CSET", "k", "new", "IFNE", "old", "GET"), ("CGETSET", "k", "new"),
    ("CGETSET", "none", "new"), ("CGETEX", "k", "EX", 100), ("CGETEX", "k", "PERSIST"), ("CGETEX", "k"), ("CGETDEL", "k"),
    ("CSETNX", "none", "v"), ("CSETEX", "k", 100, "v"), ("CPSETEX", "k", 100, "v"), ("CMSET", "k", "v", "none", "v"),
    ("CMSETNX", "none", "v", "none2", "v"), ("CMSETEX", 2, "k", "v", "none", "v", "EX", 100), ("CMGET", "k", "none"),
    ("CAPPEND", "k", "x"), ("CSETRANGE", "k", 1, "x"), ("CINCR", "n"), ("CINCRBYFLOAT", "n", "1.5"), ("CDECRBY", "n", 2),
    ("CEXPIRE", "k", 100), ("CPERSIST", "k"), ("CDEL", "k", "none"), ("CDELEX", "k", "IFEQ", "old"), ("CSTRLEN", "k"),
]


@pytest.mark.parametrize("protocol", [2, 3])
def test_one_reply_over_the_limit(r, shared, protocol):
    value = b"old" * 1000  # large enough that no copy of it fits beside it
    r.config_set("ckv.maxmemory", 1)
    try:
        with shared.client(protocol=protocol) as c:
            for i, command in enumerate(COMMANDS):
                c.execute_command("CONFIG", "SET", "ckv.maxmemory", 0)
                c.execute_command("CMSET", "k", value, "n", 7)
                c.execute_command("CONFIG", "SET", "ckv.maxmemory", 1)
                pipe = c.pipeline(transaction=False)
                pipe.execute_command(*command)
                pipe.execute_command("ECHO", f"after {i}")
                answer, echo = pipe.execute(raise_on_error=False)
                assert echo == b"after %d" % i, (command, answer, echo)
                assert c.execute_command("ECHO", "next") == b"next", command
                if command[0] in ("CSET", "CGETSET") and "NX" not in command and "IFNE" not in command[:4] and "IFEQ" not in command:
                    assert is_error(answer, "ckv.maxmemory"), (command, answer)
                    assert c.execute_command("CGET", "k") == value
    finally:
        r.config_set("ckv.maxmemory", 0)
