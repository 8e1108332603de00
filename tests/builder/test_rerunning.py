"""One step of a run again, with the input that it had; runs of a version on another one."""

from __future__ import annotations

import io
import json
from copy import deepcopy
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from builder import drafts, replaying
from builder.dryrun import rendered_config
from builder.models import Draft
from runtime.models import AuditEntry, Dispatch, FrameChunk, Run, StepResult, Version
from runtime.paths import key_of
from runtime.replay import remembered, replayed
from tests.builder import factories

pytestmark = pytest.mark.django_db

FLOW: dict[str, Any] = {
    "format": 1,
    "name": "Orders",
    "triggers": [{"id": "order", "type": "webhook", "config": {}}],
    "steps": [
        {"id": "price", "type": "set", "config": {"values": {"cents": "{{ trigger.body.price * 100 }}"}}},
        {"id": "dear", "type": "condition", "branches": [
            {"id": "yes", "when": "steps.price.output.cents > 1000", "steps": [
                {"id": "book", "type": "http", "name": "Book it", "config": {
                    "method": "POST", "url": "https://books.example/orders",
                    "json": {"cents": "{{ steps.price.output.cents }}"}}}]},
            {"id": "no", "steps": []}]},
        {"id": "each", "type": "loop", "config": {"items": "trigger.body.lines"}, "steps": [
            {"id": "line", "type": "set", "config": {"values": {"text": "{{ loop.index }}: {{ loop.item }}"}}}]},
    ],
}  # fmt: skip
BOOK = "dear/yes/book"


@pytest.fixture
def version() -> Version:
    return factories.version(FLOW)


@pytest.fixture
def run(version) -> Run:
    """As the engine leaves it."""
    body = {"price": 20, "lines": ["a", "b"]}
    run = factories.run(version, state="succeeded", trigger_key="order", title="", input={"body": body})
    factories.result(run, "price", 0, 1, input={"values": {"cents": 2000}}, output={"cents": 2000})
    factories.result(run, "dear", 1, 2, output={"branch": "yes"})
    headers = {"Content-Type": "application/json", "Idempotency-Key": key_of(run.pk, run.created_at, BOOK, 1)}
    request = {"method": "POST", "url": "https://books.example/orders", "headers": headers, "json": {"cents": 2000}}
    factories.attempt(run, BOOK, 1, 2, 3, request=request)
    factories.result(run, BOOK, 2, 3, output={"status": 200, "body": {"id": 7}})
    FrameChunk.objects.create(run_id=run.pk, path="each", take=1, n=0, items=["a", "b"])
    for n, item in enumerate("ab"):
        text = {"text": f"{n}: {item}"}
        factories.result(run, f"each[{n}]/line", 4, 5, input={"values": text}, output=text)
    factories.result(run, "each", 3, 6, output={"count": 2, "succeeded": 2, "failed": 0})
    return run


def edited(version: Version, **configs: Any) -> None:
    """The draft, with the settings of some steps replaced."""
    definition = deepcopy(version.definition)
    by_id = {"price": definition["steps"][0], "book": definition["steps"][1]["branches"][0]["steps"][0],
             "line": definition["steps"][2]["steps"][0]}  # fmt: skip
    for step, config in configs.items():
        by_id[step]["config"] |= config
    drafts.load(version.workflow)
    Draft.objects.update_or_create(workflow=version.workflow, defaults={"definition": definition})


