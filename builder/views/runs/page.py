"""The run page: what a run did, step by step, and what it waits for. Page and live fragment come from one context."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from builder import access, again, reruns
from builder.drawing import drawing
from builder.live import digest
from builder.questions import recipient_for
from builder.remedies import in_flow
from builder.runcanvas import laid_over
from builder.runlines import busy, lines, tick_word
from builder.runlist import queue_words
from builder.runload import fingerprint, load
from builder.runrows import Place, Rows
from builder.runtree import Node, most_telling, tree
from builder.templatetags.formats import display_name, duration
from builder.unpriced import unpriced_runs
from builder.waterfall import make_axis
from runtime import slots
from runtime.clock import business_now
from runtime.models import Approval, Run, Wait
from runtime.paths import step_of
from runtime.states import UNFINISHED, RunState, WaitKind, WaitState
from runtime.triggers import trigger_kinds

from .asked import Asked
from .panel import panel

PARTS = (("head", "runs/_head.html"), ("steps", "runs/_steps.html"), ("panel", "runs/_panel.html"))
MOST_CALLS = 20_000
# How long its calls took and what is known of them, bounded: beyond so many calls the figure is a floor.
WORK = f"""
select coalesce(extract(epoch from sum(ended_at - started_at)), 0)::float8, count(*)
from (select started_at, ended_at from attempt where run_id = %s and ended_at is not null limit {MOST_CALLS + 1}) as calls
"""
MOST_RELATED = 5


@require_safe
def run_page(request: HttpRequest, run_id: int) -> HttpResponse:
    rev = fingerprint(run_id)
    context = run_context(request, access.get_run(request.user, run_id), rev)
    template = "runs/_run.html" if request.headers.get("HX-Request") else "runs/run.html"
    return render(request, template, context)


@require_safe
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """204 while nothing changed; else the parts of the page, each with a mark by which the browser leaves alone what
    looks as before."""
    rev = fingerprint(run_id)
    run, etag = access.get_run(request.user, run_id), f'"{rev}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=204)
    context = run_context(request, run, rev) | {"oob": True}
    parts = [*PARTS]
    if context["asked"].view:
        parts = [("stage", "runs/_stage.html") if part == "steps" else (part, name) for part, name in PARTS]
    html = "".join(marked(part, render_to_string(name, context, request)) for part, name in parts)
    response = HttpResponse(html, headers={"ETag": etag})
    if not context["live"]:
        response["Hf-Live"] = "stop"
    return response


def marked(part: str, html: str) -> str:
    """Put a digest of the fragment where its template left room for it. Relative times do not count."""
    return html.replace('data-rev=""', f'data-rev="{part}-{digest(html)}"', 1)


def run_context(request: HttpRequest, run: Run, rev: str) -> dict[str, Any]:
    asked, now = Asked.of(run.pk, request.GET), business_now()
    definition = run.version.definition
    rows = load(run, definition, asked.wanted)
    nodes = tree(definition, rows, run, now)
    chosen = chosen_node(nodes, asked.step)
    axis = make_axis(run.created_at, run.ended_at or now, busy(nodes))
    dispatch = getattr(run, "dispatch", None)
    family = reruns.family(run)
    canvas = {}
    if asked.view:
        canvas = {"drawing": laid_over(drawing(definition), nodes), "selected": step_of(chosen.path), "readonly": True,
                  "step_query": "&view=canvas"}  # fmt: skip
    return canvas | {
        "views": [
            {"label": word, "url": asked.seeing(view).url, "on": asked.view == view}
            for view, word in (("", "Timeline"), ("canvas", "Canvas"))
        ],
        "run": run,
        "etag": f'"{rev}"',
        "asked": asked,
        "live": run.state in UNFINISHED,
        "dispatch": dispatch,
        "shown": shown_as(run, dispatch),
        "lines": [with_urls(line, asked, chosen.path) for line in lines(nodes, axis)],
        "axis": axis,
        "ticks": [(tick.x, tick_word(tick.seconds, duration)) for tick in axis.ticks],
        "working": working_time(run),
        "unpriced": bool(unpriced_runs([run.pk])),
        "may_act": access.can(request.user, access.OPERATOR, run.workflow.team_id),
        "may_try": access.can(request.user, access.BUILDER, run.workflow.team_id),
        "may_decide": may_decide(request.user, run, rows.places.get(chosen.path)),
        "neighbours": neighbours(request, run),
        "started_by": started_by(run, nodes[0]),
        "ran": run.ended_at - run.created_at if run.ended_at else None,
        "live_url": asked.at("run_live"),
        "panel": panel(run, definition, rows, chosen, now, asked, request.GET.get("before", "")),
        "related": related(request, run, family),
        "alike": reruns.failed_alike(run),
        "made_good_by": reruns.made_good_by(run, family),
        "goes_on": again.continuation(run, [pk for pk, state in family if pk > run.pk and state != RunState.CANCELLED]),
        "waited": Wait.objects.filter(run_id=run.pk).exists(),
        "requeue_helps": run.state == "failed" and not in_flow(run.error, failed_at(rows, run)),
    }


def chosen_node(nodes: list[Node], path: str) -> Node:
    """By its path; a canvas knows only the step's id, which means the first place where it stands."""
    by_path = {node.path: node for node in nodes if node.kind in ("step", "trigger")}
    by_id = {step_of(node.path): node for node in reversed(nodes) if node.kind == "step"}
    return by_path.get(path) or by_id.get(path) or by_path[most_telling(nodes)]


