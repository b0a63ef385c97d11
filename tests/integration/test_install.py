"""What `make install` leaves is what a server loads."""

import subprocess

from server import ROOT


def test_make_install(own_server, tmp_path):
    subprocess.run(["make", "-C", ROOT, "install", f"DESTDIR={tmp_path}"], check=True, capture_output=True)
    assert "usage: ckv-estimate" in subprocess.run([tmp_path / "usr/bin/ckv-estimate", "--help"], text=True, capture_output=True).stdout
    server = own_server({"loadmodule": tmp_path / "usr/lib/redis/modules/ckv.so"}, module=False)
    with server.client() as r:
        assert r.execute_command("CSET", "k", "v") == b"OK"
