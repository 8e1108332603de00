"""The drawings in runtime/README.md, the constants and the database tell the same story."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from runtime import models, states
from tests.builder import factories

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
    with connection.cursor() as cursor:
        cursor.execute(
            "select pg_get_constraintdef(oid) from pg_constraint where conrelid = %s::regclass and conname = %s",
            [table, f"{table}_state"],
        )
        (rule,) = cursor.fetchone()
    assert set(re.findall(r"'(\w+)'", rule)) == set(states.values(STATES[table][1]))


# What somebody types into psql. `{now}` is a state; a row of each other state is made whole for it.
MOVE = {
    "run": """with gone as (delete from dispatch where '{now}' not in ('open', 'attention'))
              update run set state = '{now}', ended_at = case when '{now}' in ('open', 'attention') then null else now() end""",
    "dispatch": """update dispatch set state = '{now}', due_at = now(), token = nullif('{now}' = 'claimed', false)::int,
                worker_id = nullif('{now}' = 'claimed', false)::int,
                leased_until = case '{now}' when 'claimed' then now() end""",
    "wait": """update wait set state = '{now}', resolved_at = case '{now}' when 'resolved' then now() end,
            outcome = case '{now}' when 'resolved' then '{{}}'::json end""",
    "outbox": "update outbox set state = '{now}'",
}
INTO = {
    "run": {"failed": ["failed"], "attention": ["attention"], "succeeded": ["succeeded"], "cancelled": ["cancelled"]},
    "dispatch": {"claimed": ["claimed"], "waiting": ["claimed", "waiting"]},
    "wait": {"resolved": ["resolved"], "cancelled": ["cancelled"], "suspended": ["suspended"]},
    "outbox": {"sending": ["sending"], "sent": ["sending", "sent"], "failed": ["sending", "failed"]},
}
"""The way of a new row into a state."""


@pytest.fixture
def rows(db) -> None:
    """One row in each table, as new."""
    run = factories.run(factories.version(), dispatch="ready")
    factories.wait(run, "reply", "callback", 0)
    factories.mail(run)


def typed(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("set constraints all immediate")  # as after a commit: nothing is pending that would refuse it as well
        cursor.execute(statement)


@pytest.mark.parametrize("table", STATES)
def test_the_database_allows_exactly_the_moves_of_the_constants(table, rows):
    moves, every = MACHINES[f"{table}.state"], STATES[table][1]
    for was, now in product(every, every):
        with transaction.atomic():
            for step in INTO[table].get(was, []):
                typed(MOVE[table].format(now=step))
            try:
                typed(MOVE[table].format(now=now))
                allowed = True
            except DatabaseError:
                allowed = False
            assert allowed == (was == now or now in moves[was]), f"{table}: {was} → {now}"
            transaction.set_rollback(True)


@pytest.mark.parametrize("statement", [
    "update run set state = 'succeeded'",
    "update run set ended_at = now()",
    "update run set state = 'gone', ended_at = now()",
    "update dispatch set state = 'claimed'",
    "update dispatch set token = 1",
    "update dispatch set due_at = null",
    "update dispatch set queued = true",
    "update wait set state = 'resolved'",
    "update wait set outcome = '{}'",
    "update wait set kind = 'whim'",
    "update outbox set state = 'lost'",
    "insert into outbox select * from outbox",
    "insert into outbox (run_id, path, take, kind, recipient, occurrence, message_id, payload, state, attempts, error) "
    "select run_id, path, take, kind, recipient, occurrence, message_id, payload, state, attempts, error from outbox",
    "insert into wait select * from wait",
    "insert into dispatch select * from dispatch",
])  # fmt: skip
def test_rows_that_make_no_sense_are_refused(statement, rows):
    with pytest.raises(DatabaseError):
        typed(statement)


@pytest.mark.parametrize("statement", [
    "update version set definition = '{}'", "update version set number = number + 1", "update version set hash = 'x'",
    "delete from version", "truncate version", "truncate version cascade", "truncate workflow cascade", "update run set version_id = null",
])  # fmt: skip
def test_a_published_version_neither_changes_nor_goes_while_a_run_needs_it(statement, rows):
    with pytest.raises(DatabaseError):
        typed(statement)


@pytest.mark.parametrize("statement", ["delete from run", "truncate run cascade"])
@pytest.mark.parametrize("state", ["open", "attention"])
def test_a_run_goes_only_when_it_has_ended(state, statement, rows):
    factories.run(factories.version(), state=state)
    typed("delete from wait")
    typed("delete from dispatch")
    with pytest.raises(DatabaseError, match="not ended|need"):
        typed(statement)
    typed("update run set state = 'failed', ended_at = now()")
    typed("delete from outbox")
    typed(statement)
    assert not models.Run.objects.exists()


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_a_run_ends_with_its_dispatch_row(state, rows):
    ended = f"update run set state = '{state}', ended_at = now()"
    with pytest.raises(DatabaseError, match="dispatch row"):
        typed(ended)
    typed(f"with gone as (delete from dispatch returning run_id) {ended} from gone where id = run_id")
    with pytest.raises(DatabaseError, match="has ended"):
        typed("""insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths, priority, queued, yields)
                 select id, version_id, 'ready', now(), 0, 0, 0, false, 0, 0, false, false from run""")


def test_a_version_that_no_run_needs_can_go(rows):
    typed("delete from wait")
    typed("delete from dispatch")
    typed("delete from outbox")
    typed("update run set state = 'cancelled', ended_at = now()")
    typed("delete from run")
    typed("update workflow set live_version_id = null")
    typed("delete from version")
    assert not models.Version.objects.exists()
