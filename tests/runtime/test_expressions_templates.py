"""{{ }}: a part alone keeps its kind, a part inside text becomes text."""

import pytest

from runtime.expressions import EvaluationError, SyntaxProblem, compile_template, compile_value

NAMES = {"trigger": {"body": {"email": "dana@example.com", "seats": 12, "tags": ["a", "ü"], "none": None}}}


def render(text, names=NAMES):
    return compile_template(text).render(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain }} text { here }", "plain }} text { here }"),
        ("{{ trigger.body.seats }}", 12),
        (" \n{{ trigger.body.tags }}\t", ["a", "ü"]),
        ("{{ trigger.body.none }}", None),
        ("{{trigger.body.seats}}", 12),
        ("{{ {'a': {'b': 1}} }}", {"a": {"b": 1}}),
        ("{{ {'a': {'b': 1}}}}", {"a": {"b": 1}}),
        ("{{ '}}' }}", "}}"),
        ('{{ "{{" }}x', "{{x"),
        ("{{ timestamp(0) }}", "1970-01-01T00:00:00Z"),
        ("Hello {{ trigger.body.email }}!", "Hello dana@example.com!"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("x{{ 12 }}", "x12"),
        ("x{{ 3.0 }}", "x3"),
        ("x{{ 0.1 }}", "x0.1"),
        ("x{{ 1e15 + 0.5 }}", "x1000000000000000.5"),
        ("x{{ true }}", "xtrue"),
        ("x{{ null }}y", "xy"),
        ("x{{ trigger.body.?phone }}y", "xy"),
        ("x{{ trigger.body.tags }}", 'x["a","ü"]'),
        ("x{{ {'a': 1.5, 'b': null} }}", 'x{"a":1.5,"b":null}'),
        ("x{{ timestamp('2026-05-31T09:00:00.250Z') }}", "x2026-05-31T09:00:00.25Z"),
        ("x{{ duration('1h') }}", "x3600s"),
        ("x{{ b'hi' }}", "xaGk="),
        ("x{{ 5u }}", "x5"),
    ],
)
def test_rendering(text, expected):
    result = render(text)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "position"),
    [("a {{ b", 3), ("a {{ }} b", 6), ("Hi {{ trigger..x }}", 15), ("{{ a }} {{ b c }}", 14), ("{{ 'open }}", 4)],
)
def test_a_bad_part_is_refused_with_its_place_in_the_text(text, position):
    with pytest.raises(SyntaxProblem) as caught:
        compile_template(text)
    assert caught.value.position == position
    assert caught.value.source == text


def test_a_failing_part_tells_its_place_in_the_text():
    with pytest.raises(EvaluationError) as caught:
        render("Hello {{ trigger.body.emial }}")
    assert caught.value.source == "Hello {{ trigger.body.emial }}"
    assert caught.value.position == 23
    assert "Did you mean `email`?" in caught.value.message


def test_not_a_number_does_not_become_text():
    with pytest.raises(EvaluationError):
        render("x{{ 0.0 / 0.0 }}")


def test_what_a_part_gives_is_not_a_template_again():
    names = {"trigger": {"body": {"email": "{{ trigger.body.seats }}"}}}
    assert render("{{ trigger.body.email }}", names) == "{{ trigger.body.seats }}"
    assert render("x {{ trigger.body.email }}", names) == "x {{ trigger.body.seats }}"


def test_a_tree_is_rendered_in_its_texts_only():
    value = {
        "{{ key }}": "{{ trigger.body.seats }}",
        "list": [1, "{{ trigger.body.email }}", ["x {{ trigger.body.seats }}"], None, True, 1.5],
        "static": {"deep": ["text", {"n": 1}]},
    }
    assert compile_value(value).render(NAMES) == {
        "{{ key }}": 12,
        "list": [1, "dana@example.com", ["x 12"], None, True, 1.5],
        "static": {"deep": ["text", {"n": 1}]},
    }


def test_static_parts_are_shared_and_not_copied():
    static = {"deep": ["text"]}
    tree = compile_value({"a": static, "b": "{{ 1 }}"})
    assert tree.render({})["a"] is static
    assert not tree.is_static
    alone = compile_value(static)
    assert alone.is_static
    assert alone.render({}) is static
    assert compile_template("text").is_static


def test_rendering_leaves_the_template_as_it_was():
    value = {"a": ["{{ trigger.body.tags }}"]}
    tree = compile_value(value)
    tree.render(NAMES)["a"][0].append("more")
    assert value == {"a": ["{{ trigger.body.tags }}"]}
    assert tree.render(NAMES) == {"a": [["a", "ü"]]}


def test_errors_in_a_tree_tell_the_way_to_the_text():
    with pytest.raises(SyntaxProblem) as caught:
        compile_value({"to": ["ok", "{{ 1 + }}"]})
    assert caught.value.path == ("to", 1)
    with pytest.raises(EvaluationError) as failed:
        compile_value({"to": ["ok", "{{ trigger.x }}"]}).render(NAMES)
    assert failed.value.path == ("to", 1)
    assert failed.value.source == "{{ trigger.x }}"


def test_a_tree_that_is_too_deep_is_refused():
    value = "{{ 1 }}"
    for _ in range(2_000):
        value = [value]
    with pytest.raises(SyntaxProblem):
        compile_value(value)