def told(*words: Any, **options: Any) -> list[dict[str, Any]]:
    out = io.StringIO()
    try:
        call_command(*map(str, words), stdout=out, stderr=io.StringIO(), **options)
    except CommandError as wrong:
        return [*map(json.loads, out.getvalue().splitlines()), {"exit": wrong.returncode, "why": str(wrong)}]
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_step_alone_gives_what_is_stored_until_its_code_changes(run, version):
    for path in ("price", "dear", BOOK, "each[1]/line"):
        found = told("rerun_step", run.pk, path)
        assert len(found) == 1 and found[0]["same"] is True and found[0]["code"] == "v7", found
    dearer = {"values": {"cents": "{{ trigger.body.price * 119 }}"}}
    edited(version, price=dearer, book={"url": "https://books.example/v2/orders"})
    row, end = told("rerun_step", run.pk, "price", "--against", "draft")
    assert row["now"] == {"cents": 2380} and row["stored"] == {"cents": 2000} and not row["same"]
    assert "cents: 2000 -> 2380" in row["differences"] and end["exit"] == 1
    row, _ = told("rerun_step", run.pk, BOOK, "--against", "draft")
    assert row["does"] == "request" and row["differences"] == [
        "url: 'https://books.example/orders' -> 'https://books.example/v2/orders'"
    ], "the input is the one that it had, not what the new draft would have led to"
    assert Run.objects.count() == 1, "a dry run left something"
    for wrong in (("price", "--against", "9"), ("nothing",), ("each",), ("each[5]/line",), ("dear/no/else",)):
        assert told("rerun_step", run.pk, *wrong)[-1]["exit"] == 2
    assert told("rerun_step", run.pk + 1, "price")[-1]["exit"] == 2


def test_a_version_that_cannot_be_read_says_which_step_and_why():
    steps = [{"id": "score", "type": "ai", "config": {"task": "extract", "prompt": "Score"}}]
    run = factories.run(factories.version({"format": 1, "name": "Old", "steps": steps}), state="succeeded")
    factories.result(run, "score", 0, 1, output={"score": 5})
    why = "This version of Holdfast cannot read v7: score: config: Say which fields the result has."
    assert told("rerun_step", run.pk, "score") == [{"exit": 2, "why": why}]
    assert "score: config" in told("replay", "Old", "--against", "7")[0]["why"]


def test_what_waits_and_what_starts_a_run_is_compared_by_its_settings_and_what_fails_differs():
    steps = [
        {"id": "ask", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "{{ run.id }}?"}},
        {"id": "sub", "type": "workflow", "config": {"flow": "Other", "input": {"a": "{{ trigger.body.a }}"}}},
        {"id": "sum", "type": "set", "config": {"values": {"n": "{{ trigger.body.a + 1 }}"}}},
    ]
    version = factories.version({"format": 1, "name": "Waits", "steps": steps})
    run = factories.run(version, state="succeeded", title="", input={"body": {"a": "x"}})
    wanted = {"ask": True, "sub": None, "sum": False}
    asked = rendered_config(steps[0], {"run": {"id": run.pk}})
    factories.result(run, "ask", 0, 1, input=asked, output={"decision": "approved"})
    factories.result(run, "sub", 1, 2, output={"run": 5})
    factories.result(run, "sum", 2, 3, input={"values": {"n": 1}}, output={"n": 1})
    assert {step: told("rerun_step", run.pk, step)[0]["same"] for step in wanted} == wanted


def test_a_step_that_failed_and_does_not_now_is_repaired_and_one_that_fails_now_is_not(run, version):
    price = {"values": {"cents": "{{ trigger.body.price * 100 }}"}}
    edited(version, price=price)
    StepResult.objects.filter(run_id=run.pk, path="price").update(state="failed", output=None, error={"message": "There is no name “x”."})
    (row,) = told("rerun_step", run.pk, "price", "--against", "draft")
    assert row["repairs"] and row["same"] is False and row["now"] == {"cents": 2000}
    edited(version, price={"values": {"cents": "{{ nothing }}"}})
    row, end = told("rerun_step", run.pk, "price", "--against", "draft")
    assert not row["repairs"] and end == {"exit": 1, "why": "Not what the run has stored."}


def test_with_effects_it_is_a_test_run_of_the_step_alone(run, version):
    row = told("rerun_step", run.pk, BOOK, "--really", "--wait", "0")[0]
    test = Run.objects.get(pk=row["test_run"])
    assert test.test and row["same"] is None and [step["id"] for step in test.version.definition["steps"]] == ["book"]
    assert test.version.definition["steps"][0]["config"]["json"] == {"cents": 2000}
    assert AuditEntry.objects.get(action="rerun_step").detail["test"] == test.pk


