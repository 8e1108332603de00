"""What people do to runs. Each act takes the run's lock, moves state by compare-and-swap, and writes an audit entry.

Done twice, an act does nothing the second time; the return value says whether it changed anything. What cannot be done
to a run as it is raises NotPossible, with the reason in words for people. `key`, where given, names one filled-in form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

from django.db import connection, transaction

from . import carrying, keeping, retries, waits
from .asking import asks_own
from .audit import record_of_run
from .clock import business_now
from .courses import Course, NoSuchStep, course_of
from .definition import children
from .doorbell import ring_after_commit
from .endings import FOLLOWED
from .faults import kind_of
from .jsonvalues import BadJson, check_json
from .models import Act, Frame, LogLine, OutboxMessage, Run, Version, Wait
from .paths import scope_of
from .reopening import NotPossible, attended, forgive, restore_waits, revive, take_hold
from .starts import copy_files, start
from .states import UNFINISHED, DispatchState, OutboxState, RunState, StepState, WaitKind, WaitState

RESENT_EVERY = timedelta(minutes=10)
# The end by a person: the run's state and its dispatch row by one statement, for a requeue may come at any moment.
END_BY_PERSON = """
with gone as (delete from dispatch where run_id = %(run)s)
update run set state = %(state)s, ended_at = holdfast_now(), error = %(error)s::jsonb where id = %(run)s and state = any(%(unfinished)s)
"""
# The locks of a run and of all that it started and that have not ended, in the journal's order, whatever started what.
HOLD_TREE = """
with recursive tree as (
    select id from run where id = %(run)s
    union all select c.id from tree join run c on c.parent_id = tree.id and c.state = any(%(unfinished)s)
)
select run_id from dispatch where run_id = any(array(select id from tree)) order by run_id for no key update
"""
# What a person gives in the place of a step's own result.
SKIP = """
insert into step_result (run_id, scope, path, take, step, state, output, token, started_at, finished_at, superseded)
select %(run)s, %(scope)s, %(path)s, 1 + coalesce((select max(take) from step_result
        where run_id = %(run)s and scope = %(scope)s and path = %(path)s), 0),
    %(step)s, 'skipped', %(output)s::json, 0, holdfast_now(), holdfast_now(), false
