"""The images of `make image` as their users run them: settings, health, a kill, a restart on the same volume; and the
files to run them with.

Containers are buildah's with chroot isolation, which needs no daemon. Those have the image's files, user and variables, but
the network and the processes of this machine; and buildah starts what it is told, so the entry point and the health
check are looked up here."""

import json
import os
import signal
import subprocess
import sys

import kubernetes_validate
import pytest
import redis
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMAGE = os.path.join(ROOT, "image")
STORE = os.path.join(ROOT, "build", "image")
USER = 6379
BUILDAH = ["buildah", "--root", f"{STORE}/store", "--runroot", f"{STORE}/run", "--storage-driver", "vfs"]

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

from helpers import wait_for  # noqa: E402
from server import free_port  # noqa: E402


def buildah(*args):
    return subprocess.run([*BUILDAH, *args], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def read(name):
    with open(os.path.join(IMAGE, name)) as f:
        return f.read()


@pytest.fixture(params=["ckv-redis", "ckv-valkey"], scope="module")
def image(request):
    return request.param


def config_of(image):
    return json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]


@pytest.fixture(scope="module")
def root(image):
    """The image's files in a container of buildah's, which all of ours here are run in: none writes to them."""
    name = buildah("from", image)
    buildah("config", "--volume", "/data-", name)  # buildah would mount a folder of its own over ours
    yield name
    buildah("rm", name)


