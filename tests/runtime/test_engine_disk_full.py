"""The database's disk is full for a while: senders are asked to come again, workers wait, and nothing that was taken is lost."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connections
from django.test import Client

from runtime.models import Run, Trigger
from tests.runtime.engine import eventually

TABLES = ("run", "log_line", "step_result")


@pytest.fixture
def small_disk(postgres, database_url) -> Iterator[Path]:
    """A disk of four megabytes with the tables that grow, where the test may mount one."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-disk-"))  # not below the test's own, where the server may not go
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as wrong:
        folder.rmdir()
        pytest.skip(f"No disk of its own can be mounted here: {getattr(wrong, 'stderr', '') or wrong}")
    try:
        with _tables_on(folder, postgres):
            yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@contextmanager
def _tables_on(folder: Path, postgres) -> Iterator[None]:
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if postgres.account:
        os.chown(data, postgres.account.pw_uid, postgres.account.pw_gid)
    name = connections["default"].settings_dict["NAME"]
    with psycopg.connect(postgres.url(name, "postgres"), autocommit=True) as admin:
        admin.execute(f"create tablespace small location '{data}'")
        for table in TABLES:
            admin.execute(f"alter table {table} set tablespace small")
        try:
            yield
        finally:
            (folder / "filler").unlink(missing_ok=True)
            admin.execute("set lock_timeout = '20s'")
            for table in TABLES:
                admin.execute(f"truncate {table} cascade")
                admin.execute(f"alter table {table} set tablespace pg_default")
            admin.execute("drop tablespace small")


def test_while_the_disk_is_full_nothing_that_was_taken_is_lost(small_disk, engine):
    version = engine.publish(
        [{"id": "call", "type": "probe", "config": {"hold": "go"}}, {"id": "after", "type": "probe"}],
        triggers=[{"id": "hook", "type": "webhook"}],
    )
    token = Trigger.objects.get(workflow=version.workflow).token
    client = Client(raise_request_exception=False)

    def post(number: int):
        body = {"number": number, "noise": os.urandom(2000).hex()}
        return client.post(f"/hooks/{token}/", body, content_type="application/json")

    taken = [post(0).json()["run"]]
    worker = engine.worker()
    eventually(lambda: engine.ledger(taken[0]))
    with (small_disk / "filler").open("wb") as filler:
        try:
            while True:
                filler.write(b"\0" * 65536)
                filler.flush()
        except OSError:
            pass
    for number in range(1, 400):
        answer = post(number)
        if answer.status_code != 202:
            break
        taken.append(answer.json()["run"])
    assert answer.status_code == 503 and int(answer["Retry-After"]) > 0, "the disk was never full"
    assert sorted(Run.objects.values_list("pk", flat=True)) == sorted(taken), "taken is what was answered as taken"
    engine.release("go")
    eventually(lambda: "No space left on device" in worker.log.read_text(), what=worker.tail)
    assert worker.status() is None
    (small_disk / "filler").unlink()
    for run in taken:
        engine.ends(run)
    assert post(1000).status_code == 202
    assert worker.status() is None, "it came back by itself"
