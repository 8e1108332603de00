"""The thread that keeps a worker's leases, and ends the process before they run out when its event loop hangs.

A thread, because a loop that is blocked by one step must not take the other runs' leases with it unnoticed; and no more
than a thread, because a lease that is renewed by a process whose loop does nothing is a lie.
"""

from __future__ import annotations

import logging
import math
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable

import psycopg

from . import failpoints
from .claims import RENEW
from .database import conninfo, session

log = logging.getLogger(__name__)

SLOWEST_COMMIT = 10.0
"""Seconds that a commit may take on a bad day, however short the leases are."""

BEAT = """
update worker set beat_at = clock_timestamp(), in_flight = %s, finished = %s, stopping = %s, unable = %s::jsonb,
    figures = %s::jsonb where id = %s
"""


class LeaseKeeper(threading.Thread):
    """Renews every third of a lease, beats every second. `held()` gives the runs by token, `loop_beat()` gives the monotonic time of the loop's last beat,
    `waits_since()` that since which the journal or the reader waits for the database, or None."""

    def __init__(
        self, worker_id: int, lease: float, held: Callable[[], dict[int, int]], loop_beat: Callable[[], float],
        waits_since: Callable[[], float | None], figures: Callable[[], tuple[int, int, bool, str, str]],
    ):
        super().__init__(name="leases", daemon=True)
        self.worker_id, self.lease, self.held = worker_id, lease, held
        self.loop_beat, self.waits_since, self.figures = loop_beat, waits_since, figures
        self._told = threading.Event()
        self._connection: psycopg.Connection | None = None
        self._answers_since: float | None = None
        self._turned = self._awake_since = time.monotonic()
        self._end_when_nothing_turns()

    def run(self) -> None:
        renewed = beaten = time.monotonic()
        while not self._told.wait(min(1.0, self.lease / 6)):
            self._end_when_nothing_turns()
            if self.hangs():
                self._end_in_time(renewed)
                continue
            now = time.monotonic()
            if now - renewed >= self.lease / 3 and self._renew():
                renewed = now
            if now - beaten >= min(1.0, self.lease / 6) and self._beat():
                beaten = now
            self._end_when_no_answer_comes()
        if self._connection:
            self._connection.close()

    def stop(self) -> None:
        self._told.set()
        self.join(timeout=5)

    def hangs(self) -> bool:
        """Whether the loop missed its beats since this was last asked. After a time in which this thread did not turn either,
        because the process was stopped, the loop gets a moment to catch up."""
        now = time.monotonic()
        if now - self._turned > self.lease / 3:
            self._awake_since = now
        self._turned = now
        return now - self.loop_beat() >= self.lease / 3 and now - self._awake_since >= self.lease / 6

    def _end_in_time(self, renewed: float) -> None:
        if time.monotonic() - renewed > 0.7 * self.lease:
            log.critical("worker %s: the event loop hangs; ending before its leases do. It is at\n%s", self.worker_id, _main_stack())
            os._exit(70)

    def _end_when_no_answer_comes(self) -> None:
        """The database answers this thread, and the journal or the reader has waited for it for a whole lease: whoever cannot
        write or see must hold nothing."""
        waits, answers, longest = self.waits_since(), self._answers_since, max(self.lease, SLOWEST_COMMIT)
        if waits is not None and answers is not None and time.monotonic() - max(waits, answers, self._awake_since) > longest:
            log.critical("worker %s: a session waits for a database that answers another; ending", self.worker_id)
            os._exit(72)

    def _end_when_nothing_turns(self) -> None:
        """A step that keeps the interpreter's lock for ever, in a loop of C, lets this thread do nothing either: the system
        ends the process by the processor time that it used since this was last said."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        soonest = math.ceil(used.ru_utime + used.ru_stime + max(2.0, 0.7 * self.lease))
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (soonest if most == resource.RLIM_INFINITY else min(soonest, most), most))

    def _renew(self) -> bool:
        failpoints.hit("renew.before")
        renewed = self._execute(RENEW, {"lease": self.lease, "worker": self.worker_id, "runs": list(self.held().values())})
        failpoints.hit("renew.after")
        return renewed

    def _beat(self) -> bool:
        return self._execute(BEAT, [*self.figures(), self.worker_id])

    def _execute(self, sql: str, parameters: list | dict) -> bool:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(conninfo(), **session("holdfast leases"))
            self._connection.execute(sql, parameters)
            self._answers_since = self._answers_since or time.monotonic()
            return True
        except psycopg.Error as error:
            log.warning("worker %s: leases could not be renewed: %s", self.worker_id, error)
            if self._connection:
                self._connection.close()
            self._connection = self._answers_since = None
            return False


def _main_stack() -> str:
    """Where the thread of the event loop is."""
    frame = sys._current_frames().get(threading.main_thread().ident)
    return "".join(traceback.format_stack(frame))
