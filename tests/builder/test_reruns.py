"""Runs that were started again are told together, and what one of them has made good is nobody's business any more."""

from __future__ import annotations

import io
import json
import re
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from builder import operations, reruns
from runtime.models import Run
from tests.builder import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def today(monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))


@pytest.fixture
def chain(operator) -> list[Run]:
    """Failed, again from that, again from that; and twice more from the first."""
    version, error = factories.version(), {"path": "qualify", "step": "qualify", "name": "Qualify lead", "message": "503"}
    made: list[Run] = []
    for before in (None, 0, 1, 0, 0):
        again = made[before] if before is not None else None
        made.append(factories.run(version, state="failed", error=error, rerun_of=again))
        factories.result(made[-1], "qualify", 0, 4, "failed", error=error)
    return made


def succeed(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state="open", ended_at=None, error=None)
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=timezone.now())


def page(client, run: Run):
    return client.get(reverse("run", args=[run.pk]))


def test_a_run_tells_of_all_of_its_origin(client, chain):
    factories.run(chain[0].version, state="failed")
    one, two, three, four, five = (run.pk for run in chain)
    told = {run.pk: {group["word"]: [pk for pk, _ in group["runs"]] for group in page(client, run).context["related"]} for run in chain}
    assert told == {
        one: {"Run again as": [two, three, four, five]},
        two: {"Tried before as": [one], "Run again as": [three, four, five]},
        three: {"Tried before as": [one, two], "Run again as": [four, five]},
        four: {"Tried before as": [one, two, three], "Run again as": [five]},
        five: {"Tried before as": [one, two, three, four]},
    }


def test_what_a_later_one_has_taken_over_is_no_open_business(operator, chain):
    alone = factories.run(chain[0].version, state="failed", error={"message": "503"})
    counted = lambda: next(row["number"] for row in operations.everywhere(operator) if row["state"] == "failed")  # noqa: E731
    listed = lambda: sorted(pk for group in operations.failing(operator) for pk in group.runs)  # noqa: E731
    assert (counted(), listed()) == (2, [chain[4].pk, alone.pk]), "of one origin the last alone: to requeue all does it five times"
    given_up = factories.run(chain[0].version, state="cancelled", rerun_of=chain[4])
    assert (counted(), listed()) == (2, [chain[4].pk, alone.pk]), "what was given up has taken over nothing"
    Run.objects.filter(pk=chain[4].pk).update(state="open", ended_at=None, error=None)
    assert (counted(), listed()) == (1, [alone.pk]), "it goes on"
    Run.objects.filter(pk=chain[4].pk).update(state="failed", ended_at=timezone.now())
    given_up.delete()
    succeed(chain[2])
    assert (counted(), listed()) == (2, [chain[4].pk, alone.pk]), "it failed after it had gone well"
    succeed(chain[4])
    assert (counted(), listed()) == (1, [alone.pk]), "also what stands beside it in the family"


def test_many_are_requeued_without_those_that_a_later_one_has_taken_over(client, operator, chain):
    alone = factories.run(chain[0].version, state="failed", error={"message": "503", "name": "Qualify lead", "step": "qualify"})
    form = {"act": "requeue", "run": [run.pk for run in chain] + [alone.pk]}
    told = client.post(reverse("runs_told"), form).content.decode()
    assert "<b>2 runs</b>" in told and "4 are left out" in told and 'data-number="2"' in told
    answer = client.post(reverse("runs_act"), form, follow=True).content.decode()
    assert "Requeued 2 runs. 4 were left out, since they were started again." in answer
    assert set(Run.objects.filter(state="open").values_list("pk", flat=True)) == {chain[4].pk, alone.pk}


def test_the_command_requeues_none_that_a_later_one_has_taken_over_but_the_one_that_is_named(chain):
    told = io.StringIO()
    call_command("requeue", state="failed", yes=True, stdout=told)
    assert [json.loads(line)["run"] for line in told.getvalue().splitlines()] == [chain[4].pk]
    call_command("requeue", chain[0].pk, stdout=told)
    assert set(Run.objects.filter(state="open").values_list("pk", flat=True)) == {chain[0].pk, chain[4].pk}


def test_a_dialog_warns_of_a_later_one_that_goes_on(client, chain):
    Run.objects.filter(pk=chain[4].pk).update(state="open", ended_at=None, error=None)
    for act in ("run_requeue", "run_rerun"):
        assert f"Run {chain[4].pk:,} is doing this again already" in client.get(reverse(act, args=[chain[0].pk])).content.decode()


def test_a_failed_run_that_was_made_good_says_so_and_offers_a_requeue_last(client, chain):
    address = reverse("run_requeue", args=[chain[0].pk])
    loud = rf'<a class="btn[^>]*href="{address}"'
    before = page(client, chain[0]).content.decode()
    assert len(re.findall(loud, before)) == 2 and "went well" not in before, "in the head and in the panel"
    succeed(chain[2])
    after = page(client, chain[0]).content.decode()
    assert f'went well, as <a href="/runs/{chain[2].pk}/">' in after and "btn--primary" not in after.split('id="run-head"')[1]
    assert not re.findall(loud, after) and f'class="menu__item" href="{address}"' in after
    asked = client.get(address).content.decode()
    assert f"Run {chain[2].pk:,} did this again and went well" in asked and "Requeue" in asked, "it is still possible"
    assert "went well" not in page(client, chain[3]).content.decode(), "that one began later"


def test_a_succeeded_or_unfinished_run_is_not_made_good(chain):
    succeed(chain[0])
    succeed(chain[4])
    first, second = Run.objects.get(pk=chain[0].pk), Run.objects.get(pk=chain[1].pk)
    assert reruns.made_good_by(first, reruns.family(first)) is None
    assert reruns.made_good_by(second, reruns.family(second)) == chain[4].pk


def test_the_pages_of_a_run_say_that_its_flow_is_paused(client, operator):
    run = factories.run(title="A lead")
    line = "Lead qualification is paused and takes no new runs: the &lt;CRM&gt; is down."
    assert line not in page(client, run).content.decode()
    run.workflow.paused, run.workflow.paused_why = True, "the <CRM> is down"
    run.workflow.save()
    assert line in page(client, run).content.decode()
    for role, may in (("viewer", False), ("builder", True)):
        client.force_login(factories.user(role))
        assert ("Take new runs again" in page(client, run).content.decode()) is may


def test_a_failed_run_tells_how_many_of_its_flow_failed_alike(client, operator):
    version = factories.version()
    error = {"path": "qualify", "step": "qualify", "name": "Qualify lead", "message": "503", "kind": "a" * 16}
    alike = [factories.run(version, state="failed", error=error) for _ in range(3)]
    factories.run(version, state="failed", error=error | {"kind": "b" * 16})
    old = factories.run(version, state="failed", error=error)
    Run.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(days=2))
    factories.result(alike[0], "qualify", 0, 4, "failed", error=error)
    told = page(client, alike[0]).content.decode()
    assert f'href="/runs/?state=failed&amp;flow={version.workflow_id}&amp;error={"a" * 16}">2 other runs of this flow</a>' in told
    assert reruns.failed_alike(Run.objects.get(pk=old.pk)) == 3
