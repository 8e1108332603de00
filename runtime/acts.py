"""What people do to runs. Each act takes the run's lock, moves state by compare-and-swap, and writes an audit entry.

Done twice, an act does nothing the second time; the return value says whether it changed anything.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db import connection, transaction

from . import waits
from .audit import record
from .doorbell import ring_after_commit
from .models import LogLine, OutboxMessage, Run, Version, Wait
from .starts import start
from .states import UNFINISHED, OutboxState, RunState, WaitKind, WaitState

# The end by a person: the run's state, its dispatch row and its waits, under the run's lock.
END_BY_PERSON = "update run set state = %s, ended_at = holdfast_now(), error = %s::jsonb where id = %s and state = any(%s)"
REOPEN = "update run set state = 'open', ended_at = null, error = null where id = %s and state = 'failed' returning version_id"
# What failed is done again as the next take: not what an error lane took care of, nor what is inside of such a container.
SUPERSEDE = """
update step_result failed set superseded = true
where run_id = %s and state = 'failed' and not superseded and not coalesce(error @> '{"handled": true}', false)
  and not exists (
    select from step_result handled, left(handled.path, -length('/on_error')) as box
    where handled.run_id = failed.run_id and handled.state = 'failed' and not handled.superseded
      and right(handled.path, length('/on_error')) = '/on_error' and not starts_with(failed.path, handled.path || '/')
      and (starts_with(failed.path, box || '/') or starts_with(failed.path, box || '[')))
"""
DISPATCH_AGAIN = """
insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths)
values (%s, %s, 'ready', holdfast_now(), 1, 0, 0, false, 0)
"""
FORGIVE = """
update dispatch set state = 'ready', due_at = holdfast_now(), lost = 0, deaths = 0, alone = false
where run_id = %s and token is null
"""


@transaction.atomic
def cancel(run_id: int, *, user=None, why: str = "") -> bool:
    """End an unfinished run now. Its owner's later writes are refused; calls in flight end and are recorded."""
    if waits.lock(run_id) is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute("delete from dispatch where run_id = %s", [run_id])
        cursor.execute(END_BY_PERSON, [RunState.CANCELLED, None, run_id, list(UNFINISHED)])
        changed = cursor.rowcount == 1
    Wait.objects.filter(run_id=run_id, state__in=[WaitState.OPEN, WaitState.SUSPENDED]).update(state=WaitState.CANCELLED)
    if changed:
        _note(run_id, f"Cancelled{_by(user)}{f': {why}' if why else '.'}")
        _audit("cancel", run_id, user, why=why)
        ring_after_commit(run_id)
    return changed


@transaction.atomic
def requeue(run_id: int, *, user=None) -> bool:
    """Let a failed run go on at what failed, as the next take; a quarantined one get another chance."""
    if _forgive(run_id):
        _audit("requeue", run_id, user)
        return True
    with connection.cursor() as cursor:
        cursor.execute(REOPEN, [run_id])
        row = cursor.fetchone()
        if row is None:
            return False
        cursor.execute(SUPERSEDE, [run_id])
        restored = Wait.objects.filter(run_id=run_id, state=WaitState.SUSPENDED)
        if restored.filter(kind=WaitKind.PERSON).exists():
            Run.objects.filter(pk=run_id).update(state=RunState.ATTENTION)
        restored.update(state=WaitState.OPEN)
        cursor.execute(DISPATCH_AGAIN, [run_id, row[0]])
    waits.hand_over(run_id)
    _note(run_id, f"Requeued{_by(user)}.")
    _audit("requeue", run_id, user)
    ring_after_commit()
    return True


def _forgive(run_id: int) -> bool:
    """Resolve a run's quarantine, if it is in one."""
    if waits.lock(run_id) is None:
        return False
    quarantine = Wait.objects.filter(run_id=run_id, path="", kind=WaitKind.PERSON, state=WaitState.OPEN).first()
    if quarantine is None or not waits.resolve_locked(quarantine.pk, {"by": "person", "answer": "again"}):
        return False
    with connection.cursor() as cursor:
        cursor.execute(FORGIVE, [run_id])
    _attended(run_id)
    _note(run_id, "Taken out of quarantine.")
    ring_after_commit()
    return True


@transaction.atomic
def answer(
    wait_id: int, choice: Literal["happened", "again", "fail"], *, output: Any = None, user=None
) -> bool:
    """A person's word on an uncertain attempt: it happened (with this output), run it again, or let the step fail."""
    wait = Wait.objects.filter(pk=wait_id, kind=WaitKind.PERSON).exclude(path="").first()
    if wait is None or waits.lock(wait.run_id) is None:
        return False
    outcome = {"by": "person", "answer": choice, "output": output, "who": str(user or "")}
    if not waits.resolve_locked(wait_id, outcome):
        return False
    _attended(wait.run_id)
    words = {"happened": "It happened", "again": "Run it again", "fail": "Let it fail"}[choice]
    _note(wait.run_id, f"{words}, said {user or 'somebody'}.", wait.path)
    _audit("resolve", wait.run_id, user, path=wait.path, answer=choice)
    return True


@transaction.atomic
def resend(message_id: int, *, user=None) -> bool:
    """Send a mail again, under its old Message-ID. One that waits for its turn is sent now."""
    message = OutboxMessage.objects.select_for_update().filter(pk=message_id).first()
    if message is None or message.state == OutboxState.SENDING:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "update outbox set state = 'queued', due_at = holdfast_now(), attempts = 0, error = '' where id = %s", [message_id]
        )
    record("resend", f"mail:{message_id}", actor=user, detail={"run": message.run_id, "to": message.recipient})
    return True


@transaction.atomic
def rerun(run: Run, *, user=None, version: Version | None = None) -> int:
    """Start a new run with the same input, on the same version unless another is given. Returns its id.
    Raises Run.DoesNotExist."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # which retention may just be taking away
    started = start(
        version or run.version, trigger_key=run.trigger_key, input=run.input, user=user, test=run.test, rerun_of=run
    )
    _audit("rerun", run.pk, user, new_run=started.run_id)
    return started.run_id


def _attended(run_id: int) -> None:
    """Back to open, once nobody is waited for."""
    if not Wait.objects.filter(run_id=run_id, kind=WaitKind.PERSON, state=WaitState.OPEN).exists():
        Run.objects.filter(pk=run_id, state=RunState.ATTENTION).update(state=RunState.OPEN)


def _note(run_id: int, text: str, path: str = "") -> None:
    LogLine.objects.create(run_id=run_id, path=path, text=text)


def _audit(action: str, run_id: int, user, **detail: Any) -> None:
    team_id = Run.objects.filter(pk=run_id).values_list("workflow__team_id", flat=True).first()
    record(action, f"run:{run_id}", actor=user, team_id=team_id, detail=detail)


def _by(user) -> str:
    return f" by {user}" if user else ""
