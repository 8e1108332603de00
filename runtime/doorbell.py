"""NOTIFY as a hint that something became due. It is sent after the commit and never carries a promise: workers also poll.

Payload: empty for "a run became due", `MORE` for "and perhaps more within `STANDS_SECONDS`", or the id of a run whose owner
should look at it.
"""

from __future__ import annotations

import logging
import math
import time

from django.db import Error, connection, transaction

log = logging.getLogger(__name__)

CHANNEL = "holdfast"
MORE = "-1"
STANDS_SECONDS = 0.005
"""How long a process that starts run after run lets a bell stand for those that follow. Whoever hears such a bell looks once
more when this is over."""
BUSY_SECONDS = 0.05
"""Bells that follow each other so closely are such bells."""

_rung = _stands_until = -math.inf


def ring_after_commit(run_id: int | None = None) -> None:
    """Ring once this transaction is durable; at once when there is none. A bell that fails is logged and no more: the
    caller's work is committed, and an error would have it believe otherwise."""
    if connection.in_atomic_block:
        transaction.on_commit(lambda: _ring(run_id))
    else:
        _ring(run_id)


def _ring(run_id: int | None) -> None:
    global _rung, _stands_until
    payload = "" if run_id is None else str(run_id)
    if run_id is None:
        now = time.monotonic()
        if now < _stands_until:
            return
        if now - _rung < BUSY_SECONDS:
            payload, _stands_until = MORE, now + STANDS_SECONDS
        _rung = now
    try:
        connection.ask("select pg_notify($1, $2)", [CHANNEL, payload])
    except Error:
        log.exception("The bell for the workers could not be rung; they look by themselves.")
