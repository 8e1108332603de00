"""The inbox: what waits for this person, and for operators what waits in their teams; deciding on several at once."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from builder import access, questions
from builder.bounded import counted, written
from builder.numbers import number_of
from builder.views.runs.acts import back_to
from runtime import approvals
from runtime.models import Approval, Run, Workflow

SHOWN = 50
COUNT_TO = 1_000
LOOKED_AT = 200
"""So many of the latest questions tell which flows there are to choose from."""
MOST_AT_ONCE = 200


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Opens on what has something: this person's own questions, else those of their teams."""
    mine, ours = questions.waiting_for(request.user), questions.open_in_teams(request.user)
    operator = access.teams_for(request.user, access.OPERATOR).exists()
    numbers = dict(zip("01", counted([mine, ours if operator else ours.none()], COUNT_TO), strict=True))
    chosen = request.GET.get("all", "")
    if chosen not in numbers or not operator:
        chosen = "1" if operator and numbers["1"] and not numbers["0"] else "0"
    flow, words = request.GET.get("flow", ""), request.GET.get("q", "").strip()
    found = ours if chosen == "1" else mine
    latest = list(found.values_list("run_id", flat=True)[:LOOKED_AT])
    flows = Workflow.objects.filter(pk__in=set(Run.objects.filter(pk__in=latest).order_by().values_list("workflow_id", flat=True)))
    shown = list(_narrowed(found, flow, words).prefetch_related("recipients", "decisions")[: SHOWN + 1])
    runs = Run.objects.select_related("workflow").in_bulk({approval.run_id for approval in shown})
    rows = [{"approval": one, "run": runs.get(one.run_id), "stands": _stands(one)} for one in shown[:SHOWN]]
    context = {
        "rows": rows,
        "more": len(shown) > SHOWN,
        "everything": chosen == "1",
        "narrowed": bool(flow or words),
        "chosen": {"all": chosen, "flow": flow, "q": words},
        "here": f"{reverse('approvals')}?{urlencode({'all': chosen, 'flow': flow, 'q': words})}",
        "flows": flows.order_by("name"),
        "filters": [
            {"label": label, "url": f"{reverse('approvals')}?all={key}", "on": key == chosen, "count": written(numbers[key], COUNT_TO)}
            for key, label in (("0", "Waiting for you"), ("1", "All of your teams"))
        ]
        if operator
        else [],
    }
    return render(request, "approvals/inbox.html", context)


@require_POST
def decide_many(request: HttpRequest) -> HttpResponse:
    """The same answer to several questions. Those that ask for more than a comment are left open, and said so."""
    answer = request.POST.get("answer", "")
    if answer not in approvals.WORDS:
        raise BadRequest("Approve or reject.")
    chosen = [pk for text in request.POST.getlist("approval") if (pk := number_of(text)) is not None]
    allowed = questions.waiting_for(request.user) | questions.open_in_teams(request.user)
    found = list(Approval.objects.filter(pk__in=allowed.order_by().values("pk")).filter(pk__in=chosen[:MOST_AT_ONCE]).order_by("pk"))
    told = Counter(
        approvals.decide(
            one, answer, user=request.user, comment=request.POST.get("comment", ""),
            address=request.META.get("REMOTE_ADDR") or None,
        ).state
        for one in found
    )  # fmt: skip
    done, left = told["decided"] + told["recorded"], told["invalid"]
    word = approvals.WORDS[answer].capitalize()
    if not chosen:
        messages.warning(request, "Choose at least one.")
    elif done == len(chosen):
        messages.success(request, f"{word} {done}.")
    else:
        why = f" {left} ask for more than this; open them one by one." if left else " The others were not open to you any more."
        messages.warning(request, f"{word} {done} of {len(chosen)}.{why}")
    return redirect(back_to(request) or "approvals")


def _narrowed(found: QuerySet[Approval], flow: str, words: str) -> QuerySet[Approval]:
    if (pk := number_of(flow)) is not None:
        found = found.filter(run_id__in=Run.objects.filter(workflow_id=pk).values("pk"))
    return found.filter(subject__icontains=words.replace("\x00", "")) if words else found


def _stands(approval: Approval) -> str:
    """How far a question of several answers has got."""
    if approval.policy == "any" and not approval.rules.get("outvoted"):
        return ""
    if approval.policy == "ordered":
        return f"turn {approval.stage} of {approval.needed}"
    answers = [one.answer for one in approval.decisions.all()]
    against = f", {answers.count('reject')} rejected" if "reject" in answers else ""
    return f"{answers.count('approve')} of {approval.needed} approved{against}"


def context_of(approval: Approval, user: Any) -> dict[str, Any]:
    """Who of those asked can be replaced by whom: an operator any, others themselves."""
    run = Run.objects.select_related("workflow").get(pk=approval.run_id)
    operator = access.can(user, access.OPERATOR, run.workflow.team_id)
    answered = set(approval.decisions.values_list("recipient_id", flat=True))
    asked = [one for one in approval.recipients.filter(handed_to="").order_by("pk") if one.pk not in answered]
    own = approvals.approver(approval, user)
    return {"operator": operator, "replaceable": asked if operator else [one for one in asked if one == own]}


urlpatterns = [
    path("approvals/", inbox, name="approvals"),
    path("approvals/decide/", decide_many, name="approvals_decide"),
]
