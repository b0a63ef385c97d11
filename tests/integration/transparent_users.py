"""Clients of servers whose users have rules of their own."""

import redis


class Parser(redis.connection.DefaultParser):
    """Errors word for word. Those that are errors of the connection elsewhere, as NOAUTH, would be left in the buffer and read again and
    again."""

    EXCEPTION_CLASSES = {}


class Replies:
    """What the commands of a connection are answered, bare."""

    def __init__(self, server, user=None):
        self.connection = redis.Connection(port=server.port, socket_timeout=60, lib_name=None, lib_version=None, parser_class=Parser)
        self.connection.connect()
        if user:
            assert self.ask([["AUTH", user, "pw"]]) == [b"OK"]

    def ask(self, commands):
        self.connection.send_packed_command(self.connection.pack_commands(commands))
        return [self.read() for _ in commands]

    def read(self):
        try:
            return self.connection.read_response(disable_decoding=True, disconnect_on_error=False)
        except redis.ResponseError as error:
            return error

    def close(self):
        self.connection.disconnect()


def admin(server):
    r = redis.Redis(port=server.port, single_connection_client=True)
    r.execute_command("ACL", "SETUSER", "admin", "on", ">pw", "+@all", "~*")
    r.execute_command("AUTH", "admin", "pw")
    return r
