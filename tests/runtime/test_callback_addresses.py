"""The address of a callback is a permission: what a run keeps for people to read does not hold it."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from builder.rerunning import PINNED, rerun, side_of
from builder.tokens import make_token
from runtime.models import Attempt, Run, StepResult, Team
from runtime.tokens import callback_url, without_signatures
from tests.builder import factories
from tests.runtime.test_http_more import allowed, server  # noqa: F401 - fixtures


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
    assert Client().post(urlsplit(real).path, "{}", content_type="application/json").status_code == 202
    engine.ends(run)


@pytest.mark.parametrize("path", ["paid", "each[3]/call"])
def test_an_address_is_found_wherever_it_stands(path):
    real = callback_url(7, path)
    signature = real.split("/callbacks/7/")[1].split("/")[0]
    for text in (real, f"see {real}.", quote(real, safe=""), quote(real), json.dumps({"a": real}), f"{real} {real}"):
        shown = without_signatures({"a": [text, (text,)], "n": 1})
        assert signature not in json.dumps(shown) and shown["n"] == 1
    assert without_signatures("callbacks are /callbacks/ and /hooks/7/x/") == "callbacks are /callbacks/ and /hooks/7/x/"
