"""Statements whose cost must not follow a run's history. What counts is how much is read, not how long it takes."""

from __future__ import annotations

import pytest
from django.db import connection

from runtime.claims import SUSPECTS
from runtime.journal_sql import ROWS
from runtime.models import Team, Workflow
from runtime.publish import publish
from runtime.step_context import SPENT
from tests.plans import pages_read

NEXT_DUE_OF_A_RUN = "select min(w.due_at + interval '0') from wait w where w.run_id = d.run_id and w.state = 'open'"


@pytest.mark.django_db
def test_a_release_reads_the_open_waits_of_its_run_and_not_all_that_it_ever_had():
    with connection.cursor() as cursor:
        cursor.execute("""
            insert into wait (run_id, scope, path, take, kind, n, state, due_at, data, outcome, created_at, resolved_at)
            select 1, 'each[' || i || ']', 'each[' || i || ']/w', 1, 'timer', 1, 'resolved', now(), '{}', '{}', now(), now()
            from generate_series(1, 20000) i""")
        cursor.execute("""
            insert into wait (run_id, scope, path, take, kind, n, state, due_at, data, created_at)
            select i, '', 'w', 1, 'timer', 1, 'open', now(), '{}', now() from generate_series(1, 5000) i""")
        cursor.execute("analyze wait")
    assert NEXT_DUE_OF_A_RUN in ROWS["release"].sql
    assert pages_read(NEXT_DUE_OF_A_RUN.replace("d.run_id", "1")) < 20


@pytest.mark.django_db
def test_a_look_for_suspects_does_not_read_the_backlog():
    with connection.cursor() as cursor:
        cursor.execute("""
            insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths)
            select i, 1, 'ready', now() - interval '1 hour', 0, 0, (i = 19999)::int, false, 0 from generate_series(1, 20000) i""")
        cursor.execute("analyze dispatch")
    assert pages_read(SUSPECTS.replace("least(lost, %s)", "least(lost, 5)").replace("%s", "'{}'")) < 20


@pytest.mark.django_db
def test_what_a_day_has_cost_is_read_from_the_runs_of_that_day():
    workflow = Workflow.objects.create(team=Team.objects.create(name="Sales"), name="Leads")
    version = publish(workflow, {"format": 1, "name": "Leads", "steps": []})
    with connection.cursor() as cursor:
        for days, number in ((2, 20_000), (0, 20)):
            cursor.execute("""
                insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, ended_at, cost, depth)
                select %s, %s, 'api', '', '{}', 'succeeded', '', false, now() - make_interval(days => %s), now(), 0.5, 0
                from generate_series(1, %s)""", [workflow.pk, version.pk, days, number])
        cursor.execute("analyze run")
        asked = SPENT % {"run": 0, "workflow": workflow.pk}  # of no run, of which another test may have left dead rows
        cursor.execute(asked)
        assert cursor.fetchone() == (0, 10)
    assert pages_read(asked) < 100