"""
# What a step that follows pages has kept of them, for its next take: in the same order, before what that one keeps itself.
KEEP_PARTS = """
insert into frame_value (run_id, path, take, index, value)
select run_id, path, take + 1, index - 1000, value from frame_value where run_id = %s and path = %s and take = %s
"""


def changes(act: Callable[..., bool], pk: int, user: Any) -> bool:
    """Do an act, as one of many. Whether it changed anything; what is not possible did not."""
    try:
        return bool(act(pk, user=user))
    except NotPossible:
        return False


@transaction.atomic
def cancel(run_id: int, *, user=None, why: str = "") -> bool:
    """End an unfinished run now, and those that it started. Their owners' later writes are refused; calls in flight end and are
    recorded."""
    held, found = set(), _hold_tree(run_id)
    while found - held:  # one may have been started before its parent was held
        held, found = found, _hold_tree(run_id)
    return run_id in held and _cancel(run_id, user, why, held)


def _hold_tree(run_id: int) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(HOLD_TREE, {"run": run_id, "unfinished": list(UNFINISHED)})
        return {run for (run,) in cursor.fetchall()}


def _cancel(run_id: int, user: Any, why: str, held: set[int]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(END_BY_PERSON, {"run": run_id, "state": RunState.CANCELLED, "error": None, "unfinished": list(UNFINISHED)})
        changed = cursor.rowcount == 1
        if changed:
            cursor.execute(FOLLOWED, [run_id])
    Wait.objects.filter(run_id=run_id, state__in=[WaitState.OPEN, WaitState.SUSPENDED]).update(state=WaitState.CANCELLED)
    for child in Run.objects.filter(parent_id=run_id, pk__in=held).order_by("pk").values_list("pk", flat=True):
        _cancel(child, user, f"run {run_id:,}, which started it, was cancelled", held)
    if changed:
        _note(run_id, f"Cancelled{_by(user)}{f': {why}' if why else '.'}")
        _audit("cancel", run_id, user, why=why)
        ring_after_commit(run_id)
    return changed


@transaction.atomic
def force_fail(run_id: int, *, user=None, why: str = "") -> bool:
    """End an unfinished run as failed, whatever state it is in. Its waits are kept: a requeue lets it go on from there."""
    waits.lock(run_id)
    message = f"Failed by hand{_by(user)}{f': {why}' if why else '.'}"
    with connection.cursor() as cursor:
        error = json.dumps({"message": message, "kind": kind_of({"message": "Failed by hand"})})
        cursor.execute(END_BY_PERSON, {"run": run_id, "state": RunState.FAILED, "error": error, "unfinished": list(UNFINISHED)})
        changed = cursor.rowcount == 1
        if changed:
            cursor.execute(FOLLOWED, [run_id])
    if changed:
        Wait.objects.filter(run_id=run_id, state=WaitState.OPEN).update(state=WaitState.SUSPENDED)
        _note(run_id, message)
        _audit("force_fail", run_id, user, why=why)
        ring_after_commit(run_id)
    return changed


@transaction.atomic
def requeue(run_id: int, *, user=None, key: str = "") -> bool:
    """Let a failed run go on at what failed, as the next take; a quarantined one get another chance. Raises NotPossible."""
    if _done_before(key, "requeue", run_id):
        return False
    if forgive(run_id):
        _audit("requeue", run_id, user)
        return True
    if not revive(run_id):
        return False
    retries.reopen(run_id, None)
    restore_waits(run_id)
    _note(run_id, f"Requeued{_by(user)}.")
    _audit("requeue", run_id, user)
    return True


@transaction.atomic
def release(run_id: int, *, user=None) -> bool:
    """Take a run from the worker that holds it, for any other to go on with. Raises NotPossible while a call is under
    way. False: nobody holds it."""
    if waits.lock(run_id) != DispatchState.CLAIMED:
        return False
    take_hold(run_id)
    _note(run_id, f"Taken from its worker{_by(user)}.")
    _audit("release", run_id, user)
    return True


@transaction.atomic
def retry(run_id: int, path: str, *, user=None, key: str = "") -> bool:
    """Run a step again, and all that comes after it; `path` may also be an iteration (`each[3]`). Raises
    NotPossible."""
    if _done_before(key, "retry", run_id):
        return False
    course = _course_of(run_id, path)
    take_hold(run_id)
    require_retriable(run_id, path, course)
    retries.reopen(run_id, course)
    restore_waits(run_id)
    _note(run_id, f"Retried from here{_by(user)}.", path)
    _audit("retry", run_id, user, path=path)
    return True


@transaction.atomic
def skip(run_id: int, path: str, output: Any, *, user=None, key: str = "") -> bool:
    """Give a step that failed, waits or has not run an output, and go on after it. Raises NotPossible."""
    if _done_before(key, "skip", run_id):
        return False
    course = _course_of(run_id, path)
    if path.endswith("]") or any(name != "on_error" for name, _ in children(course.step)):
        raise NotPossible("A step that holds others cannot be skipped: skip the steps in it.")
    if asks_own(Run.objects.select_related("version").get(pk=run_id), course.step, user):
        raise NotPossible("You started this run, so somebody else has to answer here.")
    try:
        check_json(output)
    except BadJson as wrong:
        raise NotPossible(f"The output cannot be stored: {wrong}") from None
    take_hold(run_id)
    _require_skippable(run_id, path, course)
    course.roots, course.parallels, course.loops = [path], [], []
    retries.reopen(run_id, course)
    with connection.cursor() as cursor:
        cursor.execute(SKIP, {"run": run_id, "scope": scope_of(path), "path": path, "step": course.step["id"],
                              "output": json.dumps(output, allow_nan=False)})
    restore_waits(run_id)
    _note(run_id, f"Skipped{_by(user)}, with an output given by hand.", path)
    _audit("skip", run_id, user, path=path)
    return True


def require_retriable(run_id: int, path: str, course: Course) -> None:
    """Raise NotPossible for what has not begun, and for what stands in something that is done with."""
    _require_open_boxes(run_id, course)
    if not retries.begun(run_id, path):
        raise NotPossible("This step has not begun, so there is nothing to retry.")


def _course_of(run_id: int, path: str) -> Course:
    try:
        return course_of(Run.objects.select_related("version").get(pk=run_id).version.definition, path)
    except NoSuchStep as wrong:
        raise NotPossible(str(wrong)) from None
    except Run.DoesNotExist:
        raise NotPossible("The run is kept no longer.") from None


def _require_open_boxes(run_id: int, course: Course) -> None:
    if box := retries.handled_box(run_id, course):
        words = f"The failure of “{box}” has been handled, and its lanes are closed"
        raise NotPossible(f"{words}: retry from “{box}” itself.")


def _require_skippable(run_id: int, path: str, course: Course) -> None:
    _require_open_boxes(run_id, course)
    found = "select state from step_result where run_id = %(run)s and path = %(path)s and not superseded"
    if any(state != StepState.FAILED for (state,) in retries.rows(found, {"run": run_id, "path": path})):
        raise NotPossible("This step has its result. To run it again, retry from here.")
    frames = Frame.objects.filter(run_id=run_id)
    if not all(frames.filter(path=loop, open__contains=index).exists() for loop, index, _ in course.loops):
        raise NotPossible("This iteration is not under way, so nothing in it can be skipped.")


def _done_before(key: str, action: str, run_id: int) -> Act | None:
    """The act that this key did before, else None and the key is taken. Of two at once the second finds the first."""
    if not key:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into act (key, run_id, action) values (%s, %s, %s) on conflict do nothing",
            [key[:64], run_id, action],
        )
        if cursor.rowcount:
            return None
    return Act.objects.get(pk=key[:64])


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
    if choice == "again":
        _keep_parts(wait)
    attended(wait.run_id)
    words = {"happened": "It happened", "again": "Run it again", "fail": "Let it fail"}[choice]
    _note(wait.run_id, f"{words}, said {user or 'somebody'}.", wait.path)
    _audit("resolve", wait.run_id, user, path=wait.path, answer=choice)
    return True


@transaction.atomic
def call_back(wait_id: int, payload: Any, *, user=None) -> bool:
    """Answer an open callback by hand, as if the other system had."""
    wait = Wait.objects.filter(pk=wait_id, kind=WaitKind.CALLBACK).first()
    if wait is None or waits.lock(wait.run_id) is None:
        return False
    if not waits.resolve_locked(wait_id, {"by": "signal", "payload": payload, "who": str(user or "")}):
        return False
    _note(wait.run_id, f"Answered by hand{_by(user)}.", wait.path)
    _audit("call_back", wait.run_id, user, path=wait.path)
    return True


@transaction.atomic
def resend(message_id: int, *, user=None) -> bool:
    """Send a mail again, under its old Message-ID. One that waits for its turn is sent now. False: it is gone, or is being sent,
    or went out just now: no reader gets a mail as often as somebody presses the button."""
    message = OutboxMessage.objects.select_for_update().filter(pk=message_id).first()
    if message is None or message.state == OutboxState.SENDING:
        return False
    if message.state == OutboxState.SENT and message.sent_at and message.sent_at > business_now() - RESENT_EVERY:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "update outbox set state = 'queued', due_at = holdfast_now(), attempts = 0, error = '' where id = %s", [message_id]
        )
    detail = {"run": message.run_id, "to": message.recipient}
    record_of_run("resend", message.run_id, subject=f"mail:{message_id}", actor=user, detail=detail)
    return True


@transaction.atomic
def rerun(
    run: Run, *, user=None, version: Version | None = None, input: dict[str, Any] | None = None, keep: bool = False, key: str = ""
) -> int:
    """Start a new run with the same input unless another is given, on the same version unless another is given. With `keep` it
    begins with the results that carry (`runtime.keeping`). Returns its id; done twice with one key, the id of the run that was
    started. Raises Run.DoesNotExist, and NotPossible where nothing can be kept."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # which retention may just be taking away
    if earlier := _done_before(key, "rerun", run.pk):
        return earlier.result
    try:
        found = keeping.kept(run, version or run.version, input) if keep else None
    except keeping.NotKept as wrong:
        raise NotPossible(str(wrong)) from None
    started = start(
        version or run.version, trigger_key=run.trigger_key, input=run.input if input is None else input, user=user,
        test=run.test, rerun_of=run,
    )
    if started.created:
        copy_files(run.pk, started.run_id)
    Act.objects.filter(pk=key[:64]).update(result=started.run_id)
    detail = {"edited": True} if input is not None and input != run.input else {}
    if found is not None and not started.dropped:
        detail["kept"] = carrying.carry(run, started.run_id, found)
        _note(started.run_id, f"Begun with {detail['kept']:,} results of run {run.pk:,}{_by(user)}.")
    _audit("rerun", run.pk, user, new_run=started.run_id, **detail)
    return started.run_id


def _keep_parts(wait: Wait) -> None:
    """The next take goes on after the parts that this one has kept. It numbers its own from 1 again, so these come before."""
    with connection.cursor() as cursor:
        cursor.execute(KEEP_PARTS, [wait.run_id, wait.path, wait.take])


def _note(run_id: int, text: str, path: str = "") -> None:
    LogLine.objects.create(run_id=run_id, path=path, text=text)


def _audit(action: str, run_id: int, user, **detail: Any) -> None:
    record_of_run(action, run_id, actor=user, detail=detail)


def _by(user) -> str:
    return f" by {user}" if user else ""
