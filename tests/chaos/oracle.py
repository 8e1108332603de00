"""The judgement: runs against the model of their program, the receiver's ledger against both, the database's history.

Nothing here asks a worker what it did. The tables tell what Holdfast says, the ledger what really happened outside.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from runtime.paths import step_of
from tests.chaos import history
from tests.chaos.history import Event
from tests.chaos.people import People
from tests.chaos.programs import Program
from tests.chaos.receiver import SURPRISES
from tests.chaos.steps import TIMEOUT_SECONDS

SLACK_SECONDS = 0.001
NEAR = timedelta(seconds=3)
MAY_HAVE_HAPPENED = ("unknown", "answered", None)
INTERRUPTED = ("The worker was lost during the call.",
               "The worker was stopped during the call, which did not end within its grace period.")
# An open run that nothing will ever move again.
STUCK = """
select r.id from run r left join dispatch d on d.run_id = r.id
where r.state in ('open', 'attention')
  and not coalesce(d.leased_until > clock_timestamp(), false)
  and not coalesce(d.token is null and d.due_at > holdfast_now(), false)
  and not exists (select from wait w where w.run_id = r.id and w.state = 'open' and d.run_id is not null)
"""
# A callback that waits although its answer was taken.
UNHEARD = """
select w.run_id, w.path from wait w join signal s on s.run_id = w.run_id and s.path = w.path and s.wait_id is null
where w.kind = 'callback' and w.state = 'open'
"""
# A run that waits for one that has ended.
UNTOLD = """
select w.run_id, w.path from wait w join run c on c.id = (w.data ->> 'run')::bigint and c.ended_at is not null
where w.kind = 'child' and w.state = 'open'
"""
BELOW = "select id, parent_id, input -> 'body' ->> 'at' from run where parent_id is not null order by id"


@dataclass
class Verdict:
    """Breaches by kind, in words. `figures` are what the report tells besides."""

    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    uncertain: list[str] = field(default_factory=list)
    illegal: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def breaches(self) -> list[str]:
        kinds = ("lost", "duplicated", "stuck", "uncertain", "illegal", "wrong")
        return [f"{kind}: {words}" for kind in kinds for words in getattr(self, kind)]


def stuck() -> list[int]:
    return [run_id for (run_id,) in _sql(STUCK)]


def judge(people: People, receiver_deaths: list[datetime], verdict: Verdict) -> None:
    """Everything that can be told once nothing moves any more. `verdict.stuck` was filled before."""
    events = history.read()
    asked = Asked(people.receiver.rows(f"select {', '.join(Asked.NAMES)} from asked order by id"))
    verdict.illegal += history.illegal(events)
    verdict.wrong += people.wrong
    unheard = "the answer was taken, and the callback still waits"
    verdict.lost += [f"run {run}: {path}: {unheard}" for run, path in _sql(UNHEARD)]
    verdict.lost += [f"run {run}: {path}: the run that it waits for has ended" for run, path in _sql(UNTOLD)]
    _below(people, verdict)
    tables = Tables(events)
    verdict.wrong += _failures(events)
    verdict.wrong += _delays(events, people.runs)
    succeeded = Counter()
    for run_id, program in people.runs.items():
        before = len(verdict.breaches())
        Judged(run_id, program, tables, asked, verdict, run_id in people.cancelled).all()
        stuck_or_not = any(words.startswith(f"run {run_id} ") for words in verdict.stuck)
        succeeded[program.name] += len(verdict.breaches()) == before and not stuck_or_not
    _uncertain(events, tables, asked, receiver_deaths, verdict)
    runs = Counter(program.name for program in people.runs.values())
    verdict.figures |= {
        "programs": len(runs),
        "runs": len(people.runs),
        "steps": sum(1 for event in events if event.kind == "step_result" and event.was is None),
        "calls": len(asked.rows),
        "succeeded": sum(succeeded[name] == count for name, count in runs.items()),
        "cancelled": sum(state == "cancelled" for state, _ in tables.runs.values()),
    }


def _below(people: People, verdict: Verdict) -> None:
    """Runs that were started by steps are judged as those that were started by people; each place starts one."""
    begun: set[tuple[int, str]] = set()
    for run_id, parent, place in _sql(BELOW):
        above = people.runs.get(parent)
        program = above.below(place) if above else None
        if program is None:
            verdict.wrong.append(f"run {run_id} was started by run {parent} at {place}, where nothing is")
            continue
        if (parent, place) in begun:
            verdict.duplicated.append(f"run {parent} of {above.name}: {place} started two runs")
        begun.add((parent, place))
        people.runs[run_id] = program
        if parent in people.cancelled:
            people.cancelled.add(run_id)
    ended = {run_id for (run_id,) in _sql("select id from run where state = 'succeeded'")}
    verdict.lost += [f"run {run_id} of {program.name}: {place} started no run"
                     for run_id, program in people.runs.items() if run_id in ended
                     for place in program.play.below if (run_id, place) not in begun]  # fmt: skip


class Tables:
    """What Holdfast says in the end, by run."""

    def __init__(self, events: list[Event]) -> None:
        self.runs = {run_id: (state, output) for run_id, state, output in _sql("select id, state, output from run")}
        self.results: dict[int, dict[str, tuple[str, Any]]] = defaultdict(dict)
        for run_id, path, state, output in _sql(
            "select run_id, path, state, output from step_result where not superseded"
        ):
            self.results[run_id][path] = (state, value_of(path, state, output))
        self.mails: dict[int, Counter] = defaultdict(Counter)
        for run_id, path, in _sql("select run_id, path from outbox where kind = 'email'"):
            self.mails[run_id][path] += 1
        self.attempts: dict[int, list[Event]] = defaultdict(list)
        self.outcomes: dict[tuple[int, str], Event] = {}
        for event in events:
            if event.kind == "attempt" and event.was is None:
                self.attempts[event.run_id].append(event)
            elif event.kind == "attempt" and event.was == "open":
                self.outcomes[event.run_id, event.key] = event

    def outcome(self, attempt: Event) -> str | None:
        settled = self.outcomes.get((attempt.run_id, attempt.key))
        return settled.now if settled else None


class Asked:
    """The receiver's ledger."""

    NAMES = ("run", "place", "key", "v", "effect", "planned", "at", "answered")

    def __init__(self, rows: list[tuple]):
        self.rows = [dict(zip(self.NAMES, row, strict=True)) for row in rows]
        self.by_run: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows:
            self.by_run[row["run"]].append(row)
            self.by_key[row["key"]].append(row)


