"""django-q2's tables can hold pickles, which are programs to whoever loads them. Nothing of ours does: a row that somebody has
forged there, even one signed with our own key, runs nothing."""

from __future__ import annotations

import os
import pickle
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse
from django_q.models import OrmQ, Schedule, Task
from django_q.signing import SignedPackage

from tests.runtime.engine import eventually
from tests.runtime.test_cluster import cluster  # noqa: F401 - a fixture


class Touch:
    """Makes a file wherever it is unpickled, named after the process that did it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.makedirs, (str(self.folder / "unpickled"), 0o777, True)


def forge(folder: Path) -> None:
    """A task that waits, with and without our signature, a schedule that is due, and a result to be looked at."""
    task = {"id": "x", "name": "x", "func": "os.makedirs", "args": (str(folder / "called"), 0o777, True), "kwargs": {}}
    signed, raw = SignedPackage.dumps(task), SignedPackage.dumps({**task, "args": (Touch(folder),)})
    unsigned = b64encode(pickle.dumps(Touch(folder))).decode()  # as the fields of results store it
    with connection.cursor() as cursor:
        for payload in (signed, raw, unsigned):
            cursor.execute("insert into django_q_ormq (key, payload) values ('holdfast', %s)", [payload])
        cursor.execute(
            "insert into django_q_schedule (name, func, args, kwargs, schedule_type, repeats, next_run) values"
            " ('x', 'os.makedirs', %s, '', 'O', 1, now() - interval '1 hour')", [f"('{folder / 'scheduled'}',)"],
        )  # fmt: skip
        cursor.execute(
            "insert into django_q_task (id, name, func, args, kwargs, result, started, stopped, success, attempt_count) values"
            " ('x', 'x', 'os.getpid', %s, %s, %s, now(), now(), true, 1)", [unsigned] * 3,
        )  # fmt: skip


def test_a_forged_row_runs_nothing(engine, cluster):  # noqa: F811
    forge(engine.folder)
    process = cluster()
    run = engine.start(engine.publish([{"id": "one", "type": "probe"}]))
    engine.ends(run)
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"), "django.contrib.auth.backends.ModelBackend")
    for name in ("operations", "admin:index", "healthz", "runs"):
        assert client.get(reverse(name)).status_code in (200, 503)
    process.terminate()
    eventually(lambda: process.poll() is not None, what="the end of the cluster")
    made = {path.name for path in engine.folder.iterdir() if path.is_dir()}
    assert not made & {"unpickled", "called", "scheduled"}
    assert (OrmQ.objects.count(), Schedule.objects.count(), Task.objects.count()) == (3, 1, 1), "nobody has taken them"


@pytest.mark.django_db
def test_the_forgery_would_work(tmp_path):
    """Else the test above proves nothing: each of these runs where somebody looks at it as django-q2 would."""
    forge(tmp_path)
    assert not list(tmp_path.iterdir())
    assert Task.objects.get().name == "x" and (tmp_path / "unpickled").is_dir()
    (tmp_path / "unpickled").rmdir()
    SignedPackage.loads(OrmQ.objects.order_by("pk")[1].payload)
    assert (tmp_path / "unpickled").is_dir()
