"""The drawings in runtime/README.md, the constants and the database tell the same story."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runtime import models, states

README = Path(__file__).parents[2] / "runtime" / "README.md"
MACHINES = {
    "run.state": states.RUN_MOVES,
    "dispatch.state": states.DISPATCH_MOVES,
    "wait.state": states.WAIT_MOVES,
    "outbox.state": states.OUTBOX_MOVES,
}
STATES = {
    "run": (models.Run, states.RunState),
    "dispatch": (models.Dispatch, states.DispatchState),
    "wait": (models.Wait, states.WaitState),
    "outbox": (models.OutboxMessage, states.OutboxState),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_drawing_shows_exactly_the_moves_of_the_constants(name):
    section = README.read_text().partition(f"### {name}\n")[2].partition("```\n")[0]
    drawn = set(re.findall(r"^ +(\w+) --> (\w+)$", section, re.M))
    assert drawn == {(str(origin), str(target)) for origin, targets in MACHINES[name].items() for target in targets}


@pytest.mark.parametrize("table", STATES)
def test_the_database_allows_exactly_the_states_of_the_constants(table, db):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "select pg_get_constraintdef(oid) from pg_constraint where conrelid = %s::regclass and conname = %s",
            [table, f"{table}_state"],
        )
        (rule,) = cursor.fetchone()
    assert set(re.findall(r"'(\w+)'", rule)) == set(states.values(STATES[table][1]))
