"""Worker clusters as they run in production: `manage.py qcluster`, each with its own way to the database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from django.db import connection

from builder.supervisor import dies_with_parent
from tests.chaos.patience import until_it_is_told

ROOT = Path(__file__).resolve().parents[2]
LEASE_SECONDS = 3.0
WORKERS = 2
ENVIRONMENT = {
    "HOLDFAST_WORKERS": str(WORKERS),
    "HOLDFAST_CONCURRENCY": "12",
    "HOLDFAST_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
    "HOLDFAST_POLL_SECONDS": "0.3",
    "HOLDFAST_GRACE_SECONDS": "1",
    "HOLDFAST_LOG_LEVEL": "WARNING",
    "HOLDFAST_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
}


class Cluster:
    def __init__(self, name: str, database: str, folder: Path, **more: str):
        self.name, self.log = name, folder / f"{name}.log"
        self.env = ENVIRONMENT | {"DATABASE_URL": database, "HOLDFAST_CLUSTER": name} | more
        self.process: subprocess.Popen | None = None
        self.failpoint = ""

    def start(self, failpoint: str = "") -> None:
        """With a failpoint each of its workers dies there, and its successor again."""
        self.failpoint = failpoint
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "qcluster"],
                cwd=ROOT,
                env=os.environ | self.env | {"HOLDFAST_FAILPOINT": failpoint},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(signal.SIGKILL),
            )

    def workers(self) -> list[int]:
        """The process ids of its workers that live and have registered."""
        rows = until_it_is_told(lambda: _registered(self.name))
        return [pid for (pid,) in rows if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        try:
            ours = os.getsid(pid) == self.process.pid
            return ours and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    def kill(self) -> None:
        """All of its processes at once."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def stop(self, seconds: float = 30) -> bool:
        """SIGTERM, as a deploy does it. Returns whether it ended by itself, with 0."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            self.kill()
            return False


def _registered(cluster: str) -> list[tuple[int]]:
    with connection.cursor() as cursor:
        cursor.execute("select pid from worker where cluster = %s and ended_at is null order by id", [cluster])
        return cursor.fetchall()


def until_up(clusters: list[Cluster], seconds: float = 60) -> None:
    """Wait until every cluster has all of its workers."""
    ends = time.monotonic() + seconds
    while any(len(cluster.workers()) < WORKERS for cluster in clusters):
        if time.monotonic() > ends:
            tails = "\n".join(cluster.log.read_text()[-1500:] for cluster in clusters)
            raise TimeoutError(f"the workers were not up within {seconds:g} s:\n{tails}")
        time.sleep(0.1)
