"""Alert rules: who is told by mail, of what, and how it stands."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

from builder import access
from runtime import alerts
from runtime.audit import record
from runtime.models import Alert, Team
from runtime.states import AlertKind

MOST = 100


class AlertForm(forms.Form):
    """What a team sees of workers and mails would be everybody's: those rules are the administrators' of the installation."""

    kind = forms.ChoiceField(label="When")
    threshold = forms.FloatField(
        label="More than", min_value=0, max_value=1_000_000,
        help_text="Minutes, runs or US dollars, as the rule says; of workers: fewer than this.",
    )
    team = forms.ModelChoiceField(label="Of the team", queryset=Team.objects.none(), required=False)
    address = forms.EmailField(label="Tell", max_length=320)
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

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        kind = given.get("kind")
        if kind and alerts.RULES[AlertKind(kind)].everywhere:
            given["team"] = None
        return given


@require_http_methods(["GET", "HEAD", "POST"])
def alert_list(request: HttpRequest) -> HttpResponse:
    form = AlertForm(request.POST or None, user=request.user, initial={"address": request.user.email})
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
    found = Alert.objects.select_related("team").order_by("pk")
    if request.user.is_superuser:
        return found
    return found.filter(team__in=access.teams_for(request.user, access.OPERATOR).order_by())


urlpatterns = [
    path("operations/alerts/", alert_list, name="alerts"),
    path("operations/alerts/<int:alert_id>/delete/", alert_delete, name="alert_delete"),
]