def ambiguous(row: dict[str, Any]) -> bool:
    """Whether the receiver knows of no answer that the caller must have had."""
    late = row["answered"] is None or row["answered"] - row["at"] > TIMEOUT_SECONDS - 1
    return late or row["planned"] in SURPRISES


class Judged:
    """One run."""

    def __init__(
        self, run_id: int, program: Program, tables: Tables, asked: Asked, verdict: Verdict, cancelled: bool
    ):
        self.run_id, self.program, self.play = run_id, program, program.play
        self.tables, self.verdict = tables, verdict
        self.asked = asked.by_run[run_id]
        self.attempts = tables.attempts[run_id]
        self.state, self.output = tables.runs.get(run_id, (None, None))
        self.whole = self.state == "succeeded"
        self.cancelled = cancelled and self.state == "cancelled"

    def all(self) -> None:
        if self.state is None:
            self.verdict.lost.append(f"{self} is not there")
            return
        if not self.whole and not self.cancelled:
            self.verdict.wrong.append(f"{self} is {self.state}")
        self._results()
        self._effects()
        self._calls()

    def __str__(self) -> str:
        return f"run {self.run_id} of {self.program.name}"

    def _results(self) -> None:
        found, expected = self.tables.results[self.run_id], self.play.results
        for path in expected.keys() - found.keys() if self.whole else ():
            self.verdict.lost.append(f"{self}: {path} has no result")
        for path in found.keys() - expected.keys():
            self.verdict.wrong.append(f"{self}: {path} must not have run: {found[path]}")
        for path in expected.keys() & found.keys():
            if found[path] != expected[path] and not self._failed_before_the_cancel(path, found[path]):
                self.verdict.wrong.append(f"{self}, {self.state}: {path} gave {found[path]}, not {expected[path]}")
        if self.whole and self.output != self.play.output:
            self.verdict.wrong.append(f"{self}: its output is {self.output}, not {self.play.output}")
        mails = self.tables.mails[self.run_id]
        if mails - self.play.mails:
            self.verdict.duplicated.append(f"{self}: mails {mails - self.play.mails}")
        if self.whole and self.play.mails - mails:
            self.verdict.lost.append(f"{self}: mails {self.play.mails - mails}")

    def _failed_before_the_cancel(self, path: str, gave: tuple[str, Any]) -> bool:
        """A run that fails ends when its other lanes are at rest. Cancelled before that, it keeps the failure: nobody requeues it."""
        return self.cancelled and gave == ("failed", None) and self.program.may_fail(path)

    def _effects(self) -> None:
        effects = [row for row in self.asked if row["effect"]]
        count = Counter(row["place"] for row in effects)
        keyless = self._may_be_done_again()
        for place in self.play.effects.keys() - count.keys() if self.whole else ():
            self.verdict.lost.append(f"{self}: {place} had no effect")
        for place, times in count.items():
            if times > 1 + keyless[place]:
                self.verdict.duplicated.append(f"{self}: {place} was done {times} times")
        for row in effects:
            if row["v"] != self.play.effects.get(row["place"]):
                self.verdict.wrong.append(f"{self}: {row['place']} was called with {row['v']}")

    def _may_be_done_again(self) -> Counter:
        """Where the receiver ignores keys and the step says "repeat": once for each call before that may have happened,
        also one whose answer came when its worker had lost the run."""
        ignoring = {row["place"] for row in self.asked} & self.program.ignoring
        again: Counter = Counter()
        for key, place in {(row["key"], row["place"]) for row in self.asked if row["place"] in ignoring}:
            attempts = [attempt for attempt in self.attempts if attempt.more["key"] == key]
            again[place] += sum(self.tables.outcome(attempt) in MAY_HAVE_HAPPENED for attempt in attempts) - 1
        return again

    def _calls(self) -> None:
        """No call without a row that says so; one key for one step, and a step of its own for each key."""
        rows = Counter(attempt.more["key"] for attempt in self.attempts if attempt.more["operation"] == "call")
        for key, times in Counter(row["key"] for row in self.asked).items():
            if times > rows[key]:
                self.verdict.duplicated.append(f"{self}: {times} calls under {key}, and {rows[key]} attempts")
        keys: dict[tuple[str, int], set[str]] = defaultdict(set)
        last: dict[tuple[str, int], Event] = {}
        for attempt in self.attempts:
            place = (attempt.more["path"], attempt.more["take"])
            if attempt.more["operation"] == "check":
                last.pop(place, None)
                continue
            keys[place].add(attempt.more["key"])
            before = last.get(place)
            happened = before and self.tables.outcome(before) in MAY_HAVE_HAPPENED
            if happened and self._how(place[0]) != "repeat":
                self.verdict.duplicated.append(f"{self}: repeated although it may have happened: {attempt}")
            last[place] = attempt
        for place, found in keys.items():
            if len(found) > 1:
                self.verdict.duplicated.append(f"{self}: {place} was called under {len(found)} keys")

    def _how(self, path: str) -> str:
        return self.program.hows.get(step_of(path), "repeat")


