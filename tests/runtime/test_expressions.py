"""What expressions promise to the people who write them: the right answers, and errors that say what to do."""

import pytest

from runtime.expressions import EvaluationError, SyntaxProblem, compile

NAMES = {
    "steps": {"qualify": {"output": {"score": 82, "reason": "big order", "empty": None}}},
    "trigger": {
        "body": {
            "email": "dana@example.com",
            "seats": "12",
            "price": 9.5,
            "attendees": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bo"}],
        }
    },
    "headers": {"x-event-id": "evt_1"},
    "loop": {"item": {"id": 7}, "index": 3},
    "run": {"id": 48213, "started_at": "2026-05-31T09:00:00Z"},
}


def value(source, names=NAMES, **options):
    return compile(source).evaluate(names, **options)


def failure(source, names=NAMES, **options):
    with pytest.raises(EvaluationError) as caught:
        value(source, names, **options)
    return caught.value


def problem(source):
    with pytest.raises(SyntaxProblem) as caught:
        compile(source)
    return caught.value


# --- the rows of the table of bad inputs ---


def test_a_sum_beyond_64_bits_is_an_overflow():
    assert failure("9223372036854775807 + 1").kind == "overflow"


def test_a_missing_key_names_the_key_and_the_step():
    error = failure("steps.qualify.output.scoer > 3")
    assert error.kind == "missing"
    assert "scoer" in error.message and "steps.qualify.output" in error.message
    assert "Did you mean `score`?" in error.message
    assert error.position == 22
    assert error.source == "steps.qualify.output.scoer > 3"


def test_a_missing_key_with_nothing_near_shows_how_to_give_a_default():
    assert "trigger.body.?company.orValue(" in failure("trigger.body.company == 'x'").message


@pytest.mark.parametrize("source", ["null > 3", '"5" > 3', "3 < null", "[1] > [0]", "steps.qualify.output.empty > 3"])
def test_comparing_what_has_no_order_is_a_type_error(source):
    assert failure(source).kind == "type"


def test_a_type_error_names_the_value_and_the_remedy():
    error = failure("trigger.body.seats > 10")
    assert error.message == (
        "`trigger.body.seats` is text, and > compares numbers: "
        "use int(trigger.body.seats) or double(trigger.body.seats)."
    )


@pytest.mark.parametrize("source", ["1 / 0", "1 % 0", "5u / 0u"])
def test_division_by_zero_is_named(source):
    error = failure(source)
    assert error.kind == "division"
    assert "by zero" in error.message


@pytest.mark.parametrize(
    "source",
    [
        "''.__class__",
        "steps.__init__",
        "steps.qualify.__class__",
        "(1).__add__",
        "[].append",
        "trigger.body.keys",
        "true.real",
    ],
)
def test_nothing_of_python_can_be_reached(source):
    error = failure(source)
    assert error.kind == "missing"
    assert "has no field" in error.message


@pytest.mark.parametrize("source", ["''.upper.__call__()", "''.join.__self__", "steps.__class__()", "__import__('os')"])
def test_nothing_of_python_can_be_called(source):
    with pytest.raises((SyntaxProblem, EvaluationError)):
        value(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("9007199254740993 == 9007199254740992", False),
        ("9007199254740993 == 9007199254740992.0", False),
        ("9007199254740993 > 9007199254740992.0", True),
        ("true == 1", False),
        ("1 == true", False),
        ('"1" == 1', False),
        ("1 == 1.0", True),
        ("[true] == [1]", False),
        ("{'a': 1} == {'a': 1.0}", True),
        ("true in [1]", False),
        ("1 in [true]", False),
        ("{true: 'a', 1: 'b'}[1]", "b"),
        ("{true: 'a', 1: 'b'}[true]", "a"),
    ],
)
def test_equality_is_exact(source, expected):
    result = value(source)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "source",
    [
        'timestamp("2026-13-45")',
        'timestamp("2026-02-30T00:00:00Z")',
        'timestamp("tomorrow")',
        'timestamp("2026-05-31T09:00:00")',
        'timestamp("2026-05-31T25:00:00Z")',
        'timestamp("2026-05-31T09:00:00+99:00")',
        'duration("soon")',
        'duration("")',
        'duration("5")',
        'duration("1h-5m")',
        'timestamp("2026-05-31T09:00:00Z").getHours("Atlantis/Capital")',
        'timestamp("2026-05-31T09:00:00Z").getHours("../../etc/passwd")',
        'timestamp("2026-05-31T09:00:00Z").getHours("Europe")',
        'int("ten")',
        'double("1,5")',
        'bool("yes")',
    ],
)
def test_a_malformed_value_is_named(source):
    error = failure(source)
    assert error.kind == "value"
    assert "`" in error.message


# --- beyond the specification ---


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 0.5", 1.5),
        ("0.5 + 1", 1.5),
        ("3 * 0.5", 1.5),
        ("3 - 0.5", 2.5),
        ("3 / 2.0", 1.5),
        ("7 / 2", 3),
        ("1 < 1.5", True),
        ("trigger.body.price * 2", 19.0),
    ],
)
def test_int_and_double_calculate_together(source, expected):
    result = value(source)
    assert result == expected
    assert type(result) is type(expected)


