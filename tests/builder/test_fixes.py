"""Every fix that is offered takes its problem away, and leaves the rest as it was."""

from __future__ import annotations

import pytest

from builder.board import problems_of
from builder.dataflow import Known
from builder.editing import apply
from runtime.definition import find

DELAY = {"id": "wait", "type": "delay", "config": {"for": "1h"}}


def flow(*steps, **more):
    return {"format": 1, "name": "Flow", "triggers": [], "steps": list(steps), **more}


def lanes(*whens, kind="condition", **more):
    branches = [{"id": f"l{n}", "label": f"L{n}", "steps": [], **({"when": when} if when else {})} for n, when in enumerate(whens)]
    return {"id": "choose", "type": kind, "branches": branches, **more}


MAYBE = lanes("true", None)
MAYBE["branches"][0]["steps"] = [{"id": "made", "type": "set", "config": {"values": {"x": 1}}}]


@pytest.mark.parametrize(("definition", "field", "label"), [
    (flow(lanes(None)), "branches", "Add a lane"),
    (flow(lanes("true", "true")), "branches.1.when", "Remove it"),
    (flow(lanes("true", None, kind="parallel")), "branches.0.when", "Remove it"),
    (flow(DELAY | {"on_interrupted": "ask"}), "on_interrupted", "Remove it"),
    (flow(DELAY | {"config": {"for": "1h", "colour": "red"}}), "config.colour", "Remove it"),
    (flow(triggers=[{"id": "hand", "type": "manual", "config": {"colour": "red"}}]), "config.colour", "Remove it"),
    (flow({"id": "a", "type": "set", "config": {"values": {"x": 1}}}, {"id": "b", "type": "set", "config": {"values": {"y": "{{ steps.a.output.xx }}"}}}), "config.values.y", "Use x"),
    (flow(MAYBE, {"id": "b", "type": "set", "config": {"values": {"y": "{{ steps.made.output.x }}"}}}), "config.values.y", "Else use nothing"),
])  # fmt: skip
def test_a_fix_takes_its_problem_away(definition, field, label):
    before = problems_of(Known(definition), ())
    [problem] = [one for one in before if one.field == field]
    assert problem.fix["label"] == label
    after = problems_of(Known(apply(definition, problem.fix["operation"]).definition), ())
    assert [one for one in after if one.message == problem.message] == []
    assert len(after) <= len(before)


def test_what_may_be_missing_gets_something_in_its_place():
    definition = flow(MAYBE, {"id": "b", "type": "set", "config": {"values": {"y": "{{ steps.made.output.x }}"}}})
    [problem] = problems_of(Known(definition), ())
    fixed = apply(definition, problem.fix["operation"]).definition
    assert find(fixed, "b")["config"]["values"]["y"] == '{{ steps.?made.output.x.orValue("") }}'


def test_a_connection_that_the_team_does_not_have_is_named():
    definition = flow({"id": "call", "type": "http", "config": {"url": "https://crm.example/", "connection": "CRM"}})
    [problem] = problems_of(Known(definition), ())
    assert (problem.step, problem.field, problem.warning) == ("call", "config.connection", True)
    assert "no connection “CRM”" in problem.message
    assert problems_of(Known(definition), {"CRM"}) == []
