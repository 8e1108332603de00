"""The audit trail's page and export."""

from __future__ import annotations

import csv
import io

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse

from runtime.audit import record
from runtime.models import AuditEntry, Role
from tests.builder import factories

pytestmark = pytest.mark.django_db


def signed_in(person) -> Client:
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def ours():
    return factories.team("Ours")


@pytest.fixture
def admin(ours):
    return factories.user(Role.ADMIN, of=ours, name="ada")


def test_administrators_see_their_teams_and_nobody_elses(ours, admin):
    record("publish", "workflow:1", actor=admin, team_id=ours.pk, detail={"note": "ours"})
    record("publish", "workflow:2", actor=admin, team_id=factories.team("Theirs").pk, detail={"note": "theirs"})
    record("make_token", "user:1", detail={"note": "nobodys"})
    text = signed_in(admin).get(reverse("audit")).content.decode()
    assert "ours" in text and "theirs" not in text and "nobodys" not in text
    everything = signed_in(get_user_model().objects.create_superuser("root")).get(reverse("audit")).content.decode()
    assert all(word in everything for word in ("ours", "theirs", "nobodys"))


def test_it_is_narrowed_and_paged_by_key(ours, admin):
    for n in range(60):
        record("requeue" if n % 2 else "cancel", f"run:{n}", actor=admin, team_id=ours.pk)
    client = signed_in(admin)
    first = client.get(reverse("audit"))
    assert len(first.context["rows"]) == 50 and first.context["rows"][0]["entry"].subject == "run:59"
    second = client.get(first.context["older"])
    assert [row["entry"].subject for row in second.context["rows"]] == [f"run:{n}" for n in range(9, -1, -1)]
    narrowed = client.get(reverse("audit"), {"action": "cancel", "who": "ada", "subject": "run:4"})
    assert [row["entry"].subject for row in narrowed.context["rows"]] == ["run:4"]
    assert client.get(reverse("audit"), {"who": "a\x00", "before": "x"}).status_code == 200


def test_the_export_holds_all_of_it_and_no_formula(ours, admin, monkeypatch):
    monkeypatch.setattr("builder.views.audit.AT_ONCE", 3)
    for n in range(8):
        record("publish", f"workflow:{n}", actor=admin, team_id=ours.pk)
    AuditEntry.objects.create(action="publish", subject="=HYPERLINK(1)", actor_name="+evil", team_id=ours.pk)
    response = signed_in(admin).get(reverse("audit_export"))
    assert response["Content-Disposition"].startswith("attachment") and response["X-Content-Type-Options"] == "nosniff"
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert [row["subject"] for row in rows] == [*(f"workflow:{n}" for n in range(8)), "'=HYPERLINK(1)"]
    assert rows[-1]["who"] == "'+evil"


def test_nothing_of_it_can_be_changed(ours, admin):
    record("publish", "workflow:1", actor=admin, team_id=ours.pk)
    for change in (lambda: AuditEntry.objects.update(action="none"), lambda: AuditEntry.objects.all().delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()
