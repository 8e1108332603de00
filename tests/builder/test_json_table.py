"""Data as a table: what people read of an output, and the expression that reads it."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from builder.dataflow.paths import written
from builder.templatetags.json_table import MOST_COLUMNS, MOST_GRIDS, MOST_PAIRS, MOST_ROWS, json_table
from runtime.expressions import compile_value

LEAD = {
    "company": "Halden Robotics",
    "address": {"city": "Porto", "first line": "Rua 1"},
    "score": 82,
    "vip": True,
    "note": None,
    "tags": ["new", "eu"],
    "attendees": [{"name": "Priya", "at": {"floor": 2}}, {"name": "Joe", "late": False}],
}


def rendered(value, reads: str = "") -> str:
    return render_to_string("components/json.html", {"value": value, "note": "output", "reads": reads})


def test_single_values_are_named_by_their_way_and_lists_of_objects_are_grids():
    table = json_table(LEAD, "steps.qualify.output")
    assert [(pair.name, pair.cell.text) for pair in table.pairs] == [
        ("company", "Halden Robotics"), ("address › city", "Porto"), ("address › first line", "Rua 1"),
        ("score", "82"), ("vip", "true"), ("note", "null"), ("tags", "new, eu"),
    ]  # fmt: skip
    assert table.pairs[2].reference == '{{ steps.qualify.output.address["first line"] }}'
    [grid] = table.grids
    assert (grid.name, grid.count, grid.columns) == ("attendees", 2, ["name", "at › floor", "late"])
    assert [[cell and cell.text for cell in row] for row in grid.rows] == [["Priya", "2", None], ["Joe", None, "false"]]
    assert grid.reference == "{{ steps.qualify.output.attendees }}"


def test_a_list_is_one_grid_also_of_single_values():
    [grid] = json_table([3, {"a": 1}], "trigger").grids
    assert grid.columns == ["value", "a"] and [[cell and cell.text for cell in row] for row in grid.rows] == [["3", None], [None, "1"]]
    assert [json_table(value) for value in ("text", 3, None, {}, [])] == [None] * 5


def test_what_cannot_be_read_by_an_expression_has_no_button():
    assert "hf-copy text" not in rendered(LEAD) and 'text="{{ trigger.score }}"' in rendered(LEAD, "trigger")
    assert "Table" not in rendered("only text")


def test_a_table_ends_somewhere_and_says_what_it_leaves_out():
    wide = {str(n): n for n in range(MOST_COLUMNS + 3)}
    table = json_table({"rows": [wide] * (MOST_ROWS + 2)} | {f"v{n}": n for n in range(MOST_PAIRS + 4)} | {f"l{n}": [{"a": 1}] for n in range(MOST_GRIDS)})
    assert (len(table.pairs), len(table.grids), table.left) == (MOST_PAIRS, MOST_GRIDS, 5)
    assert (table.grids[0].left_rows, table.grids[0].left_columns) == (2, 3)
    assert "2 more rows and 3 more columns in the JSON." in rendered({"rows": [wide] * (MOST_ROWS + 2)})


def test_depth_and_length_are_bounded():
    deep: dict = {}
    for _ in range(900):
        deep = {"a": deep}
    assert [(pair.name, pair.cell.text) for pair in json_table(deep).pairs] == [("a › a › a › a › a", "1 key")]
    assert len(json_table({"a": "x" * 5000}).pairs[0].cell.text) == 201
    assert json_table({"a": [[1]] * 3}).pairs[0].cell.text == "3 items"


def test_a_table_shows_everything_as_text_and_nothing_disguised():
    html = rendered({"<b>": "</td><script>alert(1)</script>", "name": "invoice\u202egpj.exe\x1b"}, "trigger")
    assert "<script>" not in html and "<b>" not in html
    assert "invoice\\u202egpj.exe\\u001b" in html and "\u202e" not in html


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20), min_size=1, max_size=4))
def test_a_key_is_only_a_key_whatever_who_sent_it_has_put_into_it(keys):
    """A quote, a brace or a line break in the name of a value that a webhook was sent makes no other expression of what is inserted."""
    value = 7
    for key in reversed(keys):
        value = {key: value, "x": "another"} if key != "x" else {key: value}
    assert compile_value(f"{{{{ {written(['trigger', *keys])} }}}}").render({"trigger": value}) == 7


@pytest.mark.parametrize("key", ['a"] + trigger["x', "a\\", "a\nb", "}} {{ 1 }}", "Straße", "a b", "in", ""])
def test_such_keys_are_read_where_a_table_offers_them(key):
    pairs = json_table({"in": {key: 7, "x": "another"}}, "steps.call.output").pairs
    read = compile_value(pairs[0].reference).render({"steps": {"call": {"output": {"in": {key: 7, "x": "another"}}}}})
    assert read == 7
