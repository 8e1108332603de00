"""The address of a callback is a permission: what a run keeps for people to read does not hold it."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from builder.comparing import Side
from builder.rerunning import PINNED, rerun, side_of
from builder.tokens import make_token
from runtime.models import Attempt, LogLine, Run, RunSearch, StepResult, Team
from runtime.tokens import callback_url, without_signatures
from tests.builder import factories
from tests.runtime.calling import allowed, server  # noqa: F401 - fixtures
from tests.runtime.engine import eventually


def test_whoever_only_looks_at_a_run_cannot_answer_for_the_other_system(engine, server):  # noqa: F811
    """The other system gets it, in body, query and header; neither a viewer nor a program that reads finds it in the run, and the
    step run again shows no difference."""
    server.answer = lambda *_: (200, {"ok": True}, {})
    address = "{{ callbacks.paid }}"
    call = {"method": "POST", "url": f"{server.url}/pay", "query": {"cb": address}, "headers": {"X-Back": address}, "json": {"to": [{"url": address}]}}
    log = {"id": "note", "type": "delay", "config": {"for": "0s"}}
    run = engine.start(engine.publish([{"id": "pay", "type": "http", "config": call}, log, {"id": "paid", "type": "callback"}]))
    engine.worker()
    engine.wait(run, "paid", "callback")
    real, signature = callback_url(run, "paid"), callback_url(run, "paid").split("/")[-3]
    _, path, headers, body = server.seen[-1]
    assert json.loads(body) == {"to": [{"url": real}]} and parse_qs(urlsplit(path).query)["cb"] == [real] and headers["X-Back"] == real
    kept = json.dumps([list(Attempt.objects.filter(run_id=run).values_list("request", flat=True)),
                       list(StepResult.objects.filter(run_id=run).values_list("input", flat=True))])  # fmt: skip
    assert kept.count("•••") + kept.count("\\u2022\\u2022\\u2022") == 3 and signature not in kept
    viewer, client = factories.user("viewer", of=Team.objects.get(name="Engine")), Client()
    client.force_login(viewer, "django.contrib.auth.backends.ModelBackend")
    for step in ("pay", "paid", ""):
        for tab in ("input", "output", "attempts", "log"):
            assert signature not in client.get(reverse("run", args=[run]), {"step": step, "tab": tab}).content.decode()
    program = {"Authorization": f"Bearer {make_token(viewer, 'looks', scope='read')[1]}"}
    assert signature not in Client().get(f"/api/v1/runs/{run}/steps", headers=program).content.decode()
    row = Run.objects.select_related("workflow", "version").get(pk=run)
    again = rerun(row, "pay", side_of(row, PINNED))
    assert again.changes == [] and signature not in str(again.shown)
    pieces = [{"id": "note", "type": "set", "config": {"values": {"a": "{{ callbacks.paid.split('').join(' ') }}"}}}]
    taken = Side("draft", "Draft", "", {"format": 1, "name": "x", "steps": pieces}, None, None)
    assert " ".join("callbacks") in str((found := rerun(row, "note", taken)).shown) and " ".join(signature) not in str(found.shown)
    assert Client().post(urlsplit(real).path, "{}", content_type="application/json").status_code == 202
    engine.ends(run)


@pytest.mark.parametrize("path", ["paid", "each[3]/call"])
def test_an_address_is_found_wherever_it_stands(path):
    real = callback_url(7, path)
    signature = real.split("/callbacks/7/")[1].split("/")[0]
    twice = quote(quote(real, safe=""), safe="")
    for text in (real, f"see {real}.", quote(real, safe=""), twice, quote(real), json.dumps({"a": real}).replace("/", "\\/"), f"{real} {real}"):
        shown = without_signatures({"a": [text, (text,)], text: 2, "n": 1})
        assert signature not in json.dumps(shown) and shown["n"] == 1
    assert without_signatures("callbacks are /callbacks/ and /hooks/7/x/") == "callbacks are /callbacks/ and /hooks/7/x/"


def test_nor_does_what_its_steps_give_and_say(engine, server):  # noqa: F811
    """Another step's output, an answer that echoes it, a file's worth of it, what the run is called and logs: steps and the other
    system get it whole; of people and programs those alone who may answer in its place."""
    server.answer = lambda method, at, headers, body: (200, {"got": [json.loads(body)["to"]] * (1 if at.path == "/pay" else 4000)}, {})
    call = {"method": "POST", "json": {"to": "{{ steps.give.output.url }}"}}
    child = engine.publish([{"id": "call", "type": "http", "config": {**call, "url": f"{server.url}/pay", "json": {"to": "{{ trigger.body }}"}}}])
    lanes = [{"id": "a", "steps": [{"id": "paid", "type": "callback"}]},
             {"id": "b", "steps": [{"id": "give", "type": "set", "config": {"values": {"url": "{{ callbacks.paid }}"}}},
                                   {"id": "pay", "type": "http", "config": {**call, "url": f"{server.url}/pay"}},
                                   {"id": "many", "type": "http", "config": {**call, "url": f"{server.url}/many"}},
                                   {"id": "sub", "type": "workflow", "config": {"flow": child.workflow.name, "input": "{{ steps.give.output.url }}"}},
                                   {"id": "bad", "type": "http", "on_error": "continue", "config": {"url": "{{ 'x://' + steps.give.output.url }}"}}]}]  # fmt: skip
    version = engine.publish([{"id": "both", "type": "parallel", "branches": lanes}], title="To {{ callbacks.paid }}", search=["callbacks.paid"])
    run = engine.start(version)
    engine.worker()
    engine.wait(run, "both/a/paid", "callback")
    eventually(lambda: StepResult.objects.filter(run_id=run, path__startswith="both/b/bad").exists())
    real = callback_url(run, "both/a/paid")
    signature = real.split("/callbacks/")[1].split("/")[1]
    assert [json.loads(body)["to"] for *_, body in server.seen] == [real] * 3
    inner = Run.objects.get(parent_id=run).pk
    viewer, operator = (factories.user(role, of=version.workflow.team) for role in ("viewer", "operator"))
    client, shown = Client(), {}
    client.force_login(viewer, "django.contrib.auth.backends.ModelBackend")
    for number, step in [(run, f"both/{path}") for path in ("a/paid", "b/give", "b/pay", "b/many", "b/sub", "b/bad")] + [(run, ""), (inner, "call"), (inner, "")]:
        for tab in ("input", "output", "attempts", "log"):
            shown[number, step, tab] = client.get(reverse("run", args=[number]), {"step": step, "tab": tab}).content.decode()
    large = {"step": "both/b/many", "take": 1}
    for start in range(0, 2000, 7):
        shown["part", start] = client.get(reverse("run_output", args=[run]), {**large, "start": start}).content.decode()
    shown["file"] = b"".join(client.get(reverse("run_output_file", args=[run]), large)).decode()
    shown["runs"] = client.get(reverse("runs"), {"q": real.lower()[:90]}).content.decode()
    for step in ("give", "pay", "many"):
        shown["flow", step] = client.get(reverse("flow_panel", args=[version.workflow_id]), {"step": step}).content.decode()
    kept = [*LogLine.objects.values_list("text", flat=True), *Run.objects.values_list("title", flat=True), *RunSearch.objects.values_list("value", flat=True)]
    shown["kept"] = json.dumps(kept).lower().replace(signature.lower(), signature)
    assert [where for where, text in shown.items() if signature in text] == []
    assert all("•••" in shown[number, step, "output"] for number, step in ((run, "both/b/give"), (run, "both/b/pay"), (inner, "call")))
    assert json.loads(shown["file"])["body"]["got"][3999].startswith(real.split(signature)[0] + "•")

    def told(token: str) -> list[bool]:
        """Whether it comes by each operation."""
        asked = [f"/{number}{part}" for number in (run, inner) for part in ("", "/steps")] + [f"/{run}/output?path=both/b/many"]
        answers = [Client().get(f"/api/v1/runs{path}", headers={"Authorization": f"Bearer {token}"}) for path in asked]
        return [signature in (b"".join(one) if one.streaming else one.content).decode() for one in answers]

    assert told(make_token(viewer, "sees")[1]) == told(make_token(operator, "looks", scope="read")[1]) == [False] * 5
    assert told(make_token(operator, "may answer")[1]) == [False, True, True, True, True]
