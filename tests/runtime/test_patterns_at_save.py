"""What the regular expressions of a flow cost when it is saved, opened and tried: bounded, whatever they are."""

from __future__ import annotations

import itertools

import pytest
from django.test import Client
from django.urls import reverse

from builder import drafts
from builder.editing import EditError
from builder.flowmaking import make_flow
from runtime.definition import MOST_PATTERNS, check
from runtime.expressions import SyntaxProblem, compile, compile_template, compile_value
from runtime.expressions.limits import PATTERNS
from tests.builder import factories
from tests.effort import seconds

SECONDS = 8.0
"""For as many of the worst as there may be; a tenth of this here."""
_fresh = itertools.count()
WORST = (r"(\pL{{9}}|\pN{{9}}){{20}}x{0}", "((a{{1,9}}){{1,9}}b{0}){{1,9}}", r"[^\pL]{{1,400}}x{0}", "y" * 900 + "x{0}", r"(\pL\pN\pP){{300}}x{0}",
         "(?:a{{0,1000}})" * 20 + "x{0}", "(?:a{{0,99}})" * 25 + "x{0}")


def matching(form: str, count: int) -> list[str]:
    """Expressions with a pattern each that nobody has compiled before."""
    return [f"trigger.body.matches(r'{form.format(10 + next(_fresh))}')" for _ in range(count)]


def flow(expressions: list[str]) -> dict:
    steps = [{"id": f"s{n}", "type": "set", "config": {"values": {"a": "{{ " + source + " }}"}}} for n, source in enumerate(expressions)]
    return {"format": 1, "name": "x", "triggers": [], "steps": steps}


@pytest.mark.parametrize("form", WORST)
def test_as_many_as_may_be_cost_seconds_at_worst(form):
    assert seconds(lambda: check(flow(matching(form, MOST_PATTERNS)))) < SECONDS


@pytest.mark.parametrize("space", ["", " ", "\n\t", " // why\n"])
def test_more_are_refused_before_any_is_compiled(space):
    sources = [source.replace("matches(", f"matches{space}(") for source in matching(WORST[1], 40_000)]

    def refused() -> None:
        [problem] = check(flow(sources))
        assert f"at most {MOST_PATTERNS} times" in problem.message
        for text, compiled in (("{{ a }}" + "{{ " + " }}{{ ".join(sources) + " }}", compile_template), (sources, None), (" || ".join(sources[:150]), compile)):
            with pytest.raises(SyntaxProblem, match="matches|longer"):
                compiled(text) if compiled else compile_value(["{{ " + source + " }}" for source in text])

    assert seconds(refused) < SECONDS
    assert compile(" || ".join(matching("a{0}", PATTERNS))) and compile_template("matches ( " * PATTERNS * 2)


@pytest.mark.django_db
def test_no_draft_holds_more():
    person = factories.user("builder")
    team = person.memberships.get().team
    too_many = flow(matching("a{0}", MOST_PATTERNS + 1))
    with pytest.raises(EditError, match="matches"):
        make_flow(team, "A", user=person, definition=too_many)
    made = make_flow(team, "B", user=person, definition=flow(matching("a{0}", MOST_PATTERNS)))
    with pytest.raises(EditError, match="That cannot be saved. A workflow uses matches"):
        drafts.save(made, too_many, revision=None)
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse("flow", args=[made.pk])).status_code == 200
