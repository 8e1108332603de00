"""Differences are told by step, and a step that merely made room is not called moved."""

from __future__ import annotations

from copy import deepcopy

from builder import changewords
from builder.diff import changes, marks
from builder.editing import apply
from builder.sequences import longest_common

FLOW = {
    "format": 1,
    "name": "Flow",
    "triggers": [{"id": "t", "type": "manual"}],
    "steps": [
        {"id": "a", "type": "delay", "config": {"for": "1h"}},
        {"id": "b", "type": "condition", "branches": [{"id": "yes", "when": "true", "steps": [{"id": "c", "type": "delay", "config": {"for": "1h"}}]}, {"id": "no", "steps": []}]},
        {"id": "d", "type": "delay", "config": {"for": "1h"}},
    ],
}


def told(operation):
    return [(change.kind, change.owner) for change in changes(FLOW, apply(FLOW, operation).definition)]


def test_nothing_changed():
    assert changes(FLOW, deepcopy(FLOW)) == []


def test_each_operation_is_told_by_the_step_it_touched_alone():
    assert told({"op": "insert", "type": "email", "place": {"index": 0}}) == [("added", "e_mail")]
    assert told({"op": "remove", "step": "b"}) == [("removed", "b"), ("removed", "c")]
    assert told({"op": "move", "step": "a", "place": {"index": 3}}) == [("moved", "a")]
    assert told({"op": "move", "step": "c", "place": {"index": 0}}) == [("moved", "c")]
    assert told({"op": "add_trigger", "type": "api"}) == [("added", "api")]
    assert told({"op": "configure_workflow", "set": {"title": "x"}}) == [("changed", "")]


def test_fields_are_told_with_what_they_were_and_are():
    after = apply(FLOW, {"op": "configure", "step": "a", "set": {"config.for": "2h", "name": "Wait"}}).definition
    [change] = changes(FLOW, after)
    assert {(field.field, field.before, field.after) for field in change.fields} == {("config.for", "1h", "2h"), ("name", None, "Wait")}


def test_a_rule_belongs_to_its_condition_and_not_to_the_steps_inside():
    after = apply(FLOW, {"op": "configure", "step": "b", "set": {"branches.0.when": "false"}}).definition
    [change] = changes(FLOW, after)
    assert change.owner == "b" and [field.field for field in change.fields] == ["lanes.yes.when"]


def test_cards_are_marked_only_when_there_is_a_live_version():
    after = apply(FLOW, {"op": "insert", "type": "email", "place": {"index": 0}}).definition
    after = apply(after, {"op": "configure", "step": "a", "set": {"name": "Wait"}}).definition
    assert marks(FLOW, after) == {"e_mail": "New", "a": "Edited"}
    assert marks(None, after) == {}


def test_the_longest_common_order():
    assert longest_common(list("abcd"), list("bcda")) == list("bcd")
    assert longest_common(list("dabc"), list("abcd")) == list("abc")
    assert longest_common(["x"], ["y"]) == []


CALL = {
    "id": "call", "type": "http", "name": "Create deal", "on_interrupted": "repeat", "retry": {"max_attempts": 3},
    "config": {"method": "POST", "url": "https://crm.example/deals", "json": {"email": "a"}},
}  # fmt: skip
CHECK = {"check": {"request": {"url": "https://crm.example/deals"}, "happened": "true", "after": "30s"}}


def in_words(before, after):
    pair = ({"format": 1, "name": "Flow", "triggers": [], "steps": [step]} for step in (before, after))
    return [(one.field, one.before, one.after) for change in changes(*pair) for one in changewords.told(change)]


def test_changes_are_told_in_the_words_of_the_panel():
    def changed(**values):
        return in_words(CALL, {**CALL, **values})

    assert changed(on_interrupted="ask") == [("If interrupted", "repeat", "ask a person")]
    assert changed(on_interrupted=CHECK) == [("If interrupted", "repeat", "check first")]
    assert changed(on_interrupted=None) == [("If interrupted", "repeat", "as usual")]
    assert changed(on_error="continue") == [("If it fails", "Fail the run", "Go on without its output")]
    assert changed(retry={"max_attempts": 5}) == [("Attempts", "3", "5")]
    assert changed(config={**CALL["config"], "json": {"email": "b"}}) == [("Body: email", "a", "b")]
    assert changed(config={**CALL["config"], "response": "auto"}) == [("Read the answer as", None, "JSON or text")]
    assert changed(off=True) == [("Switched off", None, "yes")]


def test_changes_of_a_plugin_that_is_gone_are_told_by_their_names():
    before = {"id": "x", "type": "gone", "config": {"a": {"b": 1}}}
    assert in_words(before, {**before, "config": {"a": {"b": 2}}}) == [("config.a.b", "1", "2")]


def test_fields_are_called_as_the_panel_calls_them():
    named = [changewords.field_title("http", name) for name in ("url", "json.email", "headers", "no_such")]
    assert named == ["Address", "Body: email", "Headers", "no_such"]
    assert changewords.field_title("webhook", "signature.kind") == "Signature"


def test_notes_are_told_by_their_text():
    added = apply(FLOW, {"op": "add_note", "text": "Ask Dana", "beside": "a"}).definition
    [change] = changes(FLOW, added)
    assert (change.kind, change.name, [(one.field, one.after) for one in changewords.told(change)]) == ("added", "Note", [("Text", "Ask Dana"), ("Beside", "a")])
    [change] = changes(added, apply(added, {"op": "change_note", "note": "note", "text": "Ask Lee"}).definition)
    assert (change.kind, [(one.before, one.after) for one in changewords.told(change)]) == ("changed", [("Ask Dana", "Ask Lee")])
    [change] = changes(added, apply(added, {"op": "remove_note", "note": "note"}).definition)
    assert change.kind == "removed" and marks(FLOW, added) == {}
