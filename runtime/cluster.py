"""django-q2 as the supervisor of the worker processes: it starts them, restarts the dead, and stops them in order.

What a process does is ours: instead of reading tasks from a shared queue (see `broker.py`) it runs one `Worker` for its
whole life. The queue serves for one thing, the stop word that django-q2 puts there: anything in it means stop.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import wraps
from multiprocessing import parent_process
from multiprocessing.queues import Queue
from typing import Any

import django_q.cluster
import django_q.management.commands.qcluster
from django.conf import settings
from django.db import connections
from django_q.signals import post_spawn

from .worker import Worker

log = logging.getLogger(__name__)

STOP_MARGIN_SECONDS = 5


def install() -> None:
    """Put our worker process in the place of django-q2's task reader, in this process and those it forks; and see to it
    that none of them outlives the one that started it."""
    django_q.management.commands.qcluster.Cluster = Cluster
    django_q.cluster.worker = work
    django_q.cluster.Sentinel = Supervisor
    django_q.cluster.pusher = _ends_with_its_parent(django_q.cluster.pusher)
    django_q.cluster.monitor = _ends_with_its_parent(django_q.cluster.monitor)


class Cluster(django_q.cluster.Cluster):
    """django-q2's command. It stops also when it is told so while its sentinel is being forked, and has no process id yet."""

    _told_early = False

    def start(self) -> int:
        pid = super().start()
        if self._told_early:
            self.stop()
        return pid

    def sig_handler(self, number: int, frame: Any) -> None:
        if self.sentinel is None or self.sentinel.pid is None:
            self._told_early = True
        else:
            super().sig_handler(number, frame)


class Supervisor(django_q.cluster.Sentinel):
    """django-q2's sentinel. It stops in order also when the command that started it was killed."""

    def __init__(self, stop_event: Any, *args: Any, **options: Any):
        super().__init__(_ToldOrOrphaned(stop_event), *args, **options)


class _ToldOrOrphaned:
    """The event by which the sentinel is told to stop. A look at it is a look at who its parent is, too."""

    def __init__(self, event: Any):
        self._event, self._parent = event, parent_process().pid

    def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds) or self.is_set()

    def is_set(self) -> bool:
        return self._event.is_set() or os.getppid() != self._parent


def _ends_with_its_parent(target: Callable[..., None]) -> Callable[..., None]:
    @wraps(target)
    def run(*args: Any) -> None:
        threading.Thread(target=_end_with_parent, args=[lambda: False], daemon=True).start()
        target(*args)

    return run


def work(task_queue: Queue, result_queue: Queue, timer: Any, timeout: int | None = None) -> None:
    """A worker process: from its fork to the stop word, or to the end of its supervisor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    connections.close_all()  # a connection made before the fork is not ours
    post_spawn.send(sender="django_q", proc_name=f"worker {os.getpid()}")
    timer.value = -1

    def stopping() -> bool:
        return not task_queue.empty()

    worker = Worker(stopping, cluster=os.environ.get("HOLDFAST_CLUSTER", str(parent_process().pid)))
    threading.Thread(target=_end_with_parent, args=[stopping], daemon=True).start()
    asyncio.run(worker.run())


def _end_with_parent(stopping: Callable[[], bool]) -> None:
    """An orphan must not go on beside the cluster that replaces it, and a stop must end while the database is away too.
    Either way the leases run out and the writes are fenced."""
    parent = parent_process().pid  # as it was at the fork: it may have died since
    last_moment = math.inf
    while os.getppid() == parent and time.monotonic() < last_moment:
        if last_moment == math.inf and stopping():
            last_moment = time.monotonic() + settings.HOLDFAST_GRACE_SECONDS + STOP_MARGIN_SECONDS
        time.sleep(0.2)
    log.critical("the supervisor is gone, or stopping took too long; this process ends")
    os._exit(71)
