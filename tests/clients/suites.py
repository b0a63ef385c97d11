"""Which suites there are: clients of Redis and applications on top of them, each with tests of its own.

Those of PyPI's source distributions run as they are. `names` limits a run to some of its tests: in that case `command` is
given names as the suite's runner reports them.
"""

import os

HERE = os.path.dirname(os.path.abspath(__file__))

# What needs servers of other kinds: modules of Redis', a cluster, TLS, replicas, somebody's cloud.
REDIS_PY_LEFT_OUT = "redismod or onlycluster or ssl or replica or cp_integration"


class Suite:
    seconds = 1500

    def __init__(self, name, package=None, folder=".", arguments=(), tests=("tests",)):
        """`package` as in requirements.txt; without one the tests are ours. `folder` is where its runner starts."""
        self.name, self.package, self.folder = name, package, folder
        self.arguments, self.tests = list(arguments), list(tests)

    def place(self, sources):
        return os.path.normpath(os.path.join(sources[self.package] if self.package else HERE, self.folder))

    def command(self, port, names):
        return ["-m", "pytest", "-q", "-p", "ckv_report", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short", "--timeout=60",
                *self.arguments, *(names or self.tests)]


class RedisPy(Suite):
    def __init__(self, protocol):
        arguments = [f"--protocol={protocol}", "-m", f"not ({REDIS_PY_LEFT_OUT})"]
        super().__init__(f"redis-py-resp{protocol}", "redis", arguments=arguments)

    def command(self, port, names):
        return [*super().command(port, names), f"--redis-url=redis://127.0.0.1:{port}/0"]


class Django(Suite):
    def command(self, port, names):
        return ["runtests.py", "--settings=ckv_django", "--parallel=1", *(names or self.tests)]


SUITES = [
    RedisPy(2),
    RedisPy(3),
    Django("django", "Django", "tests", tests=["cache", "sessions_tests"]),
    # Those for sentinels and for a socket in the file system have no server to talk to.
    Suite("django-redis", "django-redis", arguments=["-n0", "-k", "not sentinel and not usock"]),
    Suite("rq", "rq"),
    Suite("celery", tests=["celery_app.py"]),
]
