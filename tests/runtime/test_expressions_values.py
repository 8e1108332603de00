"""What goes into an expression, and what comes out of it: Python's values on the one side, JSON on the other."""

from datetime import datetime, timedelta, timezone

import pytest

from runtime.expressions import EvaluationError, compile, suggest, to_json
from tests.runtime.test_expressions import failure, value


def test_python_times_are_taken_and_leave_as_texts():
    names = {"run": {"started_at": datetime(2026, 5, 31, 11, 0, tzinfo=timezone(timedelta(hours=2)))}}
    assert value("run.started_at", names) == "2026-05-31T09:00:00Z"
    assert value("run.started_at + duration('90s')", names) == "2026-05-31T09:01:30Z"
    assert value("{'at': run.started_at}", names) == {"at": "2026-05-31T09:00:00Z"}
    assert value("wait + duration('1s')", {"wait": timedelta(minutes=1)}) == "61s"


def test_raw_results_are_python_times():
    assert value("timestamp('2026-05-31T09:00:00.5Z')", raw=True) == datetime(
        2026, 5, 31, 9, 0, 0, 500_000, timezone.utc
    )
    assert value("[duration('1500ms')]", raw=True) == [timedelta(seconds=1.5)]
    assert value("b'\\xff'", raw=True) == b"\xff"


def test_results_are_json():
    assert value("b'hi'") == "aGk="
    assert value("{1: 'a', true: 'b', 2u: 'c'}") == {"1": "a", "true": "b", "2": "c"}
    assert value("type(1.5)") == "double"
    assert type(value("5u")) is int
    assert failure("0.0 / 0.0").kind == "value"
    assert failure("{'a': [1.0 / 0.0]}").kind == "value"
    assert failure("{1: 'a', '1': 'b'}").kind == "value"


class NoData:
    """Looks like whatever it is compared with."""

    def __eq__(self, other):
        return True

    def __bool__(self):
        return True


@pytest.mark.parametrize(
    "source",
    ["x.y", "x.y.z", "x.y == 1", "[x.y]", "x.list", "x.list[0]", "x.list.map(i, i)", "x.list.first()", "x.y ? 1 : 2"]
    + ["type(x.list.first())", "json_text(x.list)", "'%s'.format(x.list)", "x.list.sort()", "x.list.sum()", "x.y && true"],
)
def test_a_value_that_is_no_data_is_refused(source):
    assert failure(source, {"x": {"y": NoData(), "list": [NoData(), NoData()]}}).kind in ("type", "missing")


def test_a_value_that_is_no_data_equals_nothing():
    names = {"x": {"list": [NoData()]}}
    assert value("x.list == [1]", names) is False
    assert value("1 in x.list", names) is False


def test_numbers_beyond_64_bits_in_the_data_are_errors():
    for source in (
        "n",
        "n + 1",
        "n * 1.5",
        "double(n)",
        "string(n)",
        "[n]",
        "'%d'.format([n])",
        "x[n]",
        "'%f'.format([n])",
    ):
        assert failure(source, {"n": 10**5000, "x": [1]}).kind in ("overflow", "missing", "value")


def test_results_share_nothing_with_the_names_or_the_expression():
    names = {"a": {"list": [1]}}
    value("a", names)["list"].append(2)
    assert names == {"a": {"list": [1]}}
    value("[1, 2]").append(3)
    assert value("[1, 2]") == [1, 2]


def test_to_json_takes_python_values():
    assert to_json([datetime(2026, 1, 1, tzinfo=timezone.utc), timedelta(hours=1), b"x", 1.5, None]) == [
        "2026-01-01T00:00:00Z",
        "3600s",
        "eA==",
        1.5,
        None,
    ]
    with pytest.raises(EvaluationError):
        to_json(float("nan"))
    with pytest.raises(EvaluationError):
        to_json(object())


def test_compiling_twice_gives_the_same_expression():
    assert compile("1 + trigger.body.price") is compile("1 + trigger.body.price")


def test_suggest_finds_near_names_only():
    assert suggest("emial", ["email", "name"]) == "email"
    assert suggest("Email", ["email"]) == "email"
    assert suggest("zzz", ["email", "name"]) is None
    assert suggest("x" * 1000, ["x" * 999]) is None
