"""Rows as the engine leaves them, for the pages' tests: each function makes one thing and returns it.

Times are given in seconds from `START`, so that a test can say what it shows without reckoning with the clock.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model

from runtime import tokens
from runtime.definition import digest
from runtime.models import (
    Approval,
    Attempt,
    Dispatch,
    Frame,
    LogLine,
    Membership,
    OutboxMessage,
    Recipient,
    Run,
    StepResult,
    Team,
    Version,
    Wait,
    Worker,
    Workflow,
)
from runtime.paths import scope_of, step_of
from runtime.states import FINISHED

START = datetime(2026, 5, 11, 17, 48, 9, tzinfo=UTC)
_numbers = itertools.count(1)

LEAD = {
    "format": 1,
    "name": "Lead qualification",
    "title": "{{ trigger.body.company }}",
    "triggers": [{"id": "lead", "type": "webhook", "name": "New lead", "config": {}}],
    "steps": [
        {"id": "qualify", "type": "ai", "name": "Qualify lead", "config": {"task": "extract", "prompt": "Score {{ trigger.body }}"}},
        {"id": "hot", "type": "condition", "name": "Score above 70?", "branches": [
            {"id": "yes", "label": "Yes", "when": "steps.qualify.output.score > 70", "steps": [
                {"id": "meanwhile", "type": "parallel", "name": "While we wait", "branches": [
                    {"id": "outreach", "label": "Outreach", "steps": [
                        {"id": "approve_vip", "type": "approval", "name": "Approve VIP outreach", "config": {"approvers": ["dana@example.com", "marcus@example.com"], "subject": "Approve VIP outreach?", "expires": "3d"}},
                        {"id": "deal", "type": "http", "name": "Create deal in CRM", "config": {"method": "POST", "url": "https://crm.example/deals"}},
                        {"id": "intro", "type": "email", "name": "Send intro", "config": {"to": ["priya@example.com"], "subject": "Hello", "body": "Hello"}}]},
                    {"id": "warm", "label": "Warm-up", "steps": [
                        {"id": "two_days", "type": "delay", "name": "Wait 2 days", "config": {"for": "2d"}},
                        {"id": "study", "type": "email", "name": "Send case study", "config": {"to": ["priya@example.com"], "subject": "Study", "body": "Read"}}]}]}]},
            {"id": "no", "label": "No", "steps": [
                {"id": "later", "type": "delay", "name": "Wait a week", "config": {"for": "7d"}},
                {"id": "nurture", "type": "email", "name": "Send newsletter", "config": {"to": ["priya@example.com"], "subject": "News", "body": "News"}}]}]},
        {"id": "each", "type": "loop", "name": "For each attendee", "config": {"items": "trigger.body.attendees", "concurrency": 5}, "steps": [
            {"id": "add", "type": "http", "name": "Register attendee", "config": {"method": "PUT", "url": "https://crm.example/people/{{ loop.item.id }}"}}]},
    ],
}  # fmt: skip
APPROVE, DEAL = "hot/yes/meanwhile/outreach/approve_vip", "hot/yes/meanwhile/outreach/deal"
"""Where two steps of it stand."""


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def team(name: str = "Sales") -> Team:
    return Team.objects.get_or_create(name=name)[0]


def user(role: str | None = "operator", *, name: str = "", of: Team | None = None, **more: Any):
    """A person with one role in a team; None for no team at all."""
    number = next(_numbers)
    username = name or f"{role or 'nobody'}{number}"
    person = get_user_model().objects.create_user(username, more.pop("email", f"{username}@example.com"), "pw", **more)
    if role:
        Membership.objects.create(user=person, team=of or team(), role=role)
    return person


def version(definition: dict[str, Any] | None = None, *, of: Team | None = None, number: int = 7) -> Version:
    definition = definition or LEAD
    workflow = Workflow.objects.create(team=of or team(), name=definition["name"])
    made = Version.objects.create(workflow=workflow, number=number, definition=definition, hash=digest(definition))
    workflow.live_version = made
    workflow.save()
    return made


def version_after(older: Version, definition: dict[str, Any] | None = None) -> Version:
    """A newer version of its flow, the same unless told otherwise, which is live."""
    definition = definition or older.definition
    made = Version.objects.create(workflow=older.workflow, number=older.number + 1, definition=definition, hash=digest(definition))
    older.workflow.live_version = made
    older.workflow.save()
    return made


def run(of: Version | None = None, *, state: str = "open", dispatch: str = "waiting", ended: float | None = None, **more: Any) -> Run:
    of = of or version()
    given = {"trigger_key": "lead", "input": {"body": {"company": "Halden Robotics"}}, "title": "Halden Robotics"}
    given |= {"created_at": at(0), "started_at": at(0.04)} | more
    if state in FINISHED:
        given["ended_at"] = at(60 if ended is None else ended)
    made = Run.objects.create(workflow=of.workflow, version=of, state=state, **given)
    if state not in FINISHED:
        claim = {"token": made.pk, "worker_id": 1, "leased_until": at(10**9)} if dispatch == "claimed" else {}
        due = at(0) if dispatch == "ready" else None
        Dispatch.objects.create(run=made, version_id=of.pk, state=dispatch, due_at=due, **claim)
    return made


def result(run: Run, path: str, start: float, end: float, state: str = "succeeded", take: int = 1, **more: Any) -> StepResult:
    return StepResult.objects.create(
        run_id=run.pk, scope=scope_of(path), path=path, take=take, step=step_of(path), state=state, token=1,
        started_at=at(start), finished_at=at(end), **more,
    )  # fmt: skip


def attempt(run: Run, path: str, n: int, start: float, end: float | None, outcome: str | None = "answered", take: int = 1, **more: Any) -> Attempt:
    return Attempt.objects.create(
        run_id=run.pk, scope=scope_of(path), path=path, take=take, n=n, token=1, outcome=outcome if end is not None else None,
        started_at=at(start), ended_at=None if end is None else at(end), **more,
    )  # fmt: skip


def wait(run: Run, path: str, kind: str, start: float, *, due: float | None = None, state: str = "open", resolved: float | None = None, **more: Any) -> Wait:
    if state == "resolved":
        more.setdefault("outcome", {"by": "due"})
        more["resolved_at"] = at(start + 1 if resolved is None else resolved)
    return Wait.objects.create(
        run_id=run.pk, scope=scope_of(path), path=path, kind=kind, state=state, created_at=at(start),
        due_at=None if due is None else at(due), **more,
    )  # fmt: skip


def approval(of: Wait, addresses: tuple[str, ...] = ("dana@example.com", "marcus@example.com"), **more: Any) -> Approval:
    given = {"subject": "Approve VIP outreach to Halden Robotics?", "details": [{"label": "Company", "value": "Halden Robotics"}]}
    made = Approval.objects.create(wait=of, run_id=of.run_id, **given | more)
    for address in addresses:
        minted = tokens.mint(of.run_id, of.path, of.take, address)
        Recipient.objects.create(approval=made, address=address, **minted._asdict())
    return made


def token_of(recipient: Recipient) -> str:
    """The token in the link of this approver."""
    wait = recipient.approval.wait
    return tokens.token_for(wait.run_id, wait.path, wait.take, recipient.address, recipient.nonce, recipient.key_id)


def frame(run: Run, path: str, *, total: int | None, cursor: int, open: list[int], succeeded: int = 0, failed: int = 0, kind: str = "loop") -> Frame:
    return Frame.objects.create(
        run_id=run.pk, path=path, take=1, kind=kind, total=total, cursor=cursor, open=open, succeeded=succeeded,
        failed=failed, started_at=at(5),
    )  # fmt: skip


def log(run: Run, text: str, path: str = "", level: str = "info", seconds: float = 0) -> LogLine:
    return LogLine.objects.create(run_id=run.pk, path=path, text=text, level=level, at=at(seconds))


def mail(run: Run | None, recipient: str = "dana@example.com", *, kind: str = "email", path: str = "", **more: Any) -> OutboxMessage:
    payload = {"to": [recipient], "subject": "Hello", "text": "Hello Dana", "html": "<p>Hello <b>Dana</b></p>"}
    return OutboxMessage.objects.create(
        run_id=run.pk if run else None, kind=kind, recipient=recipient, path=path,
        message_id=f"<{next(_numbers)}@example.com>", payload=more.pop("payload", payload), **more,
    )  # fmt: skip


def worker(**more: Any) -> Worker:
    return Worker.objects.create(**{"cluster": "holdfast", "host": "host-1", "pid": next(_numbers), "slots": 400} | more)
