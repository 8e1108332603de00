"""Looks at the alert rules, and tells by mail or webhook when one begins to be true, again after its quiet time, and
when it ends. Test runs count in none.

One worker at a time looks at a rule: its row is locked, and what it finds is committed together with the message.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection, connections, transaction
from django.db.models import Q
from django.utils import timezone

from . import notices, outbox
from .models import Alert, OutboxMessage, Run
from .slots import DUE
from .states import AlertKind, RunState

LOOK_SECONDS = 15
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """`sql` gives the value for `%(team)s` and `%(flow)s`; `below` says that less than the threshold is bad. Only
    `everywhere` does not depend on a team."""

    label: str
    unit: str
    sql: str
    everywhere: bool = False
    below: bool = False


OURS = """not test and (%(team)s::bigint is null or workflow_id in (select id from workflow where team_id = %(team)s))
            and (%(flow)s::bigint is null or workflow_id = %(flow)s)"""

# Every query reads by an index, or no more than the latest runs.
RULES = {
    AlertKind.OLDEST: Rule("A run that goes on has not ended for", "minutes", f"""
        select coalesce(extract(epoch from holdfast_now() - min(created_at)) / 60, 0) from (
            select r.created_at from dispatch d join run r on r.id = d.run_id
            where d.state <> 'waiting' and not d.queued and {OURS} order by d.run_id limit 1) r"""),
    AlertKind.FAILED: Rule("Runs that failed in the last hour", "runs", f"""
        select count(*) from (
            select ended_at from run where state = 'failed' and {OURS} order by id desc limit 2000) r
        where ended_at > (select holdfast_now() - interval '1 hour')"""),
    AlertKind.RATE: Rule("Of at least ten runs that ended in the last hour failed", "percent", f"""
        select case when count(*) < 10 then 0 else 100.0 * count(*) filter (where state = 'failed') / count(*) end from (
            select state, ended_at from run where {OURS} order by id desc limit 20000) r
        where state in ('succeeded', 'failed') and ended_at > (select holdfast_now() - interval '1 hour')"""),
    AlertKind.STUCK: Rule("Runs that need a person, or that nobody takes for a minute", "runs", f"""
        select (select count(*) from (select from run where state = 'attention' and {OURS} limit 1000) a)
             + (select count(*) from (
                    select from dispatch d join run r on r.id = d.run_id where {DUE} and r.state = 'open'
                    and not exists (select from pause) and d.due_at < (select holdfast_now() - interval '1 minute')
                    and {OURS} limit 1000) d)"""),
    AlertKind.OVERDUE: Rule("A wait is late by", "minutes", f"""
        select coalesce(extract(epoch from holdfast_now() - min(due_at)) / 60, 0) from (
            select w.due_at from wait w join run r on r.id = w.run_id
            where w.state = 'open' and w.due_at < (select holdfast_now()) and {OURS} order by w.due_at limit 1) w"""),
    AlertKind.SILENT: Rule("Worker processes that beat are fewer than", "workers", """
        select count(*) from worker where ended_at is null and beat_at > clock_timestamp() - interval '30 seconds'""",
        everywhere=True, below=True),
    AlertKind.OUTBOX: Rule("A mail has not gone out for", "minutes", """
        select coalesce(extract(epoch from holdfast_now() - min(created_at)) / 60, 0) from outbox
        where state in ('queued', 'sending')""", everywhere=True),
    AlertKind.COST: Rule("Runs of the last 24 hours cost", "US dollars", f"""
        select coalesce(sum(cost), 0) from (
            select cost, created_at from run where parent_id is null and {OURS} order by id desc limit 20000) r
        where created_at > (select holdfast_now() - interval '24 hours')"""),
}  # fmt: skip


def look() -> int:
    """Look at the rules whose turn it is. Returns how many mails were written. For a thread of its own."""
    close_old_connections()
    try:
        told = 0
        while (found := _look_at_one()) is not None:
            told += found
        return told
    finally:
        connections.close_all()


@transaction.atomic
def _look_at_one() -> int | None:
    now = timezone.now()
    due = Q(looked_at__isnull=True) | Q(looked_at__lt=now - timedelta(seconds=LOOK_SECONDS))
    alert = Alert.objects.filter(due).select_for_update(skip_locked=True).order_by("pk").first()
    if alert is None:
        return None
    rule = RULES[AlertKind(alert.kind)]
    alert.value, alert.looked_at = value_of(alert), now
    bad = alert.value < alert.threshold if rule.below else alert.value > alert.threshold
    told = 0
    if bad and (alert.told_at is None or alert.firing_since is None or _quiet_is_over(alert, now)):
        told = _tell(alert, again=alert.firing_since is not None)
        alert.firing_since, alert.told_at = alert.firing_since or now, now
    elif not bad and alert.firing_since is not None:
        told = _tell(alert, resolved=True)
        alert.firing_since = None
    alert.save(update_fields=["value", "looked_at", "firing_since", "told_at"])
    return told


def value_of(alert: Alert) -> float:
    with connection.cursor() as cursor:
        cursor.execute(RULES[AlertKind(alert.kind)].sql, {"team": alert.team_id, "flow": alert.workflow_id})
        return float(cursor.fetchone()[0])


def _quiet_is_over(alert: Alert, now: Any) -> bool:
    return (now - alert.told_at).total_seconds() >= 60 * alert.quiet_minutes


def words(alert: Alert) -> str:
    rule = RULES[AlertKind(alert.kind)]
    where = f" of {alert.workflow}" if alert.workflow_id else f" in {alert.team}" if alert.team_id else ""
    well = f"{'at least' if rule.below else 'at most'} {number(alert.threshold)} is well"
    return f"{rule.label}{where}: {number(alert.value or 0)} {rule.unit}, {well}"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.2f}"


def failures(alert: Alert) -> list[Run]:
    """The latest failed runs, for a rule about these."""
    runs = Run.objects.filter(state=RunState.FAILED, test=False)
    if alert.workflow_id:
        runs = runs.filter(workflow=alert.workflow_id)
    elif alert.team_id:
        runs = runs.filter(workflow__team=alert.team_id)
    return list(runs.select_related("workflow").defer("input", "output").order_by("-pk")[:MOST_NAMED])


def _tell(alert: Alert, *, again: bool = False, resolved: bool = False) -> int:
    what = RULES[AlertKind(alert.kind)].label
    subject = f"{'Resolved' if resolved else 'Still so' if again else 'Alert'}: {what[:1].lower()}{what[1:]}"
    if alert.workflow_id:
        subject += f": {''.join(letter if letter.isprintable() else ' ' for letter in str(alert.workflow))}"
    text = f"{words(alert)}.\n\n{settings.HOLDFAST_PUBLIC_URL}/operations/"
    if alert.kind in (AlertKind.FAILED, AlertKind.RATE) and not resolved:
        text += "".join(f"\n\n{_failure(run)}" for run in failures(alert))
    if not resolved:
        text += f"\n\nYou are told again after {alert.quiet_minutes} minutes, and when it is over."
    told = 0
    if alert.address:
        outbox.add_mail(alert.address, subject, text, f"alert-{alert.pk}")
        told += 1
    if alert.url:
        event = {
            "type": f"alert.{'resolved' if resolved else 'still' if again else 'begun'}",
            "timestamp": timezone.now().isoformat(),
            "text": text,
            "data": {"rule": alert.kind, "value": alert.value, "threshold": alert.threshold, "team": alert.team_id,
                     "flow": alert.workflow_id, "url": f"{settings.HOLDFAST_PUBLIC_URL}/operations/"},
        }  # fmt: skip
        OutboxMessage.objects.create(
            kind=notices.KIND, recipient=alert.url, message_id=f"alert-{alert.pk}-{uuid.uuid4().hex[:16]}",
            payload={"to": [alert.url], "subject": subject, "text": text, "event": event, "sender": sender(alert)},
        )  # fmt: skip
        told += 1
    return told


def sender(alert: Alert) -> str:
    """Whose secret signs what goes to the rule's address: no other team's rule can sign for it."""
    return f"alerts of team {alert.team_id or 0}"


def _failure(run: Run) -> str:
    error = " ".join(str((run.error or {}).get("message", "")).split())[:200]
    return f"{run.title or run.workflow.name}: {error}\n{settings.HOLDFAST_PUBLIC_URL}/runs/{run.pk}/"
