"""Webhooks over the production server: what only a real connection can show."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from runtime.jsonvalues import MIB
from runtime.models import Dispatch, Run, Team, Trigger, Workflow
from runtime.publish import publish

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def web_server(**environment: str) -> Iterator[int]:
    """The port of a web server process as production runs it, once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, "manage.py", "serve", "--fd", str(listener.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, pass_fds=[listener.fileno()])
        try:
            assert (
                exchange(port, b"GET /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 60)[0]
                == 404
            )
            yield port
        finally:
            process.terminate()
            process.wait(20)


def exchange(port: int, data: bytes, seconds: float = 30, end: bool = False) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and read (status, headers, body) until the server closes; status 0 when it says nothing. `end`: we stop
    sending first."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    if not answer:
        return 0, {}, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}, body


def request(trigger: Trigger, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = [f"POST /hooks/{trigger.token}/ HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    lines += [f"Content-Length: {len(body) if length is None else length}"] if length != -1 else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.fixture
def trigger() -> Trigger:
    workflow = Workflow.objects.create(team=Team.objects.create(name="Sales"), name="Leads")
    declared = {"id": "lead", "type": "webhook", "config": {"dedupe": "has(headers.event) ? headers.event : null"}}
    publish(workflow, {"format": 1, "name": "Leads", "triggers": [declared], "steps": []})
    return Trigger.objects.get(workflow=workflow)


def test_real_connections(trigger, database_url):
    """One server for all of these: starting it is what takes the time."""
    with web_server() as port:
        the_same_event_twenty_times_at_once_is_one_run(port, trigger)
        one_byte_over_the_limit_gets_its_answer(port, trigger)
        a_length_that_is_not_kept_starts_no_run(port, trigger)
        chunked_bodies_are_read_and_bounded(port, trigger)
        compressed_bodies_are_not_unpacked(port, trigger)
        odd_headers_get_an_answer_and_start_nothing(port, trigger)
        connections_that_the_database_has_ended_are_made_anew(port, trigger, database_url)
        while_runs_cannot_be_written_the_sender_is_asked_to_come_again(port, trigger, database_url)


def the_same_event_twenty_times_at_once_is_one_run(port: int, trigger: Trigger) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: exchange(port, request(trigger, b"{}", "Event: e1")), range(20)))
    assert sorted(status for status, *_ in answers) == [200] * 19 + [202]
    assert len({json.loads(body)["run"] for *_, body in answers}) == 1
    assert Run.objects.count() == Dispatch.objects.count() == 1


def one_byte_over_the_limit_gets_its_answer(port: int, trigger: Trigger) -> None:
    before = Run.objects.count()
    full = b'"' + b"x" * (MIB - 2) + b'"'
    assert exchange(port, request(trigger, full))[0] == 202
    assert exchange(port, request(trigger, full + b" "))[0] == 413
    assert exchange(port, request(trigger, b"", length=10**12))[0] == 413, "refused by what is announced, unread"
    assert Run.objects.count() == before + 1


def a_length_that_is_not_kept_starts_no_run(port: int, trigger: Trigger) -> None:
    before = Run.objects.count()
    status, *_ = exchange(port, request(trigger, b"{}", length=100), end=True)
    assert status in (0, 400)  # who hung up may be hung up on
    assert Run.objects.count() == before


def chunked_bodies_are_read_and_bounded(port: int, trigger: Trigger) -> None:
    def chunked(body: bytes) -> bytes:
        return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:5], body[5:])) + b"0\r\n\r\n"

    before = Run.objects.count()
    status, _, answer = exchange(
        port, request(trigger, chunked(b'{"chunked": 1}'), "Transfer-Encoding: chunked", length=-1)
    )
    assert status == 202
    assert Run.objects.get(pk=json.loads(answer)["run"]).input["body"] == {"chunked": 1}
    full = b'"' + b"x" * MIB + b'"'
    assert exchange(port, request(trigger, chunked(full), "Transfer-Encoding: chunked", length=-1))[0] == 413
    assert Run.objects.count() == before + 1


def compressed_bodies_are_not_unpacked(port: int, trigger: Trigger) -> None:
    bomb = gzip.compress(b" " * 10 * MIB + b"{}")
    assert exchange(port, request(trigger, bomb, "Content-Encoding: gzip"))[0] == 415


def odd_headers_get_an_answer_and_start_nothing(port: int, trigger: Trigger) -> None:
    before = Run.objects.count()
    for header in ("Content-Length: -1", "Content-Length: 1e3", "Content-Length: 2, 2"):
        lines = [f"POST /hooks/{trigger.token}/ HTTP/1.1", "Host: localhost", "Connection: close", header]
        assert exchange(port, "\r\n".join(lines).encode() + b"\r\n\r\n{}", end=True)[0] == 400
    assert Run.objects.count() == before


def connections_that_the_database_has_ended_are_made_anew(port: int, trigger: Trigger, url: str) -> None:
    def post_many() -> list[int]:
        with ThreadPoolExecutor(16) as pool:
            return [status for status, *_ in pool.map(lambda _: exchange(port, request(trigger, b"{}")), range(40))]

    with psycopg.connect(url, autocommit=True) as owner:
        assert post_many() == [202] * 40, "every thread of the server has a connection, just used"
        others = "application_name = '' and datname = current_database() and pid <> all(array[pg_backend_pid(), %s])"
        ours = connections["default"].connection.info.backend_pid
        ended = owner.execute(f"select pg_terminate_backend(pid, 60000) from pg_stat_activity where {others}", [ours]).fetchall()
    assert len(ended) > 1 and post_many() == [202] * 40


def while_runs_cannot_be_written_the_sender_is_asked_to_come_again(port: int, trigger: Trigger, url: str) -> None:
    """The trigger is found and the run cannot be kept, as after a failover to a server that only reads."""
    before = Run.objects.count()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("alter table run add constraint nothing_new check (id < 0) not valid")
        try:
            status, headers, _ = exchange(port, request(trigger, b"{}"))
        finally:
            owner.execute("alter table run drop constraint nothing_new")
    assert (status, headers["retry-after"]) == (503, "10")
    assert Run.objects.count() == before
    assert exchange(port, request(trigger, b"{}"))[0] == 202


def test_without_a_database_the_sender_is_asked_to_come_again(trigger):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nowhere = f"postgres://nobody@127.0.0.1:{unused.getsockname()[1]}/none"
    with web_server(DATABASE_URL=nowhere) as port:
        status, headers, body = exchange(port, request(trigger, b"{}"))
        assert (status, headers["retry-after"]) == (503, "10")
        assert "again" in json.loads(body)["error"]["message"]
        health, _, told = exchange(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (health, json.loads(told)["database"]["ok"]) == (503, False)
