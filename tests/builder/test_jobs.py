"""Many runs at once in the background: progress and acts together, exports as files, and filters of the list."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from builder.models import SavedFilter
from runtime import jobs
from runtime.faults import kind_of
from runtime.models import Job, Membership, Run
from tests.builder import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    return factories.version()


@pytest.fixture
def worked(monkeypatch):
    """Do what a worker does with the jobs that are there. Within a test's transaction connections stay open."""
    monkeypatch.setattr(jobs, "close_old_connections", lambda: None)
    monkeypatch.setattr(jobs.connections, "close_all", lambda: None)

    def work() -> None:
        while jobs.work_off(lambda: False):
            pass

    return work


def titles(answer) -> list[str]:
    return [row["run"].title for row in answer.context["rows"]]


def test_many_runs_are_worked_off_in_the_background(client, operator, version, worked, monkeypatch):
    monkeypatch.setattr("builder.views.runs.acts.AT_ONCE", 3)
    monkeypatch.setattr(jobs, "ACTS_AT_ONCE", 2)
    failed = [factories.run(version, state="failed") for _ in range(5)]
    done = factories.run(version, state="succeeded")
    form = {"act": "requeue", "run": [run.pk for run in (*failed, done)], "once": "f"}
    answer = client.post("/runs/acts/", form)
    job = Job.objects.get()
    assert answer.url == client.post("/runs/acts/", form).url == reverse("job", args=[job.pk])
    assert not Run.objects.filter(state="open").exists() and "0 of 6" in client.get(answer.url).content.decode()
    worked()
    job.refresh_from_db()
    assert (job.state, job.done, job.changed) == ("done", 6, 5) and Run.objects.filter(state="open").count() == 5
    page = client.get(answer.url).content.decode()
    assert "6 of 6" in page and "1 not in a state for it" in page
    live = client.get(answer.url, headers={"HX-Request": "true"})
    assert live["Hf-Live"] == "stop"


def test_many_start_again_on_the_version_that_puts_it_right(client, operator, version, worked):
    failed = [factories.run(version, state="failed").pk for _ in range(3)]
    form = {"act": "rerun", "run": failed, "once": "f"}
    told = client.post(reverse("runs_told"), form).content.decode()
    assert "<b>3 runs</b>" in told and "rerun_live" not in told, "nothing newer is live"
    live = factories.version_after(version)
    told = client.post(reverse("runs_told"), form).content.decode()
    assert "3 have a newer one live" in told and 'value="rerun_keep" data-instead checked' in told, "what ended is not done once more"
    answer = client.post(reverse("runs_act"), form | {"act": "rerun_live"}, follow=True).content.decode()
    assert "Start again on the live version" in answer
    worked()
    started = Run.objects.filter(rerun_of__in=failed)
    assert started.count() == 3 and {run.version for run in started} == {live}


def test_what_would_be_done_to_many_is_told_and_not_done(client, operator, version):
    runs = [factories.run(version, state="attention"), factories.run(version), factories.run(version, dispatch="ready")]
    runs += [factories.run(version, state=state, error={"step": "deal", "message": "503"}) for state in ("failed", "failed")]
    hidden = factories.run(factories.version(of=factories.team("Finance")), state="failed")
    told = lambda act: client.post(reverse("runs_told"), {"act": act, "run": [run.pk for run in (*runs, hidden)]}).content.decode()  # noqa: E731
    requeue, cancel = told("requeue"), told("cancel")
    assert "<b>2 runs</b>" in requeue and "Create deal in CRM" in requeue and "3 are in another state" in requeue
    assert "<b>3 runs</b>" in cancel and "2 are in another state" in cancel
    assert all(word in cancel for word in ("Waiting", "Running", "Needs attention"))
    assert "<b>5 runs</b>" in told("rerun") and "v7 · 5 runs" in told("rerun")
    assert "Happened before" not in told("rerun")
    deal = "hot/yes/meanwhile/outreach/deal"
    factories.attempt(runs[3], deal, 1, 4, 5, "refused", error="503")
    factories.attempt(runs[3], deal, 2, 5, 6)
    factories.attempt(runs[4], deal, 1, 4, None, "unknown")
    factories.mail(runs[4], path="hot/yes/meanwhile/outreach/intro")
    again = told("rerun").split("Happened before, and happens once more")[1]
    assert "Create deal in CRM" in again and "2 runs" in again and "1 run<" in again
    assert client.post(reverse("runs_told"), {"act": "export_csv"}).status_code == 400
    assert Run.objects.filter(state="failed").count() == 3 and Run.objects.count() == 6


