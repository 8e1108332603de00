"""Rules and expressions say the same, both ways; what rules cannot say stays an expression."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.forms.conditions import ALONE, COMPARISONS, Rule, RuleError, Rules, compose, decompose
from builder.forms.outline import OutlineError, Row, rows, value_of
from builder.forms.plain import from_text, to_text
from runtime.expressions import compile
from tests.examples import examples


@pytest.mark.parametrize(
    ("expression", "rules"),
    [
        ("steps.q.output.score > 70", [Rule("steps.q.output.score", ">", "70")]),
        ('!trigger.body.email.endsWith("@gmail.com")', [Rule("trigger.body.email", "not endsWith", "@gmail.com")]),
        ('trigger.body.plan in ["pro", "team"]', [Rule("trigger.body.plan", "in", '["pro", "team"]')]),
        ("size(trigger.body.items) == 0", [Rule("trigger.body.items", "empty")]),
        ("has(trigger.body.email)", [Rule("trigger.body.email", "has")]),
        ("!has(trigger.body.email)", [Rule("trigger.body.email", "not has")]),
        ("trigger.body.vip", [Rule("trigger.body.vip", "true")]),
        ("!trigger.body.vip", [Rule("trigger.body.vip", "false")]),
        ("trigger.body.a == trigger.body.b", [Rule("trigger.body.a", "==", "{{ trigger.body.b }}")]),
        ('trigger.body.zip == "01234"', [Rule("trigger.body.zip", "==", "01234")]),
        ('trigger.body.count == "42"', [Rule("trigger.body.count", "==", '"42"')]),
        ("trigger.body.count != -3.5", [Rule("trigger.body.count", "!=", "-3.5")]),
        ('trigger.body.email.endsWith("")', [Rule("trigger.body.email", "endsWith", "")]),
    ],
)
def test_an_expression_becomes_a_rule_and_back(expression, rules):
    found = decompose(expression)
    assert list(found.items) == rules
    assert compose(found) == expression


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_every_comparison_comes_back_alone_in_a_group_and_with_data_on_its_right(comparison):
    for right in ("x", "{{ trigger.body.b }}"):
        rule = Rule("trigger.body.a", comparison, "" if comparison in ALONE else right)
        rules = Rules("any", (rule, Rules("all", (rule, Rule("trigger.body.c", "true")))))
        assert decompose(compose(Rules("all", (rule,)))) == Rules("all", (rule,))
        assert decompose(compose(rules)) == rules


def test_all_any_and_groups():
    found = decompose("trigger.a > 1 && (trigger.b == 2 || trigger.c == 3)")
    assert found.match == "all" and found.items[1] == Rules("any", (Rule("trigger.b", "==", "2"), Rule("trigger.c", "==", "3")))
    assert compose(found) == "trigger.a > 1 && (trigger.b == 2 || trigger.c == 3)"


@pytest.mark.parametrize("expression", ["trigger.a ? trigger.b : true", "trigger.items.exists(i, i > 3)", "1 +", "trigger.a > 1 && (trigger.b > 2 || (trigger.c > 3 && trigger.d > 4))"])
def test_what_rules_cannot_say_stays_an_expression(expression):
    found = decompose(expression)
    assert found is None or compile(compose(found))


def test_rules_that_cannot_be_read_name_their_row():
    with pytest.raises(RuleError) as refused:
        compose(Rules("all", (Rule("trigger.a", "==", "1"), Rule("", ">", "2"))))
    assert refused.value.row == 1
    with pytest.raises(RuleError, match="not with both"):
        compose(Rules("all", (Rule("trigger.a", "==", "x {{ trigger.b }}"),)))


LEFT = st.sampled_from(["trigger.body.email", "steps.qualify.output.score", 'trigger.body["first name"]', "size(trigger.body.items)", "a + b"])
RULES = st.lists(st.builds(Rule, LEFT, st.sampled_from(sorted(COMPARISONS)), st.text(max_size=10) | st.integers().map(str)), min_size=1, max_size=4)


@examples(100)
@given(match=st.sampled_from(["all", "any"]), items=RULES)
def test_composed_rules_compile_and_come_back_meaning_the_same(match, items):
    try:
        expression = compose(Rules(match, tuple(items)))
    except RuleError:
        return
    compile(expression, checked=False)
    back = decompose(expression)
    assert back is None or compose(back) == expression


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda key: key == key.strip()), inner, max_size=3),
    max_leaves=12,
)


@examples(100)
@given(value=JSON)
def test_a_value_survives_being_shown_as_text(value):
    back = from_text(to_text(value))
    assert back == value and type(back) is type(value)


@examples(100)
@given(value=st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda key: key == key.strip()), JSON, max_size=4))
def test_a_group_survives_being_shown_as_an_outline(value):
    assert value_of(rows(value)) == value


def test_rows_in_the_middle_of_being_written():
    assert value_of([Row(0, "", "value", "")]) == {}
    with pytest.raises(OutlineError, match="name"):
        value_of([Row(0, "", "value", "x")])
    with pytest.raises(OutlineError, match="twice"):
        value_of([Row(0, "a", "value", "x"), Row(0, "a", "value", "y")])
