"""The run list: what it shows and finds, how little it reads, and who may act from it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from builder import runfilter, runlist
from builder.runfilter import Filter
from runtime.models import Run
from tests.builder import factories
from tests.builder.factories import APPROVE, DEAL

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    return factories.version()


def titles(answer) -> list[str]:
    return [row["run"].title for row in answer.context["rows"]]


@pytest.mark.fault(39)
def test_the_list_is_newest_first_and_paged_by_key(client, operator, version, monkeypatch):
    monkeypatch.setattr(runlist, "PER_PAGE", 3)
    for number in range(8):
        factories.run(version, state="succeeded", title=f"T{number}")
    first = client.get("/runs/")
    assert titles(first) == ["T7", "T6", "T5"] and not first.context["newer_url"]
    second = client.get(first.context["older_url"])
    assert titles(second) == ["T4", "T3", "T2"]
    last = client.get(second.context["older_url"])
    assert titles(last) == ["T1", "T0"] and not last.context["older_url"]
    assert titles(client.get(last.context["newer_url"])) == ["T4", "T3", "T2"]


def test_states_are_told_apart_by_what_the_run_does_now(client, operator, version):
    factories.run(version, dispatch="claimed", title="R")
    factories.run(version, dispatch="ready", title="Q")
    factories.run(version, dispatch="waiting", title="W")
    for state in ("attention", "failed", "succeeded", "cancelled"):
        factories.run(version, state=state, title=state)
    assert titles(client.get("/runs/?state=running")) == ["Q", "R"]
    assert titles(client.get("/runs/?state=waiting")) == ["W"]
    for state in ("attention", "failed", "succeeded", "cancelled"):
        assert titles(client.get(f"/runs/?state={state}")) == [state]
    assert "Queued" in client.get("/runs/?state=running").content.decode()


@pytest.mark.fault(39)
def test_counts_stop_counting(client, operator, version, monkeypatch):
    monkeypatch.setattr(runlist, "COUNT_TO", 2)
    for _ in range(4):
        factories.run(version, state="failed")
    with CaptureQueriesContext(connection) as queries:
        answer = client.get("/runs/")
    assert {row["state"]: row["count"] for row in answer.context["states"]}["failed"] == "2+"
    counting = [query["sql"] for query in queries if "count(" in query["sql"].lower() and '"run"' in query["sql"]]
    assert counting and all("LIMIT" in sql for sql in counting)


def test_a_run_is_found_by_number_title_and_key(client, operator, version):
    one = factories.run(version, state="succeeded", title="Halden Robotics", idempotency_key="evt_8841")
    factories.run(version, state="succeeded", title="Other")
    for text in (str(one.pk), f"{one.pk:,}", f"Run {one.pk:,}", "halden", "evt_8841"):
        assert titles(client.get("/runs/", {"q": text})) == ["Halden Robotics"]
    assert titles(client.get("/runs/", {"q": "nobody"})) == []
    assert titles(client.get("/runs/", {"q": "9" * 400})) == []


def test_a_run_is_found_by_its_key_however_old(client, operator, version, monkeypatch):
    """A key that a caller of the API chose is kept with a word before it."""
    monkeypatch.setattr(runfilter, "SEARCHED", 1)
    factories.run(version, state="succeeded", title="by hook", idempotency_key="evt_8841")
    factories.run(version, state="succeeded", title="by API", idempotency_key="key:evt_8841")
    factories.run(version, state="succeeded", title="evt_8841")
    assert titles(client.get("/runs/", {"key": "evt_8841"})) == ["by API", "by hook"]
    assert titles(client.get("/runs/", {"q": "evt_8841"})) == ["evt_8841", "by API", "by hook"]
    assert titles(client.get("/runs/", {"q": "hook"})) == []


def test_test_runs_are_shown_only_on_request(client, operator, version):
    factories.run(version, state="succeeded", title="real")
    factories.run(version, state="succeeded", title="trial", test=True)
    assert titles(client.get("/runs/")) == ["real"]
    assert titles(client.get("/runs/?tests=1")) == ["trial", "real"]


def test_the_list_says_where_each_run_stands(client, operator, version):
    waiting = factories.run(version)
    factories.wait(waiting, APPROVE, "approval", 5, due=10**9)
    failed = factories.run(version, state="failed", error={"path": DEAL, "step": "deal", "message": "503 Service Unavailable"})
    for n in range(1, 6):
        factories.attempt(failed, DEAL, n, n * 10, n * 10 + 1, "refused", error="503")
    looping = factories.run(version, dispatch="claimed")
    factories.frame(looping, "each", total=32, cursor=14, open=[13], succeeded=13)
    told = {run: (row.step, row.words, row.tries) for run, row in runlist.standings([waiting, failed, looping]).items()}
    assert told[waiting.pk][:2] == ("Approve VIP outreach", "Waits for an answer, expires")
    assert told[failed.pk] == ("Create deal in CRM", "503 Service Unavailable", 5)
    assert told[looping.pk][:2] == ("For each attendee", "Item 14 of 32")


def test_other_teams_runs_do_not_exist(client, operator, version):
    theirs = factories.run(factories.version(of=factories.team("Finance")), state="failed", title="theirs")
    assert titles(client.get("/runs/?state=failed")) == []
    for name in ("run", "run_live"):
        assert client.get(reverse(name, args=[theirs.pk])).status_code == 404
    for name in ("run_cancel", "run_requeue", "run_rerun"):
        assert client.post(reverse(name, args=[theirs.pk])).status_code == 404
    client.post("/runs/acts/", {"act": "requeue", "run": [theirs.pk]})
    theirs.refresh_from_db()
    assert theirs.state == "failed"


def test_a_list_that_looks_as_before_is_not_sent_again(client, operator, version):
    run = factories.run(version)
    live = {"headers": {"HX-Request": "true"}}
    etag = client.get("/runs/", **live)["ETag"]
    same = {"headers": {"HX-Request": "true", "If-None-Match": etag}}
    assert client.get("/runs/", **same).status_code == 204
    Run.objects.filter(pk=run.pk).update(title="New title")
    assert client.get("/runs/", **same).status_code == 200


def test_many_runs_are_requeued_and_the_rest_is_said(client, operator, version):
    failed = [factories.run(version, state="failed") for _ in range(3)]
    done = factories.run(version, state="succeeded")
    answer = client.post("/runs/acts/", {"act": "requeue", "run": [run.pk for run in (*failed, done)]}, follow=True)
    assert Run.objects.filter(state="open").count() == 3
    assert [str(message) for message in answer.context["messages"]] == ["Requeued 3 of 4; the others were not in a state for it."]


def test_all_that_a_filter_finds_is_taken_on_the_server(client, operator, version, monkeypatch):
    failed = [factories.run(version, state="failed") for _ in range(4)]
    factories.run(factories.version(number=1), state="failed")
    form = {"act": "requeue", "all": "1", "state": "failed", "flow": version.workflow_id}
    client.post("/runs/acts/", form)
    assert set(Run.objects.filter(state="open").values_list("pk", flat=True)) == {run.pk for run in failed}


def test_the_last_day_is_told_by_the_hour(client, operator, version, monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(hours=2, minutes=30))
    for state in ("succeeded", "succeeded", "succeeded", "failed"):
        factories.run(version, state=state, ended=10, cost="0.5")
    factories.run(version, created_at=timezone.now() - timedelta(minutes=5))
    factories.run(version, state="failed", created_at=timezone.now() - timedelta(hours=30))
    factories.run(factories.version(of=factories.team("Finance")), state="failed")
    told = runlist.last_day(operator)
    assert (told["runs"], told["failed"], told["rate"], told["cost"]) == (5, 1, "75.0%", 2)
    assert told["median"] == timedelta(seconds=10)
    assert [bool(bar["up"]) for bar in told["bars"]][-4:] == [False, True, False, True]
    assert [bool(bar["down"]) for bar in told["bars"]][-4:] == [False, True, False, False]
    assert "5 runs, 1 failed" in client.get("/runs/").content.decode()


def test_viewers_look_and_do_not_act(client, version):
    client.force_login(factories.user("viewer"))
    run = factories.run(version, state="failed")
    assert "Requeue" not in client.get(reverse("run", args=[run.pk])).content.decode()
    assert client.post(reverse("run_requeue", args=[run.pk])).status_code == 403
    assert client.post("/runs/acts/", {"act": "requeue", "run": [run.pk]}).status_code == 403
    run.refresh_from_db()
    assert run.state == "failed"


def test_a_filter_survives_in_its_addresses():
    chosen = Filter.of({"state": "failed", "flow": "3", "q": "halden", "tests": "1", "before": "77"})
    assert chosen.query() == "state=failed&flow=3&q=halden&tests=1"
    assert Filter.of({"state": "x", "flow": "-1", "before": "9" * 40}) == Filter()
