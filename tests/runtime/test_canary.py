"""A secret goes out with calls to a server that sends it back in every way that it can think of, and steps pass on what came. Then
it is looked for everywhere: in every table, log, mail, page, export, and in the metrics."""

from __future__ import annotations

import gzip
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from builder.tokens import make_token
from runtime import credentials, jobs
from runtime.models import Attempt, Credential, Run, StepResult, Team
from runtime.steps.calls import SHOWN
from tests.builder.test_access import NAMED
from tests.servers.smtp import SmtpServer

CORE = "canary4711"
BEARER, PASSWORD, KEY, CLIENT, TOKEN, AI = (f"{CORE}/{name}+&<x" for name in "bpkcta")
FORMS = {CORE, CORE.encode().hex(), CORE.encode().hex().upper()}
FORMS |= {b64encode(b"x" * n + CORE.encode()).decode()[start:13] for n, start in ((0, 0), (1, 2), (2, 3))}
"""As it is, also in URLs and HTML; in hexadecimal; and what base64 makes of it wherever it begins."""
ECHOES: dict[str, Any] = {
    "plain": lambda said: json.dumps({"you": said, said: 1, "deep": [[{"a": f"before {said} after"}]]}),
    "base64": lambda said: json.dumps([b64encode(f"{'x' * n}{said}".encode()).decode() for n in range(3)]),
    "hex": lambda said: json.dumps([said.encode().hex(), said.encode().hex().upper()]),
    "url": lambda said: json.dumps([quote(said), quote(said, safe=""), f"https://x.example/?a={quote(said, safe='')}"]),
    "html": lambda said: f"<p>{escape(said)}</p>",
    "escaped": lambda said: '{"you": "' + "".join(f"\\u{ord(letter):04x}" for letter in said) + '"}',
    "long": lambda said: "." * (SHOWN - 10) + said + "." * 100,
}
WAYS = (*ECHOES, "redirect", "422", "500", "429", "header", "file", "gzip", "pages")


