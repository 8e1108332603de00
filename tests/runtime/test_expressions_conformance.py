"""The public conformance cases of the Common Expression Language."""

import json
from pathlib import Path

import pytest

from runtime.expressions import ExpressionError, compile

CASES = json.loads((Path(__file__).parents[1] / "data" / "cel_conformance.json").read_text())


def decoded(value):
    if isinstance(value, dict):
        if value.keys() == {"$double"}:
            return float(value["$double"])
        return {key: decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return value


def same(a, b):
    """Equal and of the same kind: 1 is neither 1.0 nor true."""
    if type(a) is not type(b):
        return False
    if type(a) is list:
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(same(item, b[key]) for key, item in a.items())
    return a == b or (a != a and b != b)


def name_of(case):
    return f"{case['file']}-{case['section']}-{case['name']}".replace(" ", "_")


def test_there_are_578_cases():
    assert len(CASES) == 578


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_case(case):
    names = decoded(case.get("bindings", {}))
    expression = compile(case["expr"], checked=False) if "value" in case else None
    if expression is None:
        with pytest.raises(ExpressionError):
            compile(case["expr"], checked=False).evaluate(names)
    else:
        assert same(expression.evaluate(names, raw=True), decoded(case["value"]))
