"""What is drawn, and the smallest parts that an edit swaps."""

from __future__ import annotations

import pytest

from builder.drawing import drawing, patches
from builder.editing import apply
from runtime.definition import Problem
from tests.builder.test_editing import LEAD


def swapped(operation):
    after = apply(LEAD, operation).definition
    return [(patch.kind, patch.target) for patch in patches(drawing(LEAD), drawing(after))]


def test_nothing_changed_nothing_swapped():
    assert patches(drawing(LEAD), drawing(LEAD)) == []


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "configure", "step": "add", "set": {"config.for": "2h"}}, [("card", "step-add")]),
        ({"op": "toggle", "step": "score"}, [("card", "step-score")]),
        ({"op": "insert", "type": "delay", "place": {"index": 0}}, [("insert", "node-triggers")]),
        ({"op": "insert", "type": "delay", "place": {"after": "score"}}, [("insert", "node-score")]),
        ({"op": "insert", "type": "delay", "place": {"after": "call"}}, [("card", "step-hot"), ("node", "node-call"), ("insert", "node-call")]),
        ({"op": "remove", "step": "score"}, [("delete", "node-score")]),
        ({"op": "move", "step": "score", "place": {"index": 2}}, [("delete", "node-score"), ("insert", "node-hot")]),
        ({"op": "insert", "type": "delay", "place": {"parent": "hot", "lane": "else", "index": 0}}, [("node", "node-hot")]),
        ({"op": "configure", "step": "hot", "set": {"branches.0.label": "Very hot"}}, [("node", "node-hot")]),
        ({"op": "add_trigger", "type": "manual"}, [("triggers", "node-triggers")]),
        ({"op": "add_note", "text": "Why"}, [("notes", "notes-top")]),
        ({"op": "add_note", "text": "Why", "beside": "call"}, [("node", "node-call")]),
    ],
)
def test_an_edit_swaps_what_it_changed_and_no_more(operation, expected):
    assert swapped(operation) == expected


def test_a_problem_shows_on_its_card_and_blocking_ones_win_over_warnings():
    problems = [Problem("call", "x", "perhaps", warning=True), Problem("call", "x", "no")]
    call = drawing(LEAD, problems=problems).flow.nodes[1].lanes[0].flow.nodes[0].card
    assert (call.problem, call.warning) == ("no", False)


def test_a_handled_failure_is_drawn_as_two_lanes_that_join():
    after = apply(LEAD, {"op": "add_error_lane", "step": "score"}).definition
    done, failed = drawing(after).flow.nodes[0].error
    assert done.through and failed.id == "on_error" and failed.label == "If it fails"


def test_a_type_that_is_not_installed_is_drawn_all_the_same():
    flow = {"format": 1, "name": "x", "steps": [{"id": "a", "type": "nowhere"}]}
    assert drawing(flow).flow.nodes[0].card.line == "Unknown type nowhere"


def test_a_note_beside_no_step_of_the_flow_is_drawn_at_the_top():
    drawn = drawing({**LEAD, "notes": [{"id": "a", "text": "x", "beside": "gone"}, {"id": "b", "text": "y", "beside": "each"}]})
    assert [note.text for note in drawn.notes] == ["x"]
    assert [(note.text, note.where) for note in drawn.flow.nodes[2].notes] == [("y", "beside Loop")]
