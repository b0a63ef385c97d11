"""A machine at fault, as far as some servers see it: their clock steps, there are no processes or threads to be had, and the system is said
to be another (faults.c). A clock that is set
forward lets records expire when a test wants it, however long what comes before takes; seconds that have `passed` are as
good as waited for."""

import functools
import os
import struct
import subprocess
import tempfile

from server import ROOT


@functools.cache
def library():
    """What comes between a server and libc; it goes away with the tests."""
    folder = tempfile.TemporaryDirectory(prefix="ckv-faults-")
    built = os.path.join(folder.name, "faults.so")
    source = os.path.join(ROOT, "tests", "integration", "faults.c")
    cc = os.environ.get("CC", "cc")
    subprocess.run([cc, "-D_GNU_SOURCE", "-O1", "-Wall", "-shared", "-fPIC", "-o", built, source, "-ldl"], check=True)
    return built, folder


class Faults:
    """Of all servers that are started with `env`."""

    def __init__(self, path):
        self.path = path
        self.env = {"LD_PRELOAD": library()[0], "CKV_FAULTS": path}
        self.set()

    def set(self, seconds=0, no_fork=False, no_threads=False, passed=0, times=0):
        # Written over in place: the servers have it in their memory.
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("<qqqqq", seconds, no_fork, no_threads, passed, times))

    def say(self, path, text):
        """What the system tells in a file of /proc or /sys."""
        path = f"{self.path}.root{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)