class Container:
    def __init__(self, image, root, volume, settings="", arguments=(), files=None):
        self.config = config_of(image)
        self.port = free_port()
        mounts = ["--volume", f"{volume}:/data", *(["--volume", f"{files}:/etc/ckv"] if files else [])]
        variables = ["--env", f"PORT={self.port}", "--env", f"CKV_SETTINGS={settings}"]
        self.run = [*BUILDAH, "run", *mounts, *variables, "--isolation", "chroot", root, "--"]
        self.log = open(os.path.join(volume, "..", "log"), "a")
        self.process = subprocess.Popen([*self.run, *self.config["Entrypoint"], *arguments], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        self.pid = None

    def ready(self):
        """A client, when the server answers."""
        client = redis.Redis(port=self.port)

        def answers():
            assert self.process.poll() is None, "the container has ended: " + open(self.log.name).read()[-3000:]
            try:
                self.pid = client.info("server")["process_id"]
                return client.info("persistence")["loading"] == 0
            except redis.AuthenticationError:
                raise
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                return False

        wait_for(answers, "an answer")
        return client

    def healthy(self):
        check = self.config["Healthcheck"]["Test"]
        assert check[0] == "CMD"
        return subprocess.run([*self.run, *check[1:]]).returncode == 0

    def end(self, number):
        """By a signal to the server, the first process in a container of its own."""
        os.kill(self.pid, number)
        self.process.wait(60)

    def close(self):
        if self.process.poll() is None:
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
            self.process.terminate()
            self.process.wait(60)
        self.log.close()


@pytest.fixture
def volume(tmp_path):
    """A folder as an engine makes a volume: that of the image's user."""
    folder = tmp_path / "volume"
    folder.mkdir()
    for above in (tmp_path, *tmp_path.parents[:3]):  # pytest's own are root's alone
        above.chmod(above.stat().st_mode | 0o011)
    os.chown(folder, USER, USER)
    return folder


@pytest.fixture
def start(image, root, volume):
    started = []

    def run(*args, **options):
        started.append(Container(image, root, volume, *args, **options))
        return started[-1]

    yield run
    for container in started:
        container.close()


def test_what_the_image_says_of_itself(image):
    config = config_of(image)
    assert config["User"] == f"{USER}:{USER}" and config["StopSignal"] == "SIGTERM"
    assert list(config["Volumes"]) == ["/data"] and list(config["ExposedPorts"]) == ["6379/tcp"]
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/local/bin/healthy"]


def fill(client):
    records = {f"KEY:{i}": f"the value of {i}" for i in range(1000)}
    for key, value in records.items():
        client.execute_command("CSET", key, value)
    client.set("session:1", "a string")
    return records


def check(client, records):
    assert client.execute_command("CMGET", *records) == [value.encode() for value in records.values()]
    assert client.get("session:1") == b"a string"


def test_life(start, image):
    """Used, stopped, started again on its volume; killed, and started again."""
    container = start('appendonly yes\nappendfsync always\nckv.prefixes "session:"')
    client = container.ready()
    assert os.stat(f"/proc/{container.pid}").st_uid == USER
    assert client.info("server")["server_name" if image == "ckv-valkey" else "redis_version"]
    assert client.info("ckv")["ckv_prefixes"] == "session:"
    assert container.healthy()
    records = fill(client)
    check(client, records)
    for number in (signal.SIGTERM, signal.SIGKILL):
        container.end(number)
        assert not container.healthy()
        container = start('appendonly yes\nckv.prefixes "session:"')
        check(container.ready(), records)
        assert container.healthy()


def test_sigterm_saves(start, volume):
    """With the server's own settings: no AOF, a snapshot now and then."""
    container = start()
    records = fill(container.ready())
    assert not (volume / "dump.rdb").exists()
    container.end(signal.SIGTERM)
    assert container.process.returncode == 0 and (volume / "dump.rdb").stat().st_uid == USER
    check(start().ready(), records)


def test_settings(start, tmp_path):
    """Mounted files, then the variable, then arguments."""
    files = tmp_path / "settings"
    files.mkdir()
    (files / "own.conf").write_text("maxmemory 100mb\nmaxmemory-policy allkeys-lfu\nckv.maps 64\n")
    client = start("maxmemory 200mb\nckv.train-after 64kb", ["--maxclients", "77"], files).ready()
    settings = client.config_get("*")
    assert settings["maxmemory"] == str(200 << 20) and settings["maxmemory-policy"] == "allkeys-lfu"
    assert settings["ckv.maps"] == "64" and settings["ckv.train-after"] == str(64 << 10) and settings["maxclients"] == "77"


def test_a_password_is_healthy(start):
    container = start("requirepass secret")
    with pytest.raises(redis.AuthenticationError):
        container.ready()
    assert container.healthy()
    with redis.Redis(port=container.port, password="secret") as client:
        container.pid = client.info("server")["process_id"]


def test_a_wrong_setting_ends_it(start):
    container = start("ckv.maps 0")
    assert container.process.wait(60) != 0


# --- files to run it with ---


def documents(name):
    return list(yaml.safe_load_all(read(name)))


def test_kubernetes_schema():
    found = documents("kubernetes.yaml")
    assert [d["kind"] for d in found] == ["ConfigMap", "Service", "StatefulSet"]
    for document in found:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    broken = documents("kubernetes.yaml")[2]
    broken["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, kubernetes_validate.latest_version(), strict=True)


def test_kubernetes_says_what_the_image_is(image):
    config, (_, service, stateful) = config_of(image), documents("kubernetes.yaml")
    pod = stateful["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == config["User"]
    assert {m["mountPath"] for m in container["volumeMounts"]} == {*config["Volumes"], "/etc/ckv"}
    assert container["livenessProbe"]["exec"]["command"] == config["Healthcheck"]["Test"][1:]
    assert f"{container['ports'][0]['containerPort']}/tcp" in config["ExposedPorts"]
    assert stateful["spec"]["serviceName"] == service["metadata"]["name"]


@pytest.mark.parametrize("name", ["kubernetes.yaml", "compose.yaml"])
def test_their_settings_are_accepted(start, name):
    found = documents(name)[0]
    client = start(found["data"]["ckv.conf"] if "data" in found else found["services"]["ckv"]["environment"]["CKV_SETTINGS"]).ready()
    assert client.info("ckv")["ckv_prefixes"] == "session: cache:"
    assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "allkeys-lru"
