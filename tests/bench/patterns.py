"""The runs whose copies fill the database, worked off by the engine itself, and who looks at them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from runtime import acts, pausing
from runtime.models import Dispatch, Membership, Run, StepResult, Team, Version, Workflow
from runtime.publish import publish
from runtime.starts import start
from tests.bench.seed import Pattern, messages, seed
from tests.e2e.stack import ADMIN

FLOWS = 12
TEAMS = ("Orders", "Support", "Finance")
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Made:
    first: int
    last: int
    flows: list[int]
    rare_flow: int
    kinds: list[str]
    """Keys of kinds of errors, the frequent ones first."""
    people: dict[str, Any]
    seen: list[int]
    """A run in each state."""
    large: dict[str, int]


def make(crm: Any, count: int, steps: int, say: Callable[[str], None]) -> Made:
    """So many runs of ten steps, three of `steps` steps, three people. Then all work is paused."""
    teams = [Team.objects.create(name=name) for name in (*TEAMS, "Museum")]
    versions = [_flow(teams[n % len(TEAMS)], f"Orders {n + 1}", crm.url) for n in range(FLOWS)]
    rare = _flow(teams[-1], "Orders of old", crm.url)
    patterns = _patterns(crm, versions[0])
    versions[0] = publish(versions[0].workflow, versions[0].definition)
    say(f"{len(patterns)} runs to copy are there")
    large = _large(teams[0], crm.url, steps // 3 + 1)
    pausing.pause(user=None, why="Measured.")
    first, last = seed(patterns, versions, rare, count, say)
    return Made(
        first, last, [one.workflow_id for one in versions], rare.workflow_id, [key for _, key in messages()][::8],
        _people(teams), _seen(first + count // 2), large,
    )  # fmt: skip


def settle() -> tuple[dict[str, int], float]:
    """Statistics as they are on a database that has grown by and by. Gives rows by table, and GiB."""
    with connection.cursor() as cursor:
        cursor.execute("vacuum analyze")
        cursor.execute("select relname, reltuples::bigint from pg_class where relname in ('run', 'step_result')")
        rows = dict(cursor.fetchall())
        cursor.execute("select pg_database_size(current_database()) / 2^30")
        return rows, cursor.fetchone()[0]


def cookie(user: Any) -> str:
    """Of a new session of this person."""
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def _flow(team: Team, name: str, crm: str) -> Version:
    def call(id: str, **more: Any) -> dict[str, Any]:
        config = {"method": "PUT", "url": f"{crm}/{id}/{{{{ trigger.body.order }}}}", "json": {"amount": "{{ trigger.body.amount }}"}}
        return {"id": id, "type": "http", "name": id.capitalize(), "config": config | more}

    ask = {"approvers": ["dana@example.com", "lee@example.com"], "subject": "Send {{ trigger.body.order }}?", "expires": "90d"}
    yes = [{"id": "approve", "type": "approval", "name": "Approve", "config": ask}]
    later = [{"id": "month", "type": "delay", "config": {"for": "30d"}}]
    note = [{"id": "note", "type": "set", "config": {"values": {"small": True}}}]
    return publish(Workflow.objects.create(team=team, name=name), {
        "format": 1, "name": name, "title": "{{ trigger.body.company }}", "search": ["trigger.body.email", "trigger.body.order"],
        "triggers": [{"id": "order", "type": "webhook", "name": "Order", "config": {}}],
        "steps": [
            {"id": "prepare", "type": "set", "config": {"values": {"total": "{{ trigger.body.amount * 2 }}"}}},
            call("stock", method="POST"),
            {"id": "large", "type": "condition", "name": "Large?", "branches": [
                {"id": "yes", "label": "Yes", "when": "trigger.body.amount > 1000", "steps": yes},
                {"id": "later", "label": "Later", "when": "trigger.body.later", "steps": later},
                {"id": "no", "label": "No", "steps": note}]},
            {"id": "both", "type": "parallel", "branches": [
                {"id": "a", "label": "Invoice", "steps": [call("invoice")]},
                {"id": "b", "label": "Ship", "steps": [call("ship")]}]},
            {"id": "mail", "type": "email", "name": "Confirm", "config": {
                "to": ["{{ trigger.body.email }}"], "subject": "Your order", "body": "It is on its way."}},
            {"id": "ledger", "type": "set", "config": {"values": {"done": "{{ steps.prepare.output.total }}"}}},
            {"id": "close", "type": "set", "config": {"values": {"order": "{{ trigger.body.order }}"}}},
        ],
    })  # fmt: skip


def _patterns(crm: Any, version: Version) -> list[Pattern]:
    """One run for each way in which a run may stand, with the share that it has of a year's runs."""

    def begin(**body: Any) -> int:
        given = {"order": "order-0", "email": "buyer@example.com", "company": "Halden Robotics", "amount": 12, "later": False,
                 "lines": [{"sku": f"A-{n}", "number": n, "text": "A thing that was ordered"} for n in range(4)]}  # fmt: skip
        return start(version, trigger_key="order", input={"body": given | body}, idempotency_key=f"pattern-{time.time_ns()}").run_id

    succeeded, large, later, given_up = begin(), begin(amount=5000), begin(later=True), begin(amount=5000)
    _until(lambda: _state(succeeded) == "succeeded" and all(_parked(run) for run in (large, later, given_up)))
    acts.cancel(given_up)
    crm.control(refuse=422)
    failed = begin()
    _until(lambda: _state(failed) == "failed")
    crm.control(refuse=0, after_commit="reset")
    uncertain = begin()
    _until(lambda: _state(uncertain) == "attention" and _parked(uncertain))
    crm.control(after_commit="reply")
    return [
        Pattern(succeeded, 1), Pattern(failed, 0.05), Pattern(given_up, 0.01), Pattern(large, 0.01), Pattern(later, 0.01),
        Pattern(uncertain, 0.0005),
    ]  # fmt: skip


