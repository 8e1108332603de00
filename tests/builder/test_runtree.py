"""The step table without a database: which lines there are, what state they show, and where their bars stand."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from builder.runlines import busy, lines
from builder.runrows import Iteration, LoopPage, Rows, gathered
from builder.runtree import most_telling, tree
from builder.waterfall import make_axis
from tests.builder.factories import APPROVE, DEAL, LEAD, at

TWO_DAYS = "hot/yes/meanwhile/warm/two_days"


def run(state: str = "open", ended: float | None = None, **more: Any) -> SimpleNamespace:
    given = {"trigger_key": "lead", "created_at": at(0), "started_at": at(0.04), "error": None}
    return SimpleNamespace(state=state, ended_at=None if ended is None else at(ended), **given | more)


def result(path: str, start: float, end: float, state: str = "succeeded", take: int = 1, **more: Any) -> SimpleNamespace:
    given = {"output": None, "error": None, "cost": None, "superseded": False, "kept_from": None}
    return SimpleNamespace(path=path, take=take, state=state, started_at=at(start), finished_at=at(end), **given | more)


def attempt(path: str, n: int, start: float, end: float | None, error: str | None = None, take: int = 1) -> SimpleNamespace:
    ended = None if end is None else at(end)
    told = {"error": error, "cost": None, "tokens_in": None, "outcome": None}
    return SimpleNamespace(path=path, take=take, n=n, started_at=at(start), ended_at=ended, **told)


def wait(path: str, kind: str, start: float, due: float | None = None, state: str = "open", take: int = 1, **more: Any) -> SimpleNamespace:
    given = {"outcome": None, "resolved_at": None, "data": {}, "n": 1, "pk": int(start * 1000)}
    due_at = None if due is None else at(due)
    return SimpleNamespace(path=path, take=take, kind=kind, state=state, created_at=at(start), due_at=due_at, **given | more)


def shown(rows: Rows | None = None, now: float = 60, **of_run: Any):
    nodes = tree(LEAD, rows or Rows(), run(**of_run), at(now))
    return {node.path: node for node in nodes}


def rows(results=(), attempts=(), waits=(), frames=(), loops=None) -> Rows:
    return Rows(gathered(results, attempts, waits, frames), loops or {})


def test_before_anything_ran_every_step_is_there_and_none_has_begun():
    nodes = shown()
    assert [nodes[path].state for path in ("qualify", "hot", "each")] == ["queued"] * 3
    assert nodes["each[]/add"].level == 2


@pytest.mark.fault(41)
def test_the_taken_lane_needs_no_line_and_the_other_is_folded():
    nodes = shown(rows([result("hot", 4.81, 4.82, output={"branch": "yes"})]))
    assert "hot/yes/" not in nodes and nodes["hot/yes/meanwhile"].level == 2
    other = nodes["hot/no/"]
    assert (other.state, other.standing, other.folded, other.aside) == ("skipped", "not taken", True, "2 steps")
    assert nodes["hot/no/later"].hidden and nodes["hot/no/later"].state == "skipped"
    assert nodes["hot"].note.bold == "Yes"


def test_waiting_for_a_worker_is_no_work():
    assert shown(started_at=at(0.04))["trigger"].spans[0].kind == "work"
    assert shown(started_at=at(13))["trigger"].spans[0].kind == "wait"


def test_lanes_took_as_long_as_what_is_in_them():
    """The result of a parallel tells when it was taken up last."""
    while_we_wait = TWO_DAYS.rsplit("/", 2)[0]
    done = shown(rows([result(while_we_wait, 50, 50.04), result(TWO_DAYS, 5, 49)]))[while_we_wait]
    assert (done.spans[0].start, done.time) == (at(5), timedelta(seconds=45.04))


def test_the_first_step_of_a_parallel_lane_carries_its_label():
    nodes = shown(rows([result("hot", 4.81, 4.82, output={"branch": "yes"})]))
    assert (nodes[APPROVE].tag, nodes[TWO_DAYS].tag, nodes[DEAL].tag) == ("Outreach", "Warm-up", "")
    assert nodes["hot/yes/meanwhile"].aside == "2 lanes"


def test_what_waits_makes_what_holds_it_wait():
    nodes = shown(rows(waits=[wait(APPROVE, "approval", 5, due=1000), wait(TWO_DAYS, "timer", 5, due=2000)]))
    assert nodes[APPROVE].state == nodes["hot/yes/meanwhile"].state == "waiting"
    assert nodes[TWO_DAYS].note.moment == at(2000)


def test_an_uncertain_attempt_asks_and_so_does_everything_around_it():
    seen = rows(attempts=[attempt(DEAL, 1, 20, 22, "lost")], waits=[wait(DEAL, "person", 22), wait(TWO_DAYS, "timer", 5, 99)])
    nodes = shown(seen, state="attention")
    assert nodes[DEAL].state == nodes["hot/yes/meanwhile"].state == "attention"
    assert nodes[DEAL].spans[0].kind == "lost"
    assert most_telling(list(nodes.values())) == DEAL


def test_a_retry_that_is_due_is_told_as_now_and_never_as_past():
    before = shown(rows(attempts=[attempt(DEAL, 1, 20, 22, "503")], waits=[wait(DEAL, "retry", 22, due=70)]), now=60)
    assert before[DEAL].note.moment == at(70)
    late = shown(rows(attempts=[attempt(DEAL, 1, 20, 22, "503")], waits=[wait(DEAL, "retry", 22, due=50)]), now=60)
    assert late[DEAL].note.before == "retrying now" and late[DEAL].note.moment is None


def test_failed_attempts_look_different_from_the_one_that_counted():
    tries = [attempt("qualify", 1, 0.1, 1.2, "overloaded"), attempt("qualify", 2, 1.7, 4.8)]
    nodes = shown(rows([result("qualify", 0.1, 4.8)], tries))
    assert [span.kind for span in nodes["qualify"].spans] == ["lost", "work"]
    assert nodes["qualify"].attempts == 2
    assert nodes["qualify"].time == timedelta(seconds=4.7)


@pytest.mark.parametrize(("of_run", "told"), [({}, "under way"), ({"state": "cancelled", "ended": 9}, "its end is not known")])
def test_a_call_without_an_end_is_under_way_while_its_run_is(of_run, told):
    nodes = shown(rows(attempts=[attempt("qualify", 1, 0.1, None)]), **of_run)
    assert [span.title for span in nodes["qualify"].spans] == [f"Attempt 1, {told}"]


def test_a_failure_stops_its_siblings_and_leaves_later_steps_unstarted():
    seen = rows([result(DEAL, 29, 182, "failed")], waits=[wait(TWO_DAYS, "timer", 5, due=9999, state="suspended")])
    nodes = shown(seen, state="failed", ended=182)
    assert nodes[TWO_DAYS].state == "cancelled" and nodes[DEAL].state == "failed"
    assert nodes["hot/yes/meanwhile"].state == "failed" and nodes["each"].state == "queued"
    assert most_telling(list(nodes.values())) == DEAL


def test_a_superseded_failure_is_forgotten_and_the_next_take_counts():
    old = result(DEAL, 29, 182, "failed", superseded=True)
    assert shown(rows([old]))[DEAL].state == "queued"
    again = shown(rows([old], [attempt(DEAL, 1, 200, None, take=2)]), now=201)
    assert again[DEAL].state == "running" and again[DEAL].attempts == 1


def test_run_it_again_shows_before_the_next_take_has_a_row():
    said = wait(DEAL, "person", 22, state="resolved", outcome={"by": "person", "answer": "again"}, resolved_at=at(40))
    assert shown(rows(attempts=[attempt(DEAL, 1, 20, 22, "lost")], waits=[said]))[DEAL].state == "queued"


def test_a_step_that_is_switched_off_says_so():
    definition = {"steps": [{"id": "off", "type": "set", "off": True}]}
    nodes = tree(definition, Rows(), run("succeeded", 9), at(9))
    assert (nodes[1].state, nodes[1].standing) == ("skipped", "switched off")


def test_an_error_lane_shows_once_it_was_entered():
    step = {"id": "call", "type": "http", "on_error": {"steps": [{"id": "tell", "type": "email"}]}}
    definition = {"steps": [step]}
    assert len(tree(definition, Rows(), run(), at(9))) == 2
    entered = rows([result("call", 1, 2, "failed"), result("call/on_error/tell", 2, 3)])
    assert [node.path for node in tree(definition, entered, run(), at(9))][2:] == ["call/on_error/", "call/on_error/tell"]


def page(*states: str, opened: int | None = None, total: int | None = 12, ended: int = 2, **more: Any) -> LoopPage:
    iterations = tuple(Iteration(index, state) for index, state in enumerate(states))
    return LoopPage(total, ended, iterations, opened, **more)


def test_iterations_have_numbers_and_only_the_opened_one_has_steps():
    loops = {"each": page("succeeded", "succeeded", "running", "queued", opened=2, later=4)}
    nodes = shown(rows(attempts=[attempt("each[2]/add", 1, 7, None)], loops=loops))
    assert nodes["each[2]"].name == "Iteration 3 of 12" and nodes["each"].aside == "2 of 12"
    assert nodes["each[2]/add"].state == "running" and nodes["each[2]/add"].level == 3
    assert "each[1]/add" not in nodes and nodes["each[1]"].folded
    assert nodes["each[>]"].index == 4


def test_an_opened_iteration_shows_what_its_steps_do():
    loops = {"each": page("running", opened=0)}
    nodes = shown(rows(attempts=[attempt("each[0]/add", 1, 7, 8, "503")], waits=[wait("each[0]/add", "retry", 8, 99)], loops=loops))
    assert nodes["each[0]"].state == "waiting"


# The axis


def test_work_is_to_scale_and_a_long_wait_is_not():
    axis = make_axis(at(0), at(71_880), [(at(0), at(0.04)), (at(0.1), at(1.2)), (at(1.7), at(4.8))])
    assert axis.shortened
    assert axis.x(at(4)) == pytest.approx(2 * axis.x(at(2)), abs=0.1)
    assert axis.x(at(4.8)) < 60 < axis.now <= 84
    assert [tick.seconds for tick in axis.ticks] == [0, 2, 4]


def test_a_short_run_is_to_scale_throughout():
    axis = make_axis(at(0), at(182), [(at(0), at(4)), (at(26), at(30)), (at(180), at(182))])
    assert not axis.shortened
    assert axis.x(at(91)) == pytest.approx(axis.now / 2, abs=0.01)
    assert [tick.seconds for tick in axis.ticks] == [0, 45, 90, 135]


@pytest.mark.parametrize("total", [0, 0.001, 1, 59, 3_600, 86_400 * 400, 86_400 * 365 * 40])
def test_now_is_on_the_axis_however_long_the_run_took(total):
    axis = make_axis(at(0), at(total), [])
    assert 0 < axis.now <= 84.01 and axis.x(at(total + 99)) == axis.now and axis.x(at(-5)) == 0


def test_words_that_would_be_cut_at_the_right_stand_before_their_bar():
    decided = {"who": "dana.whitfield-hayes@example.com", "decision": "approved"}
    asked = wait(APPROVE, "approval", 50, state="resolved", outcome=decided, resolved_at=at(54))
    seen = rows([result("hot", 4.81, 4.82, output={"branch": "yes"}), result(APPROVE, 50, 54)], waits=[asked])
    nodes = tree(LEAD, seen, run(), at(60))
    drawn = {line.node.path: line for line in lines(nodes, make_axis(at(0), at(60), busy(nodes)))}
    assert drawn[APPROVE].note.before == "dana.whitfield-hayes approved" and drawn[APPROVE].note_before
    assert drawn["hot"].note.bold and not drawn["hot"].note_before


def test_bars_stay_inside_and_what_is_to_come_begins_at_now():
    seen = rows([result("hot", 4.81, 4.82, output={"branch": "yes"})], waits=[wait(APPROVE, "approval", 5, 4_000), wait(TWO_DAYS, "timer", 5, 2_000)])
    nodes = tree(LEAD, seen, run(), at(60))
    axis = make_axis(at(0), at(60), busy(nodes))
    drawn = {line.node.path: line for line in lines(nodes, axis)}
    coming = {path: drawn[path].bars[-1] for path in (APPROVE, TWO_DAYS)}
    assert all(bar.css == "bar--next" and bar.x == axis.now for bar in coming.values())
    assert coming[TWO_DAYS].width < coming[APPROVE].width
    assert all(0 <= bar.x <= 100 and bar.x + bar.width <= 100.1 for line in drawn.values() for bar in line.bars)
