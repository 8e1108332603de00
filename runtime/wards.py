"""Wards: processes apart, in which runs go on whose workers died twice in a row.

One run may be to blame, and nobody knows which. So they are divided among a few wards: the one that dies holds it, the others'
runs go on, and no worker dies with it again. What was in that ward is divided once more, until one is alone. Workers go on
with everything else meanwhile.

A ward is forked from a keeper, which the worker forks before it has threads, connections or an event loop. It claims its
share once, and ends with it; with its worker it stops in order, or dies at once when that is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import os
import random
import select
import signal
import time
from typing import TYPE_CHECKING

from django.conf import settings

from . import claims

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger(__name__)

WARDS = 4
"""Into so many shares the runs are divided that lost equally many workers; a worker has no more wards for them at a time."""
MOST_WARDS = 4
"""Of one worker at a time, whatever they are for: each is a process, with its start and its connections."""
LOOK_SECONDS = 1.0
OTHERS_LOOK = 20
"""All workers see the same runs, and if each made wards for them the machine would do nothing else. So the eldest does;
the others look once in so many turns, for what the eldest cannot run."""
STOP_MARGIN_SECONDS = 5.0


class Wards:
    """A worker's side: looks for such runs, and asks the keeper for wards."""

    def __init__(self, worker: Worker):
        self.worker = worker
        reader, self._orders = os.pipe()
        if os.fork() == 0:
            os.close(self._orders)
            _become_keeper(reader, worker.cluster)
        os.close(reader)

    async def run(self) -> None:
        for turn in itertools.count(1):
            await asyncio.sleep(LOOK_SECONDS)
            if self.worker.claiming.paused:
                continue
            if not self.worker.stopping() and (turn % OTHERS_LOOK == 0 or await self._is_eldest()):
                unable = self.worker.claiming.plans.unable
                for lost, count in await self.worker.query(claims.SUSPECTS, [claims.MOST_LOST, unable]):
                    self._order(math.ceil(count / WARDS) if lost < claims.MOST_LOST else 1, min(count, WARDS), lost)

    async def _is_eldest(self) -> bool:
        return (await self.worker.query(claims.ELDEST, [self.worker.id]))[0][0]

    def stop(self) -> None:
        """Let the wards finish or hand back, as the worker does."""
        self._tell("stop")
        os.close(self._orders)

    def _order(self, size: int, count: int, lost: int) -> None:
        self._tell(f"{size} {count} {lost}")

    def _tell(self, line: str) -> None:
        try:
            os.write(self._orders, f"{line}\n".encode())
        except BrokenPipeError:
            log.critical("the keeper of the wards is gone; this worker ends")
            os._exit(73)


def _become_keeper(orders: int, cluster: str) -> None:
    """Fork wards as ordered, until the worker stops or is gone. Never returns."""
    # Blocked and not ignored: what a ward is told while it starts it hears as soon as it listens.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wards: dict[int, int] = {}
    left = ""
    while True:
        ready, _, _ = select.select([orders], [], [], 0.5)
        _bury(wards)
        if not ready:
            continue
        told = os.read(orders, 4096).decode()
        *lines, left = (left + told).split("\n")
        if "stop" in lines or not told:
            _end(wards, in_order="stop" in lines)
        for line in lines:
            size, count, lost = map(int, line.split())
            for _ in range(min(count, WARDS - list(wards.values()).count(lost), MOST_WARDS - len(wards))):
                if pid := os.fork():
                    wards[pid] = lost
                else:
                    os.close(orders)
                    _become_ward(size, lost, cluster)


def _bury(wards: dict[int, int]) -> None:
    while wards:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        wards.pop(pid, None)


def _end(wards: dict[int, int], in_order: bool) -> None:
    last_moment = time.monotonic() + (settings.HOLDFAST_GRACE_SECONDS + STOP_MARGIN_SECONDS if in_order else 0)
    for pid in wards:
        os.kill(pid, signal.SIGTERM)
    while wards and time.monotonic() < last_moment:
        time.sleep(0.1)
        _bury(wards)
    for pid in wards:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _become_ward(size: int, lost: int, cluster: str) -> None:
    from .worker import Worker

    code = 1
    try:
        told: list[bool] = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(True))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        random.seed()
        keeper = os.getppid()
        asyncio.run(Worker(lambda: bool(told) or os.getppid() != keeper, cluster, share=(size, lost)).run())
        code = 0
    except BaseException:
        log.exception("a ward broke")
    finally:
        os._exit(code)