def _large(team: Team, crm: str, iterations: int) -> dict[str, int]:
    """Three runs of so many iterations of three steps: one has ended, one failed, one waits in its last ten."""
    name = "Many steps"
    late = {"id": "late", "type": "condition", "branches": [
        {"id": "yes", "label": "Yes", "when": f"trigger.body.waits && loop.index >= {iterations - 10}",
         "steps": [{"id": "month", "type": "delay", "config": {"for": "30d"}}]},
        {"id": "no", "label": "No", "steps": []}]}  # fmt: skip
    body = [
        {"id": "call", "type": "http", "name": "Tell", "config": {"method": "PUT", "url": crm + "/{{ loop.index }}"}},
        {"id": "count", "type": "set", "config": {"values": {"n": "{{ loop.item + 1 }}"}}},
        late,
    ]
    each = {"id": "each", "type": "loop", "name": "Each", "config": {"items": "trigger.body.items", "concurrency": 10}, "steps": body}
    version = publish(Workflow.objects.create(team=team, name=name), {"format": 1, "name": name, "steps": [each]})
    items = list(range(iterations))
    begun = {
        word: start(version, trigger_key="api", input={"body": {"items": given, "waits": waits}}).run_id
        for word, given, waits in (
            ("ended", items, False), ("failed", [*items[:-100], "x", *items[1 - 100 :]], False), ("going on", items, True),
        )  # fmt: skip
    }
    ends = {begun["ended"]: "succeeded", begun["failed"]: "failed"}
    _until(lambda: all(_state(run) == state for run, state in ends.items()) and _parked(begun["going on"]))
    for run in begun.values():
        assert StepResult.objects.filter(run_id=run).count() > 3 * (iterations - 120)
    return begun


def _people(teams: list[Team]) -> dict[str, Any]:
    """An administrator of the installation, an operator of two teams, and one of a team whose runs are few and old."""
    users = get_user_model().objects
    operator, newcomer = (users.create_user(name, f"{name}@example.com") for name in ("operator", "newcomer"))
    for user, team in ((operator, teams[0]), (operator, teams[1]), (newcomer, teams[-1])):
        Membership.objects.create(user=user, team=team, role="operator")
    return {"administrator": users.get(username=ADMIN), "operator": operator, "newcomer": newcomer}


def _seen(least: int) -> list[int]:
    """A run in each state, of two teams out of three."""
    found = Run.objects.filter(pk__gt=least, workflow__team__name__in=TEAMS[:2])
    states = ("succeeded", "failed", "cancelled", "attention", "open")
    return [run.pk for state in states if (run := found.filter(state=state).order_by("pk").first())]


def _state(run: int) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run)


def _parked(run: int) -> bool:
    return Dispatch.objects.filter(pk=run, state="waiting").exists()


def _until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError(f"The runs to copy did not get there within {timedelta(seconds=PATIENCE)}.")
        time.sleep(0.1)
