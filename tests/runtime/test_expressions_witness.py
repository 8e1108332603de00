"""The C++ implementation of the Common Expression Language as a witness: the same expressions, the same answers."""

import pytest

from runtime.expressions import compile
from tests.runtime.test_expressions_conformance import same

cel = pytest.importorskip(
    "cel_expr_python.cel", reason="the witness cel-expr-python is not installed", exc_type=ImportError
)


@pytest.fixture(scope="module")
def witness():
    from cel_expr_python.ext import ext_optional, ext_strings

    environment = cel.NewEnv(
        variables={"x": cel.Type.DYN},
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()],
    )

    def evaluate(expression, names):
        value = environment.compile(expression, disable_check=True).eval(data=names)
        if value.type().name() == "error" or value.type() == cel.Type.ERROR:
            raise LookupError(str(value))
        return value.plain_value()

    return evaluate


# One expression per line of thought; `x` takes every value of VALUES in turn.
VALUES = [0, 1, -7, 2**63 - 1, -(2**63), 2**53 + 1, 0.5, -3.0, 1e300, True, False, None]
VALUES += ["", "a", "äöü€🐱", "12", "1.5"]
VALUES += [[], [1, 2, 3], ["a", "b"], [[1], [2]], {}, {"a": 1}, {"a": {"b": None}}]
EXPRESSIONS = """
x == 1 | x != null | x == x | x == [1, 2, 3] | x == {'a': 1} | x < 5 | x >= -7 | x > 'a' | x <= true
x + x | x - 1 | x * 3 | x / 2 | x % 5 | -x | !x | x && true | x || true | true || x | x ? 1 : 2
size(x) | x[0] | x['a'] | x.a | x.a.b | has(x.a) | 1 in x | 'a' in x | x in [1, 'a', true, null]
x.all(i, i > 0) | x.exists(i, i == 2) | x.exists_one(i, i == 'a') | x.map(i, [i]) | x.filter(i, i != 2)
int(x) | double(x) | string(x) | bool(x) | type(x) == int | type(x) == string | type(x) == map
x.startsWith('a') | x.endsWith('🐱') | x.contains('2') | x.matches('^[0-9]+$') | x.size()
x.indexOf('b') | x.lastIndexOf('') | x.charAt(0) | x.substring(1) | x.replace('', '-') | x.replace('2', '33', 1)
x.split('') | x.split('.') | x.split('', 2) | x.trim() | x.lowerAscii() | x.upperAscii() | x.join('-')
x.?a.orValue(7) | x[?'a'].hasValue() | [?x.?a] | {?'k': x.?a} | x.?a.?b.orValue(3)
"""
PAIRS = [part.strip() for line in EXPRESSIONS.splitlines() for part in line.split(" | ") if part.strip()]

# Where the witness and we differ, and why that is right: (expression, value).
NOTHING_IN_NULL = "null holds nothing, so what is selected from it is absent; the witness refuses to look"
DIFFERENCES = {
    ("x.?a.orValue(7)", "None"): NOTHING_IN_NULL,
    ("x[?'a'].hasValue()", "None"): NOTHING_IN_NULL,
    ("[?x.?a]", "None"): NOTHING_IN_NULL,
    ("{?'k': x.?a}", "None"): NOTHING_IN_NULL,
    ("x.?a.?b.orValue(3)", "None"): NOTHING_IN_NULL,
    ("has(x.a)", "None"): NOTHING_IN_NULL,
    ("int(x)", "True"): "true is no number here; the specification has no such conversion",
    ("int(x)", "False"): "the same",
    ("x.split('')", "''"): "an empty text has no characters; so has the Go implementation",
    ("x.split('', 2)", "''"): "the same",
}


def is_mixed_arithmetic(expression, value):
    """An int and a double calculate and order with each other here, beyond the specification."""
    return type(value) is float and expression in ("x - 1", "x * 3", "x / 2", "-x")


def answer(evaluate, *arguments, **options):
    try:
        return evaluate(*arguments, **options)
    except Exception:
        return ERROR


ERROR = "an error"


@pytest.mark.parametrize("expression", PAIRS)
def test_the_witness_agrees(witness, expression):
    ours = compile(expression, checked=False)
    for value in VALUES:
        if (expression, repr(value)) in DIFFERENCES or is_mixed_arithmetic(expression, value):
            continue
        expected = answer(witness, expression, {"x": value})
        found = answer(ours.evaluate, {"x": value}, raw=True)
        assert same(found, expected), f"{expression} for {value!r}: {found!r}, the witness has {expected!r}"
