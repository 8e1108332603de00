"""Workers and pages behind a pooler in transaction mode, where each transaction may get another session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from builder.postgres import EmbeddedPostgres
from runtime.models import Trigger
from tests.runtime.engine import eventually
from tests.servers.pgproxy import NAME
from tests.servers.pooler import TransactionPooler

STEPS = [
    {"id": "each", "type": "loop", "config": {"items": "[1, 2, 3]", "concurrency": 3}, "steps": [{"id": "call", "type": "probe"}]},
    {"id": "nap", "type": "delay", "config": {"for": "1h"}},
    {"id": "reply", "type": "callback", "config": {"expires": "2h"}},
    {"id": "ok", "type": "approval", "config": {"subject": "Go?", "approvers": ["dana@example.com"]}},
    {"id": "end", "type": "probe"},
]
CALLS = ["each[0]/call", "each[1]/call", "each[2]/call", "end"]
SESSIONS = 4
PGBOUNCER = """
[databases]
* = host={server}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = {port}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
logfile = {folder}/log
pidfile = {folder}/pid
"""


@contextmanager
def ours(postgres: EmbeddedPostgres, folder: Path) -> Iterator[None]:
    with TransactionPooler(folder, str(postgres.sockets), SESSIONS) as pooler:
        yield
        assert pooler.moved > 100, "nobody got another session"


@contextmanager
def pgbouncer(postgres: EmbeddedPostgres, folder: Path) -> Iterator[None]:
    program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed here; a pooler of the tests' own stands for it")
    (folder / "users").write_text('"holdfast" ""\n')
    told = {"server": postgres.sockets, "folder": folder, "port": NAME.rpartition(".")[2], "sessions": SESSIONS}
    (folder / "ini").write_text(PGBOUNCER.format(**told))
    owner = postgres.sockets.stat().st_uid
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner, -1)
    with subprocess.Popen([program, "-q", folder / "ini"], user=owner if os.getuid() == 0 else None) as process:
        try:
            eventually((folder / NAME).exists)
            yield
        finally:
            connection.close()
            process.terminate()


@pytest.mark.parametrize("pooler", [ours, pgbouncer], ids=["ours", "pgbouncer"])
def test_behind_a_pooler_that_gives_each_transaction_another_session_everything_goes_on(engine, postgres, clock, settings, pooler):
    database = connection.settings_dict
    settings.HOLDFAST_LISTEN_URL = postgres.url(database["NAME"])
    folder = Path(tempfile.mkdtemp(prefix="hfp-", dir="/tmp"))  # a socket's address holds a hundred bytes
    version = engine.publish(STEPS, triggers=[{"id": "hook", "type": "webhook", "config": {}}])
    address = f"/hooks/{Trigger.objects.get().token}/"
    with pooler(postgres, folder):
        workers = [engine.worker(sockets=str(folder), listen_url=settings.HOLDFAST_LISTEN_URL) for _ in range(2)]
        connection.close()
        direct, database["HOST"] = database["HOST"], str(folder)
        try:
            runs = [engine.start(version) for _ in range(9)]
            runs += [Client().post(address, {}, content_type="application/json").json()["run"] for _ in range(3)]
            engine.drive(clock, runs, lambda: all(engine.state(run) != "open" for run in runs))
            for run in runs:
                engine.ends(run)
                assert sorted(line["path"] for line in engine.ledger(run)) == CALLS
            assert [worker.stop() for worker in workers] == [0, 0]
            connection.close()
        finally:
            database["HOST"] = direct
    told = "".join(worker.tail() for worker in workers)
    assert "prepared statement" not in told and "begins again" not in told, told
