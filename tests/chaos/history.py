"""The database's own history of every row (`history.sql`), and what in it must not have happened."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection

from runtime import states

MOVES = {
    "run": states.RUN_MOVES,
    "dispatch": states.DISPATCH_MOVES,
    "wait": states.WAIT_MOVES,
    "outbox": states.OUTBOX_MOVES,
}
FIRST = {"run": "open", "dispatch": "ready", "wait": "open", "outbox": "queued"}


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    at: datetime
    xid: str
    kind: str
    key: str
    run_id: int | None
    was: str | None
    now: str | None
    more: dict[str, Any]

    def __str__(self) -> str:
        told = {name: value for name, value in self.more.items() if value is not None}
        return f"run {self.run_id}: {self.kind} {self.key}: {self.was} → {self.now} {told}"


def install() -> None:
    with connection.cursor() as cursor:
        cursor.execute((Path(__file__).parent / "history.sql").read_text())


def read() -> list[Event]:
    """All of it, in the order in which it happened to each row: the writer of a row holds it while it is numbered."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select id, at, xid::text, kind, key, run_id, was, now, more::text from chaos_history order by id"
        )
        return [Event(*row, json.loads(more)) for *row, more in cursor.fetchall()]


def last() -> int:
    """The number of the newest event."""
    with connection.cursor() as cursor:
        cursor.execute("select coalesce(max(id), 0) from chaos_history")
        return cursor.fetchone()[0]


def illegal(events: list[Event]) -> list[str]:
    """What the history shows that no worker may do, in words."""
    by_kind: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_kind[event.kind].append(event)
    wrong: list[str] = []
    for kind in MOVES:
        wrong += _moves(kind, by_kind[kind])
    wrong += _claims(by_kind["dispatch"])
    wrong += _fenced([*by_kind["attempt"], *by_kind["step_result"]])
    wrong += _once(events)
    wrong += _attempts(by_kind["attempt"])
    wrong += [f"woken before its time: {event}" for event in by_kind["wait"] if event.more["early"]]
    return wrong


def _moves(kind: str, events: list[Event]) -> Iterator[str]:
    """Each row's moves against the drawing. What one transaction does to a row counts by its parts or as a whole."""
    by_row: dict[str, dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        by_row[event.key][event.xid].append(event)
    for transactions in by_row.values():
        for parts in transactions.values():
            whole = Event(*(getattr(parts[-1], name) for name in ("id", "at", "xid", "kind", "key", "run_id")),
                          parts[0].was, parts[-1].now, parts[-1].more)  # fmt: skip
            if not (all(_legal(kind, part) for part in parts) or _legal(kind, whole)):
                yield f"illegal move: {'; '.join(map(str, parts))}"


def _legal(kind: str, event: Event) -> bool:
    if event.was is None:
        return event.now == FIRST[kind]
    return event.now in (None, event.was) or event.now in MOVES[kind][event.was]


def _claims(events: list[Event]) -> Iterator[str]:
    """A token is given once, and nobody takes a lease that has not run out."""
    seen: set[int] = set()
    for event in events:
        token = event.more["token"]
        if token is not None and token != event.more["had"]:
            if token in seen:
                yield f"a token was given twice: {event}"
            seen.add(token)
        if event.more["lost"] and event.more["had"] is not None and not event.more["expired"]:
            yield f"a lease was taken before it ran out: {event}"


def _fenced(events: list[Event]) -> Iterator[str]:
    """Only the holder of a run writes for it."""
    for event in events:
        if event.was is None and event.more["token"] != event.more["holder"]:
            yield f"written by one that did not hold the run: {event}"


def _once(events: list[Event]) -> Iterator[str]:
    """A finished step never runs again, and its result is neither written twice nor taken back."""
    finished: dict[tuple[int | None, str], int] = {}
    for event in events:
        place = (event.run_id, event.more.get("path"))
        if event.kind == "attempt" and event.was is None and event.more["take"] <= finished.get(place, 0):
            yield f"a finished step ran again: {event}"
        if event.kind == "step_result":
            if event.now is None:
                yield f"a result was taken away: {event}"
            elif event.was is None:
                if event.more["take"] <= finished.get(place, 0):
                    yield f"a result was written again: {event}"
                finished[place] = event.more["take"]


def _attempts(events: list[Event]) -> Iterator[str]:
    """One call at a time, each settled once, and with or before the next one's row."""
    settled: dict[tuple[int | None, str], Event] = {}
    for event in events:
        if event.now is None:
            yield f"an attempt was taken away: {event}"
        elif event.was == "open" and event.now != "open":
            settled[event.run_id, event.key] = event
        elif event.was not in (None, event.now):
            yield f"an attempt was settled twice: {event}"
    begun: dict[tuple[int | None, str], Event] = {}
    for event in (event for event in events if event.was is None):
        place = (event.run_id, event.more["path"])
        if before := begun.get(place):
            end = settled.get((before.run_id, before.key))
            if end is None or (end.id > event.id and end.xid != event.xid):
                yield f"a call began while another was open: {event}"
        begun[place] = event
