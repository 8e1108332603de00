"""No expression, and no data, makes an evaluation take long, take much memory, or fail in another way than it may."""

import sys
import tracemalloc

import pytest

from runtime.expressions import (
    BudgetExceeded,
    EvaluationError,
    ExpressionError,
    SyntaxProblem,
    compile,
    compile_template,
    compile_value,
)
from tests.effort import seconds

LONG = "a" * 500_000
TEN = list(range(10))


def deep(levels, leaf=1):
    data = leaf
    for _ in range(levels):
        data = [data]
    return data


def nested_maps(count):
    return "".join(f"ten.map(v{i}, " for i in range(count)) + "1" + ")" * count


def test_eight_nested_maps_over_ten_items_end_within_100_ms():
    expression = compile(nested_maps(8))

    def evaluate():
        with pytest.raises(BudgetExceeded) as caught:
            expression.evaluate({"ten": TEN})
        assert caught.value.kind == "budget"

    assert seconds(evaluate, tries=5) < 0.1


def test_5000_parentheses_are_refused_with_the_position():
    with pytest.raises(SyntaxProblem) as caught:
        compile("(" * 5000 + "1" + ")" * 5000)
    assert caught.value.position == 66
    assert "64 levels" in caught.value.message


def test_64_parentheses_are_not():
    assert compile("(" * 64 + "7" + ")" * 64).evaluate({}) == 7


def test_a_pattern_that_others_backtrack_on_takes_under_10_ms():
    expression = compile("s.matches('^(a+)+$')")
    names = {"s": "a" * 50_000 + "!"}
    expression.evaluate(names)
    assert seconds(lambda: expression.evaluate(names), tries=5) < 0.01


@pytest.mark.parametrize(
    "source",
    [
        "-" * 16_000 + "1",
        "!" * 16_000 + "true",
        "[" * 8_000,
        "{" * 8_000,
        "[" * 5_000 + "]" * 5_000,
        "f(" * 8_000,
        "a." * 8_000 + "a",
        "a" + ".a" * 8_000,
        "a" + "[0]" * 5_000,
        "a" + ".size()" * 2_000,
        "1" + " + 1" * 4_000,
        "true" + " && true" * 2_000,
        "true" + " ? true : true" * 1_000,
        "true" + " ? (true" * 1_000 + ")" * 1_000,
        "1" + " in [1]" * 2_000,
        "a(" * 3_000 + ")" * 3_000,
        "[1].map(x, " * 1_000 + "x" + ")" * 1_000,
        "a.?" * 5_000 + "b",
        "'" + "\\" * 16_001,
        '"' * 16_001,
        "/" * 16_001,
        "0x" + "f" * 16_000,
        "`" * 16_000,
        "1 " * 8_000,
        "x" * 17_000,
        "has(" * 4_000,
        "-(" * 60 + "1" + ")" * 60,
        "a ? b : " * 2_000 + "c",
    ],
)
def test_long_and_deep_sources_are_answered_at_once(source):
    def attempt():
        try:
            compile(source).evaluate({"a": {}, "b": True})
        except ExpressionError:
            pass

    assert seconds(attempt) < 2, "what grows beyond reason takes minutes"


def test_a_chain_of_200_sums_is_fine():
    assert compile("1" + " + 1" * 190).evaluate({}) == 191
    assert compile("x || " * 1_000 + "true").evaluate({"x": False}) is True


@pytest.mark.parametrize("room", [40, 80, 150, 300, 600])
def test_python_stack_is_never_the_limit(room):
    """Also when the caller itself has used most of the stack, what comes is one of our errors."""
    sources = [
        "(" * 64 + "d" + ")" * 64,
        "d == e",
        "d",
        "[d].map(x, [x])",
        "1" + " + 1" * 190,
        "json_text(d)",
        "'%s'.format([d])",
    ]
    names = {"d": deep(120), "e": deep(120)}

    def with_little_room():
        for number, source in enumerate(sources):
            try:
                compile(f"{source} // {room} {number}").evaluate(names)
            except ExpressionError:
                pass

    def descend(left):
        return with_little_room() if left <= 0 else descend(left - 1)

    here = len(__import__("inspect").stack())
    descend(sys.getrecursionlimit() - here - room)


@pytest.mark.parametrize(
    "source",
    [
        "d == e",
        "d",
        "[d]",
        "json_text(d)",
        "'%s'.format([d])",
        "d in [e]",
        "[d].distinct()",
        "[d, e].distinct()",
        "d != e",
    ],
)
@pytest.mark.parametrize("levels", [100, 127, 500, 100_000])
def test_deep_data_is_answered_or_refused(source, levels):
    try:
        compile(source).evaluate({"d": deep(levels), "e": deep(levels)})
        assert levels < 200
    except EvaluationError as error:
        assert error.kind in ("value", "budget")
        assert levels >= 127


