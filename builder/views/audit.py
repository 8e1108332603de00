"""The audit trail: who did what, for administrators of the teams it is about. Nothing here can change it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, path, reverse
from django.views.decorators.http import require_safe

from builder.access import ADMIN, teams_for
from builder.numbers import number_of
from runtime.jobs import cell
from runtime.models import AuditEntry

PER_PAGE = 50
AT_ONCE = 1000
FILTERS = ("action", "who", "subject")
PAGES = {"run": "run", "workflow": "flow", "team": "team", "mail": "mail"}
COLUMNS = ("at", "who", "action", "subject", "detail", "address")


@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Newest first. `action`, `who` (the name as it was) and `subject` (`run:48213`) narrow it, exactly as they are written."""
    asked = {name: request.GET.get(name, "").strip()[:200].replace("\x00", "") for name in FILTERS}
    before = request.GET.get("before", "")
    found = narrowed(visible(request.user), asked)
    if (last := number_of(before)) is not None:
        found = found.filter(pk__lt=last)
    rows = list(found.order_by("-pk")[: PER_PAGE + 1])
    address, query = reverse("audit"), {name: value for name, value in asked.items() if value}
    context = {
        "rows": [{"entry": row, "url": url_of(row), "detail": json.dumps(row.detail, ensure_ascii=False)} for row in rows[:PER_PAGE]],
        "asked": asked,
        "actions": actions(request.user),
        "older": f"{address}?{urlencode({**query, 'before': rows[PER_PAGE - 1].pk})}" if len(rows) > PER_PAGE else "",
        "newest": f"{address}?{urlencode(query)}" if before else "",
        "export": f"{reverse('audit_export')}?{urlencode(query)}",
    }
    return render(request, "settings/audit.html", context)


@require_safe
def audit_export(request: HttpRequest) -> StreamingHttpResponse:
    """The same as CSV, from the oldest on, however much it is: read and sent a thousand rows at a time."""
    found = narrowed(visible(request.user), {name: request.GET.get(name, "").replace("\x00", "") for name in FILTERS})
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"', "X-Content-Type-Options": "nosniff"}
    return StreamingHttpResponse(lines(found), content_type="text/csv; charset=utf-8", headers=headers)


def visible(user: Any) -> QuerySet[AuditEntry]:
    """Of the teams that the person administers; what is about no team, for those who administer the installation."""
    found = AuditEntry.objects.all()
    return found if user.is_superuser else found.filter(team_id__in=list(teams_for(user, ADMIN).values_list("pk", flat=True)))


def narrowed(found: QuerySet[AuditEntry], asked: dict[str, str]) -> QuerySet[AuditEntry]:
    columns = {"action": "action", "who": "actor_name", "subject": "subject"}
    return found.filter(**{columns[name]: value for name, value in asked.items() if value})


def actions(user: Any) -> list[str]:
    """The verbs to choose from: those of the latest entries."""
    latest = visible(user).order_by("-pk").values_list("action", flat=True)[:2000]
    return sorted(set(latest))


def url_of(entry: AuditEntry) -> str:
    """The page of what the entry is about, where it has one."""
    kind, _, key = entry.subject.partition(":")
    try:
        return reverse(PAGES[kind], args=[int(key)])
    except (KeyError, ValueError, NoReverseMatch):
        return ""


def lines(found: QuerySet[AuditEntry]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    after = 0
    while rows := list(found.filter(pk__gt=after).order_by("pk")[:AT_ONCE]):
        after = rows[-1].pk
        yield "".join(
            writer.writerow([cell(value) for value in (
                row.at, row.actor_name, row.action, row.subject, json.dumps(row.detail, ensure_ascii=False), row.address)])
            for row in rows
        )  # fmt: skip


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


urlpatterns = [
    path("audit/", audit, name="audit"),
    path("audit/export/", audit_export, name="audit_export"),
]