def test_a_remainder_needs_whole_numbers():
    assert failure("5 % 2.0").kind == "type"


def test_loop_is_a_name():
    assert value("loop.item.id + loop.index") == 10


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("has(steps.call.output.id)", False),
        ("has(steps.qualify.output.score)", True),
        ("has(steps.qualify.output.empty)", True),
        ("has(steps.qualify.output.empty.deep.er)", False),
        ("has(steps.call.output.id) ? steps.call.output.id : 'none'", "none"),
        ("steps.?call.output.id.orValue('none')", "none"),
        ("steps.?qualify.output.score.orValue(0)", 82),
        ("steps.qualify.output.empty.?x.orValue(1)", 1),
        ("trigger.body.attendees[?5].orValue(null)", None),
        ("trigger.body.attendees[?0].name.orValue('')", "Ann"),
    ],
)
def test_what_may_be_missing_can_have_a_default(source, expected):
    assert value(source) == expected


def test_has_of_an_unknown_name_is_an_error():
    assert failure("has(stesp.a.b)").message.endswith("Did you mean `steps`?")


def test_has_does_not_look_into_texts():
    assert "is text" in failure("has(trigger.body.email.domain)").message
    assert "is text" in failure("has(trigger.body.email.domain.name)").message


def test_comparing_an_optional_without_a_default_is_an_error_and_not_false():
    assert ".orValue(" in failure("trigger.body.?email == 'dana@example.com'").message


def test_an_optional_result_is_its_value_or_null():
    assert value("trigger.body.?email") == "dana@example.com"
    assert value("trigger.body.?phone") is None
    assert value("[trigger.body.?phone]") == [None]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'Ärger'.upper()", "ÄRGER"),
        ("'ÄRGER'.lower()", "ärger"),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("[2.5, 1, 2].sort()", [1, 2, 2.5]),
        ("['b', 'a'].sort()", ["a", "b"]),
        ("[1, 2, 3].sum()", 6),
        ("[1, 2.5].sum()", 3.5),
        ("[].sum()", 0),
        ("[4, 2, 9].min()", 2),
        ("[4, 2, 9].max()", 9),
        ("['x', 'y'].first() + ['x', 'y'].last()", "xy"),
        ("[1, 1.0, 'a', true, 'a', [1], [1], null, null, 2].distinct()", [1, "a", True, [1], None, 2]),
        ("[1, 2, 3, 4].slice(1, 3)", [2, 3]),
        ("[[1], [2, [3]], 4].flatten()", [1, 2, [3], 4]),
        ("[[1], [2, [3]], 4].flatten(2)", [1, 2, 3, 4]),
        ("[1, 2].reverse()", [2, 1]),
        ("range(3)", [0, 1, 2]),
        ("{'a': 1, 'b': 2}.keys()", ["a", "b"]),
        ("{'a': 1, 'b': 2}.values()", [1, 2]),
        ("{'a': 1, 'b': 2}.merge({'b': 3})", {"a": 1, "b": 3}),
        ('json("{\\"a\\": [1, 2.5, null]}").a', [1, 2.5, None]),
        ("json_text({'a': [1, 'ä', null]})", '{"a":[1,"ä",null]}'),
        ("math.round(2.5)", 3.0),
        ("math.round(2.675, 2)", 2.68),
        ("math.greatest(1, 7, 3)", 7),
        ("math.least([4, 2])", 2),
        ("math.floor(-1.5)", -2.0),
        ("math.abs(-3)", 3),
        ("base64.encode(b'hi')", "aGk="),
        ("string(base64.decode('aGk='))", "hi"),
        ("duration('3d') == duration('72h')", True),
        ("optional.of(2).optMap(x, x * 2).orValue(0)", 4),
        ("optional.none().or(optional.of(1)).value()", 1),
    ],
)
def test_functions_of_our_own(source, expected):
    result = value(source)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("[].first()", "missing"),
        ("[].min()", "missing"),
        ("[1, 'a'].sort()", "type"),
        ("[1, 'a'].sum()", "type"),
        ("['a'].sum()", "type"),
        ("[9223372036854775807, 1].sum()", "overflow"),
        ("[1].slice(0, 2)", "value"),
        ("[1].join()", "type"),
        ("json('{')", "value"),
        ("json('NaN')", "value"),
        ('json("{\\"a\\": 1, \\"a\\": 2}")', "value"),
        ('json("\\"\\\\ud800\\"")', "value"),
        ("json('1e999')", "overflow"),
        ("json('9223372036854775808')", "overflow"),
        ("base64.decode('%')", "value"),
        ("math.abs(-9223372036854775807 - 1)", "overflow"),
        ("optional.none().value()", "missing"),
        ("range(-1)", "value"),
        ("{'a': 1, 'a': 2}", "value"),
        ("{null: 1}", "type"),
        ("trigger.body.email[0]", "missing"),
        ("trigger.body.attendees.name", "missing"),
        ("trigger.body.attendees['name']", "type"),
    ],
)
def test_failures_have_a_kind(source, kind):
    assert failure(source).kind == kind