def test_a_key_or_a_filter_that_no_text_can_hold_asks_for_a_job_all_the_same(client, operator, version):
    factories.run(version, state="succeeded")
    answer = client.post("/runs/acts/", {"act": "export_csv", "all": "1", "q": "", "once": "a\x00b"})
    assert answer.url == reverse("job", args=[Job.objects.get().pk])
    answer = client.post("/runs/acts/", {"act": "export_csv", "all": "1", "q": "c\x00d", "once": "e"})
    assert answer.status_code == 302


@pytest.mark.parametrize("gone", [-1, 1], ids=["its lease is over", "its lease is by a clock that leapt back since"])
def test_a_job_goes_on_where_its_worker_died(operator, version, worked, monkeypatch, gone):
    monkeypatch.setattr(jobs, "ACTS_AT_ONCE", 2)
    runs = [factories.run(version, state="succeeded").pk for _ in range(5)]
    job = jobs.ask("rerun", runs, user=operator, key="k")
    with jobs.connection.cursor() as cursor:
        cursor.execute(jobs.CLAIM)
        claimed = cursor.fetchone()
    assert jobs.turn(*claimed)
    worked()
    assert Run.objects.filter(rerun_of__isnull=False).count() == 2, "another worker holds it"
    Job.objects.update(leased_until=timezone.now() + timedelta(hours=gone))
    worked()
    assert Run.objects.filter(rerun_of__isnull=False).count() == 5
    assert not jobs.turn(*claimed), "the first one is too late"
    assert Job.objects.get(pk=job.pk).changed == 5


def test_a_job_is_stopped(client, operator, version, worked):
    job = jobs.ask("cancel", [factories.run(version).pk], user=operator, key="k")
    client.post(reverse("job_stop", args=[job.pk]))
    client.post(reverse("job_stop", args=[job.pk]))
    worked()
    assert Job.objects.get().state == "stopped" and Run.objects.get().state == "open"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_is_a_file_to_download(client, operator, version, worked, monkeypatch, kind):
    monkeypatch.setitem(jobs.ROWS_AT_ONCE, kind, 2)
    for n in range(4):
        factories.run(version, state="succeeded", title="=1+1" if n == 0 else f"T{n}", output={"n": n}, cost="0.5")
    factories.run(version, title="open")
    page = client.get("/runs/?state=succeeded&key=").context
    form = {"act": f"export_{kind}", "all": "1", "state": page["chosen"].state, "key": page["chosen"].key, "once": page["once"]}
    answer = client.post("/runs/acts/", form)
    job = Job.objects.get()
    assert client.get(reverse("job_file", args=[job.pk])).status_code == 404
    worked()
    assert job.parts.count() == 2
    assert "Download" in client.get(answer.url).content.decode()
    file = client.get(reverse("job_file", args=[job.pk]))
    assert file["X-Content-Type-Options"] == "nosniff" and file["Content-Disposition"].startswith("attachment")
    text = b"".join(file.streaming_content).decode()
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == 4 and rows[0]["title"] == "'=1+1" and rows[1]["version"] == "7"
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        assert [row["output"] for row in rows] == [{"n": n} for n in range(4)] and rows[0]["title"] == "=1+1"


def test_jobs_belong_to_who_asked(client, operator, version):
    job = jobs.ask("cancel", [factories.run(version).pk], user=operator, key="k")
    client.force_login(factories.user("operator"))
    for name in ("job", "job_file"):
        assert client.get(reverse(name, args=[job.pk])).status_code == 404
    assert client.post(reverse("job_stop", args=[job.pk])).status_code == 404
    assert "Cancel" not in client.get(reverse("jobs")).content.decode().partition("<main")[2]


def test_only_what_one_may_operate_is_taken(client, operator, version):
    theirs = factories.run(factories.version(of=factories.team("Finance")), state="succeeded")
    client.post("/runs/acts/", {"act": "rerun", "run": [theirs.pk]})
    assert Job.objects.get().runs == []


