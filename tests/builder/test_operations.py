"""Operations and sent mail: the questions are answered for one's own teams, and acting twice does nothing more."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from builder import operations
from runtime.models import Approval, AuditEntry, Dispatch, Job, OutboxMessage, Pause, Run, Trigger, Wait, Worker
from tests.builder import factories
from tests.builder.factories import DEAL

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    return factories.version()


@pytest.fixture(autouse=True)
def today(monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))


def failed(version, message: str, **more) -> Run:
    error = {"path": DEAL, "step": "deal", "name": "Create deal in CRM", "message": message}
    return factories.run(version, state="failed", ended=60, error=error, **more)


def text(answer) -> str:
    return " ".join(answer.content.decode().split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Timed out after 30 s at 10:04", "Timed out after 31 s at 11:17"),
        ("No user dana@example.com", "No user lee@example.org"),
        ("GET https://crm.example/deals/7 failed", "GET https://crm.example/deals/88?x=1 failed"),
        ("Row 3f2504e0-4f89-41d3-9a0c-0305e82c3301 is gone", "Row 9b2504e0-4f89-41d3-9a0c-0305e82c3399 is gone"),
    ],
)
def test_errors_that_differ_only_in_their_numbers_are_one_kind(one, other):
    assert operations.signature(one) == operations.signature(other)


def test_status_codes_tell_errors_apart():
    assert operations.signature("503 Service Unavailable") != operations.signature("404 Not Found")


def test_failures_are_grouped_and_requeued_together_once(client, operator, version):
    for n in range(3):
        failed(version, f"503 Service Unavailable, try {n} of 5000{n}")
    failed(version, "Output did not match the schema")
    group = operations.failing(operator)[0]
    assert (len(group.runs), group.step, sum(group.slots)) == (3, "Create deal in CRM", 3)
    answer = client.post(reverse("operations_requeue"), {"key": group.key}, follow=True)
    assert "Requeued 3 runs." in text(answer)
    assert Run.objects.filter(state="open").count() == 3
    again = client.post(reverse("operations_requeue"), {"key": group.key}, follow=True)
    assert "nothing was changed" in text(again)


def test_other_teams_failures_are_neither_shown_nor_requeued(client, operator):
    theirs = failed(factories.version(of=factories.team("Finance")), "503 Service Unavailable")
    everywhere = factories.user(None, is_superuser=True)
    group = operations.failing(everywhere)[0]
    assert operations.failing(operator) == []
    client.post(reverse("operations_requeue"), {"key": group.key})
    theirs.refresh_from_db()
    assert theirs.state == "failed"


def test_old_failures_are_not_todays(operator, version):
    old = failed(version, "503")
    Run.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(days=2))
    assert operations.failing(operator) == []


def test_where_everything_is(operator, version):
    factories.run(version, dispatch="claimed")
    factories.run(version, dispatch="ready")
    oldest = factories.run(version, created_at=timezone.now() - timedelta(days=18))
    factories.run(version)
    told = {row["state"]: row for row in operations.everywhere(operator)}
    assert {state: row["number"] for state, row in told.items()} == {"running": 2, "waiting": 2, "attention": 0, "failed": 0}
    assert told["waiting"]["first"] == oldest.pk and told["waiting"]["oldest"] >= timedelta(days=18)


def test_what_is_stuck_says_what_happens_next(operator, version):
    uncertain = factories.run(version, state="attention")
    factories.wait(uncertain, DEAL, "person", 52, data={"reason": "uncertain"})
    expired = factories.run(version, dispatch="claimed")
    Dispatch.objects.filter(pk=expired.pk).update(leased_until=timezone.now() - timedelta(seconds=90))
    overdue = factories.run(version, dispatch="ready")
    factories.run(version, dispatch="claimed")
    rows = operations.stuck(operator)
    assert [row.run.pk for row in rows] == [uncertain.pk, expired.pk, overdue.pk]
    assert (rows[0].step, rows[0].decide, rows[1].worker) == ("Create deal in CRM", True, "w-1")


def test_a_worker_that_is_silent_is_shown_with_what_it_holds(version):
    factories.worker(slots=16, in_flight=9)
    silent = factories.worker(slots=16, in_flight=4)
    Worker.objects.filter(pk=silent.pk).update(beat_at=timezone.now() - timedelta(minutes=2))
    held = factories.run(version, dispatch="claimed")
    Dispatch.objects.filter(pk=held.pk).update(worker_id=silent.pk)
    told = operations.workers()
    assert (told["healthy"], told["busy"], told["slots"]) == (1, 9, 16)
    assert [row["lost"] for row in told["rows"]] == [0, 1]
    assert told["rows"][0]["cells"].count("on") == 9


def test_what_a_silent_worker_holds_is_stuck_before_its_lease_ends_too(client, operator, version):
    silent, alive = factories.worker(), factories.worker()
    Worker.objects.filter(pk=silent.pk).update(beat_at=timezone.now() - timedelta(seconds=17))
    held, fine = factories.run(version, dispatch="claimed"), factories.run(version, dispatch="claimed")
    Dispatch.objects.filter(pk=held.pk).update(worker_id=silent.pk)
    Dispatch.objects.filter(pk=fine.pk).update(worker_id=alive.pk)
    factories.attempt(held, DEAL, 1, 4, None)
    row, = operations.stuck(operator)
    assert (row.run, row.worker, row.step) == (held, f"w-{silent.pk}", "Create deal in CRM") and "happen" in row.words
    assert timedelta(seconds=16) < timezone.now() - row.since < timedelta(minutes=2)
    assert "1 run in its hands, see below" in client.get(reverse("operations")).content.decode()
    Dispatch.objects.filter(pk=held.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
    assert [row.run for row in operations.stuck(operator)] == [held], "once"


def test_a_dead_worker_is_listed_until_another_stands_in_its_place_and_its_runs_are_taken_over(version):
    dead = factories.worker()
    Worker.objects.filter(pk=dead.pk).update(beat_at=timezone.now() - timedelta(minutes=6), started_at=timezone.now() - timedelta(hours=1))
    held = factories.run(version, dispatch="claimed")
    Dispatch.objects.filter(pk=held.pk).update(worker_id=dead.pk)
    listed = lambda: [row["worker"].pk for row in operations.workers()["rows"]]  # noqa: E731
    elsewhere, beside = factories.worker(host="host-2"), factories.worker()
    Worker.objects.filter(pk=beside.pk).update(started_at=timezone.now() - timedelta(hours=1))
    assert listed() == [dead.pk, elsewhere.pk, beside.pk]
    Dispatch.objects.filter(pk=held.pk).delete()
    assert listed() == [dead.pk, elsewhere.pk, beside.pk], "nobody has begun in its place"
    instead = factories.worker()
    assert listed() == [elsewhere.pk, beside.pk, instead.pk] and operations.workers()["healthy"] == 3


def test_failures_that_a_new_run_has_taken_over_are_not_offered_again(client, operator, version):
    first = failed(version, "503 Service Unavailable")
    for state in ("failed", "open"):
        factories.run(version, state=state, rerun_of=first, test=True)
    assert [group.runs for group in operations.failing(operator)] == [[first.pk]]
    factories.run(version, rerun_of=first)
    assert operations.failing(operator) == []


def test_costs_are_summed_by_step(operator, version):
    for cost in ("0.0041", "0.0059"):
        factories.attempt(factories.run(version, state="succeeded"), "qualify", 1, 0, 1, cost=cost)
    factories.attempt(factories.run(version, state="succeeded", test=True), "qualify", 1, 0, 1, cost="9")
    theirs = factories.run(factories.version(of=factories.team("Finance")), state="succeeded")
    factories.attempt(theirs, "qualify", 1, 0, 1, cost="5")
    told = operations.costs(operator)
    assert [(row["name"], row["calls"], str(row["total"])) for row in told["rows"]] == [("Qualify lead", 2, "0.01000000")]


def test_other_teams_crowd_nothing_out(operator, version, monkeypatch):
    ours = factories.run(version, dispatch="claimed")
    theirs = factories.run(factories.version(of=factories.team("Finance")), dispatch="claimed")
    factories.attempt(ours, "qualify", 1, 0, None)
    factories.attempt(theirs, "qualify", 1, -60, None)
    for n in range(201):
        factories.attempt(theirs, f"step{n}", 1, 0, 1, cost="5")
    factories.attempt(factories.run(version, state="succeeded"), "qualify", 1, 0, 1, cost="0.01")
    monkeypatch.setattr("builder.stuck.LISTED", 1)
    assert [row["name"] for row in operations.costs(operator)["rows"]] == ["Qualify lead"]
    assert [(one.run.pk, one.path) for one in operations.stuck(operator)] == [(ours.pk, "qualify")]


def test_the_page_opens_empty_and_full(client, operator, version):
    assert client.get(reverse("operations")).status_code == 200
    failed(version, "<b>503</b>")
    factories.wait(factories.run(version), "hot/no/later", "timer", 5, due=10**9)
    shown = text(client.get(reverse("operations")))
    assert "Requeue 1" in shown and "<b>503</b>" not in shown


def test_it_is_quiet_while_nothing_changes(client, operator, version):
    headers = {"HX-Request": "true"}
    etag = client.get(reverse("operations"), headers=headers)["ETag"]
    same = client.get(reverse("operations"), headers=headers | {"If-None-Match": etag})
    assert same.status_code == 204
    failed(version, "503")
    assert client.get(reverse("operations"), headers=headers | {"If-None-Match": etag}).status_code == 200


# Sent mail


@pytest.fixture
def asked(version):
    run = factories.run(version)
    wait = factories.wait(run, "hot/yes/meanwhile/outreach/approve_vip", "approval", 5, due=10**9)
    approval = factories.approval(wait)
    payload = {"to": ["dana@example.com"], "subject": "VIP outreach?", "text": "Please", "details": [], "others": [], "policy": "any"}
    message = factories.mail(run, kind="approval", path=wait.path, state="sent", payload=payload, sent_at=timezone.now())
    return message, factories.token_of(approval.recipients.get(address="dana@example.com"))


def test_without_a_mail_server_the_link_can_be_used_from_here(client, operator, asked, settings):
    settings.HOLDFAST_EMAIL = None
    message, token = asked
    assert f"/a/{token}/" in text(client.get(reverse("mail", args=[message.pk])))
    assert f"/a/{token}/" in text(client.get(reverse("mail_body", args=[message.pk])))


def test_where_mails_are_really_sent_nobody_else_gets_the_link(client, operator, asked, settings):
    settings.HOLDFAST_EMAIL = {"host": "mail.example"}
    message, token = asked
    for name in ("mail", "mail_body"):
        answer = client.get(reverse(name, args=[message.pk]))
        assert answer.status_code == 200 and token not in text(answer)


def test_the_html_of_a_mail_can_do_nothing(client, operator, asked):
    message, _ = asked
    answer = client.get(reverse("mail_body", args=[message.pk]))
    policy = answer["Content-Security-Policy"]
    assert "sandbox" in policy and "allow-scripts" not in policy and "default-src 'none'" in policy
    assert answer["X-Frame-Options"] == "SAMEORIGIN"


def test_mails_of_other_teams_and_of_no_run_are_not_shown(client, asked):
    client.force_login(factories.user("operator", of=factories.team("Finance")))
    message, _ = asked
    alert = factories.mail(None, "ops@example.com")
    for pk in (message.pk, alert.pk):
        for name in ("mail", "mail_body"):
            assert client.get(reverse(name, args=[pk])).status_code == 404
        assert client.post(reverse("mail_resend", args=[pk])).status_code == 404
    assert "VIP outreach?" not in text(client.get(reverse("sent_mail")))


def test_a_mail_is_sent_again_but_not_at_every_press_of_the_button(client, operator, asked, clock):
    message, _ = asked
    for passed, state in ((9, "sent"), (2, "queued")):
        clock.advance(minutes=passed)
        client.post(reverse("mail_resend", args=[message.pk]))
        after = OutboxMessage.objects.get(pk=message.pk)
        assert (after.state, after.message_id) == (state, message.message_id)


def test_who_may_not_answer_finds_no_link_of_somebody_who_may(client, operator, asked, settings):
    """Where mails stay in the product every operator reads them, and so does who started the run."""
    settings.HOLDFAST_EMAIL = None
    message, token = asked
    Approval.objects.update(rules={"starters": [operator.pk]})
    for name in ("mail", "mail_body"):
        assert token not in text(client.get(reverse(name, args=[message.pk])))
    Approval.objects.update(rules={"starters": [factories.user("operator").pk]})
    assert token in text(client.get(reverse("mail", args=[message.pk])))


def test_the_list_filters_by_state_and_pages_by_key(client, operator, version, monkeypatch):
    monkeypatch.setattr("builder.views.mail.PER_PAGE", 2)
    run = factories.run(version)
    for n in range(3):
        factories.mail(run, f"p{n}@example.com", state="sent")
    factories.mail(run, "bad@example.com", state="failed", error="550 no such user")
    first = client.get(reverse("sent_mail"), {"state": "sent"})
    assert [row["mail"].recipient for row in first.context["rows"]] == ["p2@example.com", "p1@example.com"]
    second = client.get(first.context["older"])
    assert [row["mail"].recipient for row in second.context["rows"]] == ["p0@example.com"]
    assert "550 no such user" in text(client.get(reverse("sent_mail"), {"state": "failed"}))


# Waits, schedules, and what will happen


def test_a_silent_workers_call_is_told_with_what_follows(client, operator, version):
    factories.worker()
    run = factories.run(version, dispatch="claimed")
    Dispatch.objects.filter(pk=run.pk).update(leased_until=timezone.now() - timedelta(seconds=90))
    factories.attempt(run, "hot/yes/meanwhile/outreach/deal", 1, 0, None)
    assert [(row.step, row.words) for row in operations.stuck(operator)] == [
        ("Create deal in CRM", "A person will be asked: did it happen?")]  # fmt: skip
    Worker.objects.all().delete()
    assert "no worker is alive" in operations.stuck(operator)[0].words


def test_a_call_that_takes_long_is_no_progress(operator, version, monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=15))
    factories.attempt(factories.run(version, dispatch="claimed"), "qualify", 1, 0, None)
    assert [row.step for row in operations.stuck(operator)] == ["Qualify lead"]


def test_the_board_of_waits_is_paged_and_by_kind(client, operator, version, monkeypatch):
    monkeypatch.setattr("builder.waitboard.PER_PAGE", 2)
    run = factories.run(version)
    for n in range(3):
        factories.wait(run, f"each[{n}]/add", "timer", n, due=10**9)
    factories.approval(factories.wait(run, "hot/yes/meanwhile/outreach/approve_vip", "approval", 9, due=10**9))
    factories.wait(factories.run(factories.version(of=factories.team("Finance"))), "x", "timer", 1)
    first = client.get("/operations/waits/")
    assert "dana@example.com" in text(first) and len(first.context["rows"]) == 2
    second = client.get(first.context["older_url"])
    assert len(second.context["rows"]) == 2 and not second.context["older_url"]
    assert len(client.get("/operations/waits/?kind=approval").context["rows"]) == 1
    assert client.get("/operations/waits/?kind=nonsense&before=x").status_code == 200


def test_what_waits_can_be_ended_made_longer_and_handed_on_from_the_list(client, operator, version):
    run = factories.run(version)
    wait = factories.wait(run, "hot/yes/meanwhile/warm/two_days", "timer", 1, due=10**9)
    late = factories.wait(run, "hot/no/later", "timer", 2, due=2)
    approval = factories.approval(factories.wait(run, "hot/yes/meanwhile/outreach/approve_vip", "approval", 3, due=10**9))
    page = client.get("/operations/waits/?kind=timer")
    assert text(page).count("overdue") == 1 and [row["overdue"] for row in page.context["rows"]] == [True, False]
    asked = client.get("/operations/waits/?kind=approval").content.decode()
    assert f'/approvals/{approval.pk}/?next=/operations/waits/%3Fkind%3Dapproval&amp;instead=1"' in asked
    assert "<details class=\"card pad mt-16\" open><summary>Ask somebody else" in client.get(f"/approvals/{approval.pk}/?instead=1").content.decode()
    back = {"next": "/operations/waits/?kind=timer"}
    longer = client.post(reverse("run_wait", args=[run.pk, wait.pk]), {**back, "act": "extend", "hours": "24"})
    assert longer["Location"] == back["next"] and Wait.objects.get(pk=wait.pk).due_at == wait.due_at + timedelta(days=1)
    client.post(reverse("run_wait", args=[run.pk, late.pk]), {**back, "act": "fire"})
    assert Wait.objects.get(pk=late.pk).state == "resolved"


def test_schedules_say_what_starts_next(client, operator, version):
    Trigger.objects.create(workflow=version.workflow, key="daily", type="schedule", next_at=timezone.now() + timedelta(hours=2))
    Trigger.objects.create(workflow=version.workflow, key="late", type="schedule", next_at=timezone.now() - timedelta(hours=2))
    assert [row["late"] for row in operations.schedules(operator)] == [True, False]
    assert "due now" in text(client.get("/operations/"))


def test_many_failed_alike_are_requeued_in_the_background(client, operator, version, monkeypatch):
    monkeypatch.setattr("builder.views.operations.AT_ONCE", 2)
    runs = [failed(version, "503 Service Unavailable") for _ in range(3)]
    group = operations.failing(operator)[0]
    answer = client.post(reverse("operations_requeue"), {"key": group.key})
    job = Job.objects.get()
    assert answer.url == reverse("job", args=[job.pk]) and job.runs == [run.pk for run in runs]


def test_all_work_is_paused_and_resumed_by_administrators_of_the_installation(client):
    client.force_login(factories.user("admin"))
    assert client.post(reverse("operations_pause")).status_code == 403
    assert "Pause all work" not in client.get(reverse("operations")).content.decode()
    chief = factories.user(None, is_superuser=True)
    client.force_login(chief)
    assert "Pause all work" in client.get(reverse("operations")).content.decode()
    factories.run(dispatch="ready")
    for _ in range(2):
        client.post(reverse("operations_pause"), {"why": "<the CRM> is down"})
    assert operations.stuck(chief)[0].words.startswith("Nobody takes it: all work is paused")
    assert AuditEntry.objects.filter(action="pause_all", actor=chief).count() == 1
    page = client.get(reverse("runs")).content.decode()
    assert "All work is paused since" in page and "&lt;the CRM&gt; is down" in page and "Resume all work" in page
    client.force_login(factories.user("viewer"))
    page = client.get(reverse("flows")).content.decode()
    assert "All work is paused since" in page and "Resume all work" not in page
    client.force_login(chief)
    client.post(reverse("operations_pause"), {"resume": "1"})
    assert "All work is paused since" not in client.get(reverse("runs")).content.decode()
    told = io.StringIO()
    call_command("pause", why="from the command line", stdout=told)
    assert Pause.objects.get().why == "from the command line"
    call_command("pause", stdout=told)
    call_command("resume", stdout=told)
    assert not Pause.objects.exists()
    rows = [json.loads(line) for line in told.getvalue().splitlines()]
    assert [(row["paused"], row["changed"]) for row in rows] == [(True, True), (True, False), (False, True)]
