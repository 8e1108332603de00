"""The panel beside the step table: one step's input, output, attempts and log, and what it asks of a person."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.urls import reverse

from builder import uncertain
from builder.again import where
from builder.changewords import field_title
from builder.largevalues import files_it_began_with, given_file, large_output
from builder.models import Draft
from builder.numbers import number_of
from builder.questions import left, missing
from builder.remedies import in_flow, remedy
from builder.runrows import Place, Rows
from builder.runtree import END_UNKNOWN, OUTSIDE_OUTCOMES, Node
from runtime.approvals import approved
from runtime.definition import children, find
from runtime.jsonvalues import BadJson, loads_strict
from runtime.models import Approval, Dispatch, LogLine, OutboxMessage, Run
from runtime.paths import scope_of, step_of
from runtime.states import UNFINISHED, AttemptOutcome, WaitKind
from runtime.steps import step_types
from runtime.tokens import callback_url

from .asked import Asked

LOG_LINES = 200
EXPIRED = {"reject": "counts as rejected", "fail": "the step fails", "go_on": "the run goes on"}
SEARCHED_LINES = 10_000
LEVELS_FROM = {"warning": ("warning", "error"), "error": ("error",)}
PHASES = {"resolve": "name", "connect": "connection", "tls": "TLS", "first_byte": "first byte", "body": "body"}
LEVELS = {"info": "succeeded", "warning": "attention", "error": "failed"}


def panel(
    run: Run, definition: dict[str, Any], rows: Rows, node: Node, now: datetime, asked: Asked, before: str = ""
) -> dict[str, Any]:
    """What `runs/_panel.html` shows of the chosen line; `before` is the id of a log line to page back from."""
    whole = node.kind == "trigger"
    place = rows.places.get("" if whole else node.path) or Place()
    shown = _whole(run, place, now) if whole else _step(run, definition, place, node, now)
    shown |= {
        "node": node,
        "place": place,
        "attempts": _attempts(place, run.state in UNFINISHED),
        "ran": _ran(place),
        "mails": list(OutboxMessage.objects.filter(run_id=run.pk, path=node.path).defer("payload").order_by("pk")[:20])
        if node.icon == "email" else [],
        "key_shared": _key(place),
        "kept_run": Run.objects.filter(pk=place.kept_from).values_list("pk", flat=True).first() if place.kept_from else None,
        "log": _log(run, "" if whole else node.path, before, asked),
    }
    return shown | _acts(run, definition, node, place) | {"tabs": _tabs(shown, node, asked.tab)}


def _acts(run: Run, definition: dict[str, Any], node: Node, place: Place) -> dict[str, Any]:
    """Addresses of what can be done from this line, as far as it can be told from here; the act itself looks again."""
    if node.kind != "step":
        return {}
    step = find(definition, step_of(node.path)) or {}
    acts: dict[str, Any] = {"where": _where(node.path)}
    if run.state in (*UNFINISHED, "failed") and "[]" not in node.path:
        asked = urlencode({"step": node.path})
        begun = place.started_at is not None or place.result is not None
        if begun:
            acts["retry_url"] = f"{reverse('run_retry', args=[run.pk])}?{asked}"
        if begun and (scope := scope_of(node.path)):
            acts["iteration_url"] = f"{reverse('run_retry', args=[run.pk])}?{urlencode({'step': scope})}"
        holds = any(name != "on_error" for name, _ in children(step))
        if not holds and (place.result is None or place.result.state == "failed"):
            acts["skip_url"] = f"{reverse('run_skip', args=[run.pk])}?{asked}"
    if "[]" not in node.path and node.icon not in ("loop", "parallel") and (place.started_at or place.result):
        acts["step_url"] = f"{reverse('run_step', args=[run.pk])}?{urlencode({'step': node.path})}"
    if not run.workflow.deleted_at and _in_draft(run, step_of(node.path)):
        acts["builder_url"] = f"{reverse('flow', args=[run.workflow_id])}?{urlencode({'step': step_of(node.path)})}"
    return acts | {"more": any(acts.get(name) for name in ("iteration_url", "skip_url", "step_url", "builder_url"))}


def _where(path: str) -> str:
    text = where(path)
    return text[:1].upper() + text[1:]


def _in_draft(run: Run, step: str) -> bool:
    """Whether the flow as it is edited now still has the step."""
    draft = Draft.objects.filter(workflow_id=run.workflow_id).first()
    definition = draft.definition if draft else run.workflow.live_version and run.workflow.live_version.definition
    return bool(definition) and find(definition, step) is not None


def _whole(run: Run, place: Place, now: datetime) -> dict[str, Any]:
    """The first line stands for the run as a whole; at its path `""` is the wait of a quarantined run."""
    return {
        "label": "Trigger",
        "id": run.trigger_key,
        "input": sized(run.input),
        "input_note": "",
        "input_reads": "trigger",
        "input_files": files_it_began_with(run),
        "output": sized(run.output) if run.ended_at and run.state == "succeeded" else None,
        "error": run.error if run.error and not run.error.get("path") else None,
        "remedy": "",
        "ask": _ask(run, {}, place, now) if run.state in UNFINISHED else None,
        "whole_run": True,
    }


def _step(run: Run, definition: dict[str, Any], place: Place, node: Node, now: datetime) -> dict[str, Any]:
    step = find(definition, step_of(node.path)) or {}
    kind = step_types().get(step.get("type", ""))
    given, note = _input(run, step, place)
    result, error = place.result, None
    if result is not None and result.error:
        error = result.error
    elif run.state == "failed" and run.error and run.error.get("path") == node.path:
        error = run.error
    return {
        "label": kind.label if kind else step.get("type", ""),
        "id": step.get("id", ""),
        "input": sized(given) if given is not None else None,
        "input_note": note,
        "output": _output(run, result) if result is not None and result.state in ("succeeded", "skipped") else None,
        "output_reads": f"steps.{step['id']}.output" if step else "",
        "error": error,
        "remedy": remedy(error, place) if error else "",
        "look_at": field_title(step.get("type", ""), str(error["field"]).removeprefix("config.")) if in_flow(error, place) else "",
        "ask": _ask(run, step, place, now) if run.state in UNFINISHED else None,
        "answered": _approval(place.last_wait) if place.last_wait is not None and place.open_wait is None else None,
        "take": place.take,
        "whole_run": False,
    }


def _input(run: Run, step: dict[str, Any], place: Place) -> tuple[Any, str]:
    """What the step was given: the last call's request, else what it waits with, else its settings in this version."""
    requests = [attempt.request for attempt in place.attempts if attempt.request is not None]
    if requests:
        return requests[-1], "secrets hidden"
    wait = place.last_wait
    if wait is not None and wait.kind == WaitKind.APPROVAL and (question := Approval.objects.filter(pk=wait.pk).first()):
        return {
            "subject": question.subject,
            "message": question.message,
            "details": question.details,
            "needed": question.needed,
            "expires_at": wait.due_at,
        }, "secrets hidden"
    if place.result is not None and place.result.input is not None:
        return place.result.input, "secrets hidden"
    return step.get("config") or None, f"settings of {run.version}, not yet filled in"


