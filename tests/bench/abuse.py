"""`make bench-abuse`: what others' timers and calls feel while somebody is up to no good, on a Holdfast of its own, over loopback.

Two hundred clients that send a byte a second; ten thousand webhook posts a minute; bodies of 50 MB; ten thousand approvals that
wait, with their links being opened. Beside each, as on the idle system before: how late timers wake their runs, how long
another webhook and the sign-in page take, and how much memory web processes and workers hold. Options: --seconds N of each.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

SLOW, POSTS_A_MINUTE, BODY, BODIES, LINKS = 200, 10_000, 50_000_000, 20, 10_000
TIMER_EVERY, CALL_EVERY = 0.2, 0.1
MOST_SECONDS = 120
PATIENCE = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.bench.abuse", description=__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--links", type=int, default=LINKS)
    chosen = parser.parse_args()
    seconds, links = min(chosen.seconds, MOST_SECONDS), min(chosen.links, LINKS)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-abuse-"))
    folder.chmod(0o711)  # the database's user passes through when we are root
    from tests.e2e.stack import Holdfast

    try:
        with Holdfast(folder, HOLDFAST_WEB_PROCESSES="2") as holdfast:
            os.environ |= {"DJANGO_SETTINGS_MODULE": "builder.settings", "HOLDFAST_DATA": str(folder)}
            import django

            django.setup()
            from tests.bench import loads

            before = os.getloadavg()[0]
            rows = [row for row in measured(holdfast, seconds, links)]
            report(rows, f"{loads.machine()}; load {before:.1f} before; {seconds} s each")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(holdfast: Any, seconds: int, links: int) -> Iterator[dict[str, Any]]:
    port = int(holdfast.url.rsplit(":", 1)[1])
    abused, other = webhook("Abused"), webhook("Other")
    places = {"nobody": lambda ends: {}, f"{SLOW} slow clients": lambda ends: slow_clients(port, abused, ends)}
    places[f"{POSTS_A_MINUTE:,} posts a minute"] = lambda ends: posts(port, abused, ends)
    places["bodies of 50 MB"] = lambda ends: bodies(port, abused, ends)
    for name, abuse in places.items():
        yield beside(name, abuse, holdfast.process.pid, port, other, seconds)
    tokens = open_links(links)
    yield beside(f"{links:,} open links", lambda ends: visits(port, tokens, ends), holdfast.process.pid, port, other, seconds)


def beside(name: str, abuse: Callable[[float], dict[str, int]], pid: int, port: int, hook: str, seconds: int) -> dict[str, Any]:
    """One line of the table. The timers are made first, so that what is measured is their waking."""
    from tests.bench import loads

    print(f"{name} …", flush=True)
    version = timers(seconds)
    ends = time.monotonic() + seconds
    with held_memory(pid) as memory, ThreadPoolExecutor(3) as pool:
        working = pool.submit(abuse, ends)
        calls = [pool.submit(timed, each, ends) for each in (lambda: post(port, hook), lambda: get(port, "/login/"))]
        (took, failed), (page, missed) = (one.result() for one in calls)
        answered = working.result()
    loads.until_done(version)
    late = loads.percentiles(
        "select resolved_at - due_at as gap from wait w join run r on r.id = w.run_id where r.version_id = %s", version.pk
    )
    return {
        "beside": name, "woken late": spread(late), "webhook": spread(two(took)), "page": spread(two(page)),
        "failed": f"{failed + missed} of {len(took) + len(page)}", "web": f"{memory['serve']:.0f}",
        "workers": f"{memory['qcluster']:.0f}", "answers": ", ".join(f"{n:,} × {what}" for what, n in sorted(answered.items())),
    }  # fmt: skip


# What others want


def webhook(name: str) -> str:
    """A flow of one quick step behind a webhook. Gives its token."""
    from runtime.models import Team, Trigger, Workflow
    from runtime.publish import publish

    workflow = Workflow.objects.create(team=Team.objects.get_or_create(name="Bench")[0], name=name)
    steps = [{"id": "keep", "type": "set", "config": {"values": {"n": "{{ trigger.body.n }}"}}}]
    publish(workflow, {"format": 1, "name": name, "triggers": [{"id": "in", "type": "webhook", "config": {}}], "steps": steps})
    return Trigger.objects.get(workflow=workflow).token


def timers(seconds: int) -> Any:
    """Runs that wake one after the other, all the while."""
    from runtime.clock import business_now
    from runtime.starts import start_many
    from tests.bench.loads import flow

    version = flow("Timers", {"id": "wait", "type": "delay", "config": {"until": "{{ trigger.body.at }}"}})
    begins, count = business_now() + timedelta(seconds=1), int(seconds / TIMER_EVERY)
    items = [({"body": {"at": (begins + timedelta(seconds=n * TIMER_EVERY)).isoformat()}}, None) for n in range(count)]
    start_many(version, items, trigger_key="api")
    return version


def timed(call: Callable[[], int], ends: float) -> tuple[list[float], int]:
    """(seconds of each call, how many did not get what they wanted)."""
    took, failed = [], 0
    while time.monotonic() < ends:
        began = time.monotonic()
        try:
            failed += call() not in (200, 202)
        except OSError:
            failed += 1
        took.append(time.monotonic() - began)
        time.sleep(CALL_EVERY)
    return took, failed


def post(port: int, token: str, body: bytes = b'{"n": 1}') -> int:
    return asked(port, "POST", f"/hooks/{token}/", body)


def get(port: int, path: str) -> int:
    return asked(port, "GET", path)


def asked(port: int, method: str, path: str, body: bytes | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was read: the answer may be there all the same
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


# What is done to it. Each ends by itself, and gives what it was answered: word -> how often.


def slow_clients(port: int, token: str, ends: float) -> dict[str, int]:
    """Half of them stay in the head of a request, half in its body."""
    head = f"POST /hooks/{token}/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(SLOW)]
    cut: set[int] = set()
    for n, one in enumerate(sockets):
        one.sendall(head if n % 2 else head + b"Content-Length: 1000\r\n\r\n{")
    while time.monotonic() < ends:
        for n, one in enumerate(sockets):
            try:
                one.sendall(b"X" if n % 2 else b" ")
            except OSError:
                cut.add(n)
        time.sleep(1)
    for one in sockets:
        one.close()
    return {"cut off": len(cut), "let be": SLOW - len(cut)}


def posts(port: int, token: str, ends: float) -> dict[str, int]:
    """At an even rate, by eight senders, each over one connection."""
    count, threads = 60 / POSTS_A_MINUTE, 8

    def send(number: int) -> collections.Counter[str]:
        found: collections.Counter[str] = collections.Counter()
        connection, due = http.client.HTTPConnection("127.0.0.1", port, timeout=60), time.monotonic() + number * count
        while due < ends:
            time.sleep(max(0.0, due - time.monotonic()))
            due += threads * count
            try:
                connection.request("POST", f"/hooks/{token}/", json.dumps({"n": number}), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                found[str(answer.status)] += 1
            except (OSError, http.client.HTTPException):
                found["broken off"] += 1
                connection.close()
        connection.close()
        return found

    with ThreadPoolExecutor(threads) as pool:
        return dict(sum(pool.map(send, range(threads)), collections.Counter()))


def bodies(port: int, token: str, ends: float) -> dict[str, int]:
    """Four at a time."""
    found: collections.Counter[str] = collections.Counter()
    body = b'{"n": "' + b"x" * BODY + b'"}'

    def send(number: int) -> None:
        if time.monotonic() < ends:
            try:
                found[str(post(port, token, body))] += 1
            except (OSError, http.client.HTTPException):
                found["broken off"] += 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(BODIES)))
    return dict(found)


def open_links(count: int) -> list[str]:
    """Approvals that wait: so many, each with its link."""
    from runtime.models import Recipient
    from runtime.starts import start_many
    from runtime.tokens import token_for
    from tests.bench.loads import flow

    asks = {"approvers": ["dana@example.com"], "subject": "Go {{ trigger.body.n }}?", "expires": "3d"}
    version = flow("Asks", {"id": "ok", "type": "approval", "config": asks})
    print(f"{count:,} approvals …", flush=True)
    for first in range(0, count, 2000):
        start_many(version, [({"body": {"n": n}}, None) for n in range(first, min(count, first + 2000))], trigger_key="api")
    ends = time.monotonic() + PATIENCE
    while Recipient.objects.count() < count:
        if time.monotonic() > ends:
            raise TimeoutError(f"{count:,} approvals were not asked within {PATIENCE:g} s")
        time.sleep(0.5)
    found = Recipient.objects.select_related("approval__wait")[:2000]
    return [token_for(one.approval.run_id, one.approval.wait.path, one.approval.wait.take, one.address, one.nonce, one.key_id) for one in found]


def visits(port: int, tokens: list[str], ends: float) -> dict[str, int]:
    """Links of which every fourth is wrong, opened one after the other by four readers."""

    def read(number: int) -> collections.Counter[str]:
        found: collections.Counter[str] = collections.Counter()
        for n, token in enumerate(tokens[number::4]):
            if time.monotonic() > ends:
                break
            found[str(get(port, f"/a/{token if n % 4 else token[::-1]}/"))] += 1
        return found

    with ThreadPoolExecutor(4) as pool:
        return dict(sum(pool.map(read, range(4)), collections.Counter()))


# The table


@contextmanager
def held_memory(pid: int) -> Iterator[dict[str, float]]:
    """The most that processes of a kind held together while the block ran, in MiB, by the word of their command line."""
    most, over = {"serve": 0.0, "qcluster": 0.0}, threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            held = dict.fromkeys(most, 0)
            for process in psutil.Process(pid).children(recursive=True):
                try:
                    kind = next((word for word in most if word in process.cmdline()), None)
                    if kind:
                        held[kind] += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            most.update({kind: max(most[kind], size / 2**20) for kind, size in held.items()})

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()


def two(seconds: list[float]) -> tuple[float, float]:
    ordered = sorted(seconds) or [0.0]
    return tuple(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.99))


def spread(figures: tuple[float, float]) -> str:
    return f"{figures[0]:,.0f} / {figures[1]:,.0f}"


HEADS = {
    "beside": "beside", "woken late": "woken late, ms", "webhook": "another webhook, ms", "page": "sign-in page, ms",
    "failed": "of these failed", "web": "web, MiB", "workers": "workers, MiB", "answers": "what it was answered",
}  # fmt: skip


def report(rows: list[dict[str, Any]], about: str) -> None:
    print(f"\n{about}\n\n| {' | '.join(HEADS.values())} |\n|---|{'---:|' * (len(HEADS) - 2)}---|")
    for row in rows:
        print(f"| {' | '.join(str(row[name]) for name in HEADS)} |")


if __name__ == "__main__":
    main()
