"""A run that real workers took to its end goes the same way when it is walked again, and nothing is called; each step's
names are found again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from builder.replaying import compared
from runtime.models import Attempt, Run
from runtime.replay import NotRemembered, names_at, remembered, replayed

YES_NO = [
    {"id": "yes", "when": "steps.total.output.sum > 5", "steps": [
        {"id": "big", "type": "set", "config": {"values": {"is": "big"}}}]},
    {"id": "no", "steps": [{"id": "small", "type": "probe", "config": {"note": "small"}}]},
]  # fmt: skip
ONE_MORE = "{{ loop.index == 0 ? 1 : loop.last.count.output.n + 1 }}"
WHY = {"values": {"why": "{{ steps.bad.error.message }}"}}
ALL = {"all": "{{ steps.each.output.results }}"}
STEPS: list[dict[str, Any]] = [
    {"id": "ask", "type": "probe", "config": {"value": {"n": 4, "list": [1, 2, 3]}}},
    {"id": "total", "type": "set", "config": {"values": {"sum": "{{ steps.ask.output.n + 2 }}"}}},
    {"id": "size", "type": "condition", "branches": YES_NO},
    {"id": "each", "type": "loop", "steps": [
        {"id": "call", "type": "probe", "config": {"note": "{{ loop.item }}", "value": {"got": "{{ loop.item }}"}}},
        {"id": "double", "type": "set", "config": {"values": {"v": "{{ steps.call.output.got * 2 }}"}}}],
     "config": {"items": "steps.ask.output.list", "collect": "steps.double.output.v"}},
    {"id": "until", "type": "loop", "config": {"while": "loop.index < 3", "max": 9}, "steps": [
        {"id": "count", "type": "set", "config": {"values": {"n": ONE_MORE}}}]},
    {"id": "both", "type": "parallel", "branches": [
        {"id": "a", "steps": [
            {"id": "bad", "type": "probe", "retry": {"max_attempts": 1}, "config": {"fail": 9, "note": "bad"},
             "on_error": {"steps": [{"id": "said", "type": "set", "config": WHY}]}}]},
        {"id": "b", "steps": [{"id": "reply", "type": "callback"}]}]},
    {"id": "end", "type": "stop", "config": {"outcome": "succeeded", "message": "Done", "output": ALL}},
]  # fmt: skip


@pytest.fixture
def run(engine, clock) -> Run:
    number = engine.start(engine.publish(STEPS, title="{{ trigger.body.who }}"), {"who": "Ada"})
    engine.worker()
    engine.drive(clock, [number], lambda: engine.state(number) not in ("open", "attention"))
    engine.ends(number)
    return Run.objects.select_related("workflow", "version").get(pk=number)


def changed(run: Run, **by_step: Any) -> dict[str, Any]:
    """The run's definition with the settings of some steps replaced."""
    definition = deepcopy(run.version.definition)

    def visit(steps: list[dict[str, Any]]) -> None:
        for step in steps:
            if step["id"] in by_step:
                step["config"] = by_step[step["id"]]
            visit(step.get("steps") or [])
            for branch in step.get("branches") or []:
                visit(branch["steps"])

    visit(definition["steps"])
    return definition


def test_a_run_goes_the_same_way_again_and_another_version_tells_where_not(engine, run):
    calls = Attempt.objects.filter(run_id=run.pk).count()
    memo = remembered(run)
    walked = replayed(run, run.version.definition, memo)
    assert (walked.state, walked.output, walked.title) == ("succeeded", {"all": [2, 4, 6]}, "Ada")
    assert {key: (one.state, one.output) for key, one in walked.results.items()} == {
        key: (row.state, row.output) for key, row in memo.items()
    }
    assert compared(run, run.version.definition) == []

    # A step moved into another lane keeps what it gave; a value that is evaluated shows wherever it goes.
    found = compared(run, changed(run, total={"values": {"sum": "{{ steps.ask.output.n + 1 }}"}}))
    assert [(one.what, one.path, one.was, one.now) for one in found] == [
        ("output", "total", 6, 5),
        ("lane", "size", "yes", "no"),
        ("nothing remembered", "size/no/small", None, "it would run here, which it never did"),
        ("end", "", "succeeded", "waits"),
    ]
    # What a call would be given, in each iteration.
    found = compared(run, changed(run, call={"note": "no. {{ loop.item }}", "value": {"got": "{{ loop.item }}"}}))
    assert [(one.what, one.path, one.field, one.now) for one in found] == [
        ("input", f"each[{n}]/call", "note", f"no. {n + 1}") for n in range(3)
    ]
    # What cannot be filled in any more fails, as it would in a run.
    found = compared(run, changed(run, call={"note": "{{ loop.item.name }}"}))
    assert found[0].what == "failure" and found[0].path == "each[0]/call"
    assert Attempt.objects.filter(run_id=run.pk).count() == calls, "something was called"

    # The names of every step that ran are those that it had.
    assert names_at(run, "total")["steps"]["ask"]["output"]["n"] == 4
    inside = names_at(run, "each[1]/double")
    assert inside["loop"] == {"item": 2, "index": 1} and inside["steps"]["call"] == {"output": {"got": 2}}
    assert "both" not in inside["steps"] and inside["steps"]["size"] == {"output": {"branch": "yes"}}
    last = {"count": {"output": {"n": 2}}}
    assert names_at(run, "until[2]/count")["loop"] == {"item": None, "index": 2, "last": last}
    assert names_at(run, "size")["steps"]["total"] == {"output": {"sum": 6}}
    assert names_at(run, "both/a/bad/on_error/said")["steps"]["bad"]["error"]["message"] == "Not at attempt 1."
    assert names_at(run, "end")["steps"]["each"]["output"]["results"] == [2, 4, 6]
    for wrong in ("each[7]/call", "size/no/small", "each", "nothing"):
        with pytest.raises(NotRemembered):
            names_at(run, wrong)
