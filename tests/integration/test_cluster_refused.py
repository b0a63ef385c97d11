"""In cluster mode a record's map would lie in another slot than the record: the module does not load."""

import pytest

from server import ServerFailed


def test_cluster_mode_is_refused(own_server):
    server = own_server({"cluster-enabled": "yes"}, start=False)
    with pytest.raises(ServerFailed) as failed:
        server.start()
    assert "Redis Cluster is not supported yet" in failed.value.log
