"""Runs of a span of time are found by their numbers, however many there are and however old."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from builder import runfilter, timespan
from builder.commandline import EVERYBODY
from builder.runfilter import Filter
from runtime.models import Run
from tests.builder import factories
from tests.plans import plan_of

pytestmark = pytest.mark.django_db

DAY = datetime(2026, 5, 11, tzinfo=UTC)


@pytest.fixture
def runs() -> list[Run]:
    """One an hour through three days, with gaps between their numbers; those of a transaction that took long come late."""
    version = factories.version()
    made = [factories.run(version, state="succeeded", created_at=DAY + timedelta(hours=n), title=f"T{n}") for n in range(72)]
    Run.objects.filter(pk__in=[run.pk for run in made[10:40]]).delete()
    late = factories.run(version, state="succeeded", created_at=DAY + timedelta(hours=71, minutes=-5), title="late")
    return [*made[:10], *made[40:], late]


def found(query: str) -> list[str]:
    chosen = Filter.of(dict(pair.split("=") for pair in query.split("&")))
    return list(runfilter.matching(EVERYBODY, chosen).order_by("created_at").values_list("title", flat=True))


@pytest.mark.parametrize(("query", "titles"), [
    ("from=2026-05-11T07:00&until=2026-05-11T09:00", ["T7", "T8"]),
    ("until=2026-05-11T02:00", ["T0", "T1"]),
    ("from=2026-05-11T09:00&until=2026-05-12T17:00", ["T9", "T40"]),
    ("from=2026-05-13T22:30", ["late", "T71"]),
    ("from=2026-05-13T22:30&until=2026-05-13T23:00", ["late"]),
    ("from=2026-05-12&until=2026-05-12", []),
    ("from=2031-01-01", []), ("until=2001-01-01", []),
])
def test_a_span_has_what_began_in_it(runs, query, titles):
    assert found(query) == titles


def test_what_is_no_time_is_passed_over(runs):
    for text in ("yesterday", "2026-13-01", "2026-05-11T25:00", "20260511", "9999-99-99", "0000-01-01", "２０２６-05-11"):
        assert Filter.of({"from": text, "until": text}) == Filter()
    assert Filter.of({"from": "2026-05-11"}).query() == "from=2026-05-11T00%3A00"
    with pytest.raises(CommandError):
        call_command("runs", "--since", "yesterday", stdout=io.StringIO())


def test_the_command_line_takes_a_time_as_well(runs):
    out = io.StringIO()
    call_command("runs", "--since", "2026-05-11T07:00", "--until", "2026-05-11T09:00", stdout=out)
    assert [json.loads(line)["title"] for line in out.getvalue().splitlines()] == ["T8", "T7"]


def test_without_runs_nothing_is_found():
    assert timespan.first_since(DAY) == 0 and found("from=2026-05-11") == []


def test_words_are_searched_among_the_latest_of_the_span(runs, monkeypatch):
    monkeypatch.setattr(runfilter, "SEARCHED", 12)
    assert found("q=T3") == [] and found("q=T3&until=2026-05-11T05:00") == ["T3"]
    assert found("trigger=lead&from=2026-05-11T03:00&until=2026-05-11T05:00") == ["T3", "T4"]


def test_finding_a_time_reads_few_runs(runs):
    with CaptureQueriesContext(connection) as queries:
        assert timespan.first_since(DAY + timedelta(hours=41)) == runs[11].pk
    assert len(queries) == 1
    with connection.cursor() as cursor:
        cursor.execute("""
            insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, ended_at)
            select workflow_id, version_id, 'api', '', '{}', 'succeeded', '', false, now(), now() from run, generate_series(1, 300)""")
        cursor.execute("analyze run")
    asked = plan_of(timespan.FIRST_SINCE, {"moment": DAY})
    assert not asked.whole and asked.rows < 50, "one for each halving"


def test_bulk_acts_and_saved_filters_mean_the_same_span(client, runs):
    client.force_login(factories.user("operator"))
    page = client.get("/runs/?from=2026-05-11T07:00&until=2026-05-11T09:00").content.decode()
    assert page.count('name="from" value="2026-05-11T07:00"') == 3, "in the filter, in what keeps it, and in what acts on it"
    assert page.count('name="until" value="2026-05-11T09:00"') == 3
