"""Runs a command; when that ends, or this is told to end, nothing that it started is left, whatever group that is in.

    keep.py command [argument ...]

Orphans among the command's descendants become children of this process (PR_SET_CHILD_SUBREAPER), which knows them by that.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return [int(pid) for pid in f.read().split()]


def end_children():
    """The children of one that is killed become ours: again, until there are none."""
    while True:
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def main():
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return subprocess.Popen(
            sys.argv[1:], preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        ).wait()
    finally:
        end_children()


if __name__ == "__main__":
    sys.exit(main())
