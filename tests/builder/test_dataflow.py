"""References that lead nowhere are named, with a remedy, and the data tree shows what may be used at a place."""

from __future__ import annotations

from copy import deepcopy

import pytest

from builder.dataflow import Known, Samples, available_at, problems
from runtime.definition import find

FLOW = {
    "format": 1,
    "name": "Lead qualification",
    "triggers": [{"id": "lead", "type": "webhook", "name": "New lead", "config": {"sample": {"email": "p@h.example", "people": [{"id": 7, "mail": "a@b.example"}]}}}],
    "steps": [
        {"id": "qualify", "type": "ai", "name": "Qualify lead", "config": {"prompt": "x", "schema": {"type": "object", "properties": {"score": {"type": "integer"}, "reason": {"type": "string"}}}}},
        {
            "id": "hot",
            "type": "condition",
            "name": "Hot?",
            "branches": [
                {"id": "yes", "label": "Yes", "when": "steps.qualify.output.score > 70", "steps": [{"id": "call", "type": "http", "name": "Call", "config": {"url": "https://a.example/"}}]},
                {"id": "no", "label": "No", "steps": [{"id": "mail", "type": "email", "name": "Mail", "config": {"to": ["a@b.example"], "subject": "x"}}]},
            ],
        },
        {"id": "both", "type": "parallel", "branches": [{"id": "a", "steps": [{"id": "left", "type": "set", "config": {"values": {"x": 1}}}]}, {"id": "b", "steps": [{"id": "right", "type": "set", "config": {"values": {"y": 2}}}]}]},
        {"id": "each", "type": "loop", "name": "Each", "config": {"items": "trigger.body.people"}, "steps": [{"id": "add", "type": "http", "name": "Add", "config": {"url": "https://a.example/"}}, {"id": "note", "type": "set", "config": {"values": {"z": "text"}}}]},
        {"id": "last", "type": "set", "config": {"values": {"v": ""}}},
    ],
}


def with_text(step, text):
    """The flow with a template in one step, and the problems of that step."""
    flow = deepcopy(FLOW)
    target = find(flow, step)
    target["config"] = {**target["config"], **({"values": {"v": text}} if target["type"] == "set" else {"body": text})}
    return [problem for problem in problems(Known(flow)) if problem.step == step]


def test_a_sound_flow_has_no_problems():
    assert problems(Known(FLOW)) == []


def test_a_field_that_a_schema_does_not_declare_blocks_and_names_the_near_one():
    [problem] = with_text("last", "{{ steps.qualify.output.scor }}")
    assert problem.message == "Qualify lead returns no “scor”. Did you mean “score”?"
    assert problem.fix["old"] == "steps.qualify.output.scor" and problem.fix["new"] == "steps.qualify.output.score"
    assert problem.field == "config.values.v" and not problem.warning


def test_a_field_that_a_sample_does_not_have_only_warns():
    [problem] = with_text("last", "{{ trigger.body.mail }}")
    assert problem.warning and problem.fix["new"] == "trigger.body.email"


@pytest.mark.parametrize(
    ("owner", "text", "words"),
    [
        ("call", "{{ steps.last.output.v }}", "runs later"),
        ("call", "{{ steps.mail.output.subject }}", "in another lane of “Hot?”"),
        ("left", "{{ steps.right.output.y }}", "at the same time"),
        ("last", "{{ steps.add.output.body }}", "inside “Each”"),
        ("add", "{{ steps.add.output.body }}", "before it has run"),
        ("add", "{{ steps.each.output.count }}", "runs later"),
        ("last", "{{ steps.nobody.output }}", "no step “nobody”"),
        ("last", "{{ loop.item }}", "no loop around"),
        ("note", "{{ loop.itm }}", "Did you mean “item”?"),
        ("last", "{{ tigger.body }}", "Did you mean “trigger”?"),
        ("last", "{{ run.nr }}", "“run” has no “nr”"),
        ("last", "{{ steps.qualify.score }}", "in its output"),
        ("last", "{{ callbacks.call }}", "“callbacks” has no “call”"),
    ],
)
def test_a_reference_that_cannot_turn_out_well_blocks(owner, text, words):
    [problem] = with_text(owner, text)
    assert words in problem.message and not problem.warning


@pytest.mark.fault(40)
def test_a_lane_that_may_not_have_run_needs_a_default():
    [problem] = with_text("last", "{{ steps.call.output.body.id }}")
    assert problem.warning and "only in the lane Yes of “Hot?”" in problem.message
    assert with_text("last", "{{ steps.?call.output.body.id.orValue(0) }}") == []
    assert with_text("last", "{{ has(steps.call.output) ? steps.call.output.body : 0 }}") == []


def test_what_surely_has_run_is_free_to_use():
    assert with_text("last", "{{ steps.left.output.x + steps.right.output.y }}") == []
    assert with_text("note", "{{ loop.item.id }} {{ loop.index }} {{ steps.add.output.status }} {{ steps.qualify.output.score }}") == []


def test_a_loop_collects_from_its_own_steps_at_the_end_of_an_iteration():
    flow = deepcopy(FLOW)
    find(flow, "each")["config"]["collect"] = "steps.note.output.z + string(loop.index)"
    assert problems(Known(flow)) == []