@pytest.mark.parametrize(
    "source",
    [
        "s + s + s",
        "s.replace('', s)",
        "s.replace('a', 'aaaaaaaa')",
        "[s, s, s, s].join(s)",
        "s.split('')",
        "s.split('a')",
        "'%s%s%s'.format([s, s, s])",
        "'%s'.format([[s, s, s, s]])",
        "'%s'.format([{s: 1, s + '': 2}])",
        "'%.100f%.99999f'.format([1.5, 1.5])",
        "ten.map(x, s + string(x))",
        "ten.map(x, ten.map(y, ten.map(z, s.substring(0, 999))))",
        "ten.map(x, s).map(x, [s, s, s]).map(x, x.join())",
        "json_text([s, s, s])",
        "[[s, s], [s, s]]",
        "{'a': s, 'b': s, 'c': s}",
        "strings.quote(s) + s.upper()",
        "bytes(s) + bytes(s) + bytes(s)",
        "base64.encode(bytes(s))",
        "range(100000000)",
        "[s, s, s].map(x, x.reverse())",
        "json(s)",
        "'[' + ten.map(x, s).join(',') + ']'",
        "[[[[[[[[1]]]]]]]].map(a, [a,a]).map(a, [a,a]).map(a, [a,a])" + ".map(a, [a,a,a,a])" * 12,
        "s.trim() + s.trim() + s.trim()",
        "s.substring(0) + s.substring(0) + s.substring(0)",
    ],
)
def test_what_grows_is_stopped_before_it_has_grown(source):
    names = {"s": LONG, "ten": TEN}
    expression = compile(source)
    tracemalloc.start()
    caught = []

    def attempt():
        with pytest.raises(EvaluationError) as error:
            expression.evaluate(names)
        caught.append(error.value.kind)

    try:
        assert seconds(attempt) < 5.0, "tracing is slow; without fuel it would be hours"
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert caught[0] in ("budget", "value", "type")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\\w{0,1000}$", "a" * 1_000),
        (r"^[^@\\s]{1,64}@([a-z0-9-]{1,63}\\.){1,8}[a-z]{2,24}$", "dana@mail.example.com"),
        (r"^([0-9A-F]{2}[:-]){5}[0-9A-F]{2}$", "00:1B:44:11:3A:B7"),
        (r"^(?:[0-9]{1,3}\\.){3}[0-9]{1,3}$", "192.0.2.1"),
        (r"\\Q{1000}{1000}\\E[]{}]{2}", "{1000}{1000}]{"),
    ],
)
def test_patterns_that_people_write_are_not_too_large(pattern, text):
    assert compile(f"s.matches('{pattern}')").evaluate({"s": text}) is True
    assert compile("s.matches(p)").evaluate({"s": text, "p": pattern.replace("\\\\", "\\")}) is True


WORK = {
    "long": LONG,
    "other": LONG[:-1] + "b",
    "many": list(range(5_000)),
    "texts": [f"text {i}" for i in range(5_000)],
    "longs": [LONG[:-5] + f"{i:05d}" for i in range(20)],
    "wide": {f"key{i}": i for i in range(5_000)},
    "needle": "a" * 99 + "b",
    "vast": "a" * 240_000,
    "halves": "a" * 30_000 + "b" + "a" * 30_000,
    "letters": "\\pL" * 330,
    "thousands": "(?:a{0,1000})" * 20,
    "hundreds": "(?:a{0,99})" * 25,
    "brackets": "[" * 990,
    "hay": "a" * 29_000,
    "ten": TEN,
}


