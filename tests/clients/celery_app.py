"""Celery with Redis as broker and as store of results: chords, groups, retries, results that expire.

The worker is one of its own, as an application would have it.
"""

import os
import subprocess
import sys
import time

import celery
import pytest
import redis

HERE = os.path.dirname(os.path.abspath(__file__))
URL = "redis://127.0.0.1:6379/3"

app = celery.Celery("celery_app", broker=URL, backend=URL)
app.conf.update(
    result_extended=True,
    result_expires=3600,
    broker_connection_retry_on_startup=True,
    task_track_started=True,
    task_create_missing_queues=True,
)


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def text(n):
    return {"n": n, "text": "a result of some length, as they are; " * (n % 40)}


@app.task
def fail():
    raise ValueError("on purpose")


@app.task(bind=True, max_retries=3)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.05)
    return self.request.retries


@app.task
def noted(request, exc, traceback):
    redis.Redis(db=4).set("noted", str(exc))


@pytest.fixture(scope="module", autouse=True)
def worker():
    command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-c", "2", "-l", "WARNING", "--without-gossip"]
    process = subprocess.Popen(command, cwd=HERE, stdin=subprocess.DEVNULL)
    try:
        assert add.delay(1, 2).get(timeout=60) == 3
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_a_chord_runs_its_body_once_with_all_results():
    for n in (1, 10, 60):
        result = celery.chord(add.s(i, i) for i in range(n))(total.s())
        assert result.get(timeout=60) == n * (n - 1)


def test_a_chord_of_chords():
    inner = [celery.chord([add.s(i, 1), add.s(i, 2)], total.s()) for i in range(5)]
    assert celery.chord(inner)(total.s()).get(timeout=60) == 2 * 10 + 15


def test_a_chord_with_a_failed_member_fails_and_calls_its_errback():
    r = redis.Redis(db=4)
    r.delete("noted")
    result = celery.chord([add.s(1, 1), fail.s()])(total.s().on_error(noted.s()))
    with pytest.raises(Exception, match="on purpose"):
        result.get(timeout=60)
    deadline = time.monotonic() + 60
    while not r.exists("noted"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert b"on purpose" in r.get("noted")


def test_results_of_a_group_come_back_in_order():
    results = celery.group(text.s(n) for n in range(100))().get(timeout=60)
    assert [r["n"] for r in results] == list(range(100))
    assert results[39]["text"].count("length") == 39


def test_a_chain_and_a_retry():
    assert celery.chain(add.s(1, 2), add.s(3), add.s(4))().get(timeout=60) == 10
    assert third_time.delay().get(timeout=60) == 2


def test_a_result_has_its_expiry_and_can_be_forgotten():
    result = add.delay(20, 22)
    assert result.get(timeout=60) == 42
    r = redis.Redis(db=3)
    key = f"celery-task-meta-{result.id}"
    assert 3_500_000 < r.pttl(key) <= 3_600_000
    result.forget()
    assert not r.exists(key) and result.state == "PENDING"


def test_a_result_is_a_string():
    result = add.delay(1, 1)
    assert result.get(timeout=60) == 2
    assert redis.Redis(db=3).type(f"celery-task-meta-{result.id}") == b"string"


def test_a_revoked_task_does_not_run():
    result = add.apply_async((1, 1), countdown=3600)
    result.revoke()
    with pytest.raises(celery.exceptions.TaskRevokedError):
        result.get(timeout=60)