def test_the_title_knows_the_trigger_only():
    flow = {**FLOW, "title": "{{ trigger.body.email }} {{ steps.qualify.output.score }}"}
    [problem] = problems(Known(flow))
    assert problem.step == "" and "made when the run starts" in problem.message


def test_a_step_that_is_off_gives_nothing():
    flow = deepcopy(FLOW)
    find(flow, "qualify")["off"] = True
    assert ["turned off" in problem.message for problem in problems(Known(flow))] == [True]


def test_a_rule_that_compares_with_nothing_is_counted():
    flow = deepcopy(FLOW)
    find(flow, "hot")["branches"][0]["when"] = 'steps.qualify.output.score > 70 && !trigger.body.email.endsWith("")'
    [problem] = problems(Known(flow))
    assert problem.message == "Rule 2 has no value to compare with." and (problem.field, problem.row) == ("branches.0.when", 1)


def test_a_reference_in_a_condition_names_its_rule_and_one_in_an_expression_none():
    flow = deepcopy(FLOW)
    lane = find(flow, "hot")["branches"][0]
    lane["when"] = 'trigger.body.email != "" && steps.qualify.output.scor > 70'
    assert [problem.row for problem in problems(Known(flow))] == [1]
    lane["when"] = "steps.qualify.output.scor + 1 > 70 ? true : false"
    assert [problem.row for problem in problems(Known(flow))] == [None]


def test_a_text_that_cannot_be_read_is_left_to_the_structural_check():
    assert with_text("last", "{{ 1 + }}") == []


def test_the_tree_holds_what_may_be_used_with_the_values_of_a_run():
    samples = Samples(trigger={"body": {"email": "priya@halden.example"}}, steps={"qualify": {"score": 82}}, source="run 48,213")
    sources = {source.path: source for source in available_at(Known(FLOW, samples), "note")}
    assert list(sources) == ["trigger", "loop", "steps.qualify.output", "steps.call.output", "steps.mail.output", "steps.left.output", "steps.right.output", "steps.add.output", "run", "workflow"]
    assert sources["steps.qualify.output"].shape.fields["score"].sample == 82
    assert sources["steps.qualify.output"].shape.fields["reason"].type == "text"
    assert sources["trigger"].shape.fields["body"].fields["email"].sample == "priya@halden.example"
    assert sources["steps.call.output"].maybe and not sources["steps.add.output"].maybe


def test_the_loops_item_is_the_first_of_its_sample_list():
    loop = next(source for source in available_at(Known(FLOW), "add") if source.path == "loop")
    assert loop.shape.fields["item"].fields["mail"].sample == "a@b.example"


def test_a_field_that_the_loops_items_do_not_have_warns():
    [problem] = with_text("note", "{{ loop.item.mial }}")
    assert problem.warning and problem.fix["new"] == "loop.item.mail"


def test_set_values_are_computed_on_the_samples():
    flow = deepcopy(FLOW)
    find(flow, "left")["config"]["values"] = {"x": "{{ size(trigger.body.people) + 1 }}"}
    tree = {source.path: source for source in available_at(Known(flow), "last")}
    assert tree["steps.left.output"].shape.fields["x"].sample == 2


def test_a_while_loop_offers_what_its_last_iteration_gave_and_a_list_loop_does_not():
    def problems_with(config, text):
        steps = [{"id": "fetch", "type": "set", "config": {"values": {"page": text}}}]
        loop = {"id": "pages", "type": "loop", "config": config, "steps": steps}
        return [problem.message for problem in problems(Known({"format": 1, "name": "x", "triggers": [], "steps": [loop]}))]

    again = {"while": "loop.index == 0 || loop.last.fetch.output.page < 3"}
    assert problems_with(again, "{{ loop.last.fetch.output.page }}") == []
    assert problems_with(again, "{{ loop.last.fetched.output }}") == [
        "“loop.last” has no “fetched”. Did you mean “fetch”?"]
    assert problems_with({"items": "[1, 2]"}, "{{ loop.last.fetch.output }}") == ["“loop” has no “last”."]
    fetch = {"id": "fetch", "type": "set", "config": {"values": {"page": 1}}}
    loop = {"id": "pages", "type": "loop", "config": again, "steps": [fetch]}
    definition = {"format": 1, "name": "x", "triggers": [], "steps": [loop]}
    (loop,) = [source for source in available_at(Known(definition), "fetch") if source.path == "loop"]
    assert set(loop.shape.fields) == {"index", "last"} and set(loop.shape.fields["last"].fields) == {"fetch"}


def test_expressions_that_see_an_answer_or_a_request_may_name_it():
    call = {"url": "https://a.example/", "pages": "cursor", "page_items": "response.body.items", "page_next": "response.body.next",
            "success_if": "response.status == 200"}  # fmt: skip
    hook = {"id": "lead", "type": "webhook", "config": {"only": "body.type == 'paid' && headers['x-a'] == 'b'", "dedupe": "body.id"}}
    definition = {"format": 1, "name": "x", "triggers": [hook], "steps": [{"id": "call", "type": "http", "config": call}]}
    assert not problems(Known(definition))
    call["body"] = "{{ response.body }}"
    assert [problem.field for problem in problems(Known(definition))] == ["config.body"]
