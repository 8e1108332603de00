"""Django's admin: quick on large tables, read-only but for acts that are confirmed by number."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runtime.models import AuditEntry, Credential, Dispatch, Role, Run
from tests.builder import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def administrator(client):
    person = factories.user(None, is_superuser=True, is_staff=True)
    client.force_login(person)
    return person


def act(client, action: str, keys, *, model: str = "run", **more):
    data = {"action": action, "_selected_action": [str(key) for key in keys], "index": "0", **more}
    return client.post(reverse(f"admin:runtime_{model}_changelist"), data)


def registered() -> list[str]:
    return [model._meta.model_name for model in admin.site._registry if model._meta.app_label == "runtime"]


@pytest.mark.parametrize("model", registered())
def test_every_list_and_every_row_opens(client, administrator, model):
    run = factories.run()
    factories.approval(factories.wait(run, "hot/yes/meanwhile/outreach/approve_vip", "approval", 5))
    factories.mail(run)
    factories.worker()
    factories.result(run, "qualify", 0, 4, output={"score": 82})
    factories.attempt(run, "qualify", 1, 0, 4)
    AuditEntry.objects.create(action="publish", subject="workflow:1")
    page = client.get(reverse(f"admin:runtime_{model}_changelist"))
    assert page.status_code == 200
    for row in admin.site._registry[_model(model)].get_queryset(page.wsgi_request)[:1]:
        assert client.get(reverse(f"admin:runtime_{model}_change", args=[row.pk])).status_code == 200


def test_a_run_shows_its_steps_attempts_waits_and_log(client, administrator):
    run = factories.run()
    factories.result(run, "qualify", 0, 4, output={"score": 82})
    factories.attempt(run, "qualify", 1, 0, 4, "refused", error="529 overloaded")
    factories.log(run, "Asked dana")
    page = client.get(reverse("admin:runtime_run_change", args=[run.pk])).content.decode()
    assert "529 overloaded" in page and "Asked dana" in page and "score" in page


def test_lists_count_no_further_than_anybody_pages(client, administrator):
    factories.run()
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse("admin:runtime_run_changelist"))
    counting = [query["sql"] for query in queries if "COUNT(" in query["sql"] and '"run"' in query["sql"]]
    assert counting and all("LIMIT 2000" in sql for sql in counting)
    assert not any("DISTINCT" in query["sql"] for query in queries)


def test_requeue_asks_with_the_number_and_then_does_it(client, administrator):
    version = factories.version()
    failed = [factories.run(version, state="failed") for _ in range(2)]
    done = factories.run(version, state="succeeded")
    keys = [run.pk for run in (*failed, done)]

    asked = act(client, "requeue", keys)
    assert "Requeue 3 runs?" in asked.content.decode()
    assert not Run.objects.filter(state="open").exists()

    act(client, "requeue", keys, confirmed="1")
    assert set(Run.objects.filter(state="open").values_list("pk", flat=True)) == {run.pk for run in failed}
    assert AuditEntry.objects.filter(action="requeue", actor=administrator).count() == 2
    told = client.get(reverse("admin:runtime_run_changelist")).content.decode()
    assert "Requeued 2 of 3." in told


def test_cancel_and_resend_are_acts_too(client, administrator):
    run = factories.run()
    act(client, "cancel", [run.pk], confirmed="1")
    run.refresh_from_db()
    assert run.state == "cancelled"
    mail = factories.mail(run, state="failed", error="550 no such user")
    act(client, "resend", [mail.pk], model="outboxmessage", confirmed="1")
    mail.refresh_from_db()
    assert mail.state == "queued"


def test_nothing_can_be_changed_or_deleted_by_hand(client, administrator):
    run = factories.run()
    page = reverse("admin:runtime_run_change", args=[run.pk])
    assert client.post(page, {"title": "changed"}).status_code == 403
    assert client.get(reverse("admin:runtime_run_delete", args=[run.pk])).status_code == 403
    assert client.get(reverse("admin:runtime_run_add")).status_code == 403


def test_secrets_do_not_show(client, administrator):
    row = Credential.objects.create(team=factories.team(), name="crm", kind="bearer", secret=b"sealed-bytes", hosts=["crm.example"])
    page = client.get(reverse("admin:runtime_credential_change", args=[row.pk])).content.decode()
    assert "crm.example" in page and "sealed-bytes" not in page and "secret" not in page.lower().replace("secret key", "")


def test_only_superusers_come_in(client):
    client.force_login(factories.user("admin", is_staff=True))
    assert client.get(reverse("admin:runtime_run_changelist")).status_code == 403


@pytest.mark.parametrize("role", [None, *Role])
def test_no_role_of_a_team_acts_there(client, role):
    """Also of those whom somebody has let into the admin site, with every permission of Django's."""
    person = factories.user(role, is_staff=True)
    person.user_permissions.set(Permission.objects.all())
    client.force_login(person)
    run = factories.run(state="failed")
    acts = [(model, action) for model, found in admin.site._registry.items() for action in (*found.actions, "delete_selected")]
    assert len(acts) > 7
    for model, action in acts:
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        data = {"action": action, "_selected_action": [str(run.pk)], "index": "0", "confirmed": "1", "post": "yes"}
        assert client.post(address, data).status_code == 403, action
    run.refresh_from_db()
    assert run.state == "failed" and not AuditEntry.objects.exists()


def test_the_pickles_of_django_q_cannot_be_opened_here(client, administrator):
    assert not any(model._meta.app_label == "django_q" for model in admin.site._registry)


def _model(name: str):
    return next(model for model in admin.site._registry if model._meta.label_lower == f"runtime.{name}")


def test_uncertain_calls_are_settled_in_each_of_the_three_ways(client, administrator):
    run = factories.run(state="attention")
    asked = [factories.wait(run, f"hot/step{n}", "person", 3, data={"reason": "uncertain"}) for n in range(4)]
    other = factories.wait(run, "hot/timer", "timer", 3, due=100)
    assert b"a new Idempotency-Key" in act(client, "again", [asked[1].pk], model="wait").content
    for wait, action in zip(asked, ("happened", "again", "fail"), strict=False):
        act(client, action, [wait.pk, other.pk], model="wait", confirmed="1")
        wait.refresh_from_db()
        assert (wait.state, wait.outcome["answer"]) == ("resolved", action)
    other.refresh_from_db()
    assert other.state == "open" and Run.objects.get(pk=run.pk).state == "attention", "one is asked still"
    assert AuditEntry.objects.filter(action="resolve").count() == 3


def test_a_run_is_taken_from_its_worker_unless_a_call_is_under_way(client, administrator):
    held, calling, waiting = (factories.run(dispatch=how) for how in ("claimed", "claimed", "waiting"))
    factories.attempt(calling, "qualify", 1, 0, None)
    act(client, "release", [held.pk, calling.pk, waiting.pk], confirmed="1")
    states = [Dispatch.objects.get(run_id=run.pk).state for run in (held, calling, waiting)]
    assert states == ["ready", "claimed", "waiting"]
    assert AuditEntry.objects.filter(action="release").count() == 1
