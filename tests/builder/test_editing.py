"""Editing: every operation gives a sound definition or names what is wrong, and never touches the one it was given."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.editing import EditError, apply
from builder.editing.ids import fresh, slug
from runtime.definition import check, find, walk
from runtime.shape import Definition
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

LEAD = {
    "format": 1,
    "name": "Lead qualification",
    "triggers": [{"id": "lead", "type": "webhook"}],
    "steps": [
        {"id": "score", "type": "set", "config": {"values": {"points": 82}}},
        {
            "id": "hot",
            "type": "condition",
            "branches": [
                {
                    "id": "yes",
                    "label": "Hot",
                    "when": "steps.score.output.points > 70",
                    "steps": [{"id": "call", "type": "http", "config": {"url": "https://crm.example/{{ steps.score.output.points }}"}}],
                },
                {"id": "else", "label": "Otherwise", "steps": []},
            ],
        },
        {"id": "each", "type": "loop", "config": {"items": "trigger.body.people"}, "steps": [{"id": "add", "type": "delay", "config": {"for": "1h"}}]},
    ],
}


def ids(definition):
    return [step["id"] for step in walk(definition["steps"])]


def test_a_new_step_gets_an_id_from_its_kind_and_a_config_that_works():
    edit = apply(LEAD, {"op": "insert", "type": "delay", "place": {"parent": "hot", "lane": "else", "index": 0}})
    assert find(edit.definition, "delay") == {"id": "delay", "type": "delay", "config": {"for": "1h"}}
    assert (edit.label, edit.focus) == ("Add Delay", "delay")
    assert check(edit.definition) == []


def test_a_place_after_a_step_is_found_wherever_that_step_stands():
    edit = apply(LEAD, {"op": "insert", "type": "delay", "place": {"after": "call"}})
    assert ids(edit.definition) == ["score", "hot", "call", "delay", "each", "add"]


def test_a_new_condition_asks_for_its_rule_instead_of_guessing_one():
    edit = apply(LEAD, {"op": "insert", "type": "condition", "place": {"index": 0}})
    assert [(problem.step, problem.field) for problem in check(edit.definition)] == [("condition", "branches.0.when")]


def test_moving_down_in_the_same_lane_lands_before_the_step_that_was_pointed_at():
    edit = apply(LEAD, {"op": "move", "step": "score", "place": {"index": 2}})
    assert [step["id"] for step in edit.definition["steps"]] == ["hot", "score", "each"]


def test_a_step_cannot_be_moved_into_itself():
    with pytest.raises(EditError, match="into itself"):
        apply(LEAD, {"op": "move", "step": "hot", "place": {"parent": "hot", "lane": "yes", "index": 0}})


def test_a_step_that_is_gone_is_named():
    with pytest.raises(EditError, match="no step “gone”"):
        apply(LEAD, {"op": "remove", "step": "gone"})


def test_renaming_rewrites_references_but_not_prose():
    draft = deepcopy(LEAD)
    call = find(draft, "call")["config"]
    call["body"] = 'about steps.score: {{ steps["score"].output.points }} {{ "steps.score" }} {{ trigger.steps.score }}'
    renamed = apply(draft, {"op": "rename", "step": "score", "id": "rating"}).definition
    assert find(renamed, "hot")["branches"][0]["when"] == "steps.rating.output.points > 70"
    assert find(renamed, "call")["config"]["url"] == "https://crm.example/{{ steps.rating.output.points }}"
    assert find(renamed, "call")["config"]["body"] == (
        'about steps.score: {{ steps["rating"].output.points }} {{ "steps.score" }} {{ trigger.steps.score }}'
    )
    assert check(renamed) == []


@pytest.mark.parametrize("taken", ["hot", "lead", "steps", "Not an id"])
def test_an_id_that_cannot_be_is_refused(taken):
    with pytest.raises(EditError):
        apply(LEAD, {"op": "rename", "step": "score", "id": taken})


def test_an_id_follows_the_name_as_long_as_it_came_from_one():
    first = apply(LEAD, {"op": "configure", "step": "add", "set": {"name": "Wait for them"}, "follow": True})
    assert first.focus == "add", "an id that somebody chose stays"
    draft = apply(LEAD, {"op": "insert", "type": "http", "place": {"index": 1}}).definition
    draft = apply(draft, {"op": "configure", "step": "api_call", "set": {"name": "Create deal"}, "follow": True})
    assert draft.focus == "create_deal" and find(draft.definition, "api_call") is None


def test_a_copy_speaks_of_its_own_steps_and_of_the_others_as_before():
    draft = apply(LEAD, {"op": "duplicate", "step": "hot"}).definition
    copy = find(draft, "hot_2")
    assert copy["branches"][0]["when"] == "steps.score.output.points > 70"
    assert copy["branches"][0]["steps"][0]["id"] == "call_2"
    pasted = apply(draft, {"op": "paste", "steps": LEAD["steps"], "place": {"index": 9}}).definition
    assert find(pasted, "hot_3")["branches"][0]["when"] == "steps.score_2.output.points > 70"
    assert check(pasted) == []


def test_triggers_are_pasted_beside_the_others_also_among_steps():
    assert not set(step_types()) & set(trigger_kinds())
    hook = {"id": "lead", "type": "webhook", "name": "Hook", "config": {"dedupe": "body.id"}}
    edit = apply(LEAD, {"op": "paste", "steps": [hook], "place": {"index": 0}})
    assert [one["id"] for one in edit.definition["triggers"]][-1] == edit.focus != "lead" and edit.label == "Paste Hook"
    assert edit.definition["triggers"][-1]["config"] == {"dedupe": "body.id"} and ids(edit.definition) == ids(LEAD)
    both = apply(LEAD, {"op": "paste", "steps": [hook, {"id": "w", "type": "delay", "config": {"for": "1h"}}], "place": {"index": 0}})
    assert both.focus == "w" and len(both.definition["triggers"]) == len(LEAD["triggers"]) + 1


def test_wrapping_and_unwrapping_gives_the_steps_back_in_order():
    wrapped = apply(LEAD, {"op": "wrap", "step": "call", "type": "loop"})
    assert [step["id"] for step in find(wrapped.definition, "loop_1")["steps"]] == ["call"]
    assert ids(apply(wrapped.definition, {"op": "unwrap", "step": "loop_1"}).definition) == ids(LEAD)


def test_several_steps_are_moved_side_by_side_in_the_order_of_the_page():
    edit = apply(LEAD, {"op": "move", "steps": ["each", "call", "score"], "place": {"parent": "hot", "lane": "else", "index": 0}})
    assert [step["id"] for step in find(edit.definition, "hot")["branches"][1]["steps"]] == ["score", "call", "each"]
    assert (edit.label, edit.picked) == ("Move 3 steps", ("score", "call", "each"))
    down = apply(LEAD, {"op": "move", "steps": ["score", "hot"], "place": {"after": "each"}}).definition
    assert [step["id"] for step in down["steps"]] == ["each", "score", "hot"]
    with pytest.raises(EditError, match="into itself"):
        apply(LEAD, {"op": "move", "steps": ["score", "hot"], "place": {"after": "call"}})


def test_a_step_inside_another_that_was_chosen_goes_with_it_once():
    copied = apply(LEAD, {"op": "duplicate", "steps": ["call", "hot"]}).definition
    assert ids(copied) == ["score", "hot", "call", "hot_2", "call_2", "each", "add"]
    assert ids(apply(LEAD, {"op": "remove", "steps": ["add", "hot", "call"]}).definition) == ["score", "each"]


def test_only_steps_that_follow_each_other_are_wrapped_together():
    wrapped = apply(LEAD, {"op": "wrap", "steps": ["hot", "score"], "type": "parallel"}).definition
    assert [step["id"] for step in wrapped["steps"]] == ["parallel", "each"]
    assert [step["id"] for step in wrapped["steps"][0]["branches"][0]["steps"]] == ["score", "hot"]
    for apart in (["score", "each"], ["score", "call"]):
        with pytest.raises(EditError, match="follow each other"):
            apply(LEAD, {"op": "wrap", "steps": apart, "type": "loop"})


def test_several_are_turned_off_and_on_together():
    off = apply(apply(LEAD, {"op": "toggle", "step": "call"}).definition, {"op": "toggle", "steps": ["call", "add"]})
    assert off.label == "Turn off 2 steps" and find(off.definition, "call")["off"] and find(off.definition, "add")["off"]
    on = apply(off.definition, {"op": "toggle", "steps": ["call", "add"]})
    assert on.label == "Turn on 2 steps" and on.definition == LEAD


def test_a_step_of_another_type_keeps_its_id_its_name_and_what_both_know():
    draft = apply(LEAD, {"op": "configure", "step": "call", "set": {"name": "Tell them", "note": "Ask Dana", "timeout": "5s", "on_error": "continue"}}).definition
    edit = apply(draft, {"op": "replace_type", "step": "call", "type": "email"})
    new = find(edit.definition, "call")
    assert (new["type"], new["name"], new["note"], new["on_error"]) == ("email", "Tell them", "Ask Dana", "continue")
    assert "config" not in new and edit.label == "Make Tell them an E-mail"
    assert [problem.field for problem in check(edit.definition)] == ["config.to", "config.subject"]


@pytest.mark.parametrize(
    ("type_", "config", "missing"),
    [
        ("set", None, ["config.values"]),
        ("email", None, ["config.to", "config.subject"]),
        ("http", {"method": "GET"}, ["config.url"]),
        ("approval", {"expires": "3d"}, ["config.approvers", "config.subject"]),
        ("workflow", None, ["config.flow"]),
        ("ai", {"task": "classify"}, ["config.prompt"]),
        ("loop", None, ["config"]),
        ("delay", {"for": "1h"}, []),
    ],
)
def test_a_new_step_invents_nothing_and_its_problems_say_what_is_missing(type_, config, missing):
    clock = {"id": "clock", "type": "schedule", "config": {"cron": "0 8 * * *"}}
    made = apply({"format": 1, "name": "x", "triggers": [clock], "steps": []}, {"op": "insert", "type": type_, "place": {"index": 0}})
    assert find(made.definition, made.focus).get("config") == config
    assert [problem.field for problem in check(made.definition) if not problem.warning] == missing


@pytest.mark.parametrize(("type_", "choice"), [("loop", "items"), ("loop", "while"), ("delay", "until"), ("delay", "at")])
def test_a_fresh_choice_of_one_field_or_another_is_a_problem_until_it_is_filled_in(type_, choice):
    step = {"id": "it", "type": type_, "config": {choice: ""}} | ({"steps": []} if type_ == "loop" else {})
    found = check({"format": 1, "name": "x", "triggers": [], "steps": [step]})
    assert f"config.{choice}" in [problem.field for problem in found if not problem.warning]


def test_a_container_of_another_type_keeps_its_steps_and_its_lanes():
    parallel = find(apply(LEAD, {"op": "replace_type", "step": "hot", "type": "parallel"}).definition, "hot")
    assert [(lane["label"], ids({"steps": lane["steps"]})) for lane in parallel["branches"]] == [("Hot", ["call"]), ("Otherwise", [])]
    assert "when" not in parallel["branches"][0]
    assert ids({"steps": find(apply(LEAD, {"op": "replace_type", "step": "hot", "type": "loop"}).definition, "hot")["steps"]}) == ["call"]
    assert find(apply(LEAD, {"op": "replace_type", "step": "each", "type": "condition"}).definition, "each")["branches"][0]["steps"][0]["id"] == "add"
    with pytest.raises(EditError, match="Take its steps out first"):
        apply(LEAD, {"op": "replace_type", "step": "each", "type": "delay"})


def test_configuring_sets_and_removes_by_dotted_path():
    edit = apply(LEAD, {"op": "configure", "step": "call", "set": {"config.headers": {"X": "1"}, "config.url": None, "branches": None}})
    assert find(edit.definition, "call")["config"] == {"headers": {"X": "1"}}
    with pytest.raises(EditError, match="cannot be set"):
        apply(LEAD, {"op": "configure", "step": "call", "set": {"id": "x"}})


@pytest.mark.parametrize("index", ["2", "²", "-1", "x", "9" * 5000])
def test_a_place_that_a_list_does_not_have_is_refused(index):
    listed = apply(LEAD, {"op": "configure", "step": "call", "set": {"config.query": ["a", "b"]}}).definition
    with pytest.raises(EditError, match="There is no"):
        apply(listed, {"op": "configure", "step": "call", "set": {f"config.query.{index}": "c"}})


def test_the_lane_for_everything_else_stays_last():
    draft = apply(LEAD, {"op": "add_lane", "step": "hot", "label": "Warm"}).definition
    assert [branch["id"] for branch in find(draft, "hot")["branches"]] == ["yes", "warm", "else"]
    moved = apply(draft, {"op": "move_lane", "step": "hot", "lane": "warm", "index": 0}).definition
    assert [branch["id"] for branch in find(moved, "hot")["branches"]] == ["warm", "yes", "else"]
    with pytest.raises(EditError, match="stays last"):
        apply(draft, {"op": "move_lane", "step": "hot", "lane": "else", "index": 0})
    with pytest.raises(EditError):
        apply(draft, {"op": "remove_lane", "step": "hot", "lane": "else"})


def test_an_error_lane_is_a_place_for_steps():
    draft = apply(LEAD, {"op": "add_error_lane", "step": "call"}).definition
    draft = apply(draft, {"op": "insert", "type": "email", "place": {"parent": "call", "lane": "on_error", "index": 0}}).definition
    assert [step["id"] for step in find(draft, "call")["on_error"]["steps"]] == ["e_mail"]
    assert {problem.step for problem in check(draft)} == {"e_mail"}  # it has to be filled in


@pytest.mark.parametrize(("name", "expected"), [("Create deal in CRM", "create_deal_in_crm"), ("Überprüfen!", "uberprufen"), ("42 things", "step_42_things"), ("日本", "step"), ("x" * 90, "x" * 64)])
def test_ids_are_readable_and_valid(name, expected):
    assert slug(name) == expected


def test_a_taken_id_gets_a_number():
    assert fresh("Call", {"call", "call_2"}) == "call_3"
    assert fresh("Loop", set()) == "loop_1", "a word of the expression language is nobody's id"


def noted(*notes):
    return {**LEAD, "notes": [{"id": f"note_{n}", "text": "Why", **({"beside": step} if step else {})} for n, step in enumerate(notes)]}


def besides(definition):
    return [note.get("beside") for note in definition["notes"]]


def test_notes_are_written_moved_and_taken_away_and_none_leave_nothing():
    first = apply(LEAD, {"op": "add_note", "text": "Ask Dana\nfirst", "beside": "call"}).definition
    assert first["notes"] == [{"id": "note", "text": "Ask Dana\nfirst", "beside": "call"}]
    assert {name: value for name, value in first.items() if name != "notes"} == LEAD and check(first) == []
    second = apply(first, {"op": "add_note"})
    assert second.picked == ("note_2",) and second.definition["notes"][1] == {"id": "note_2", "text": ""}
    changed = apply(second.definition, {"op": "change_note", "note": "note_2", "text": "Hello"}).definition
    moved = apply(changed, {"op": "move_note", "note": "note", "beside": ""}).definition
    assert moved["notes"] == [{"id": "note", "text": "Ask Dana\nfirst"}, {"id": "note_2", "text": "Hello"}]
    gone = apply(apply(moved, {"op": "remove_note", "note": "note"}).definition, {"op": "remove_note", "note": "note_2"}).definition
    assert gone == LEAD
    for wrong in ({"op": "add_note", "beside": "gone"}, {"op": "change_note", "note": "gone", "text": "x"}, {"op": "remove_note", "note": "gone"}):
        with pytest.raises(EditError):
            apply(LEAD, wrong)


@pytest.mark.parametrize(("operation", "homes"), [
    ({"op": "rename", "step": "call", "id": "deal"}, ["deal", "each"]),
    ({"op": "remove", "step": "call"}, ["hot", "each"]),
    ({"op": "remove", "step": "hot"}, ["score", "each"]),
    ({"op": "remove", "steps": ["score", "hot", "each"]}, [None, None]),
    ({"op": "unwrap", "step": "each"}, ["call", "hot"]),
    ({"op": "wrap", "step": "call", "type": "loop"}, ["call", "each"]),
    ({"op": "move", "step": "call", "place": {"index": 9}}, ["call", "each"]),
    ({"op": "duplicate", "step": "call"}, ["call", "each"]),
    ({"op": "replace_type", "step": "call", "type": "delay"}, ["call", "each"]),
])  # fmt: skip
def test_a_note_stays_with_its_step_and_outlives_it(operation, homes):
    assert besides(apply(noted("call", "each"), operation).definition) == homes


def test_a_whole_definition_brings_its_own_notes_as_they_are():
    file = {**noted("score"), "notes": [{"id": "n", "text": "x", "beside": "score"}, {"id": "m", "text": "y", "beside": ""}]}
    assert apply(noted("call"), {"op": "replace", "definition": file}).definition == file


KINDS = ["condition", "parallel", "loop", "http", "email", "delay", "set", "stop", "approval", "ai", "callback"]


@st.composite
def operations(draw, definition):
    """An operation that a person could do on this definition, or nearly."""
    steps = [step["id"] for step in walk(definition["steps"])] or ["none"]
    step, other = draw(st.sampled_from(steps)), draw(st.sampled_from(steps))
    note = draw(st.sampled_from([note["id"] for note in definition.get("notes") or []] or ["none"]))
    several = draw(st.lists(st.sampled_from(steps), min_size=1, max_size=4))
    kind, box = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["condition", "parallel", "loop"]))
    place = draw(st.sampled_from([{"after": other}, {"index": draw(st.integers(0, 9))}, *_inner_places(definition)]))
    return draw(
        st.sampled_from(
            [
                {"op": "insert", "type": kind, "place": place},
                {"op": "move", "step": step, "place": place},
                {"op": "move", "steps": several, "place": place},
                {"op": "remove", "step": step},
                {"op": "remove", "steps": several},
                {"op": "duplicate", "step": step},
                {"op": "duplicate", "steps": several},
                {"op": "wrap", "step": step, "type": box},
                {"op": "wrap", "steps": several, "type": box},
                {"op": "replace_type", "step": step, "type": kind},
                {"op": "unwrap", "step": step},
                {"op": "rename", "step": step, "id": draw(st.sampled_from(["alpha", "beta", "gamma"]))},
                {"op": "configure", "step": step, "set": {"name": draw(st.text(max_size=12)) or None}, "follow": True},
                {"op": "toggle", "step": step},
                {"op": "toggle", "steps": several},
                {"op": "add_lane", "step": step},
                {"op": "remove_lane", "step": step, "lane": "lane_1"},
                {"op": "add_error_lane", "step": step},
                {"op": "add_trigger", "type": "manual"},
                {"op": "paste", "steps": LEAD["steps"], "place": place},
                {"op": "add_note", "text": draw(st.text(max_size=12)), "beside": draw(st.sampled_from(["", step]))},
                {"op": "change_note", "note": note, "text": draw(st.text(max_size=12))},
                {"op": "move_note", "note": note, "beside": draw(st.sampled_from(["", other]))},
                {"op": "remove_note", "note": note},
            ]
        )
    )


def _inner_places(definition):
    for step in walk(definition["steps"]):
        for branch in step.get("branches") or []:
            yield {"parent": step["id"], "lane": branch["id"], "index": 0}
        if step.get("steps") is not None:
            yield {"parent": step["id"], "lane": "", "index": 0}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_sequence_of_operations_keeps_a_sound_shape_with_unique_ids_and_leaves_the_past_alone(data):
    definition, past = LEAD, []
    for _ in range(data.draw(st.integers(1, 12))):
        before = deepcopy(definition)
        try:
            after = apply(definition, data.draw(operations(definition))).definition
        except EditError as refused:
            assert str(refused)
            continue
        assert definition == before, "the definition that was given has changed"
        past.append(before)
        definition = after
        Definition.model_validate(definition)
        found = ids(definition)
        assert len(found) == len(set(found))
        notes = definition.get("notes")
        assert notes != [] and len({note["id"] for note in notes or []}) == len(notes or [])
        assert all(note.get("beside") in (None, *found) for note in notes or []), "a note stands beside no step"
        assert all(problem.message for problem in check(definition))
    assert (past[0] if past else definition) == LEAD
