"""Django's admin over the runtime's tables: read-only but for the acts of `runtime.acts`, each confirmed by number.

Lists never count a whole table: pages end at the latest two thousand rows, and no filter asks for distinct values. Tables
with composite keys cannot be registered: steps, attempts and log stand on their run's page.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

import django_q.admin  # noqa: F401 - registers its own, which are taken back below
from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django_q.models import Failure, OrmQ, Schedule, Success

from . import acts
from .models import (
    Attempt, AuditEntry, Credential, LogLine, OutboxMessage, Run, StepResult, Trigger, Version, Wait, Worker, Workflow,
)  # fmt: skip
from .states import OutboxState, RunState, WaitKind, WaitState, values

MOST_COUNTED = 2_000
MOST_AT_ONCE = 500
MOST_SHOWN = 200
LONGEST_CELL = 200

# Its tables hold pickles, which nobody should be tempted to open; none of them carries anything of ours.
for model in (Success, Failure, Schedule, OrmQ):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class BoundedPaginator(Paginator):
    """Counts no further than what anybody pages through."""

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by().values("pk")[:MOST_COUNTED].count()


def state_filter(states: type[StrEnum], field: str = "state") -> type[admin.SimpleListFilter]:
    """A filter by the constants, without asking the table which values it has."""

    class StateFilter(admin.SimpleListFilter):
        title = parameter_name = field

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(value, value.replace("_", " ").capitalize()) for value in values(states)]

        def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
            return queryset.filter(**{field: self.value()}) if self.value() in values(states) else queryset

    return StateFilter


class ReadOnly(admin.ModelAdmin):
    """Nothing is added, changed or deleted here; what may be done is an action."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    ordering = ("-pk",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return request.user.is_active and request.user.is_superuser

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, term: str) -> tuple[QuerySet, bool]:
        """By number: other columns have no index that a search could use."""
        if not term.strip():
            return queryset, False
        digits = term.replace(",", "").strip()
        known = digits.isascii() and digits.isdigit() and len(digits) < 19
        return (queryset.filter(**{self.search_fields[0]: int(digits)}) if known else queryset.none()), False

    def act(
        self, request: HttpRequest, rows: QuerySet, do: Callable[..., bool], word: str, done: str, why: str
    ) -> HttpResponse | None:
        """Ask with the number, then do it to each row, and say how many it changed."""
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
        chosen = keys[:MOST_AT_ONCE]
        if request.POST.get("confirmed") != "1":
            return self.confirmation(request, chosen, len(keys) > MOST_AT_ONCE, word, why)
        changed = sum(acts.changes(do, key, request.user) for key in chosen)
        level = messages.SUCCESS if changed else messages.WARNING
        left = "" if changed == len(chosen) else f" {len(chosen) - changed:,} were not in a state for it."
        self.message_user(request, f"{done} {changed:,} of {len(chosen):,}.{left}", level)
        return None

    def confirmation(self, request: HttpRequest, keys: list[int], more: bool, word: str, why: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"{word} {len(keys):,} {self.opts.verbose_name if len(keys) == 1 else self.opts.verbose_name_plural}?",
            "keys": keys,
            "more": more,
            "most": MOST_AT_ONCE,
            "why": why,
            "word": word,
            "action": request.POST.get("action"),
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/runtime/confirm.html", context)


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("number", "state", "title", "workflow", "version", "trigger_key", "created_at", "ended_at", "cost")
    list_display_links = ("number",)
    list_filter = (state_filter(RunState),)
    list_select_related = ("workflow", "version")
    search_fields = ("pk",)
    search_help_text = "The run's number"
    readonly_fields = ("steps", "attempts", "waits", "log")
    actions = ("requeue", "cancel", "release")

    @admin.display(description="Run", ordering="-pk")
    def number(self, run: Run) -> str:
        return f"{run.pk:,}"

    @admin.action(description="Requeue failed or quarantined runs", permissions=["operate"])
    def requeue(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Each goes on at the step that failed. Finished steps do not run again; the failed step is called again."
        return self.act(request, rows, acts.requeue, "Requeue", "Requeued", why)

    @admin.action(description="Cancel unfinished runs", permissions=["operate"])
    def cancel(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Their open waits are dropped, and no new call begins. This cannot be undone."
        return self.act(request, rows, acts.cancel, "Cancel", "Cancelled", why)

    @admin.action(description="Take from the worker that holds them", permissions=["operate"])
    def release(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Another worker goes on with each where it stands. Not while a call is under way: its answer would be lost."
        return self.act(request, rows, acts.release, "Take", "Taken", why)

    def steps(self, run: Run) -> SafeString:
        columns = ("path", "take", "state", "started_at", "finished_at", "superseded", "output", "error")
        return _table(columns, StepResult.objects.filter(run_id=run.pk).order_by("started_at"))

    def attempts(self, run: Run) -> SafeString:
        columns = ("path", "take", "n", "operation", "outcome", "error", "started_at", "ended_at", "cost")
        return _table(columns, Attempt.objects.filter(run_id=run.pk).order_by("started_at"))

    def waits(self, run: Run) -> SafeString:
        columns = ("path", "take", "kind", "n", "state", "due_at", "outcome", "created_at", "resolved_at")
        return _table(columns, Wait.objects.filter(run_id=run.pk).order_by("pk"))

    def log(self, run: Run) -> SafeString:
        return _table(("at", "level", "path", "text"), LogLine.objects.filter(run_id=run.pk).order_by("-pk"))


@admin.register(Wait)
class WaitAdmin(ReadOnly):
    list_display = ("pk", "run_id", "path", "kind", "state", "due_at", "created_at")
    list_filter = (state_filter(WaitState), state_filter(WaitKind, "kind"))
    search_fields = ("run_id",)
    search_help_text = "The run's number"
    actions = ("happened", "again", "fail")

    @admin.action(description="Uncertain calls: it happened", permissions=["operate"])
    def happened(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Each step counts as done, without an output. To give it one, answer on the run's page."
        return self.act(request, rows, partial(acts.answer, choice="happened"), "Settle", "Settled", why)

    @admin.action(description="Uncertain calls: run them again", permissions=["operate"])
    def again(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Each call is made once more, with a new Idempotency-Key. If it had happened, it happens twice."
        return self.act(request, rows, partial(acts.answer, choice="again"), "Run again", "Set going again", why)

    @admin.action(description="Uncertain calls: let the step fail", permissions=["operate"])
    def fail(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Each step fails, and what follows its failure follows. A requeue takes it up again."
        return self.act(request, rows, partial(acts.answer, choice="fail"), "Let fail", "Failed", why)


@admin.register(OutboxMessage)
class OutboxAdmin(ReadOnly):
    list_display = ("pk", "state", "kind", "recipient", "run_id", "attempts", "due_at", "sent_at", "error")
    list_filter = (state_filter(OutboxState),)
    search_fields = ("run_id",)
    search_help_text = "The run's number"
    actions = ("resend",)

    @admin.action(description="Send again", permissions=["operate"])
    def resend(self, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
        why = "Each goes out under the Message-ID it has; most readers show it once."
        return self.act(request, rows, acts.resend, "Send again", "Sent again", why)


@admin.register(Workflow)
class WorkflowAdmin(ReadOnly):
    list_display = ("name", "team", "live_version", "paused", "retention_days", "created_at", "deleted_at")
    list_select_related = ("team", "live_version")
    search_fields = ("pk",)


@admin.register(Version)
class VersionAdmin(ReadOnly):
    list_display = ("workflow", "__str__", "note", "created_at", "created_by", "hash")
    list_select_related = ("workflow", "created_by")
    search_fields = ("workflow_id",)
    search_help_text = "The flow's number"

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """A list of definitions would be read in full for nothing."""
        listing = request.resolver_match and request.resolver_match.url_name == "runtime_version_changelist"
        found = super().get_queryset(request)
        return found.defer("definition") if listing else found


@admin.register(Trigger)
class TriggerAdmin(ReadOnly):
    """Without the token, which is a webhook's whole secret."""

    list_display = ("workflow", "key", "type", "enabled", "next_at", "last_at")
    list_select_related = ("workflow",)
    exclude = ("token",)
    search_fields = ("workflow_id",)


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    list_display = ("pk", "cluster", "host", "pid", "beat_at", "in_flight", "slots", "finished", "stopping", "ended_at")


@admin.register(Credential)
class CredentialAdmin(ReadOnly):
    list_display = ("name", "team", "kind", "hosts", "last_used_at", "updated_at")
    list_select_related = ("team",)
    exclude = ("secret",)


@admin.register(AuditEntry)
class AuditAdmin(ReadOnly):
    list_display = ("at", "actor_name", "action", "subject", "address")


def _table(columns: tuple[str, ...], rows: QuerySet) -> SafeString:
    """At most two hundred rows, read without what is not shown."""
    found = list(rows.values_list(*columns)[: MOST_SHOWN + 1])
    if not found:
        return format_html("{}", "–")
    shown = format_html_join("", "<tr>{}</tr>", ((_cells(row),) for row in found[:MOST_SHOWN]))
    context = {"columns": columns, "rows": shown, "more": len(found) > MOST_SHOWN, "most": MOST_SHOWN}
    return render_to_string("admin/runtime/rows.html", context)


def _cells(row: tuple) -> SafeString:
    """Not by a template: there are thousands of cells on a page."""
    return format_html_join("", "<td>{}</td>", ((_cell(value),) for value in row))


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{timezone.localtime(value):%Y-%m-%d %H:%M:%S}"
    text = "–" if value is None else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