# --- what is refused when it is saved ---


@pytest.mark.parametrize(
    ("source", "position", "words"),
    [
        ("", 1, "missing here"),
        ("  // only a comment", 20, "missing here"),
        ("1 +", 4, "ends too early"),
        ("a..b", 3, "field's name"),
        ("'abc", 1, "not closed"),
        ("'a\nb'", 1, "not closed"),
        ("a = 1", 3, "=="),
        ("a & b", 3, "&&"),
        ("a | b", 3, "||"),
        ("1 2", 3, "not expected"),
        ("(1", 3, "`)` is missing"),
        ("[1, 2", 6, "`]` is missing"),
        ("f(1,)", 5, "argument is missing"),
        ("“a”", 1, "plain quotes"),
        ("for.x", 1, "reserved word"),
        ("'\\q'", 2, "\\\\"),
        ("'\\ud800'", 2, "not a character"),
        ("'a\ud800b'", 1, "half a character"),
        ("99999999999999999999", 1, "too large"),
        ("9223372036854775808", 1, "too large"),
        ("9" * 5000, 1, "too large"),
        ("1e999", 1, "too large"),
        ("18446744073709551616u", 1, "too large"),
        ("Message{a: 1}", 8, "not supported"),
        ("has(a)", 1, "needs one field"),
        ("[1].map(1, x)", 5, "variable's name"),
        ("[1].all(x)", 5, "needs a variable"),
        ("stratsWith('a')", 1, "no function"),
        ("'a'.stratsWith('a')", 5, "Did you mean `startsWith`?"),
        ("math.rond(1)", 6, "Did you mean `round`?"),
        ("contains('a', 'b')", 1, "x.contains("),
        ("'1'.int()", 5, "int(x)"),
        ("'a'.substring()", 5, "takes 1 or 2 arguments, not 0"),
        ("x.matches('(')", 3, "regular expression"),
        ("x.matches('(a{1000}){1000}')", 3, "regular expression"),
        ("now()", 1, "no function"),
        ("a.b and c", 5, "Write && for and"),
        ("a OR b", 3, "Write || for OR"),
        ("not a", 5, "Write ! for not"),
        ("{{ a.b }}", 8, "leave out"),
    ],
)
def test_a_bad_expression_is_refused_with_its_place(source, position, words):
    found = problem(source)
    assert words in found.message
    assert found.position == position


def test_words_of_other_languages_are_recognised():
    assert "`true`" in failure("True && steps.qualify.output.score > 1").message


def test_an_unknown_function_may_be_left_to_the_run():
    assert compile("nowhere(1) || true", checked=False).evaluate({}) is True


ORDERS = {"orders": [{"id": 1, "country": "DE", "total": 30}, {"id": 2, "country": "US", "total": 9.5}, {"id": 3, "country": "DE", "total": 20}]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("orders.sortBy(o, o.total).map(o, o.id)", [2, 3, 1]),
        ("orders.sortBy(o, -o.total).map(o, o.id)", [1, 3, 2]),
        ("orders.sortBy(o, o.country).map(o, o.id)", [1, 3, 2]),
        ("orders.groupBy(o, o.country).map(c, c)", ["DE", "US"]),
        ("orders.groupBy(o, o.country)['DE'].map(o, o.total).sum()", 50),
        ("[orders].map(all, all.groupBy(o, o.total > 15))[0].map(big, big)", [True, False]),
        ("orders.map(o, o.total).average()", 59.5 / 3),
        ('timestamp("2027-03-28T02:30", "Europe/Berlin")', "2027-03-28T01:30:00Z"),
        ('timestamp("2027-01-15", "Europe/Berlin")', "2027-01-14T23:00:00Z"),
        ('timestamp("2027-01-15T09:00:00+05:00", "Europe/Berlin")', "2027-01-15T04:00:00Z"),
        ('timestamp("2027-01-15T23:30:00Z").format("EEEE, d MMMM yyyy", "Europe/Berlin")', "Saturday, 16 January 2027"),
        ('timestamp("2027-01-05T00:07:09Z").format("dd.MM.yy h:mm:ss a \'o\'\'clock\'")', "05.01.27 12:07:09 AM o'clock"),
    ],
)
def test_lists_are_sorted_grouped_and_averaged_and_dates_are_written_as_people_do(source, expected):
    assert value(source, ORDERS) == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("orders.groupBy(o, o.total)", "needs a text or whole number"),
        ("orders.sortBy(o, o.id == 1 ? 'x' : 1)", "cannot compare"),
        ("[].average()", "empty list"),
        ('timestamp("2027-01-15T09:00:00Z").format("YYYY")', "`YYYY` is no part of a date"),
        ('timestamp("15.01.2027", "Europe/Berlin")', "is not a date and time"),
        ('timestamp("2027-01-15", "Mars")', "is not a time zone"),
    ],
)
def test_what_cannot_be_sorted_grouped_or_written_says_why(source, words):
    found = failure(source, ORDERS)
    assert words in found.message and found.position is not None
