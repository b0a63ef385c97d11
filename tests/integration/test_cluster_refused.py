"""In cluster mode a record's map would lie in another slot than the record: the module does not load."""

import socket

import pytest

from server import ServerFailed


def test_cluster_mode_is_refused(own_server):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        # The cluster's own port is the server's + 10,000 if it is not given, and that may be too large.
        config = {"cluster-enabled": "yes", "cluster-port": s.getsockname()[1]}
    server = own_server(config, start=False)
    with pytest.raises(ServerFailed) as failed:
        server.start()
    assert "Redis Cluster is not supported yet" in failed.value.log
