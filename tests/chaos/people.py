"""Everybody who uses Holdfast meanwhile: starts runs, publishes, approves, calls back, cancels, and puts things right.

They go on during every fault, do many things twice, and end when nothing is left to do. The operator answers for an
uncertain call what the receiver's ledger says, once nothing that is under way can change it any more.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from runtime import acts, approvals, waits
from runtime.definition import digest
from runtime.models import Attempt, Dispatch, Run, Team, Version, Wait, Workflow
from runtime.publish import publish
from runtime.starts import start
from tests.chaos.clusters import LEASE_SECONDS
from tests.chaos.patience import AWAY, until_it_is_told
from tests.chaos.programs import Program, program
from tests.chaos.receiver import ReceiverServer
from tests.chaos.steps import TIMEOUT_SECONDS

log = logging.getLogger(__name__)

RUNS_EACH = 2
AT_ONCE = 24
CANCELLED = 0.04
SETTLED_SECONDS = TIMEOUT_SECONDS + LEASE_SECONDS
"""After this a call that was begun before is over, if nobody who makes calls is stopped."""


class People:
    def __init__(self, seed: str, receiver: ReceiverServer, nobody_is_stopped: Callable[[], bool]):
        self.seed, self.receiver, self.nobody_is_stopped = seed, receiver, nobody_is_stopped
        self.programs: list[Program] = []
        self.runs: dict[int, Program] = {}
        self.keys: dict[str, int] = {}
        self.cancelled: set[int] = set()
        self.done: Counter = Counter()
        self.wrong: list[str] = []
        self.enough = threading.Event()
        """Nothing new is begun; what is open is seen to."""
        self.over = threading.Event()
        self._versions: list[Version] = []
        self._to_cancel: list[tuple[float, int]] = []
        self._uncertain_since: dict[int, float] = {}
        self._rung = 0
        self._ringers = ThreadPoolExecutor(6)
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        for turn, pause in (
            (self.start_runs, 0.05),
            (self.cancel, 0.1),
            (self.decide, 0.1),
            (self.call_back, 0.1),
            (self.ring, 0.003),
            (self.operate, 0.2),
        ):
            thread = threading.Thread(target=self._keep, args=(turn, pause), daemon=True, name=turn.__name__)
            thread.start()
            self._threads.append(thread)

    def end(self) -> None:
        self.enough.set()
        self.over.set()
        for thread in self._threads:
            thread.join(130)

    def _keep(self, turn: Callable[[random.Random], None], pause: float) -> None:
        chance = random.Random(f"{self.seed}/{turn.__name__}")
        while not self.over.wait(pause):
            try:
                turn(chance)
            except AWAY:
                connection.close()
            except Exception as error:
                log.exception("%s", turn.__name__)
                self.wrong.append(f"{turn.__name__} went wrong: {type(error).__name__}: {error}")
        connection.close()

    # Starting

    def start_runs(self, chance: random.Random) -> None:
        while not self.enough.is_set() and Dispatch.objects.count() < AT_ONCE:
            self.begin_program(chance)

    def begin_program(self, chance: random.Random) -> list[int]:
        """Publish the next program, now and then over one that has runs under way, and start it."""
        made = program(self.seed, len(self.programs), self.receiver.url)
        self.programs.append(made)
        *below, own = made.definitions()
        for definition in below:
            until_it_is_told(lambda definition=definition: self._published(self._workflow(definition["name"]), definition))
        version = self._publish(made.name, own, chance)
        return [self.begin_run(made, version, n, chance) for n in range(RUNS_EACH)]

    def _publish(self, name: str, definition: dict[str, Any], chance: random.Random) -> Version:
        workflow = None
        if self._versions and chance.random() < 0.3:
            workflow = chance.choice(self._versions).workflow
            self.done["published over runs"] += 1

        version = until_it_is_told(lambda: self._published(workflow or self._workflow(name), definition))
        self._versions.append(version)
        return version

    def _published(self, workflow: Workflow, definition: dict[str, Any]) -> Version:
        published = Version.objects.filter(workflow=workflow, hash=digest(definition)).first()
        return published or publish(workflow, definition)

    def _workflow(self, name: str) -> Workflow:
        team, _ = Team.objects.get_or_create(name="Chaos")
        return Workflow.objects.get_or_create(team=team, name=name)[0]

    def begin_run(self, made: Program, version: Version, n: int, chance: random.Random) -> int:
        """Some by two at the same time under one key."""
        key = f"{made.name}/{n}"

        def act() -> int:
            given = {"trigger_key": "api", "input": {"body": {}}, "idempotency_key": key}
            return until_it_is_told(lambda: start(version, **given).run_id)

        beside: list[int] = []
        twin = threading.Thread(target=lambda: (beside.append(act()), connection.close()))
        if chance.random() < 0.2:
            twin.start()
        run_id = act()
        if twin.ident:
            twin.join()
            self.done["started twice"] += 1
            if beside != [run_id]:
                self.wrong.append(f"one key, two runs: {run_id} and {beside}")
        self.runs[run_id], self.keys[key] = made, run_id
        if chance.random() < CANCELLED:
            self._to_cancel.append((time.monotonic() + chance.uniform(0, 4), run_id))
        early = {path: answer for path, answer in made.callbacks.items() if chance.random() < 0.4}
        for path, answer in sorted(early.items(), key=lambda _: chance.random()):
            self._signal(run_id, path, answer, chance)
        self.done["signals before their wait"] += len(early)
        return run_id

    def cancel(self, chance: random.Random) -> None:
        while self._to_cancel and min(self._to_cancel)[0] < time.monotonic():
            at, run_id = min(self._to_cancel)
            self._to_cancel.remove((at, run_id))
            self.cancelled.add(run_id)  # before: the answer may be lost
            until_it_is_told(lambda run_id=run_id: acts.cancel(run_id, why="chaos"))

    # Answering

    def decide(self, chance: random.Random) -> None:
        """Both approvers at the same time, where one is enough, too."""
        for wait in Wait.objects.filter(kind="approval", state="open").select_related("approval"):
            answer = wait.approval.subject
            people = list(wait.approval.recipients.all())
            threads = [threading.Thread(target=self._answer, args=(wait, answer, one)) for one in people]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _answer(self, wait: Wait, answer: str, recipient: Any) -> None:
        for _ in range(2):
            try:
                until_it_is_told(lambda: approvals.decide(wait.approval, answer, recipient=recipient))
                self.done["decisions"] += 1
            except Exception as error:
                self.wrong.append(f"a decision went wrong: {type(error).__name__}: {error}")
        connection.close()

    def call_back(self, chance: random.Random) -> None:
        for run_id, path in Wait.objects.filter(kind="callback", state="open").values_list("run_id", "path"):
            if path.rpartition("/")[2].startswith("people") and run_id in self.runs:
                self._signal(run_id, path, self.runs[run_id].play.results[path][1], chance)

    def ring(self, chance: random.Random) -> None:
        """What the receiver was asked to call back, at the moment that it chose."""
        while bell := self._next_bell():
            number, at, run_id, path, answer = bell
            if at > time.time() + 1:
                return
            self._rung = number
            self._ringers.submit(self._ring, at, run_id, path, answer, random.Random(f"{self.seed}/{number}"))

    def _next_bell(self) -> tuple | None:
        query = "select id, at, run, path, answer from ring where id > ? order by id limit 1"
        return next(iter(self.receiver.rows(query, self._rung)), None)

    def _ring(self, at: float, run_id: int, path: str, answer: int, chance: random.Random) -> None:
        time.sleep(max(0.0, at - time.time()))
        try:
            self._signal(run_id, path, answer, chance)
        except Exception as error:
            self.wrong.append(f"a callback went wrong: {type(error).__name__}: {error}")

    def _signal(self, run_id: int, path: str, answer: int, chance: random.Random) -> None:
        for _ in range(chance.choice([1, 1, 2])):
            until_it_is_told(lambda: waits.signal(run_id, path, {"v": answer}, path))
            self.done["signals"] += 1

    # Putting right

    def operate(self, chance: random.Random) -> None:
        for run_id in Run.objects.filter(state="failed").values_list("pk", flat=True):
            self.done["requeues"] += until_it_is_told(lambda run_id=run_id: acts.requeue(run_id))
            until_it_is_told(lambda run_id=run_id: acts.requeue(run_id))
        for wait in Wait.objects.filter(kind="person", state="open"):
            if wait.path == "":
                self.done["out of quarantine"] += until_it_is_told(lambda wait=wait: acts.requeue(wait.run_id))
            elif self._is_settled(wait):
                self._answer_for(wait)

    def _is_settled(self, wait: Wait) -> bool:
        """Long after the question was seen, and while nobody is stopped who could still make the call."""
        since = self._uncertain_since.setdefault(wait.pk, time.monotonic())
        return time.monotonic() - since > SETTLED_SECONDS and self.nobody_is_stopped()

    def _answer_for(self, wait: Wait) -> None:
        attempt = Attempt.objects.filter(run_id=wait.run_id, path=wait.path, take=wait.take, operation="call").first()
        key = attempt.request["headers"].get("Idempotency-Key") if attempt else None
        found = self.receiver.rows("select v from asked where run = ? and key = ? and effect = 1", wait.run_id, key)
        if found:
            output = {"status": 200, "headers": {}, "body": {"v": found[0][0]}}
            until_it_is_told(lambda: acts.answer(wait.pk, "happened", output=output))
        else:
            until_it_is_told(lambda: acts.answer(wait.pk, "again"))
        self.done["answered: it happened" if found else "answered: again"] += 1
