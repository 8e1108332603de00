"""What others write takes no time that grows faster than its length: answers of servers and of models, schemas and what is
held against them, and drafts. A worker does everybody's runs in one loop, so that one such text would hold up all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from builder.dataflow import Known, problems
from builder.drawing import drawing
from builder.texts import in_code
from runtime.ai.answers import BadAnswer, check_schema, misfit, read_answer
from runtime.faults import kind_of
from runtime.jsonvalues import MIB
from runtime.steps.base import StepError
from tests.effort import seconds
from tests.runtime.calling import allowed, server  # noqa: F401 - fixtures
from tests.runtime.support import run_step

SECONDS = 4.0
"""Each of these took minutes to years, and takes a tenth of this now."""


def within(act: Callable[[], Any], longest: float = SECONDS) -> Any:
    given: list[Any] = []
    assert seconds(lambda: given.append(act())) < longest
    return given[0]


@pytest.mark.parametrize(
    ("kind", "body"),
    [("text/plain; charset=punycode", b"a" * (MIB // 2) + b"-" + b"b" * (MIB // 2 - 1)),
     ('text/plain; x="' + ";" * 60_000, b"ok"), ("text/plain; charset*0=" + ";charset*1=a" * 4_000, b"ok")],
)  # fmt: skip
@pytest.mark.parametrize("status", [200, 422])
def test_no_answer_holds_up_the_worker_by_its_type(server, kind, body, status):  # noqa: F811
    server.answer = lambda *_: (status, body, {"Content-Type": kind})
    call = {"url": f"{server.url}/x", "success": "2xx, 422"}
    assert within(lambda: run_step("http", call)).output["body"] == body.decode()


@pytest.mark.parametrize("link", ["<" * 60_000, "<a>;" * 15_000, "<a>; " + "rel=x " * 10_000])
def test_nor_by_where_it_says_that_the_next_page_is(server, link):  # noqa: F811
    server.answer = lambda *_: (200, [1], {"Link": link})
    config = {"url": f"{server.url}/x", "pages": "next_link"}
    assert within(lambda: run_step("http", config)).output["items"] == [1]


@pytest.mark.parametrize("date", ["Mon, " + "1 " * 30_000, "(" * 60_000, "," * 60_000])
def test_nor_by_when_it_says_to_come_back(server, date):  # noqa: F811
    server.answer = lambda *_: (503, {}, {"Retry-After": date})
    with pytest.raises(StepError):
        within(lambda: run_step("http", {"url": f"{server.url}/x"}))


@pytest.mark.parametrize("text", ["```" + "\n" * 4_000, "```json" + " " * 4_000, "```\n{" * 100_000, "{" * MIB, "``` \n" * 200_000])
def test_no_words_of_a_model_do(text):
    with pytest.raises(BadAnswer):
        within(lambda: read_answer(text, None, {"type": "object"}))


def test_a_fenced_answer_is_found_among_others():
    text = 'First:\n```python\nx = {1}\n```\nthen:\n```JSON\n{"a": 1}\n```\n'
    assert read_answer(text, None, {"type": "object"}) == {"a": 1}


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {"type": "integer"}}
EVIL = "^(a+)+$"
NAME = "a" * 40 + "!"
SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "rules that double": ({"$ref": "#/$defs/d0", "$defs": DOUBLING}, 1),
    "rules that double, unevaluated": ({"unevaluatedProperties": False, "$ref": "#/$defs/d0", "$defs": {
        f"d{n}": {"$ref": f"#/$defs/d{n + 1}", "dependentSchemas": {"a": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(40)} | {"d40": {}}}, {"a": 1, "b": 2}),
    "a circle": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, 1),
    "nothing there": ({"$ref": "#/$defs/none"}, 1),
    "another dialect": ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": EVIL}}}, {"a": NAME}),
    "another dialect at the root": ({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/$defs/e"}},
                                     "$defs": {"e": {"pattern": EVIL}}}, {"a": NAME}),
    "names of others": ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, {NAME: 1}),
    "names of others, unevaluated": ({"patternProperties": {EVIL: {}}, "unevaluatedProperties": False}, {NAME: 1}),
    "each with each": ({"uniqueItems": True}, [{"a": n} for n in range(60_000)] + [{"a": 1.0}]),
}  # fmt: skip


@pytest.mark.parametrize("what", SCHEMAS)
def test_no_schema_does_nor_what_is_held_against_it(what):
    schema, value = SCHEMAS[what]
    within(lambda: check_schema(schema))
    assert within(lambda: misfit(value, schema, "payload")).startswith("payload")


def test_what_has_to_fit_a_schema_still_does():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "patternProperties": {"^x-": {"type": "string"}},
        "properties": {"tags": {"type": "array", "uniqueItems": True}, "$schema": {"type": "string"}}, "additionalProperties": False,
    }  # fmt: skip
    check_schema(schema)
    assert misfit({"tags": [1, True, "1", [1], {"a": 1}, {"a": True}], "x-a": "b", "$schema": "mine"}, schema, "payload") == ""
    assert misfit({"tags": [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]}, schema, "payload").startswith("payload.tags")
    assert "y" in misfit({"y": 1}, schema, "payload")


def test_a_list_as_long_as_can_be_sent_is_checked():
    value = [{"a": 1, "b": 2}] * (MIB // 13)
    schema = {"items": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}
    assert len(json.dumps(value, separators=(",", ":"))) > MIB and misfit(value, schema, "payload") == ""
    assert misfit([1] * (MIB // 2), {"items": {"type": "integer"}}, "payload") == ""


@pytest.mark.parametrize(
    ("schema", "words"),
    [({"pattern": "a" * 1_001}, "longer than"), ({"patternProperties": {"(?=a)": {}}}, "cannot be used"), ({"pattern": "((a{100}){100}){100}"}, "cannot be used"),
     ({"anyOf": [{"pattern": f"x{n}"} for n in range(101)]}, "more than 100 patterns")],
)  # fmt: skip
def test_patterns_of_schemas_are_bounded_when_they_are_saved(schema, words):
    with pytest.raises(ValueError, match=words):
        within(lambda: check_schema(schema))


@pytest.mark.parametrize("message", ["a" * 4_000, "1." * 2_000, "a@" * 2_000, "a@b" * 1_300, "http://" * 500])
def test_kinds_of_errors_are_told_apart_at_once(message):
    within(lambda: [kind_of({"message": message}) for _ in range(100)])


@pytest.mark.parametrize("text", ["{{" * 250_000, "{{ a }}" + "{{" * 250_000, "{{ '" * 120_000, "}}{{" * 120_000])
def test_no_draft_holds_up_the_page_on_which_it_would_be_put_right(text):
    step = {"id": "a", "type": "email", "config": {"to": [text], "subject": text, "body": text}}
    within(lambda: drawing({"format": 1, "name": "x", "triggers": [], "steps": [step]}, problems=[]))
    assert within(lambda: in_code(text, "template", str.upper)) is not None


def test_a_flow_in_which_every_name_is_wrong_is_read():
    """Each is looked for among all others."""
    steps = [{"id": f"step_{n}", "type": "set", "config": {"values": {"a": "{{ steps.stop_%d.output.x }}" % n}}} for n in range(2_500)]
    found = within(lambda: problems(Known({"format": 1, "name": "x", "triggers": [], "steps": steps})), 3 * SECONDS)
    assert len(found) == 2_500 and found[0].message == "There is no step “stop_0”."
