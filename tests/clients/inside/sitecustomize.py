"""Run at the start of every Python of a suite: port 6379 of this machine leads to the server under test.

Some suites have that port written in them, and others for sentinels, TLS, modules. What listens there belongs to somebody
else, so it is never reached.
"""

import errno
import os
import socket

PORT = int(os.environ["CKV_CLIENTS_PORT"])
LOOPBACK = ("localhost", "127.0.0.1", "::1")
REDIRECTED = 6379
REFUSED = (6479, 6666, 9736, 26379, 26380, 26381)


def _redirected(connect):
    def to(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[1] in (REDIRECTED, *REFUSED):
            if address[1] in REFUSED or address[0] not in LOOPBACK or self.family == socket.AF_INET6:
                raise ConnectionRefusedError(errno.ECONNREFUSED, f"the server under test is not {address[0]}:{address[1]}")
            address = ("127.0.0.1", PORT)
        return connect(self, address)

    return to


socket.socket.connect = _redirected(socket.socket.connect)
socket.socket.connect_ex = _redirected(socket.socket.connect_ex)
