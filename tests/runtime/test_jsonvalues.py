"""Strict JSON: what cannot be stored, compared or passed on is refused, with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.jsonvalues import DEEPEST, MIB, BadJson, check_json, loads_strict
from tests.effort import seconds
from tests.examples import examples


def refused(text: str | bytes, **more) -> BadJson:
    with pytest.raises(BadJson) as caught:
        loads_strict(text.encode() if isinstance(text, str) else text, **more)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": tru}', 1, 7),
        ('{\n  "a": 1,\n  "b" 2\n}', 3, 7),
        ('{"a": 1} x', 1, 10),
        ('{"a": "b\nc"}', 1, 9),
        ("[1,]", 1, 4),
        ('{"ü": oops}', 1, 7),
        ("", 1, 1),
        ("  ", 1, 1),
    ],
)
def test_broken_json_is_refused_with_line_and_column(text, line, column):
    problem = refused(text)
    assert (problem.line, problem.column) == (line, column)


def test_bytes_that_are_not_utf8_are_refused_with_line_and_column():
    problem = refused(b'{"a":\n "\xff"}')
    assert (problem.line, problem.column) == (2, 3)
    assert "UTF-8" in str(problem)


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        (r'{"items": [{}, {"name": "a\u0000b"}]}', "body.items[1].name", "NUL"),
        (r'{"a": {"b": "\ud800"}}', "body.a.b", "surrogate"),
        (r'{"a": "\udc00\ud800"}', "body.a", "surrogate"),
        ('{"a": NaN}', "body.a", "finite"),
        ("[1, -Infinity]", "body[1]", "finite"),
        ('{"a": 1e999}', "body.a", "finite"),
        ('{"a": -1E+400}', "body.a", "finite"),
        ('{"a": [%s]}' % ("9" * 5000), "body.a[0]", "64 bits"),
        ('{"a": 9223372036854775808}', "body.a", "64 bits"),
        ('{"a": -9223372036854775809}', "body.a", "64 bits"),
        ('{"a": {"b": 1, "b": 1}}', "body.a", "twice"),
        (r'{"a\u0000": 1}', 'body["a\\u0000"]', "NUL"),
        (r'{"two words": "\u0000"}', 'body["two words"]', "NUL"),
    ],
)
def test_what_json_can_spell_and_we_cannot_hold_is_refused_with_its_path(text, path, words):
    problem = refused(text)
    assert problem.path == path
    assert words in str(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\\u0000"', r"\u0000"),
        ('"12345678901234567890123"', "12345678901234567890123"),
        ("1e300", 1e300),
        ("0.0000000000000000000000001", 1e-25),
        ("\ufeff{}", {}),
        ('{"a": {"x": 1}, "b": {"x": 1}}', {"a": {"x": 1}, "b": {"x": 1}}),
    ],
)
def test_what_only_looks_dangerous_passes(text, value):
    assert loads_strict(text.encode()) == value


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_sixty_four_levels_pass_and_sixty_five_do_not(opening, closing):
    loads_strict((opening * DEEPEST + "1" + closing * DEEPEST).encode())
    problem = refused(opening * (DEEPEST + 1) + "1" + closing * (DEEPEST + 1))
    assert "64 levels" in str(problem)


def test_a_hundred_thousand_opening_brackets_are_refused_quickly():
    assert seconds(lambda: refused("[" * 100_000)) < 0.5
    assert "levels" in str(refused("[" * 100_000))


def test_brackets_inside_strings_are_not_levels():
    assert loads_strict(json.dumps(["[" * 200, '"[{' * 100]).encode())[0] == "[" * 200


@pytest.mark.parametrize(
    "text", ['"' + '\\"' * 400_000, '"' * 900_000, '"\\' * 300_000, "[]," * 300_000, "{[" * 400_000]
)
def test_hostile_bodies_take_no_longer_than_their_length(text):
    assert seconds(lambda: refused(text)) < 1


def test_one_byte_over_the_limit_is_refused():
    fits = b'"' + b"x" * (MIB - 2) + b'"'
    assert len(loads_strict(fits)) == MIB - 2
    assert "larger" in str(refused(fits + b" "))


def test_a_body_of_many_small_objects_is_read_in_time():
    body = json.dumps([{f"key{n}": "text", "list": [1, 2.5, {"none": None}]} for n in range(10_000)]).encode()
    assert seconds(lambda: loads_strict(body)) < 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None), max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@examples(300)
@given(values)
def test_reading_text_and_checking_values_agree(value):
    """What may be stored is the same whether it came as text or was computed."""
    text = json.dumps(value).encode()
    try:
        check_json(value, "body")
    except BadJson as expected:
        assert refused(text).path == expected.path
    else:
        assert loads_strict(text) == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {1, 2}}, "a"),
        ({"a": [b"x"]}, "a[0]"),
        ({1: "x"}, ""),
        ({"a": float("nan")}, "a"),
        ([2**70], "[0]"),
    ],
)
def test_values_of_other_types_are_refused(value, path):
    with pytest.raises(BadJson) as caught:
        check_json(value)
    assert caught.value.path == path


def test_messages_about_wild_keys_can_be_printed():
    with pytest.raises(BadJson) as caught:
        check_json({"\ud800" * 3: "\x00"})
    str(caught.value).encode()