def _output(run: Run, result: Any) -> dict[str, Any]:
    """The output; of a large one the beginning, and where there is more."""
    if result.output_size is None:
        return sized(result.output) | {"file": given_file(run, result.path, result.take)}
    return {"size": result.output_size, "part": large_output(run, result.path, result.take).part(0)}


def sized(value: Any) -> dict[str, Any]:
    return {"value": value, "size": _size(value)}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _ask(run: Run, step: dict[str, Any], place: Place, now: datetime) -> dict[str, Any] | None:
    """The open wait as a person reads it."""
    wait = place.open_wait
    if wait is None:
        return None
    error = wait.data.get("error") or (place.attempts[-1].error if place.attempts else None)
    late = wait.due_at is not None and wait.due_at <= now
    asked: dict[str, Any] = {"kind": str(wait.kind), "wait": wait, "error": error, "late": late}
    match wait.kind:
        case WaitKind.APPROVAL:
            asked |= _approval(wait) or {}
        case WaitKind.CALLBACK:
            asked["address"] = callback_url(run.pk, wait.path)
        case WaitKind.CHILD:
            asked["child"] = wait.data.get("run")
        case WaitKind.PERSON:
            attempt = next((one for one in place.attempts if one.n == wait.data.get("attempt")), None)
            asked |= {"attempt": attempt} | uncertain.asked(run, step, wait, attempt)
    return asked


def _approval(wait: Any) -> dict[str, Any] | None:
    """Who was asked, who opened the page and who answered."""
    if wait.kind != WaitKind.APPROVAL:
        return None
    approval = Approval.objects.prefetch_related("recipients__user", "decisions").filter(pk=wait.pk).first()
    if approval is None:
        return None
    decisions = {decision.recipient_id: decision for decision in approval.decisions.all()}
    mails = {
        mail.recipient.lower(): mail
        for mail in OutboxMessage.objects.filter(run_id=wait.run_id, path=wait.path, take=wait.take, kind="approval")
    }
    gone = left(recipient.address for recipient in approval.recipients.all())
    people = [
        {"recipient": recipient, "decision": decisions.get(recipient.pk), "mail": mails.get(recipient.address.lower()),
         "left": recipient.address.lower() in gone}
        for recipient in sorted(approval.recipients.all(), key=lambda recipient: (recipient.standby, recipient.stage, recipient.pk))
    ]
    return {
        "approval": approval,
        "people": people,
        "others": [decision for decision in approval.decisions.all() if decision.recipient_id is None],
        "open": missing(approval, approved(approval)),
        "then": EXPIRED.get(approval.on_expired, approval.on_expired),
    }


def _attempts(place: Place, going: bool) -> list[dict[str, Any]]:
    """Newest first, each with the words for how it ended."""
    holder = _holder(place)
    return [
        {
            "row": attempt,
            "state": _attempt_state(attempt, going),
            "words": _attempt_words(attempt, going),
            "took": attempt.ended_at - attempt.started_at if attempt.ended_at else None,
            "request_size": _size(attempt.request),
            **_response(attempt.response),
            "worker": holder if attempt.ended_at is None else "",
        }
        for attempt in reversed([*place.earlier, *place.attempts])
    ]


