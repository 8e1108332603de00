"""Two edits of one draft stand beside each other where neither touches what the other does; else a person is asked."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builder.editing import EditError, apply
from builder.joining import both_stand
from tests.builder.test_diff import FLOW
from tests.builder.test_editing import LEAD, operations

TOP, END = {"index": 0}, {"after": "d"}
LONGER = {"op": "configure", "step": "a", "set": {"config.for": "2h"}}


def stand(theirs, mine, flow=FLOW):
    """`theirs`: one operation or several, each a revision."""
    since = [flow]
    for one in theirs if isinstance(theirs, list) else [theirs]:
        since.append(apply(since[-1], one).definition)
    return both_stand(since, mine)


@pytest.mark.parametrize(("theirs", "mine"), [
    (LONGER, {"op": "configure", "step": "d", "set": {"config.for": "2h"}}),
    ({"op": "toggle", "step": "c"}, LONGER),
    ({"op": "insert", "type": "email", "place": TOP}, {"op": "insert", "type": "http", "place": END}),
    ({"op": "insert", "type": "email", "place": TOP}, {"op": "insert", "type": "http", "place": {"parent": "b", "lane": "yes", "index": 0}}),
    ({"op": "remove", "step": "d"}, LONGER),
    ({"op": "add_trigger", "type": "api"}, {"op": "configure_trigger", "trigger": "t", "set": {"name": "By hand"}}),
    ({"op": "configure_workflow", "set": {"title": "x"}}, {"op": "configure_workflow", "set": {"description": "y"}}),
    ({"op": "move", "step": "c", "place": END}, LONGER),
])  # fmt: skip
def test_what_touches_different_parts_stands(theirs, mine):
    assert stand(theirs, mine) and stand(mine, theirs)


@pytest.mark.parametrize(("theirs", "mine"), [
    (LONGER, {"op": "configure", "step": "a", "set": {"config.for": "3h"}}),
    (LONGER, {"op": "toggle", "step": "a"}),
    (LONGER, {"op": "remove", "step": "a"}),
    (LONGER, LONGER),
    ({"op": "remove", "step": "a"}, LONGER),
    ({"op": "toggle", "step": "c"}, {"op": "remove", "step": "b"}),
    ({"op": "insert", "type": "email", "place": {"parent": "b", "lane": "no", "index": 0}}, {"op": "remove", "step": "b"}),
    ({"op": "insert", "type": "email", "place": TOP}, {"op": "insert", "type": "http", "place": TOP}),
    ({"op": "insert", "type": "email", "place": TOP}, {"op": "insert", "type": "email", "place": END}),  # both would be e_mail
    ({"op": "move", "step": "c", "place": END}, {"op": "remove", "step": "d"}),
    ({"op": "configure_workflow", "set": {"title": "x"}}, {"op": "configure_workflow", "set": {"title": "y"}}),
    (LONGER, {"op": "replace", "definition": FLOW | {"steps": []}}),
])  # fmt: skip
def test_what_touches_the_same_part_does_not(theirs, mine):
    assert not stand(theirs, mine) and not stand(mine, theirs)


REFERS = {"op": "configure", "step": "d", "set": {"config.for": "{{ steps.a.output }}"}}


@pytest.mark.parametrize("other", [
    {"op": "rename", "step": "a", "id": "first"}, {"op": "remove", "step": "a"},
    [{"op": "rename", "step": "a", "id": "first"}, {"op": "insert", "type": "delay", "place": TOP}, {"op": "rename", "step": "delay", "id": "a"}],
])  # fmt: skip
def test_a_reference_to_what_the_other_renames_or_removes_is_asked_about(other):
    assert not stand(other, REFERS)
    assert isinstance(other, list) or not stand(REFERS, other)


def test_an_id_that_went_and_is_another_steps_now_is_not_taken_for_the_same():
    again = [{"op": "rename", "step": "a", "id": "first"}, {"op": "insert", "type": "delay", "place": END}, {"op": "rename", "step": "delay", "id": "a"},
             {"op": "configure", "step": "a", "set": {"config": {"for": "1h"}}}]  # fmt: skip
    for mine in (LONGER, {"op": "toggle", "step": "a"}, {"op": "add_note", "text": "x", "beside": "a"}):
        assert not stand(again, mine)


@pytest.mark.parametrize("value", ["{{ steps.\na.output }}", "{{ steps.\ta.output }}"])
def test_a_reference_is_seen_after_the_end_of_a_line_too(value):
    mine = {"op": "configure", "step": "d", "set": {"config.for": value}}
    assert not stand({"op": "rename", "step": "a", "id": "first"}, mine)


def test_a_step_that_the_other_moved_into_another_lane_reads_other_values_there():
    mine = {"op": "configure", "step": "c", "set": {"config.for": "{{ loop.item }}"}}
    assert not stand({"op": "move", "step": "c", "place": END}, mine)
    assert not stand({"op": "wrap", "step": "b", "type": "loop"}, mine)


@pytest.mark.parametrize(("flow", "theirs", "mine"), [
    (FLOW | {"steps": [*FLOW["steps"], FLOW["steps"][0]]}, LONGER, {"op": "configure", "step": "a", "set": {"config.for": "3h"}}),
    (FLOW | {"triggers": FLOW["triggers"] * 2}, {"op": "configure_trigger", "trigger": "t", "set": {"name": "x"}}, {"op": "remove_trigger", "trigger": "t"}),
    (FLOW | {"notes": [{"id": "n", "text": "a"}, {"id": "n", "text": "b"}]}, {"op": "change_note", "note": "n", "text": "c"}, {"op": "change_note", "note": "n", "text": "d"}),
])  # fmt: skip
def test_where_one_name_stands_for_two_parts_somebody_is_asked(flow, theirs, mine):
    assert not stand(theirs, mine, flow)


def test_an_edit_that_made_no_sense_where_it_was_made_is_refused_as_ever():
    with pytest.raises(EditError):
        both_stand([FLOW, FLOW], {"op": "remove", "step": "nobody"})


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_stands_comes_to_the_same_whoever_was_first(data):
    """Unless one looks at what the other changes, as a copy does: then the two are asked about in one order alone."""
    seen = LEAD
    for _ in range(data.draw(st.integers(0, 3))):
        with suppress(EditError):
            seen = apply(seen, data.draw(operations(seen))).definition
    mine, theirs = data.draw(operations(seen)), data.draw(operations(seen))
    try:
        first, second = apply(seen, theirs).definition, apply(seen, mine).definition
    except EditError:
        assume(False)
    if both_stand([seen, first], mine) and both_stand([seen, second], theirs):
        assert unordered(apply(first, mine).definition) == unordered(apply(second, theirs).definition)


def unordered(definition):
    """Triggers and notes stand in no order."""
    return definition | {name: sorted(definition.get(name) or [], key=json.dumps) for name in ("triggers", "notes")}
