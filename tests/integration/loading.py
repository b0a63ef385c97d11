"""Servers that are loading a file when clients come."""

import threading

from helpers import rewrite_aof, wait_for

# So much that its loading takes three seconds, and clients are listened to some times.
LOADS_SLOWLY = {"ckv.prefixes": "*", "ckv.move-cpu": 1, "key-load-delay": 300, "auto-aof-rewrite-percentage": 0,
                "appendonly": "yes", "appendfsync": "always"}


def write_what_loads_slowly(r):
    rewrite_aof(r)
    pipe = r.pipeline(transaction=False)
    for i in range(10_000):
        pipe.set(f"filler{i % 10}", i)
    pipe.execute()


def start_and_send(server, commands):
    """A socket by which all of them were answered while the server was loading, and what it said."""
    heard = []

    def send():
        try:
            s = server.socket()
        except ConnectionError:
            return
        said = b""
        s.sendall(b"".join(c.encode() + b"\r\n" for c in (*commands, "INFO persistence")))
        while b"rdb_changes_since_last_save" not in said:
            said += s.recv(1 << 16) or b"rdb_changes_since_last_save"
        if b"\nloading:1" in said:
            heard.extend((s, said))

    def go_on():
        wait_for(lambda: send() or heard, what="a client heard while the server loads")

    sending = threading.Thread(target=go_on)
    sending.start()
    server.start()  # it ends with the thread that starts it
    sending.join()
    return heard
