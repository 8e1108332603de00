"""The outside: a system that keeps its own ledger of what it was asked and what it did, and that misbehaves as told.

`POST /effect` with `{"run", "place", "v", "trouble", "call"?, "answer"?}` does something once per Idempotency-Key. What
`trouble` says comes first: `refuse` (so many times "not now"), `die` `reset` `fail` `lose` (so many times: it dies
after its commit, cuts the line, answers 500, or cuts the line before it did anything), `reject` (never), `reject_first`
(never under the first key), `ignore_keys`, `slow` (seconds before the answer). `call` is the address of a callback: the
ledger says when it is to be rung, and `people.py` does it. `GET /happened?run=&place=` tells whether there was an
effect.

A process of its own, whose ledger outlives it.
"""

from __future__ import annotations

import argparse
import random
import re
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.servers.app import App, Reply, Request, run
from tests.servers.process import ServerProcess

SCHEMA = """
pragma journal_mode = wal;
pragma synchronous = normal;
create table if not exists asked (
    id integer primary key, at real not null, run integer not null, place text not null, key text, v integer,
    effect integer not null, planned text not null, answered real
);
create index if not exists asked_place on asked (run, place);
create index if not exists asked_key on asked (key);
create table if not exists ring (id integer primary key, at real not null, run integer not null, path text not null,
                                 answer integer not null);
"""
SURPRISES = ("die", "reset", "fail", "lose")


class Receiver(App):
    def __init__(self, ledger: str):
        super().__init__()
        self.ledger = sqlite3.connect(ledger, check_same_thread=False)
        self.ledger.executescript(SCHEMA)

    def handle(self, request: Request) -> Reply:
        self.requests.clear()
        if request.method != "GET" and not isinstance(request.body, dict):
            return Reply(then="reset")  # its sender died in the middle of it
        if request.method == "GET":
            return self.happened(parse_qs(urlsplit(request.path).query))
        return self.asked(request)

    def happened(self, query: dict[str, list[str]]) -> Reply:
        row = self.ledger.execute(
            "select v from asked where run = ? and place = ? and effect = 1", [query["run"][0], query["place"][0]]
        ).fetchone()
        return Reply(200, {"seen": row is not None, "v": row[0] if row else None})

    def asked(self, request: Request) -> Reply:
        body, key = request.body, request.headers.get("idempotency-key")
        earlier = self.ledger.execute(
            "select key, planned from asked where run = ? and place = ? order by id", [body["run"], body["place"]]
        ).fetchall()
        planned = plan(body["trouble"], key, earlier)
        known = None
        if not body["trouble"].get("ignore_keys"):
            known = self.ledger.execute("select v from asked where key = ? and effect = 1", [key]).fetchone()
        does = planned in ("reply", "die", "reset", "fail")
        with self.ledger:
            cursor = self.ledger.execute(
                "insert into asked (at, run, place, key, v, effect, planned) values (?, ?, ?, ?, ?, ?, ?)",
                [time.time(), body["run"], body["place"], key, body["v"], does and known is None, planned],
            )
            request.row = cursor.lastrowid
            if does and body.get("call"):
                self.ring(body)
        reply = answer(planned, known[0] if known else body["v"])
        reply.slow = body["trouble"].get("slow", 0)
        return reply

    def ring(self, body: dict[str, Any]) -> None:
        """To be called back at about the time at which the caller has its answer: before, between, or after what it
        does then. Who asks again is called back again."""
        run_id, path = place_of(body["call"])
        at = time.time() + body["trouble"].get("slow", 0) + random.uniform(0, 0.012)
        bell = [at, run_id, path, body["answer"]]
        self.ledger.execute("insert into ring (at, run, path, answer) values (?, ?, ?, ?)", bell)

    def answered(self, request: Request) -> None:
        if request.method != "GET":
            with self.lock, self.ledger:
                self.ledger.execute("update asked set answered = ? where id = ?", [time.time(), request.row])


def plan(trouble: dict[str, Any], key: str | None, earlier: list[tuple[str, str]]) -> str:
    """What is done with this request, after those that came before it for the same place."""
    if trouble.get("reject") or (trouble.get("reject_first") and key in (earlier[0][0] if earlier else key,)):
        return "reject"
    for name in ("refuse", *SURPRISES):
        if sum(planned == name for _, planned in earlier) < trouble.get(name, 0):
            return name
    return "reply"


def answer(planned: str, value: int) -> Reply:
    match planned:
        case "reject":
            return Reply(422, {"error": "No."})
        case "refuse":
            return Reply(429, {"error": "Not now."}, {"Retry-After": "0"})
        case "fail":
            return Reply(500, {"error": "Something broke."})
        case "die" | "reset":
            return Reply(then=planned)
        case "lose":
            return Reply(then="reset")
    return Reply(200, {"v": value})


def place_of(address: str) -> tuple[int, str]:
    """(run, path) from the address of a callback."""
    run_id, path = re.search(r"/callbacks/(\d+)/[^/]+/(.+)/$", urlsplit(address).path).groups()
    return int(run_id), unquote(path)


class ReceiverServer(ServerProcess):
    module = "tests.chaos.receiver"

    def __init__(self, ledger: Path):
        super().__init__("--ledger", str(ledger))
        self.ledger = ledger

    def rows(self, query: str, *parameters: Any) -> list[tuple]:
        """Read the ledger from beside it."""
        with sqlite3.connect(self.ledger, timeout=30) as connection:
            return connection.execute(query, parameters).fetchall()

    def dead(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ledger", required=True)


if __name__ == "__main__":
    run(lambda options: Receiver(options.ledger), _arguments)