def test_old_jobs_and_keys_are_forgotten(operator, version, worked):
    old = jobs.ask("export", [1], user=operator, key="k", format="csv")
    jobs.JobPart.objects.create(job=old, n=0, text="x")
    Job.objects.update(ended_at=timezone.now() - timedelta(days=8), state="done")
    jobs.forget()
    assert not Job.objects.exists()


# Filters


def test_filters_by_version_trigger_key_time_duration_and_cost(client, operator, version, monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))
    other = factories.Version.objects.create(workflow=version.workflow, number=8, definition=version.definition, hash="8")
    factories.run(version, title="old", created_at=timezone.now() - timedelta(days=3))
    factories.run(other, title="v8")
    factories.run(version, title="by hand", trigger_key="hand")
    factories.run(version, title="keyed", idempotency_key="key:order-17")
    factories.run(version, title="slow", state="succeeded", ended=900, cost="0.01")
    factories.run(version, title="dear", state="succeeded", ended=2, cost="2.50")
    for query, found in {
        "version=8": ["v8"], "trigger=hand": ["by hand"], "key=order-17": ["keyed"], "longer=600": ["slow"], "dearer=1.5": ["dear"],
        "since=24h&trigger=lead": ["dear", "slow", "keyed", "v8"], "dearer=0.001&longer=1": ["dear", "slow"],
        "version=x&longer=-1&dearer=nan&since=ever&error=zz": ["dear", "slow", "keyed", "by hand", "v8", "old"],
    }.items():  # fmt: skip
        assert titles(client.get(f"/runs/?{query}")) == found, query


def test_failed_runs_are_found_by_their_kind_of_error(client, operator, version):
    errors = [{"step": "deal", "message": f"503 Service Unavailable after {n} s"} for n in (1000, 2000)]
    errors.append({"step": "deal", "message": "404 Not Found"})
    for n, error in enumerate(errors):
        factories.run(version, state="failed", title=f"T{n}", error=error | {"kind": kind_of(error)})
    assert titles(client.get(f"/runs/?error={kind_of(errors[0])}")) == ["T1", "T0"]


def test_filters_are_kept_by_name_and_person(client, operator):
    client.post(reverse("filter_save"), {"name": " Slow  ones ", "longer": "600", "state": "succeeded"})
    client.post(reverse("filter_save"), {"name": "Slow ones", "longer": "900", "state": "succeeded"})
    for form in ({"name": "", "state": "failed"}, {"name": "All"}):
        client.post(reverse("filter_save"), form)
    kept = SavedFilter.objects.get()
    assert (kept.name, kept.query) == ("Slow ones", "state=succeeded&longer=900")
    assert "Slow ones" in client.get("/runs/").content.decode()
    client.force_login(factories.user("operator"))
    assert "Slow ones" not in client.get("/runs/").content.decode()
    client.post(reverse("filter_delete", args=[kept.pk]))
    assert SavedFilter.objects.exists()


@pytest.mark.parametrize("lost", ["membership", "role", "account"])
def test_who_lost_the_role_gets_no_file_and_nothing_more_is_done_for_them(client, operator, version, worked, lost):
    """Operator of another team still, so that the pages themselves stay open to them."""
    Membership.objects.create(user=operator, team=factories.team("Other"), role="operator")
    done = factories.run(version, state="failed", title="secret")
    file, late = jobs.ask("export", [done.pk], user=operator, key="a", format="csv"), None
    worked()
    address = reverse("job_file", args=[file.pk])
    assert b"secret" in b"".join(client.get(address).streaming_content)
    late = jobs.ask("requeue", [done.pk], user=operator, key="b")
    mine = Membership.objects.filter(user=operator, team=version.workflow.team)
    if lost == "account":
        type(operator).objects.filter(pk=operator.pk).update(is_active=False)
    else:
        mine.delete() if lost == "membership" else mine.update(role="builder")
    worked()
    late.refresh_from_db()
    assert (late.state, Run.objects.get(pk=done.pk).state) == ("stopped", "failed")
    if lost != "account":
        assert client.get(address).status_code == client.get(reverse("job", args=[late.pk])).status_code == 404
        assert not client.get(reverse("jobs")).context["jobs"]


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_text_is_a_formula_in_a_spreadsheet(version, begins):
    run = factories.run(version, title=f"{begins}HYPERLINK(0)")
    cells = next(csv.reader(io.StringIO(jobs.csv_lines([run], header=False))))
    assert cells[4].startswith("'")