def test_the_page_compares_and_asks_before_anything_is_sent(client, run, version):
    client.force_login(factories.user("builder"))
    address = reverse("run_step", args=[run.pk])
    assert address in client.get(reverse("run", args=[run.pk]), {"step": BOOK}).content.decode()
    page = client.get(address, {"step": BOOK}).content.decode()
    assert "The same as the run has stored." in page and "https://books.example/orders" in page
    edited(version, book={"url": "https://books.example/v2/orders"})
    page = client.get(address, {"step": BOOK, "code": "draft"}).content.decode()
    assert "Not what the run has stored." in page and "<ins>https://books.example/v2/orders</ins>" in page
    assert "had no iteration" in client.get(address, {"step": "each[5]/line"}).content.decode()
    assert client.get(address, {"step": BOOK, "code": "99"}).status_code == 404
    client.post(address, {"step": BOOK})
    assert Run.objects.count() == 1, "it ran without being told so"
    answer = client.post(address, {"step": BOOK, "code": "draft", "really": "1"}, follow=True)
    test = Run.objects.get(test=True)
    assert f"Test run {test.pk:,}" in answer.content.decode() and "hx-trigger" in answer.content.decode()
    factories.result(test, "book", 0, 1, output={"status": 500, "body": None})
    Dispatch.objects.filter(run=test).delete()
    Run.objects.filter(pk=test.pk).update(state="succeeded", ended_at=factories.at(9))
    shown = client.get(address, {"step": BOOK, "code": "draft", "test": test.pk}).content.decode()
    assert "<ins>500</ins>" in shown
    client.force_login(factories.user("viewer"))
    assert client.get(address, {"step": BOOK}).status_code == 403


def test_runs_of_a_version_are_replayed_on_the_draft(run, version):
    drafts.load(version.workflow)
    assert told("replay", "Orders") == [], "the draft is the live version"
    cheap = {"values": {"cents": "{{ trigger.body.price }}"}}
    edited(version, price=cheap, line={"values": {"text": "{{ loop.item }}"}})
    *rows, end = told("replay", "Orders", "--against", "draft")
    assert end["exit"] == 1 and "1 would go another way" in end["why"]
    assert end["why"].splitlines()[1:] == [
        "  Set values (price) gives something else: 1 run", "  Condition takes another lane: 1 run",
        "  Book it is not reached: 1 run", "  Set values (line) gives something else: 1 run",
    ], "by step, and each run once"
    assert [(row["what"], row["path"], row["field"], row["was"], row["now"]) for row in rows] == [
        ("output", "price", "cents", 2000, 20),
        ("lane", "dear", "", "yes", "no"),
        ("step not reached", BOOK, "", {"status": 200, "body": {"id": 7}}, None),
        ("output", "each[0]/line", "text", "0: a", "a"),
        ("output", "each[1]/line", "text", "1: b", "b"),
    ]
    edited(version, book={"url": "https://books.example/v2"})
    assert [(row["what"], row["path"], row["field"]) for row in told("replay", "Orders")[:-1]] == [
        ("input", BOOK, "url")
    ]
    for wrong in (("--of", "9"), ("--of", "draft"), ("--against", "x"), ("--run", "0")):
        assert told("replay", "Orders", *wrong)[-1]["exit"] == 2
    edited(version, book={"url": 5})
    assert told("replay", "Orders")[-1]["exit"] == 2, "a draft with problems"
    out = io.StringIO()
    call_command("replay", "Orders", "--against", "7", "--table", stdout=out, stderr=io.StringIO())
    assert "Nothing found" in out.getvalue()


