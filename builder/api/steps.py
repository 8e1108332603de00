"""A run's steps for the API: results in the order of their paths, then the calls that have no result yet."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from typing import Any

from django.db.models import Exists, OuterRef

from runtime.jsonvalues import loads_strict
from runtime.models import Attempt, Frame, Run, StepResult
from runtime.paths import step_of
from runtime.states import UNFINISHED
from runtime.tokens import without_signatures

from .errors import Refused

Place = tuple[str, int]


def steps_of(run: Run, cursor: str | None, limit: int, *, whole: bool = False) -> tuple[list[dict[str, Any]], str | None]:
    """(steps, next cursor). Calls in flight come with the last page. Addresses of callbacks are whole where `whole` is."""
    rows = StepResult.objects.filter(run_id=run.pk)
    if cursor is not None:
        rows = rows.filter(pk__gt=(run.pk, *_read_cursor(cursor)))
    found = list(rows.order_by("pk")[: limit + 1])
    results, more = found[:limit], len(found) > limit
    attempts = _attempts(run, results)
    steps = [_finished(result, attempts.get((result.path, result.take), [])) for result in results]
    if not whole:
        steps = [step | {name: without_signatures(step[name]) for name in ("input", "output", "error")} for step in steps]
    if more:
        return steps, _write_cursor(results[-1])
    return steps + _in_flight(run), None


def _attempts(run: Run, results: list[StepResult]) -> dict[Place, list[Attempt]]:
    """Found by scope, which leads the key, so that a page of a long run reads no other page's."""
    scopes, paths = {result.scope for result in results}, {result.path for result in results}
    found: dict[Place, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.objects.filter(run_id=run.pk, scope__in=scopes, path__in=paths).order_by("n"):
        found[attempt.path, attempt.take].append(attempt)
    return found


def _in_flight(run: Run) -> list[dict[str, Any]]:
    """Bounded by how many lanes and iterations a run has open, not by its length: its frames name the scopes."""
    scopes = {""}
    for path, indexes in Frame.objects.filter(run_id=run.pk, kind="loop").values_list("path", "open"):
        scopes |= {f"{path}[{index}]" for index in indexes}
    result = StepResult.objects.filter(
        run_id=run.pk, scope=OuterRef("scope"), path=OuterRef("path"), take=OuterRef("take")
    )
    found: dict[Place, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.objects.filter(~Exists(result), run_id=run.pk, scope__in=scopes).order_by("started_at", "n"):
        found[attempt.path, attempt.take].append(attempt)
    state = "running" if run.state in UNFINISHED else "cancelled"
    return [_unfinished(path, take, attempts, state) for (path, take), attempts in found.items()]


def _finished(result: StepResult, attempts: list[Attempt]) -> dict[str, Any]:
    return {
        "path": result.path,
        "step": result.step,
        "take": result.take,
        "state": result.state,
        "input": result.input if result.input is not None else attempts[-1].request if attempts else None,
        "output": result.output,
        "output_size": result.output_size,
        "error": result.error,
        "cost": result.cost,
        "started_at": result.started_at,
        "finished_at": result.finished_at,
        "superseded": result.superseded,
        "kept_from": result.kept_from,
        "attempts": attempts,
    }


def _unfinished(path: str, take: int, attempts: list[Attempt], state: str) -> dict[str, Any]:
    return {
        "path": path,
        "step": step_of(path),
        "take": take,
        "state": state,
        "input": attempts[-1].request,
        "output": None,
        "output_size": None,
        "error": None,
        "cost": None,
        "started_at": attempts[0].started_at,
        "finished_at": None,
        "superseded": False,
        "kept_from": None,
        "attempts": attempts,
    }


def _write_cursor(result: StepResult) -> str:
    return urlsafe_b64encode(json.dumps([result.scope, result.path, result.take]).encode()).decode()


def _read_cursor(text: str) -> tuple[str, str, int]:
    try:
        told = loads_strict(urlsafe_b64decode(text.encode()))
    except ValueError:  # BadJson is one
        raise _not_ours() from None
    match told:
        case [str(scope), str(path), int(take)] if 0 <= take < 2**31:
            return scope, path, take
    raise _not_ours()


def _not_ours() -> Refused:
    problem = {"step": "", "field": "query.cursor", "message": "Pass `next` of the page before, as it is."}
    return Refused(422, "This cursor is not one of ours.", [problem])
