"""Looks into the queue: few pages, however much is due or cannot be cleared away."""

from __future__ import annotations

import psycopg
import pytest

from runtime import looks
from runtime.looks import WHOLE, Pace, Places
from tests.plans import blocks_of_a_claim

DUE = """
insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths)
select n, 1, 'ready', now() - interval '1 hour', 0, 0, 0, false, 0 from generate_series(%s::int, %s::int) n
"""


@pytest.fixture
def own(transactional_db, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("alter table dispatch set (autovacuum_enabled = off)")  # as in the first minute of a backlog
        yield connection
        connection.execute("alter table dispatch reset (autovacuum_enabled)")


@pytest.mark.parametrize("before", [0, 100])
@pytest.mark.parametrize("asked", [{}, {"least": 1, "most": 1}], ids=["usual", "suspects"])
def test_of_a_backlog_that_no_statistics_know_a_claim_reads_what_it_takes(own, asked, before):
    """What is known is a queue that was empty, or one of a hundred: a claim that was planned for it sorted the whole backlog."""
    own.execute(DUE, [50_001, 50_000 + before])
    own.execute("vacuum analyze dispatch")
    blocks_of_a_claim(own, 10, **asked)
    own.execute(DUE, [1, 30_000])
    own.execute("update dispatch set lost = 1 where run_id in (7, 11)")
    assert blocks_of_a_claim(own, 10, **asked) < 400


def test_a_look_that_became_dear_begins_where_the_last_one_came_to(own, database_url):
    with psycopg.connect(database_url) as old:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from dispatch")
        own.execute(DUE, [1, 20_000])
        place = own.execute("select priority, due_at, run_id from dispatch where run_id = 20000").fetchone()
        own.execute("delete from dispatch")
        own.execute(DUE, [20_001, 20_010])
        places = Places()
        places.come_to([place])
        places.pace.took(3)
        assert places.after() is not WHOLE
        least, most = (blocks_of_a_claim(own, 10, **after) for after in (places.after(), WHOLE))
        old.rollback()
    assert least < 200 < 500 < most


def test_what_comes_to_stand_before_that_place_is_found_by_the_next_whole_look(own, monkeypatch):
    now = 100.0
    monkeypatch.setattr(looks.time, "monotonic", lambda: now)
    places = Places()
    places.come_to([(0, own.execute("select now()").fetchone()[0], 7)])
    assert places.after() is WHOLE
    places.pace.took(0.3)
    assert places.after() is not WHOLE
    now += 5.9
    assert places.after() is not WHOLE
    now += 0.2
    assert places.after() is WHOLE
    places.pace.took(3600)
    now += looks.LONGEST_SECONDS
    assert places.after() is WHOLE
    places.pace.took(looks.CHEAP_SECONDS / 2)
    assert places.after() is WHOLE


def test_each_priority_has_a_place_of_its_own_and_a_whole_look_may_take_it_back(own):
    first, later = (own.execute("select now() + %s * interval '1 minute'", [n]).fetchone()[0] for n in (0, 1))
    places = Places()
    places.come_to([(0, later, 5), (0, first, 9), (-9, first, 3)])
    places.pace.took(60)
    after = places.after()
    assert (after["after_due"][9], after["after_run"][9]) == (later, 5)
    assert (after["after_due"][0], after["after_run"][0]) == (first, 3)
    assert after["after_due"][18] is None and len(after["after_due"]) == 19
    places.come_to([(0, first, 1)])
    assert (after["after_due"][9], after["after_run"][9]) == (first, 1)


def test_a_pace_forgives_what_was_done_with_many_rows():
    pace = Pace()
    pace.took(0.029, rows=500)
    assert pace.whole()
    pace.took(0.029, rows=5)
    assert not pace.whole()