def test_the_page_replays_in_turns_and_tells_each_difference(run, version, client, monkeypatch):
    monkeypatch.setattr("builder.views.replaying.TURN_SECONDS", 0)
    plain = factories.run(version, state="failed", trigger_key="order", title="", input={"body": {}}, error={"message": "Cannot."})
    drafts.load(version.workflow)
    edited(version, price={"values": {"cents": "{{ trigger.body.price }}"}})
    address, before = reverse("flow_replay", args=[version.workflow_id]), Run.objects.count()
    client.force_login(factories.user("builder"))
    page = client.get(address)
    asked = page.context["next"]
    assert f"0 of 2 runs of v{version.number} on Draft" in page.content.decode() and f"upto={plain.pk}&" in asked
    turns = []
    while asked:
        factories.run(version, state="succeeded")  # what ends meanwhile is not among those that were meant
        turns.append(client.get(address + asked))
        asked = turns[-1].context["next"]
    assert [turn.context["done"] for turn in turns] == [1, 2] and turns[-1].context["total"] == 2
    told = turns[-1].content.decode()
    assert f"Run {run.pk:,}" in told and "takes another lane" in told and "is not reached" in told
    assert 'hx-swap-oob="true"' in told and "would go another way" in told and 'hx-trigger="load"' not in told
    assert f'href="/runs/{run.pk}/?step=dear/yes/book"' in told
    found = [(row["step"], row["words"], row["runs"]) for row in turns[-1].context["tally"].rows]
    assert found == [
        ("price", "gives something else", 1), ("dear", "takes another lane", 1), ("book", "is not reached", 1),
        ("", "ends otherwise", 1),
    ], "the other run has no price: it fails here, as it did, with other words"
    assert f'href="/flows/{version.workflow_id}/?step=dear"' in told
    assert Run.objects.count() == before + 2, "nothing but what this test made"
    edited(version, price={"values": {"cents": "7"}})
    assert "has changed since this began" in client.get(address + page.context["next"]).content.decode()
    edited(version, book={"url": 5})
    assert "cannot be run yet" in client.get(address).content.decode()
    for wrong in ("?of=9", "?to=x", "?most=21", "?of=draft&done=0"):
        assert client.get(address + wrong).status_code == 404
    client.force_login(factories.user("viewer"))
    assert client.get(address).status_code == 403


def test_differences_are_counted_by_step_from_turn_to_turn(version):
    tally = replaying.Tally(version.definition, version.definition)
    ways = [("price", "output"), ("price", "output"), (BOOK, "input"), ("each[0]/line", "output"), ("each[7]/line", "output"), ("", "end")]
    one = [replaying.Difference(1, path, "", what, field, 1, 2) for field, (path, what) in enumerate(ways)]
    tally.add(one)
    again = replaying.Tally(version.definition, version.definition, tally.text)
    again.add(one[:1])
    assert [(row["step"], row["runs"]) for row in again.rows] == [("price", 2), ("book", 1), ("line", 1), ("", 1)]
    for nonsense in ("9999.1:1", "1.99:1", "a.b:c", "1.1:-1", "1.1", "9" * 4000):
        assert replaying.Tally(version.definition, version.definition, nonsense).rows == []


def test_steps_of_one_name_are_told_apart_by_their_ids(run, version):
    edited(version, price={"values": {"cents": "7"}})
    draft = Draft.objects.get(pk=version.workflow_id).definition
    for step in draft["steps"][:2]:
        step["name"] = "Work it out"
    names = replaying.names_of(version.definition, draft)
    assert [names[step["id"]] for step in draft["steps"][:2]] == [f"Work it out ({step['id']})" for step in draft["steps"][:2]]
    told = {one.step for one in replaying.compared(run, draft) if one.path == "price"}
    assert told == {"Work it out (price)"}


def test_a_run_that_a_rejection_ended_ends_there_again_and_one_that_a_person_ended_goes_no_further():
    steps = [
        {"id": "ask", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "Well?"}},
        {"id": "after", "type": "delay", "config": {"for": "1h"}},
    ]
    version = factories.version({"format": 1, "name": "Asks", "steps": steps})
    answer = {"decision": "rejected"}
    rejected = factories.run(version, state="succeeded", title="", output=answer)
    factories.result(rejected, "ask", 0, 1, output=answer)
    cancelled = factories.run(version, state="cancelled", title="")
    factories.result(cancelled, "ask", 0, 1, output={"decision": "approved"})
    assert told("replay", "Asks", "--against", "7") == []
    walked = [replayed(run, version.definition, remembered(run)) for run in (rejected, cancelled)]
    assert [(one.state, one.missing) for one in walked] == [("succeeded", []), (None, ["after"])]
