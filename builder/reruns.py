"""Runs that were started again: those of one origin, and failures that a later one of them has taken over."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db import connection
from django.db.models import BooleanField, Count, Q
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform

from runtime.clock import BusinessNow
from runtime.models import Run
from runtime.origins import CHAIN
from runtime.states import UNFINISHED, RunState

MOST = 500
MOST_ALIKE = 100
FAMILY = CHAIN.format(run="id, rerun_of_id from run where id = %(run)s") + """
select id, state from family where id <> %(run)s limit %(most)s
"""
# Whether a later run of its origin has it in hand: it went well, goes on, or failed too and is then the one to requeue. Most runs
# have no others, and are not looked at further.
TAKEN_OVER = f"""
(("run"."rerun_of_id" is not null or exists (
    select from run a where a.rerun_of_id = "run"."id" and a.rerun_of_id is not null)) and exists (
    {CHAIN.format(run='"run"."id", "run"."rerun_of_id"')}
    select from family where state <> 'cancelled' and id > "run"."id" and test = "run"."test"
))
"""


def family(run: Run) -> list[tuple[int, str]]:
    """(number, state) of the other runs of its origin, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(FAMILY, {"run": run.pk, "most": MOST})
        return sorted(cursor.fetchall())


def made_good_by(run: Run, others: list[tuple[int, str]]) -> int | None:
    """The latest run of its family that did what this one failed to do: a requeue would do it twice."""
    return _later(run, others, ("succeeded",))


def going_on(run: Run, others: list[tuple[int, str]]) -> int | None:
    """The latest run of its family that is doing just now what this one failed to do."""
    return _later(run, others, UNFINISHED)


def _later(run: Run, others: list[tuple[int, str]], states: Collection[str]) -> int | None:
    if run.state != "failed":
        return None
    return max((pk for pk, state in others if state in states and pk > run.pk), default=None)


def taken_over() -> RawSQL:
    """A condition of a query on failed runs: those of which nothing is left to do, since to requeue them as well would do the
    same thing twice."""
    return RawSQL(TAKEN_OVER, [], output_field=BooleanField())


def failed_alike(run: Run) -> int:
    """How many other runs of its flow failed with the same kind of error within a day, among the latest `MOST_ALIKE` of these."""
    kind = (run.error or {}).get("kind")
    if run.state != RunState.FAILED or not kind:
        return 0
    found = Run.objects.alias(kind=KeyTextTransform("kind", "error")).filter(
        kind=kind, state=RunState.FAILED, test=run.test, workflow_id=run.workflow_id
    )
    latest = found.exclude(pk=run.pk).order_by("-pk")[:MOST_ALIKE].values("pk", "ended_at")
    return latest.aggregate(number=Count("pk", filter=Q(ended_at__gt=BusinessNow() - timedelta(days=1))))["number"]


def to_requeue(runs: list[int]) -> list[int]:
    """These without the failed ones that later runs have taken over, in the same order."""
    over = set(Run.objects.filter(taken_over(), pk__in=runs, state="failed").values_list("pk", flat=True))
    return [run for run in runs if run not in over]
