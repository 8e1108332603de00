"""What the measurements rest on: copies of runs are whole, and a snapshot that is held is held."""

from __future__ import annotations

import pytest

from runtime.models import Attempt, Dispatch, LogLine, Run, RunSearch, StepResult
from runtime.starts import start
from tests.bench import history, large, loads
from tests.builder import factories


@pytest.mark.django_db(transaction=True)
def test_copies_of_a_finished_run_have_all_of_its_rows():
    run = factories.run(state="succeeded")
    factories.result(run, "qualify", 0, 4)
    factories.attempt(run, "qualify", 1, 0, 4)
    factories.log(run, "Asked dana")
    RunSearch.objects.create(run_id=run.pk, value="priya@example.com")
    large.copies(run.pk, 30, StepResult, Attempt, LogLine, RunSearch)
    assert Run.objects.filter(state="succeeded", pk__range=(run.pk, run.pk + 30)).count() == 31
    for model in (StepResult, Attempt, LogLine, RunSearch):
        assert len(set(model.objects.values_list("run_id", flat=True))) == model.objects.count() == 31
    assert factories.run(state="open").pk > run.pk + 30, "numbers go on behind the copies"


@pytest.mark.django_db(transaction=True)
def test_all_runs_of_a_backlog_are_due():
    run = start(factories.version(), trigger_key="api", input={"body": {}}).run_id
    large.copies(run, 5000, Dispatch, due=True)
    assert loads.scalar("select count(*) from dispatch where state = 'ready' and due_at <= holdfast_now()") == 5001


@pytest.mark.django_db(transaction=True)
def test_a_held_snapshot_keeps_what_is_dead_from_being_taken_away(database_url):
    def holders() -> int:
        return loads.scalar("select count(*) from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid() "
                            "and state = 'idle in transaction' and datname = current_database()")  # fmt: skip

    with history.held(database_url):
        assert holders() == 1
    assert holders() == 0


def test_what_is_worse_than_in_an_empty_database_is_below_one():
    assert history.as_good("three-step runs a second, of a backlog", 900, 1000) == pytest.approx(0.9)
    assert history.as_good("timer lateness p99", 50, 40) == pytest.approx(0.8)
