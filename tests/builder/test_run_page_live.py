"""The run page while the run goes on: every change is seen, and what looks as before is not sent again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse

from builder.runload import fingerprint
from builder.testwatch import watched
from runtime.models import Dispatch, Run
from tests.builder import factories
from tests.builder.factories import APPROVE

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    return factories.version()


def test_nothing_is_sent_while_nothing_changed(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    live = reverse("run_live", args=[run.pk])
    etag = client.get(live)["ETag"]
    assert client.get(live, headers={"If-None-Match": etag}).status_code == 204


def ending(run: Run) -> Callable[[int], str]:
    """`fingerprint`, at whose moment the run ends."""

    def mark(run_id: int) -> str:
        Dispatch.objects.filter(pk=run.pk).delete()
        Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=factories.at(9))
        return fingerprint(run_id)

    return mark


@pytest.mark.parametrize("view", ["run", "run_live"])
def test_a_run_that_ends_while_its_page_is_made_is_not_shown_as_running_for_ever(client, operator, version, monkeypatch, view):
    run = factories.run(version, dispatch="claimed")
    monkeypatch.setattr("builder.views.runs.page.fingerprint", ending(run))
    shown = client.get(reverse(view, args=[run.pk])).context
    assert shown["etag"] == f'"{fingerprint(run.pk)}"'
    assert shown["shown"]["state"] == "succeeded" and not shown["live"]


def test_a_test_run_that_ends_while_it_is_looked_at_is_not_watched_for_ever(version, monkeypatch):
    run = factories.run(version, dispatch="claimed", test=True)
    monkeypatch.setattr("builder.testwatch.fingerprint", ending(run))
    assert not watched(run.workflow, run.pk)["live"]


def test_whatever_changes_is_seen(version):
    run = factories.run(version, dispatch="claimed")
    seen = {fingerprint(run.pk)}

    def changed(what) -> None:
        what()
        mark = fingerprint(run.pk)
        assert mark not in seen
        seen.add(mark)

    changed(lambda: factories.attempt(run, "qualify", 1, 1, None))
    changed(lambda: run.__class__.objects.filter(pk=run.pk).update(title="Halden"))
    changed(lambda: factories.result(run, "qualify", 1, 4))
    changed(lambda: factories.log(run, "line"))
    changed(lambda: factories.frame(run, "each", total=3, cursor=1, open=[0]))
    changed(lambda: factories.attempt(run, "each[0]/add", 1, 5, None))
    waits = []
    changed(lambda: waits.append(factories.wait(run, APPROVE, "approval", 5, due=10**9)))
    changed(lambda: factories.approval(waits[0]))
    changed(lambda: waits[0].approval.recipients.update(viewed_at=factories.at(9)))
    changed(lambda: Dispatch.objects.filter(pk=run.pk).update(state="waiting", token=None, worker_id=None, leased_until=None))


def test_the_live_answer_brings_marked_parts_and_stops_at_the_end(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    answer = client.get(reverse("run_live", args=[run.pk]))
    body = answer.content.decode()
    assert all(f'data-rev="{part}-' in body for part in ("head", "steps", "panel")) and "Hf-Live" not in answer
    Dispatch.objects.filter(pk=run.pk).delete()
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=factories.at(9))
    assert client.get(reverse("run_live", args=[run.pk]))["Hf-Live"] == "stop"


def test_parts_that_look_as_before_keep_their_mark(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    live = reverse("run_live", args=[run.pk]) + "?step=trigger"

    def marks() -> dict[str, str]:
        body = client.get(live).content.decode()
        return {part: body.split(f'data-rev="{part}-')[1].split('"')[0] for part in ("head", "panel")}

    before = marks()
    factories.attempt(run, "qualify", 1, 1, None)
    assert marks() == before
