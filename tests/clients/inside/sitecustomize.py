"""Run at the start of every Python of a suite: port 6379 of this machine leads to the server under test.

Some suites have that port written in them. What listens there belongs to somebody else, so it is never reached.
"""

import os
import socket

PORT = int(os.environ["CKV_CLIENTS_PORT"])
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SERVERS_OWN = 6379


def _redirected(connect):
    def to(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[1] == SERVERS_OWN:
            if address[0] not in LOOPBACK or self.family == socket.AF_INET6:
                raise ConnectionRefusedError(f"only 127.0.0.1 leads to the server under test, not {address[0]}")
            address = ("127.0.0.1", PORT)
        return connect(self, address)

    return to


socket.socket.connect = _redirected(socket.socket.connect)
socket.socket.connect_ex = _redirected(socket.socket.connect_ex)
