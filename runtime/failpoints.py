"""Places where dying could matter. `HOLDFAST_FAILPOINT=name:n` kills the process at the n-th passing of `name`.

With `HOLDFAST_FAILPOINTS_PASSED` every passing is written to that file, one name a line, so that a test knows how often each
place is passed.

A place is one call, `hit("name")`; the names are declared here, so that `manage.py failpoints` lists them all.
"""

from __future__ import annotations

import os
import signal

NAMES = {
    "claim.before": "before the claim statement is sent",
    "claim.after": "after runs were claimed, before any is advanced",
    "attempt.before": "before an attempt's row is handed to the journal",
    "attempt.after": "after an attempt's row is durable, before the call",
    "call.during": "after a request was sent, before its answer",
    "call.after": "after the call, before its result is handed to the journal",
    "journal.before": "before a batch is sent",
    "journal.inside": "inside a batch's transaction, before its commit",
    "journal.after": "after a batch's commit, before anybody is told",
    "wait.due": "before a due wait is resolved",
    "wait.resolved": "after a due wait was resolved, before the step resumes",
    "release.before": "before a parked run is released",
    "release.after": "after a parked run was released",
    "renew.before": "before leases are renewed",
    "renew.after": "after leases were renewed",
    "outbox.claimed": "after a mail was claimed, before it is sent",
    "outbox.sent": "after a mail was sent, before it is marked",
    "schedule.inside": "inside a scheduled start's transaction",
    "schedule.after": "after a scheduled start was committed, before the doorbell",
    "decision.before": "before an approval decision takes the run's lock",
    "decision.inside": "inside an approval decision's transaction",
    "decision.after": "after an approval decision was committed, before the doorbell",
}

_name, _, _count = os.environ.get("HOLDFAST_FAILPOINT", "").partition(":")
_left = int(_count or 1)
_passed = os.environ.get("HOLDFAST_FAILPOINTS_PASSED", "")


def hit(name: str) -> None:
    """Die here, if this is the place and the passing that was asked for."""
    if _passed:
        with open(_passed, "a") as file:
            file.write(f"{name}\n")
    if name == _name:
        _count_down()


def _count_down() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