@pytest.mark.parametrize(
    "source",
    [
        "many.map(x, many.exists(y, y == -1))",
        "many.filter(x, x in many)",
        "many.filter(x, string(x) in texts)",
        "many.all(x, long != other)",
        "many.all(x, long <= other || true)",
        "many.all(x, !hay.contains(needle))",
        "many.all(x, hay.indexOf(needle) == -1)",
        "many.all(x, hay.replace(needle, '') == hay)",
        "many.all(x, !long.matches('(a|b|ab)*c$'))",
        "many.all(x, !hay.matches('(x+x+)+y' + string(x)))",
        "many.all(x, many == many)",
        "many.all(x, wide == wide)",
        "many.all(x, long in longs || true)",
        "many.map(x, many.sort().first())",
        "many.map(x, longs.sort().size())",
        "many.map(x, texts.distinct().size())",
        "many.map(x, many.map(y, [y]).distinct().size())",
        "many.map(x, many.sum())",
        "many.map(x, texts.join().size())",
        "many.map(x, many.reverse().size())",
        "many.map(x, wide.keys().size())",
        "many.exists(x, wide.nothing == x)",
        "many.exists(x, timestamp(0).getHours('Nowhere/' + string(x)) == 1)",
        "many.exists(x, 'a'.matches('(' + string(x)))",
        "many.map(x, wide.merge(wide).size())",
        "many.map(x, long.lower().size())",
        "many.map(x, long.split('b').size())",
        "many.map(x, long.lastIndexOf('b'))",
        "[1].map(x, ('b' + vast).lastIndexOf(halves) == -1)",
        "many.map(x, hay.lastIndexOf(needle))",
        "many.exists(x, 'a'.matches('\\\\pL{400}' + string(x)))",
        "many.exists(x, 'a'.matches(letters + string(x)))",
        "many.exists(x, 'a'.matches('.{1000}' + string(x)))",
        "many.exists(x, 'a'.matches('(?:a{0,400})' + string(x)))",
        "many.exists(x, 'a'.matches(thousands + string(x)))",
        "many.exists(x, 'a'.matches(hundreds + string(x)))",
        "many.exists(x, 'a'.matches(brackets + string(x)))",
        "many.map(x, '%e'.format([1.5]))",
        "many.map(x, json('[1,2,3]'))",
        "ten.map(a, ten.map(b, ten.map(c, ten.map(d, a + b + c + d))))",
    ],
)
def test_work_is_bounded_whatever_it_is_made_of(source):
    expression = compile(source)

    def attempt():
        try:
            expression.evaluate(WORK)
        except EvaluationError as error:
            assert error.kind in ("budget", "missing", "value", "type")

    assert seconds(attempt, tries=3) < 0.4


def test_absorbed_errors_do_not_hide_an_exhausted_budget():
    with pytest.raises(BudgetExceeded):
        compile(nested_maps(6) + " == [] || true").evaluate({"ten": TEN})
    with pytest.raises(BudgetExceeded):
        compile(f"ten.exists(x, {nested_maps(6)} == [])").evaluate({"ten": TEN})


def test_budgets_can_be_chosen():
    expression = compile("ten.map(x, x + 1)")
    assert expression.evaluate({"ten": TEN}, steps=40, memory=200)
    with pytest.raises(BudgetExceeded):
        expression.evaluate({"ten": TEN}, steps=10)
    with pytest.raises(BudgetExceeded):
        expression.evaluate({"ten": TEN}, memory=10)


def test_a_rendering_has_one_budget_for_all_of_its_parts():
    tree = compile_value({"all": ["{{ s + s }}"] * 40})
    with pytest.raises(BudgetExceeded):
        tree.render({"s": "a" * 50_000})
    with pytest.raises(BudgetExceeded):
        compile_template("{{ s }}" * 40).render({"s": "a" * 50_000})


def test_a_large_body_can_be_passed_on():
    body = {"rows": [{"id": i, "text": "x" * 100} for i in range(9_000)]}
    names = {"trigger": {"body": body}}
    assert compile("trigger.body").evaluate(names) == body
    assert compile_value({"json": "{{ trigger.body }}"}).render(names) == {"json": body}


def test_ten_thousand_items_can_be_filtered():
    items = [{"id": i, "score": i % 100} for i in range(10_000)]
    assert len(compile("items.filter(i, i.score > 90)").evaluate({"items": items})) == 900


@pytest.mark.parametrize("part", ["b" * 9, "ab" * 5, "x" * 12, "a" * 9 + "é", "abcabcabcabc"])
def test_looking_from_the_end_finds_what_pythons_own_search_finds(part):
    texts = ["", part, part * 3, part + "x" + part, "x" * 20 + part, "é" * 5 + part[:-1], part[1:] + part, "ab" * 40]
    found = compile("t.lastIndexOf(p, n)")
    for text in texts:
        assert compile("t.lastIndexOf(p)").evaluate({"t": text, "p": part}) == text.rfind(part)
        for last in range(0, len(text) + 1, 3):
            assert found.evaluate({"t": text, "p": part, "n": last}) == text.rfind(part, 0, last + len(part))


@pytest.mark.parametrize(("source", "value"), [("0" * 5_000, 0), ("0" * 5_000 + "7u", 7), ("0x" + "0" * 5_000 + "ff", 255), ("-" + "0" * 5_000 + "8", -8)])
def test_as_many_zeros_as_somebody_likes_stand_before_a_number(source, value):
    """Python refuses to read more than 4,300 digits by an error of its own, with which no page opened."""
    assert compile(source).evaluate({}) == value
    assert compile_template("{{ " + source + " }}").render({}) == value
