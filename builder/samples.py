"""Sample data for the builder: what a run of the flow had, or what was pasted, caught or pinned instead."""

from __future__ import annotations

import json
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from runtime.clock import business_now
from runtime.definition import walk
from runtime.models import Run, Workflow
from runtime.tokens import without_signatures

from .dataflow import Samples
from .dataflow.shapes import MISSING
from .models import Listener, Pin, Sample
from .templatetags.formats import count
from .testruns import TEST_KEY

LARGEST = 64 * 1024
"""Bytes of one output; larger ones are of no use as a sample."""
TO_CHOOSE_FROM = 10
LISTENS = timedelta(minutes=5)

# The newest run of a workflow that got anywhere: its input. A test of one step alone is none.
NEWEST_RUN = """
select id, input from run
where workflow_id = %(workflow)s and (state <> 'cancelled' or ended_at is not null) and trigger_key <> %(alone)s
order by id desc limit 1
"""

# One output per step of a run, and of the tests of single steps since: the newest, at the top level or in a loop's
# first iterations.
OUTPUTS = """
select distinct on (step) step, output, finished_at from step_result
where run_id = any(array[%(run)s::bigint] || array(
        select id from run where workflow_id = %(workflow)s and id > %(run)s and trigger_key = %(alone)s
        order by id desc limit 20))
  and state = 'succeeded' and not superseded and output_size is null and pg_column_size(output) < %(largest)s
  and (scope = '' or scope like '%%[0]')
order by step, finished_at desc
"""


def samples_of(workflow: Workflow) -> Samples:
    """What is shown and tried at a step: the chosen input, the outputs of the run it came from, and pins over both."""
    chosen = Sample.objects.filter(workflow=workflow).first()
    run = _run(workflow, chosen)
    trigger, source = (run[1], f"run {count(run[0])}") if run else (MISSING, "")
    if chosen and chosen.kind != Sample.RUN:
        trigger, source = chosen.trigger, "pasted" if chosen.kind == Sample.PASTED else "a caught call"
    rows = list(Pin.objects.filter(workflow=workflow))
    pins = {row.step: row.output for row in rows}
    stamp = f"{chosen.made_at if chosen else ''} {max((row.made_at for row in rows), default='')}"
    outputs, at = _outputs(workflow, run[0] if run else 0)
    return Samples(without_signatures(trigger), without_signatures({**outputs, **pins}), source, frozenset(pins), stamp, at)


def _run(workflow: Workflow, chosen: Sample | None) -> tuple[int, Any] | None:
    if chosen and chosen.run_id:
        found = Run.objects.filter(pk=chosen.run_id, workflow=workflow).values_list("pk", "input").first()
        if found:
            return found
    with connection.cursor() as cursor:
        cursor.execute(NEWEST_RUN, {"workflow": workflow.pk, "alone": TEST_KEY})
        row = cursor.fetchone()
    return (row[0], _json(row[1])) if row else None


def _outputs(workflow: Workflow, run_id: int) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Step -> output, and which outputs these are."""
    with connection.cursor() as cursor:
        cursor.execute(OUTPUTS, {"run": run_id, "workflow": workflow.pk, "alone": TEST_KEY, "largest": LARGEST})
        rows = cursor.fetchall()
    return {step: _json(output) for step, output, _ in rows}, tuple((step, at) for step, _, at in rows)


def runs_to_choose_from(workflow: Workflow) -> list[Run]:
    """The newest runs, tests too, whose input may serve as a sample."""
    found = Run.objects.filter(workflow=workflow).exclude(trigger_key=TEST_KEY).select_related("dispatch")
    return list(found.defer("output").order_by("-pk")[:TO_CHOOSE_FROM])


def choose(workflow: Workflow, kind: str, *, user: Any, run_id: int | None = None, trigger: Any = None) -> None:
    """Make this the sample; an empty kind goes back to the newest run."""
    if not kind:
        Sample.objects.filter(workflow=workflow).delete()
        return
    values = {"kind": kind, "run_id": run_id, "trigger": trigger, "made_by": user, "made_at": timezone.now()}
    Sample.objects.update_or_create(workflow=workflow, defaults=values)


def pins_of(workflow: Workflow) -> dict[str, Any]:
    """Step -> the output that it is taken to have in tests."""
    return dict(Pin.objects.filter(workflow=workflow).values_list("step", "output"))


def pin(workflow: Workflow, step: str, output: Any, *, user: Any) -> None:
    values = {"output": output, "made_by": user, "made_at": timezone.now()}
    Pin.objects.update_or_create(workflow=workflow, step=step, defaults=values)


def unpin(workflow: Workflow, step: str) -> None:
    Pin.objects.filter(workflow=workflow, step=step).delete()


@transaction.atomic
def pins_follow(workflow: Workflow, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Where only the id of a step changed, also by undoing that, its pin goes along; one that a step of that id left behind
    makes room."""
    old, new = ([step["id"] for step in walk(one.get("steps") or [])] for one in (before, after))
    changed = [(was, now) for was, now in zip(old, new, strict=False) if was != now]
    if len(old) == len(new) and len(changed) == 1 and changed[0][0] not in new:
        pins = Pin.objects.filter(workflow=workflow)
        if pins.filter(step=changed[0][0]).exists():
            pins.filter(step=changed[0][1]).delete()
            pins.filter(step=changed[0][0]).update(step=changed[0][1])


# Listening for one call


def listen(workflow: Workflow, *, user: Any) -> Listener:
    """Open the test address for one call. It stays the same address each time."""
    made, _ = Listener.objects.get_or_create(workflow=workflow, defaults={"token": secrets.token_urlsafe(32)})
    made.until, made.made_by = business_now() + LISTENS, user
    made.save(update_fields=["until", "made_by"])
    return made


def stop_listening(workflow: Workflow) -> None:
    Listener.objects.filter(workflow=workflow).update(until=None)


def listening(workflow: Workflow) -> datetime | None:
    """Until when somebody listens, or None."""
    until = Listener.objects.filter(workflow=workflow).values_list("until", flat=True).first()
    return until if until and until > business_now() else None


def listener_at(token: str) -> Listener | None:
    """Who listens at this address just now."""
    found = Listener.objects.select_related("workflow", "made_by").filter(token=token, until__gt=business_now())
    return found.filter(workflow__deleted_at=None).first()


@transaction.atomic
def caught(listener: Listener, event: dict[str, Any]) -> bool:
    """Keep the call as the sample. Of two at once the second finds nobody listening."""
    closed = Listener.objects.filter(pk=listener.pk, until=listener.until).update(until=None)
    if closed:
        choose(listener.workflow, Sample.CAUGHT, user=listener.made_by, trigger=event)
    return bool(closed)


def _json(value: object) -> object:
    """psycopg hands JSON to Django as text."""
    return json.loads(value) if isinstance(value, (str, bytes)) else value
