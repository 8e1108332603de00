"""A CRM that keeps a ledger of every call and its Idempotency-Key, on disk, so that it outlives its own death.

    with Crm(ledger=tmp_path / "crm.db") as crm:
        crm.control(after_commit="die", after_commit_times=1)

Settings: `keys` (`honour`: a key seen before gets its first answer and no second effect; `ignore`), `after_commit` and
`before_commit` (`reply`, `hang`, `die`, `reset`: what happens instead of the answer), each with `…_times`; `refuse`
(a status to answer without an effect) with `refuse_times` and `refuse_headers`; `require` (an Authorization value).
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from pathlib import Path
from typing import Any

from .app import App, Reply, Request, run
from .process import ServerProcess

SCHEMA = """
create table if not exists ledger (
    id integer primary key, method text not null, path text not null, key text, body text, effect integer not null
);
create table if not exists answer (key text primary key, status integer not null, body text not null);
"""
EFFECTS = ("POST", "PUT", "PATCH", "DELETE")


class CrmApp(App):
    settings = {"keys": "honour", "after_commit": "reply", "before_commit": "reply", "refuse": 0, "require": ""}

    def __init__(self, ledger: str, keys: str):
        super().__init__()
        self.state["keys"] = keys
        self.ledger = sqlite3.connect(ledger, check_same_thread=False)
        self.ledger.executescript(SCHEMA)

    def handle(self, request: Request) -> Reply:
        if self.state["require"] and request.headers.get("authorization") != self.state["require"]:
            return Reply(401, {"error": "Who are you?"})
        if status := self.take("refuse", 0):
            return Reply(status, {"error": "Not now."}, self.state.get("refuse_headers", {}))
        before = self.take("before_commit", "reply")
        if before != "reply":
            return Reply(then=before)
        reply = self.effect(request)
        reply.then = self.take("after_commit", "reply")
        return reply

    def effect(self, request: Request) -> Reply:
        key = request.headers.get("idempotency-key")
        if request.method not in EFFECTS:
            return Reply(200, {"path": request.path})
        known = self.ledger.execute("select status, body from answer where key = ?", [key]).fetchone()
        repeated = known is not None and self.state["keys"] == "honour"
        with self.ledger:
            cursor = self.ledger.execute(
                "insert into ledger (method, path, key, body, effect) values (?, ?, ?, ?, ?)",
                [request.method, request.path, key, json.dumps(request.body), not repeated],
            )
            if repeated:
                return Reply(known[0], json.loads(known[1]))
            given = request.body if isinstance(request.body, dict) else {}
            reply = Reply(201 if request.method == "POST" else 200, {"id": cursor.lastrowid, **given})
            if key:
                self.ledger.execute(
                    "insert or replace into answer values (?, ?, ?)", [key, reply.status, json.dumps(reply.body)]
                )
        return reply

    def steer(self, request: Request) -> Reply:
        if request.path != "/_ledger":
            return super().steer(request)
        rows = self.ledger.execute("select id, method, path, key, body, effect from ledger order by id")
        names = ("id", "method", "path", "key", "body", "effect")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return Reply(body=[{**row, "body": json.loads(row["body"]), "effect": bool(row["effect"])} for row in found])


class Crm(ServerProcess):
    module = "tests.servers.crm"

    def __init__(self, ledger: Path | str, keys: str = "honour"):
        super().__init__("--ledger", str(ledger), "--keys", keys)

    def ledger(self) -> list[dict[str, Any]]:
        """Every call that reached it: `{"id", "method", "path", "key", "body", "effect"}`; `effect` is false for a
        repeat that a key caught."""
        return self.ask("GET", "/_ledger")

    def effects(self) -> list[dict[str, Any]]:
        return [row for row in self.ledger() if row["effect"]]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ledger", default=":memory:")
    parser.add_argument("--keys", choices=["honour", "ignore"], default="honour")


if __name__ == "__main__":
    run(lambda options: CrmApp(options.ledger, options.keys), _arguments)