def _response(kept: Any) -> dict[str, Any]:
    """What the call was answered, and how long its phases took. An error's body is kept as the text that it came as; where
    that is JSON it is shown so."""
    if isinstance(kept, dict) and isinstance(kept.get("body"), str):
        kept = kept | {"body": _unwrapped(kept["body"])}
    timings = kept.get("timings") if isinstance(kept, dict) else None
    if not isinstance(timings, dict):
        return {"response": kept, "response_size": _size(kept), "timings": []}
    answer = {name: value for name, value in kept.items() if name != "timings"} or None
    phases = [(word, timedelta(milliseconds=timings[phase])) for phase, word in PHASES.items() if phase in timings]
    return {"response": answer, "response_size": _size(answer), "timings": phases}


def _unwrapped(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return loads_strict(text.encode())
    except BadJson:
        return text


def _ran(place: Place) -> dict[str, Any] | None:
    """A step that makes no calls and did not wait ran all the same: once per take."""
    result = place.result
    if result is None or place.attempts or place.earlier or place.waits or place.kept_from:
        return None
    took = result.finished_at - result.started_at
    return {"state": str(result.state), "n": max(1, place.take), "at": result.started_at, "took": took}


def _holder(place: Place) -> str:
    """The worker that makes the call under way; of earlier ones nothing is kept."""
    running = place.running_attempt
    if running is None:
        return ""
    found = Dispatch.objects.filter(pk=running.run_id, token=running.token).values_list("worker_id", flat=True).first()
    return f"w-{found}" if found else ""


def _key(place: Place) -> str:
    """The Idempotency-Key, where all attempts of the step sent one and the same."""
    requests = [attempt.request for attempt in place.attempts if isinstance(attempt.request, dict)]
    headers = [request.get("headers") for request in requests if isinstance(request.get("headers"), dict)]
    keys = {value for header in headers for name, value in header.items() if name.lower() == "idempotency-key"}
    return str(keys.pop()) if len(keys) == 1 and len(place.attempts) > 1 else ""


def _attempt_state(attempt: Any, going: bool) -> str:
    if attempt.ended_at is None:
        return "running" if going else "attention"
    if attempt.outcome == AttemptOutcome.ANSWERED:
        return "failed" if attempt.error else "succeeded"
    return "attention" if attempt.outcome == AttemptOutcome.UNKNOWN else "failed"


def _attempt_words(attempt: Any, going: bool) -> str:
    if attempt.ended_at is None:
        return "under way" if going else END_UNKNOWN
    status = attempt.response.get("status") if isinstance(attempt.response, dict) else None
    return str(status) if isinstance(status, int) else OUTSIDE_OUTCOMES.get(attempt.outcome, "")


def _log(run: Run, path: str, before: str, asked: Asked) -> dict[str, Any]:
    """The last lines, in the order of time; earlier ones by key. A search looks among the latest ten thousand."""
    lines = LogLine.objects.filter(run_id=run.pk)
    if path:
        lines = lines.filter(Q(path=path) | Q(path__startswith=f"{path}/") | Q(path__startswith=f"{path}["))
    if asked.level:
        lines = lines.filter(level__in=LEVELS_FROM[asked.level])
    if (last := number_of(before)) is not None:
        lines = lines.filter(pk__lt=last)
    if asked.find:
        latest = lines.order_by("-pk").values("pk")[:SEARCHED_LINES]
        lines = LogLine.objects.filter(pk__in=latest, text__icontains=asked.find)
    found = list(lines.order_by("-pk")[: LOG_LINES + 1])
    earlier = found[LOG_LINES - 1].pk if len(found) > LOG_LINES else None
    shown = found[:LOG_LINES][::-1]
    days = {line.at.date() for line in shown}
    told = [{"row": line, "state": LEVELS.get(line.level, "succeeded")} for line in shown]
    return {"lines": told, "earlier": earlier, "count": f"{LOG_LINES}+" if earlier else len(shown), "days": len(days) > 1}


def _tabs(shown: dict[str, Any], node: Node, chosen: str) -> list[dict[str, Any]]:
    """The tab that was asked for is selected, else the attempts of a step that failed, else the input."""
    failed = node.state == "failed" and bool(shown["attempts"])
    if chosen == "attempts" and shown["whole_run"]:
        chosen = ""
    chosen = chosen or ("attempts" if failed and not shown["whole_run"] else "input")
    tries = node.attempts or len(shown["attempts"])
    tabs = [
        {"id": "input", "label": "Input", "selected": chosen == "input"},
        {"id": "output", "label": "Output", "selected": chosen == "output"},
        {"id": "log", "label": "Log", "count": shown["log"]["count"], "selected": chosen == "log"},
    ]
    if not shown["whole_run"]:
        tabs.insert(2, {"id": "attempts", "label": "Attempts", "count": tries, "selected": chosen == "attempts"})
    return tabs
