"""An expression tells what it reads, and what of that may be missing."""

import pytest

from runtime.expressions import compile, compile_template, compile_value

CASES = [
    ("1 + 1", [], []),
    ("steps", ["steps"], []),
    ("steps.qualify.output.score > 70", ["steps.qualify.output.score"], []),
    ("headers['x-event-id']", ["headers.x-event-id"], []),
    ("trigger.body.list[0].id", ["trigger.body.list.0.id"], []),
    ("trigger.body.email.endsWith('x')", ["trigger.body.email"], []),
    ("trigger.body[steps.a.output].x", ["trigger.body", "steps.a.output"], []),
    ("a.b == a.b && a.c", ["a.b", "a.c"], []),
    ("trigger.items.map(i, i.id + steps.q.output)", ["trigger.items", "steps.q.output"], []),
    ("x.map(x, x.y)", ["x"], []),
    ("x.map(y, y.z).size() + y.z", ["x", "y.z"], []),
    ("a.map(x, x.b > c.d, x)", ["a", "c.d"], []),
    ("a.filter(steps, steps.x)", ["a"], []),
    ("[a.b, {c.d: e.f}]", ["a.b", "c.d", "e.f"], []),
    ("type(a.b) == int && type(c) == google.protobuf.Timestamp", ["a.b", "c"], []),
    ("math.round(a.b) + strings.size", ["a.b", "strings.size"], []),
    ("size(a.b) + f.g.size()", ["a.b", "f.g"], []),
    ("{'a': b.c}.a", ["b.c"], []),
    ("-a.b > 1 ? c.d : e.f", ["a.b", "c.d", "e.f"], []),
    # readings that may fail
    ("has(a.b)", ["a.b"], ["a.b"]),
    ("has(a.b) ? a.b : c.d", ["a.b", "c.d"], ["a.b"]),
    ("has(a.b) ? a.b.c : d", ["a.b", "a.b.c", "d"], ["a.b", "a.b.c"]),
    ("has(a.b.c) ? a.b : d", ["a.b.c", "a.b", "d"], ["a.b.c"]),
    ("!has(a.b) ? c : a.b", ["a.b", "c"], ["a.b"]),
    ("has(a.b) ? c : a.b", ["a.b", "c"], []),
    ("has(a.b) && a.b > 1", ["a.b"], ["a.b"]),
    ("has(a.b) && has(a.c) ? a.b + a.c : 0", ["a.b", "a.c"], ["a.b", "a.c"]),
    ("has(a.b) || a.b > 1", ["a.b"], []),
    ("!has(a.b) || a.b > 1", ["a.b"], ["a.b"]),
    ("a.b > 1 && has(a.b)", ["a.b"], []),
    ("has(a.b) && a.b > 1 || a.b == 2", ["a.b"], []),
    ("has(a.b) ? x.map(a, a.b) : x", ["a.b", "x"], ["a.b"]),
    ("x.map(a, has(a.b)).size() + a.b", ["x", "a.b"], []),
    ("x.filter(i, has(a.b)).map(i, a.b)", ["x", "a.b"], []),
    ("x.map(i, has(a.b), a.b)", ["x", "a.b"], ["a.b"]),
    ("a.?b.orValue(c.d)", ["a.b", "c.d"], ["a.b"]),
    ("a.?b.c.orValue(0)", ["a.b.c"], ["a.b.c"]),
    ("a[?'b'].orValue(0)", ["a.b"], ["a.b"]),
    # what stands before the first `.?` must be there
    ("steps.call.output.?id.orValue(0)", ["steps.call.output", "steps.call.output.id"], ["steps.call.output.id"]),
    ("steps.?call.output.?id.orValue(0)", ["steps.call.output.id"], ["steps.call.output.id"]),
]


def shown(paths):
    return [".".join(map(str, path)) for path in paths]


@pytest.mark.parametrize(("source", "references", "with_default"), CASES, ids=[case[0] for case in CASES])
def test_references(source, references, with_default):
    expression = compile(source)
    assert shown(expression.references) == references
    assert sorted(shown(expression.references_with_default)) == sorted(with_default)


def test_literal_indexes_keep_their_kind():
    assert compile("a[0]['0']").references == (("a", 0, "0"),)


def test_templates_and_trees_gather_theirs():
    template = compile_template("{{ a.b }} and {{ has(c.d) ? c.d : a.b }}")
    assert template.references == (("a", "b"), ("c", "d"))
    assert template.references_with_default == {("c", "d")}
    tree = compile_value({"x": ["{{ a.b }}", {"y": "z {{ c.d }}"}], "{{ k.l }}": 1})
    assert tree.references == (("a", "b"), ("c", "d"))
    assert not tree.is_static


def test_one_unguarded_reading_makes_a_path_unguarded():
    assert compile_template("{{ a.?b.orValue(1) }} {{ a.b }}").references_with_default == frozenset()
