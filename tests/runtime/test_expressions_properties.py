"""Whatever the text and the data: an answer in JSON, or an ExpressionError."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from runtime.expressions import ExpressionError, compile, compile_template, compile_value
from runtime.expressions.functions import FUNCTIONS, NAMESPACES
from tests.examples import examples

WORDS = """
a b steps output x 0 1 -1 2.5 5u 'a' "é" b'x' r'\\' true false null in has ( ) [ ] { } . , : ? ! - + * / % < >
<= >= == != && || .? [? {{ }} // ` ' " \\ map filter all exists exists_one size int string matches '^(a+)+$'
type format '%s%d%.3f' json timestamp duration '2026-01-01T00:00:00Z' 9223372036854775807 1e308 \ud800 \x00 🐱
optional.of math
""".split()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["a", "\ud800", "\x00", 2**63, -(2**63), 0.0, "2026-01-01T00:00:00Z"])
)
data = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abx") | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
names = st.fixed_dictionaries({"a": data, "b": data, "x": data})

atoms = st.sampled_from(
    [
        "a",
        "b",
        "x",
        "a.b",
        "a.?b",
        "b['a']",
        "x[0]",
        "x[?0]",
        "1",
        "-7",
        "2.5",
        "5u",
        "'a'",
        "'äö'",
        "''",
        "true",
        "false",
    ]
    + [
        "null",
        "[]",
        "[1, 'a', 2.0]",
        "{}",
        "{'a': 1}",
        "b'x'",
        "int",
        "timestamp(0)",
        "duration('1s')",
        "optional.none()",
    ]
    + ["9223372036854775807", "1.0 / 0.0", "has(a.b)", "has(x.a.b)", "'%s %d'", "'^a+$'"]
)


def compound(inner):
    operators = st.sampled_from("+ - * / % == != < <= > >= in && ||".split())
    methods = sorted(name for style, name in FUNCTIONS if style == "method")
    functions = sorted(name for style, name in FUNCTIONS if style == "global")
    spaced = sorted(f"{style}.{name}" for style, name in FUNCTIONS if style in NAMESPACES)
    arguments = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}({})".format, st.sampled_from(["!", "-"]), inner),
        st.builds("[{}]".format, arguments),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("({}).{}({})".format, inner, st.sampled_from(methods), arguments),
        st.builds("{}({})".format, st.sampled_from(functions + spaced), arguments),
        st.builds(
            "({}).{}(x, {})".format, inner, st.sampled_from(["map", "filter", "all", "exists", "exists_one"]), inner
        ),
        st.builds("({}).map(b, {}, {})".format, inner, inner, inner),
        st.builds("({}){}".format, inner, st.sampled_from([".a", ".?b", "[0]", "[?1]", "['a']", ".b.a", ".`a-b`"])),
    )


expressions = st.recursive(atoms, compound, max_leaves=8)


def is_json(value):
    """Strict JSON of 64-bit numbers; texts may hold what Python's may."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return -(2**63) <= value < 2**64
    if kind is list:
        return all(map(is_json, value))
    if kind is dict:
        return all(type(key) is str and is_json(item) for key, item in value.items())
    return value is None or kind in (bool, str)


@examples(200)
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
    | st.lists(st.sampled_from(WORDS)).map("".join)
)
def test_any_text_is_compiled_or_refused(text):
    for compiling in (compile, compile_template, compile_value):
        try:
            compiling(text)
        except ExpressionError as error:
            assert error.message
            assert error.position is None or 1 <= error.position <= len(text) + 1


@examples(300)
@given(expressions, names)
def test_any_expression_gives_json_or_an_expression_error(source, values):
    try:
        result = compile(source, checked=False).evaluate(values)
    except ExpressionError as error:
        assert error.message and len(str(error)) < 1_000
        assert error.source == source
        return
    assert is_json(result)


@examples(100)
@given(expressions, expressions, names)
def test_any_template_gives_text_or_an_expression_error(first, second, values):
    try:
        template = compile_template(f"x {{{{ {first} }}}} {{{{ {second} }}}}")
        assert type(template.render(values)) is str
    except ExpressionError:
        pass


class Recorder(dict):
    """Names that remember which of them were read."""

    def __init__(self, values):
        super().__init__(values)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)


@examples(120)
@given(expressions, names)
def test_every_name_that_is_read_is_among_the_references(source, values):
    try:
        expression = compile(source, checked=False)
        recorder = Recorder(values)
        expression.evaluate(recorder)
    except ExpressionError:
        return
    assert recorder.read <= {path[0] for path in expression.references}


@examples(120)
@given(expressions, names)
def test_only_what_is_referenced_is_needed(source, values):
    """With everything else taken out of the data, the answer is the same."""
    expression = compile(source, checked=False)
    kept = {path[0]: values[path[0]] for path in expression.references if path[0] in values}
    assert answer(expression, values) == answer(expression, kept)


def answer(expression, values):
    try:
        return json.dumps(expression.evaluate(values), sort_keys=True)
    except ExpressionError as error:
        return getattr(error, "kind", "")
