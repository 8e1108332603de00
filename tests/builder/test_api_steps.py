"""A page of a long run's steps costs what the page holds."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from builder.api.errors import Refused
from builder.api.steps import steps_of
from tests.builder import factories
from tests.plans import pages_read

pytestmark = pytest.mark.django_db


def test_a_page_of_steps_reads_no_other_pages_attempts_and_the_last_tells_what_is_in_flight():
    run = factories.run()
    with connection.cursor() as cursor:
        for table, more, values in (
            ("attempt", "n, operation, outcome, ended_at", "1, 'call', 'answered', now()"),
            ("step_result", "step, state, finished_at, superseded", "'add', 'succeeded', now(), false"),
        ):
            cursor.execute(
                f"""insert into {table} (run_id, scope, path, take, token, started_at, {more})
                    select %s, 'each[' || i || ']', 'each[' || i || ']/add', 1, 1, now(), {values}
                    from generate_series(0, 9999) i""", [run.pk],
            )  # fmt: skip
        cursor.execute("analyze attempt, step_result")
    factories.frame(run, "each", total=10_001, cursor=10_001, open=[10_000])
    factories.attempt(run, "each[10000]/add", 1, 60, None)
    with CaptureQueriesContext(connection) as asked:
        first, cursor_text = steps_of(run, None, 10)
        last, nothing_more = steps_of(run, _late(cursor_text), 10)
    assert len(first) == 10 and all(step["attempts"] for step in first)
    assert nothing_more is None and last[-1]["path"] == "each[10000]/add" and last[-1]["state"] == "running"
    for query in asked.captured_queries:
        assert pages_read(query["sql"]) < 300, query["sql"]


def test_nothing_runs_in_a_run_that_has_ended():
    run = factories.run(state="cancelled")
    factories.attempt(run, "qualify", 1, 1, None)
    assert [(step["path"], step["state"]) for step in steps_of(run, None, 10)[0]] == [("qualify", "cancelled")]


def _late(cursor_text: str) -> str:
    from base64 import urlsafe_b64encode

    assert cursor_text
    return urlsafe_b64encode(json.dumps(["each[9998]", "each[9998]/add", 1]).encode()).decode()


@pytest.mark.parametrize(
    "told", ["", "x", "null", "[]", "5", '["", "", null]', '["", "", 1e400]', f'["", "", {10**30}]', f'["", "", {2**40}]', '["\\ud800", "", 1]', '["\\u0000", "", 1]', "[" * 1_400],
)  # fmt: skip
def test_a_cursor_that_is_none_of_ours_is_told_so(told):
    run = factories.run()
    for text in (urlsafe_b64encode(told.encode()).decode(), told, "é"):
        with pytest.raises(Refused) as refused:
            steps_of(run, text, 10)
        assert refused.value.status == 422
