"""Settings for Django's own tests: the cache that they use is its Redis backend. The runner reports as ckv_report does."""

import unittest

from django.test.runner import DiscoverRunner

import ckv_report

CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:6379"},
}
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3"},
    "other": {"ENGINE": "django.db.backends.sqlite3"},
}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        ckv_report.write(test.id(), "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        ckv_report.write(test.id(), "skipped")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        ckv_report.write(test.id(), "failed", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        ckv_report.write(test.id(), "failed", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            ckv_report.write(test.id(), "failed", (self.failures + self.errors)[-1][1])


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result


TEST_RUNNER = "ckv_django.Runner"
