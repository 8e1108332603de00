"""Alert rules: who is told by mail or webhook, of what, and how it stands; and the rule in the panel of a flow."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.validators import EmailValidator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_http_methods, require_POST

from builder import access
from runtime import alerts
from runtime.audit import record
from runtime.models import Alert, Team, Workflow
from runtime.net import BadLocation, check_location
from runtime.notices import secrets_for
from runtime.states import AlertKind

MOST = 100
FAILURES_QUIET = 15
"""Minutes between two mails about a flow whose runs go on failing."""


class AlertForm(forms.Form):
    """What a team sees of workers and mails would be everybody's: those rules are the administrators' of the installation."""

    kind = forms.ChoiceField(label="When")
    threshold = forms.FloatField(
        label="More than", min_value=0, max_value=1_000_000,
        help_text="Minutes, runs, percent or US dollars, as the rule says; of workers: fewer than this.",
    )
    team = forms.ModelChoiceField(label="Of the team", queryset=Team.objects.none(), required=False)
    address = forms.EmailField(label="Tell by mail", max_length=320, required=False)
    url = forms.CharField(
        label="Tell by webhook", max_length=2000, required=False,
        help_text="An address that takes a POST, signed as Standard Webhooks says; the secret is shown with the rule. "
        "A private one has to be in HOLDFAST_ALLOWED_PRIVATE_HOSTS.",
    )  # fmt: skip
    quiet_minutes = forms.IntegerField(label="Again after", min_value=1, max_value=10_080, initial=60, help_text="Minutes")

    def __init__(self, *args: Any, user: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.user = user
        everything = user.is_superuser
        self.fields["kind"].choices = [
            (kind.value, f"{rule.label} ({rule.unit})")
            for kind, rule in alerts.RULES.items()
            if everything or not rule.everywhere
        ]
        self.fields["team"].queryset = access.teams_for(user, access.OPERATOR)
        self.fields["team"].empty_label = "All teams" if everything else None
        self.fields["team"].required = not everything

    def clean_url(self) -> str:
        url = self.cleaned_data["url"].strip()
        try:
            return str(check_location(url)) if url else ""
        except BadLocation as wrong:
            raise forms.ValidationError(str(wrong)) from None

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if not given.get("address") and not given.get("url") and not self.errors:
            self.add_error("address", "Say whom to tell: by mail, by webhook, or both.")
        kind = given.get("kind")
        if kind and alerts.RULES[AlertKind(kind)].everywhere:
            given["team"] = None
        return given


@require_http_methods(["GET", "HEAD", "POST"])
def alert_list(request: HttpRequest) -> HttpResponse:
    """`?kind=cost` begins a new rule of that kind."""
    begun = {"address": request.user.email, "kind": request.GET.get("kind", "")}
    form = AlertForm(request.POST or None, user=request.user, initial=begun)
    if request.method == "POST" and form.is_valid():
        if mine(request).count() >= MOST:
            form.add_error(None, f"There are {MOST} rules already. Remove one first.")
        else:
            alert = Alert.objects.create(**form.cleaned_data, created_by=request.user)
            detail = {"kind": alert.kind}
            record("alert_add", f"alert:{alert.pk}", actor=request.user, team_id=alert.team_id, detail=detail)
            messages.success(request, "The rule is looked at within half a minute.")
            return redirect("alerts")
    rows = [shown(one) for one in mine(request)]
    status = 422 if form.is_bound and form.errors else 200
    context = {"rows": rows, "form": form, "section": "operations"}
    return render(request, "operations/alerts.html", context, status=status)


def shown(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert,
        "rule": alerts.RULES[AlertKind(alert.kind)],
        "value": "" if alert.value is None else alerts.number(alert.value),
        "threshold": alerts.number(alert.threshold),
        "secret": secrets_for(alerts.sender(alert), alert.url)[0] if alert.url else "",
    }


@require_POST
def alert_delete(request: HttpRequest, alert_id: int) -> HttpResponse:
    found = mine(request).filter(pk=alert_id).first()
    if found is None:
        raise Http404("There is no such rule.")
    record("alert_remove", f"alert:{found.pk}", actor=request.user, team_id=found.team_id, detail={"kind": found.kind})
    found.delete()
    messages.success(request, "Removed.")
    return redirect("alerts")


def mine(request: HttpRequest) -> Any:
    """Rules of the teams in which this person is operator; for administrators of the installation all."""
    found = Alert.objects.select_related("team", "workflow").order_by("pk")
    if request.user.is_superuser:
        return found
    return found.filter(team__in=access.teams_for(request.user, access.OPERATOR).order_by())


@require_POST
def flow_failures(request: HttpRequest, pk: int) -> HttpResponse:
    """Whom failed runs of a flow are told to: an address, or nothing for nobody."""
    workflow = access.get_workflow(request.user, pk, access.OPERATOR)
    address = request.POST.get("address", "").strip()[:320]
    try:
        EmailValidator()(address) if address else None
    except forms.ValidationError:
        return _failures(request, workflow, told=address, told_wrong="Write one address, such as team@example.com.")
    before = rule_of(workflow)
    if before is not None and before.address != address or before is None and address:
        Alert.objects.filter(kind=AlertKind.FAILED, workflow=workflow).delete()
        if address:
            Alert.objects.create(
                kind=AlertKind.FAILED, threshold=0, team=workflow.team, workflow=workflow, address=address,
                quiet_minutes=FAILURES_QUIET, created_by=request.user,
            )  # fmt: skip
        detail = {"told": address}
        record("failure_mails", f"workflow:{pk}", actor=request.user, team_id=workflow.team_id, detail=detail)
    return _failures(request, workflow, told_saved=True)


def rule_of(workflow: Workflow) -> Alert | None:
    return Alert.objects.filter(kind=AlertKind.FAILED, workflow=workflow).first()


def told_context(workflow: Workflow) -> dict[str, Any]:
    """What `canvas/told.html` shows of a flow; looked up when it is shown."""

    def told() -> str:
        rule = rule_of(workflow)
        return rule.address if rule else ""

    return {"told": SimpleLazyObject(told), "told_quiet": FAILURES_QUIET}


def _failures(request: HttpRequest, workflow: Workflow, **more: Any) -> HttpResponse:
    context = {"workflow": workflow, "may_run": True, **told_context(workflow), **more}
    return render(request, "canvas/told.html", context)


urlpatterns = [
    path("flows/<int:pk>/failures/", flow_failures, name="flow_failures"),
    path("operations/alerts/", alert_list, name="alerts"),
    path("operations/alerts/<int:alert_id>/delete/", alert_delete, name="alert_delete"),
]