class Echo(BaseHTTPRequestHandler):
    """Sends what it was told back, by the path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        way = parts.path.strip("/").split("/")[0]
        said = self.headers.get("Authorization") or self.headers.get("X-API-Key") or ""
        status, headers, body = 200, {"Content-Type": "application/json"}, ECHOES.get(way, ECHOES["plain"])(said).encode()
        if way == "token":
            body = json.dumps({"access_token": TOKEN, "expires_in": 3600}).encode()
        elif way == "redirect" and "token" not in parse_qs(parts.query):
            status, headers = 302, {"Location": f"/redirect/{quote(said, safe='')}?token={quote(said, safe='')}"}
        elif way in ("422", "500", "429"):
            status = int(way)
        elif way == "header":
            headers |= {"X-You": said, "Set-Cookie": f"a={quote(said)}", "X-Base": b64encode(said.encode()).decode()}
        elif way == "file":
            headers = {"Content-Type": "application/octet-stream", "Content-Disposition": f'attachment; filename="{quote(said)}.bin"'}
        elif way == "gzip":
            headers |= {"Content-Encoding": "gzip"}
            body = gzip.compress(body)
        elif way == "html" or way == "long":
            headers = {"Content-Type": "text/html"}
        elif way == "pages":
            body = json.dumps({"items": [said], "next": "" if "cursor" in parts.query else said}).encode()
        elif way == "chat":
            message = {"role": "assistant", "content": f"You are {said}"}
            body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "model": said}).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_GET

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def connections(engine, echo) -> list[str]:
    """One of each kind that goes out, by name."""
    team, hosts = Team.objects.get_or_create(name="Engine")[0], ["127.0.0.1"]
    made = {
        "bearer": ({}, {"token": BEARER}),
        "basic": ({"username": "us"}, {"password": PASSWORD}),
        "header": ({"header": "X-API-Key"}, {"value": KEY}),
        "oauth2": ({"token_url": f"{echo}/token", "client_id": "us"}, {"client_secret": CLIENT}),
        "openai": ({"base_url": f"{echo}/chat", "model": "m"}, {"api_key": AI}),
    }
    for kind, (config, secret) in made.items():
        credentials.seal(Credential(team=team, name=kind, kind=kind, hosts=hosts, config=config), secret)
    return list(made)


def flow(echo: str, way: str, connection: str) -> list[dict[str, Any]]:
    """The call, and whatever else may carry on what it gave."""
    config = {"url": f"{echo}/{way}", "connection": connection}
    config |= {"response": "file"} if way == "file" else {}
    config |= {"pages": "cursor", "page_items": "response.body.items", "page_next": "response.body.next"} if way == "pages" else {}
    call = {"id": "call", "type": "http", "config": config, "retry": {"max_attempts": 1}}
    if connection == "openai":
        call = {"id": "call", "type": "ai", "config": {"task": "generate", "prompt": "Who am I?", "connection": connection}, "retry": {"max_attempts": 1}}
    given = "{{ steps.call.output }}"
    return [
        call,
        {"id": "kept", "type": "set", "config": {"values": {"all": given, "text": f"It was {given}"}}},
        {"id": "mail", "type": "email", "config": {"to": ["ann@example.com"], "subject": "It", "body": f"{given} {{{{ steps.kept.output }}}}"}},
        {"id": "again", "type": "http", "config": {"method": "POST", "url": f"{echo}/plain?q={{{{ json_text(steps.call.output) }}}}", "json": {"all": given}, "headers": {"X-More": "{{ base64.encode(bytes(json_text(steps.call.output))).substring(0, 8) }}"}}, "retry": {"max_attempts": 1}, "on_error": "continue"},
        {"id": "sub", "type": "workflow", "config": {"flow": "Below", "input": {"all": given}, "wait": True}},
        {"id": "ask", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "Go on?", "message": f"It is {given}", "details": {"It": given}}},
        {"id": "wrong", "type": "set", "config": {"values": {"x": "{{ int(json_text(steps.call.output)) }}"}}},
    ]  # fmt: skip


BELOW = [{"id": "kept", "type": "set", "config": {"values": {"got": "{{ trigger.body }}"}}},
         {"id": "end", "type": "stop", "config": {"output": {"back": "{{ steps.kept.output }}"}}}]  # fmt: skip


def test_a_secret_that_comes_back_is_found_nowhere(engine, connections, echo, clock, settings):
    settings.HOLDFAST_METRICS_TOKEN = "metrics"
    below = engine.publish(BELOW)
    below.workflow.name = "Below"
    below.workflow.save()
    pairs = [(way, "bearer") for way in WAYS] + [(way, kind) for kind in connections[1:] for way in ("plain", "base64", "422")]
    with SmtpServer() as smtp:
        engine.worker(email=smtp.options)
        runs = [engine.start(engine.publish(flow(echo, way, kind)), {"email": "ann@example.com"}) for way, kind in pairs]
        engine.drive(clock, runs, lambda: not Run.objects.filter(pk__in=runs, state__in=["open", "attention"]).exists())
        letters = [letter["message"].as_string() for letter in smtp.wait(1)]
    assert Attempt.objects.filter(outcome="answered").count() > len(pairs), "it went out"
    assert StepResult.objects.filter(step="sub", state="succeeded").count() > 10, "and was carried on"
    places = {
        **{f"the table {table}": rows for table, rows in tables(engine)},
        **{f"the log of worker {worker.pid}": worker.log.read_text() for worker in engine.workers},
        "mails": "\n".join(letters), **pages(runs),
    }  # fmt: skip
    found = [(place, text[max(0, at - 60) : at + 40]) for place, text in places.items() for form in FORMS if (at := text.find(form)) >= 0]
    assert not found, f"{len(found)}: {found[:5]}"
    assert len(places) > 100 and sum("•••" in text for text in places.values()) > 20


def tables(engine) -> Iterator[tuple[str, str]]:
    """All of them, whosoever they are."""
    for (name,) in engine.sql("select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'"):
        yield name, json.dumps(engine.sql(f'select to_jsonb(t)::text from "{name}" t'), ensure_ascii=False)


def pages(runs: list[int]) -> dict[str, str]:
    """What somebody who may see everything sees: each page, each tab of each run, the API, exports, metrics."""
    root = get_user_model().objects.create_superuser("root")
    client, headers = Client(), {"Authorization": f"Bearer {make_token(root, 'canary')[1]}"}
    client.force_login(root, "django.contrib.auth.backends.ModelBackend")
    asked = [reverse(address.name) for address in NAMED if not address.arguments]
    asked = [address for address in asked if "logout" not in address]
    for run in runs:
        asked += [f"/runs/{run}/?step={step}&tab={tab}" for step in ("call", "mail", "wrong") for tab in ("input", "output", "attempts", "log")]
        asked += [f"/runs/{run}/file/?step=call", f"/runs/{run}/output/file/?step=call", f"/runs/{run}/requeue/", f"/runs/{run}/rerun/"]
        asked += [f"/api/v1/runs/{run}", f"/api/v1/runs/{run}/steps?limit=200", f"/admin/runtime/run/{run}/change/", f"/runs/{run}/step/?step=call"]
    asked += [f"/connections/{row.pk}/" for row in Credential.objects.all()]
    for number, format in enumerate(("csv", "jsonl")):
        job = jobs.ask("export", runs, user=root, key=f"canary{number}", format=format)
        while jobs.work_off(lambda: False):
            pass
        asked.append(f"/runs/jobs/{job.pk}/file/")
    shown = {"/metrics": {"Authorization": "Bearer metrics"}}
    answers = {address: client.get(address, headers=shown.get(address, headers if "/api/" in address else None)) for address in asked}
    assert b"holdfast_runs" in answers["/metrics"].content
    return {address: b"".join(answer).decode("utf-8", "replace") for address, answer in answers.items()}