def with_urls(line: Any, asked: Asked, chosen: str) -> dict[str, Any]:
    """The line with the addresses that its name and its arrow lead to."""
    node = line.node
    match node.kind:
        case "step" | "trigger":
            url = asked.choosing(node.path).url
        case "iteration":
            loop = node.parent
            url = asked.opening(loop, node.index if node.folded else None).url
        case "pages":
            url = asked.paging(node.parent, node.index or 0).url
        case _:
            url = ""
    return {"line": line, "node": node, "url": url, "chosen": node.path == chosen}


def failed_at(rows: Rows, run: Run) -> Place:
    return rows.places.get((run.error or {}).get("path") or "") or Place()


def shown_as(run: Run, dispatch: Any) -> dict[str, Any]:
    """State, dispatch state and words of the pill: an open run says what it does now."""
    if run.state != "open" or dispatch is None:
        return {"state": run.state, "word": "", "retry_at": None}
    if dispatch.queued and (standing := slots.standings([run.pk]).get(run.pk)):
        return {"state": "queued", "word": "Queued", "retry_at": None, "slot": queue_words(standing)}
    if dispatch.state == "ready":
        return {"state": "queued", "word": "Queued", "retry_at": None}
    if dispatch.state == "waiting":
        kinds = Wait.objects.filter(run_id=run.pk, state=WaitState.OPEN).order_by("due_at").values_list("kind", "due_at")[:50]
        found = list(kinds)
        if found and all(kind == WaitKind.RETRY for kind, _ in found):
            return {"state": "waiting", "word": "", "retry_at": found[0][1]}
    slot = ""
    if dispatch.state == "waiting" and dispatch.slot_of is not None:
        slot = "gave its slot up meanwhile" if dispatch.queued else "keeps its slot meanwhile"
    return {"state": dispatch.state, "word": "", "retry_at": None, "slot": slot}


def working_time(run: Run) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(WORK, [run.pk])
        seconds, calls = cursor.fetchone()
    return {"seconds": float(seconds), "floor": calls > MOST_CALLS}


def may_decide(user: Any, run: Run, place: Place | None) -> bool:
    """Operators, and those whom the chosen approval asks."""
    wait = place.open_wait if place else None
    if wait is None or wait.kind != WaitKind.APPROVAL:
        return False
    approval = Approval.objects.filter(pk=wait.pk).first()
    asked_too = approval is not None and recipient_for(user, approval) is not None
    return asked_too or access.can(user, access.OPERATOR, run.workflow.team_id)


def neighbours(request: HttpRequest, run: Run) -> dict[str, str]:
    """The runs before and after this one among those that this person may see; tests among tests."""
    runs = access.runs_for(request.user).filter(test=run.test)
    newer = runs.filter(pk__gt=run.pk).order_by("pk").values_list("pk", flat=True)[:1]
    older = runs.filter(pk__lt=run.pk).order_by("-pk").values_list("pk", flat=True)[:1]
    return {name: reverse("run", args=[found[0]]) if found else "" for name, found in (("newer", newer), ("older", older))}


def related(request: HttpRequest, run: Run, family: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """The run that started this one, those that it started, and the earlier and later ones of the same origin; only those
    that this person may see."""
    runs = access.runs_for(request.user)
    groups = [
        ("Started by", runs.filter(pk=run.parent_id) if run.parent_id else None),
        ("Starts", runs.filter(parent_id=run.pk)),
        ("Tried before as", runs.filter(pk__in=[pk for pk, _ in family if pk < run.pk])),
        ("Run again as", runs.filter(pk__in=[pk for pk, _ in family if pk > run.pk])),
        ("Same key", same_key(runs, run)),
    ]
    told = []
    for word, found in groups:
        rows = list(found.order_by("pk").values_list("pk", "state")[: MOST_RELATED + 1]) if found is not None else []
        if rows:
            told.append({"word": word, "runs": rows[:MOST_RELATED], "more": len(rows) > MOST_RELATED})
    return told


def same_key(runs: Any, run: Run) -> Any:
    """Runs of the flow that other triggers started with this run's key."""
    if not run.idempotency_key:
        return None
    triggers = [trigger["id"] for trigger in run.version.definition.get("triggers") or []]
    return runs.filter(
        workflow_id=run.workflow_id, trigger_key__in=[*triggers, "api", "manual"], idempotency_key=run.idempotency_key
    ).exclude(pk=run.pk)


def started_by(run: Run, trigger: Node) -> dict[str, str]:
    """How the run came to be: the kind of its trigger, and the person or the trigger's name."""
    kind = trigger_kinds().get(trigger.icon)
    person = display_name(run.started_by) if run.started_by else ""
    if trigger.icon in ("manual", "api"):
        return {"how": person or "API", "detail": "by hand" if trigger.icon == "manual" else "API"}
    return {"how": kind.label if kind else trigger.icon.capitalize(), "detail": person or trigger.name}
