"""Clients that check every reply, on keys of their own."""

import random
import threading
from contextlib import contextmanager

from redis.exceptions import ReadOnlyError, RedisError

from helpers import reply, texts


THEIRS = b"user:c"


class Client(threading.Thread):
    """Goes to the next server when the one that it uses is no primary any more."""

    def __init__(self, servers, number, keys):
        super().__init__()
        self.servers, self.rng = list(servers), random.Random(number)
        self.values = {b"%s%d:%d" % (THEIRS, number, i): None for i in range(keys)}
        self.stop, self.count, self.wrong = threading.Event(), 0, []

    def fill(self):
        with self.servers[0].client() as r:
            for key, value in zip(self.values, texts(len(self.values), seed=9)):
                self.values[key] = value
            r.execute_command("MSET", *[x for pair in self.values.items() for x in pair])

    def step(self):
        key, kind = self.rng.choice(list(self.values)), self.rng.randrange(8)
        value = self.values[key]
        new = b"%d %s" % (self.rng.randrange(10**6), b"text " * self.rng.randrange(20))
        if kind < 3:
            return ("GET", key), value
        if kind == 3:
            self.values[key] = new
            return ("SET", key, new, "EX", 10_000), b"OK"
        if kind == 4:
            self.values[key] = new
            return ("SET", key, new, "GET"), value
        if kind == 5:
            self.values[key] = None
            return ("DEL", key), int(value is not None)
        if kind == 6:
            self.values[key] = (value or b"") + b"+"
            return ("APPEND", key, "+"), len(self.values[key])
        return ("STRLEN", key), len(value or b"")

    def work(self, server):
        """Until it is no primary, which tells of a command that has not run."""
        with server.client() as r:
            while not self.stop.is_set():
                command, expected = self.again or self.step()
                self.again = None
                got = reply(r, *command)
                if isinstance(got, ReadOnlyError):
                    self.again = command, expected
                    return
                if got != expected:
                    self.wrong.append((command, expected, got))
                self.count += 1

    def run(self):
        self.again = None
        try:
            while not self.stop.is_set():
                self.work(self.servers[0])
                self.servers = self.servers[1:] + self.servers[:1]
        except RedisError as error:  # what is no reply: the connection
            self.wrong.append(error)


@contextmanager
def checking(servers, keys, clients=3):
    """While they work; each has so many keys."""
    clients = [Client(servers, number, keys) for number in range(clients)]
    for client in clients:
        client.fill()
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.stop.set()
            client.join()
    for client in clients:
        assert not client.wrong, client.wrong[:5]
