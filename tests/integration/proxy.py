"""A TCP connection that a test can cut: everything that comes to `port` is passed on to a server."""

import socket
import threading


class Proxy:
    def __init__(self, target_port):
        self.target_port = target_port
        self.connected = True
        self._pairs = []
        self._left = None  # bytes from the server until it is cut
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if not self.connected:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self.target_port))
                self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, sink, source is server), daemon=True).start()

    def _pass_on(self, source, sink, of_server):
        try:
            while data := source.recv(65536):
                sink.sendall(self._counted(data) if of_server else data)
                if self._left == 0:
                    self.cut()
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _counted(self, data):
        with self._lock:
            if self._left is not None:
                data = data[: self._left]
                self._left -= len(data)
        return data

    def cut(self):
        """Ends what is connected, wherever it is in its stream, and lets nobody connect."""
        with self._lock:
            self.connected = False
            for client, server in self._pairs:
                for end in (client, server):
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
                    end.close()
            self._pairs = []

    def mend(self, cut_after=None):
        """`cut_after`: for so many bytes from the server."""
        with self._lock:
            self.connected = True
            self._left = cut_after

    def close(self):
        self.cut()
        self._listener.close()