def value_of(path: str, state: str, output: Any) -> Any:
    """What the model knows of an output."""
    if state != "succeeded":
        return None
    match re.match("[a-z]+", step_of(path))[0]:
        case "call":
            return output["body"]["v"]
        case "keep" | "people" | "rung" | "stop" | "bad" | "box":
            return output["v"]
        case "approval":
            return output["decision"]
        case "condition":
            return output["branch"]
        case "parallel":
            return output["lanes"]
        case "loop":
            return (output["count"], output["results"])
        case "below":
            return output["output"]["v"] if "output" in output else None


def _failures(events: list[Event]) -> list[str]:
    """A run may fail where the receiver refused for good what the program does not handle, and nowhere else."""
    failed = [event for event in events if event.kind == "run" and event.now == "failed"]
    return [
        f"run {event.run_id} failed for no reason of its program: {event.more['error']}"
        for event in failed
        if "422" not in (event.more["error"] or {}).get("message", "")
    ]


def _delays(events: list[Event], runs: dict[int, Program]) -> list[str]:
    """A delay is as long as the program says, by the time that the database keeps."""
    return [
        f"a delay is too short: {event}"
        for event in events
        if event.kind == "wait" and event.was is None and event.more["kind"] == "timer" and event.run_id in runs
        and event.more["after"] < runs[event.run_id].play.delays[event.more["path"]] - SLACK_SECONDS
    ]  # fmt: skip


def _uncertain(
    events: list[Event], tables: Tables, asked: Asked, receiver_deaths: list[datetime], verdict: Verdict
) -> None:
    """Each question to a person has its cause: a claim that was lost, an end that the receiver saw as ambiguous, or its
    death before it could write down that it was asked."""
    lost = {event.more["had"] for event in events
            if event.kind == "dispatch" and event.was == "claimed" and event.now == "ready"}  # fmt: skip
    attempts = {(event.run_id, *(event.more[name] for name in ("path", "take", "n"))): event
                for of_run in tables.attempts.values() for event in of_run}  # fmt: skip
    questions = [event for event in events if event.kind == "wait" and event.was is None
                 and event.more["kind"] == "person" and event.more["path"]]  # fmt: skip
    for question in questions:
        attempt = attempts.get((question.run_id, *(question.more[name] for name in ("path", "take", "n"))))
        if attempt is None:
            verdict.uncertain.append(f"asked about no call: {question}")
            continue
        end = tables.outcomes[attempt.run_id, attempt.key].at
        if not (
            attempt.more["token"] in lost
            or any(map(ambiguous, asked.by_key.get(attempt.more["key"], ())))
            or any(attempt.at - NEAR < death < end + NEAR for death in receiver_deaths)  # the database may have been away since
        ):
            verdict.uncertain.append(f"asked for no reason: {question}")
    interrupted = sum(event.kind == "attempt" and event.was == "open" and event.more["error"] in INTERRUPTED
                      for event in events)  # fmt: skip
    verdict.figures |= {
        "uncertain": len(questions),
        "ambiguous": sum(map(ambiguous, asked.rows)),
        "receiver deaths": len(receiver_deaths),
        "interrupted": interrupted,
        "quarantined": sum(event.kind == "wait" and event.was is None and event.more["kind"] == "person"
                           and not event.more["path"] for event in events),
    }  # fmt: skip


def _sql(query: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        names = [column.type_code for column in cursor.description]
        return [tuple(_json(value, kind) for value, kind in zip(row, names, strict=True)) for row in cursor.fetchall()]


def _json(value: Any, type_code: int) -> Any:
    """Django leaves json as text."""
    return json.loads(value) if type_code in (114, 3802) and isinstance(value, str) else value
