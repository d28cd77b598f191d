"""Celery's result backend: python celery_results.py PORT. Ends with 0 if all is as expected.

As a broker Celery needs lists, which are not for a cache: here the broker is this process's memory.
"""

import sys

import celery
import redis
from celery.contrib.testing.worker import start_worker

port = int(sys.argv[1])
app = celery.Celery("tasks", broker="memory://", backend=f"redis://127.0.0.1:{port}/1")


@app.task
def add(a, b):
    return a + b


@app.task
def fail():
    raise ValueError("no nut")


def converse():
    results = [add.delay(number, 1) for number in range(20)]
    assert [result.get(timeout=60) for result in results] == list(range(1, 21))
    try:
        fail.delay().get(timeout=60)
        raise SystemExit("a failed task has a result")
    except ValueError as error:
        assert "no nut" in str(error)
    group = celery.group(add.s(number, number) for number in range(5))()
    assert group.get(timeout=60) == [0, 2, 4, 6, 8]
    chain = (add.s(1, 2) | add.s(3)).delay()
    assert chain.get(timeout=60) == 6
    first = results[0]
    assert first.successful() and app.AsyncResult(first.id).state == "SUCCESS"
    with redis.Redis(port=port, db=1) as client:
        # Results live for a day.
        assert 86000 < client.ttl(f"celery-task-meta-{first.id}") <= 86400
    first.forget()
    assert app.AsyncResult(first.id).state == "PENDING"


with start_worker(app, perform_ping_check=False):
    converse()
