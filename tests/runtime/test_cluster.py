"""`manage.py qcluster`: workers are kept alive and stopped in order, and nobody outlives his supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from runtime.models import Dispatch, Worker
from tests.runtime.engine import PATIENCE, ROOT, eventually


@pytest.fixture
def cluster(engine) -> Iterator[object]:
    """Starts clusters; ends what is left of them."""
    started: list[psutil.Process] = []

    def start(**env: str) -> subprocess.Popen:
        given = {
            "HOLDFAST_WORKERS": "2",
            "HOLDFAST_LEASE_SECONDS": "3",
            "HOLDFAST_POLL_SECONDS": "0.2",
            "HOLDFAST_GRACE_SECONDS": "1",
            "HOLDFAST_TEST_FOLDER": str(engine.folder),
            "HOLDFAST_LOG_LEVEL": "WARNING",
            **env,
        }
        process = subprocess.Popen([sys.executable, "manage.py", "qcluster"], cwd=ROOT, env=os.environ | given)
        started.append(psutil.Process(process.pid))
        eventually(lambda: alive() == 2)
        started.extend(started[-1].children(recursive=True))
        return process

    yield start
    for process in reversed(started):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    eventually(lambda: gone(started), what="the end of all processes")


def alive() -> int:
    return sum(psutil.pid_exists(pid) for pid in Worker.objects.filter(ended_at=None).values_list("pid", flat=True))


def gone(processes: list[psutil.Process]) -> bool:
    return all(ended(process) for process in processes)


def ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # between the two questions
        return True


def test_a_killed_worker_is_replaced_and_its_run_goes_on(engine, cluster):
    cluster()
    run = engine.start(
        engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go"}}, {"id": "next", "type": "probe"}])
    )
    eventually(lambda: engine.ledger(run))
    holder = Worker.objects.get(pk=Dispatch.objects.get(run_id=run).worker_id)
    os.kill(holder.pid, signal.SIGKILL)
    engine.release("go")
    engine.ends(run)
    eventually(lambda: alive() == 2 and Worker.objects.count() == 3, what="a worker in the place of the dead one")


@pytest.mark.fault(17)
def test_sigterm_ends_claiming_at_once_waits_for_the_grace_and_hands_back(engine, cluster):
    held = engine.start(engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "never-{{ run.id }}"}}]))
    soon = engine.start(
        engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go"}}, {"id": "next", "type": "probe"}])
    )
    process = cluster(HOLDFAST_GRACE_SECONDS="6", HOLDFAST_LEASE_SECONDS="30")
    eventually(lambda: len(engine.ledger()) == 2)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: Worker.objects.filter(stopping=True).count() == 2)
    late = engine.start(engine.publish([{"id": "x", "type": "probe"}]))
    engine.release("go")
    engine.ends(soon)  # what is in flight may end within the grace period
    assert process.wait(PATIENCE) == 0
    assert Dispatch.objects.get(run_id=late).state == "ready" and not engine.ledger(late), (
        "it claimed after it was told to stop"
    )
    row = Dispatch.objects.get(run_id=held)
    assert (row.state, row.token, row.lost) == ("ready", None, 0), "handed back, not left to its lease"
    assert Worker.objects.filter(ended_at=None).count() == 0
    engine.release(f"never-{held}")
    engine.worker()
    engine.ends(held), engine.ends(late)


@pytest.mark.parametrize("victim", ["supervisor", "cluster"])
def test_nobody_outlives_his_supervisor(engine, cluster, victim):
    process = psutil.Process(cluster().pid)
    (supervisor,) = process.children()
    below = supervisor.children()
    assert len(below) >= 3
    if victim == "supervisor":
        supervisor.kill()
    else:
        process.kill()
    eventually(lambda: gone([*below, supervisor, process]), what=f"the end of {below}")


FORK_AND_TELL = """
import os, signal, sys
from multiprocessing.popen_fork import Popen

command, launch, moment = os.getpid(), Popen._launch, sys.argv.pop()

def told(popen, process):
    tells = os.getpid() == command
    if tells and moment == "before the fork":
        os.kill(command, signal.SIGTERM)
    launch(popen, process)
    if tells and moment == "after the fork":
        os.kill(command, signal.SIGTERM)

Popen._launch = told
os.environ["DJANGO_SETTINGS_MODULE"] = "builder.settings"
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "qcluster"])
"""


@pytest.mark.parametrize("moment", ["before the fork", "after the fork"])
def test_a_cluster_that_is_told_to_stop_while_it_starts_does_so(engine, moment):
    """Whoever tells it does so once: the kernel, when `up` was killed."""
    process = subprocess.Popen([sys.executable, "-c", FORK_AND_TELL, moment], cwd=ROOT)
    try:
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.fault(25)
def test_no_two_processes_share_a_connection(engine, cluster):
    """What was opened before a fork would be read by two: each process has sockets of its own."""
    process = psutil.Process(cluster().pid)

    def connected() -> bool:
        """A worker that is known already may be opening its connections still."""
        sockets = [sockets_of(one) for one in process.children(recursive=True) if one.pid in pids()]
        return len(sockets) == 2 and all(len(own) > 3 for own in sockets)

    eventually(connected)
    everybody = [sockets_of(one) for one in [process, *process.children(recursive=True)]]
    assert sum(map(len, everybody)) == len(set().union(*everybody))


def pids() -> set[int]:
    return set(Worker.objects.filter(ended_at=None).values_list("pid", flat=True))


def sockets_of(process: psutil.Process) -> set[str]:
    folder = f"/proc/{process.pid}/fd"
    links = []
    for name in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:  # closed meanwhile
            pass
    return {link for link in links if link.startswith("socket:")}
