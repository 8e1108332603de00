"""The faults, each with a rhythm of its own. A seed gives the same choices; the machine decides the moments."""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import psycopg
from django.db import connection

from runtime.failpoints import NAMES
from tests.chaos.clusters import LEASE_SECONDS, Cluster
from tests.chaos.clock import Clock
from tests.chaos.patience import until_it_is_told
from tests.chaos.receiver import ReceiverServer
from tests.servers.pgproxy import PostgresProxy

log = logging.getLogger(__name__)

WHOLE_CLUSTER = 0.08
SHORT = 0.3
DEADLY = [name for name in NAMES if name.partition(".")[0] not in ("decision", "schedule")]


class Faults:
    def __init__(
        self, seed: str, seconds: float, kills: int, clusters: list[Cluster], postgres, proxy: PostgresProxy,
        receiver: ReceiverServer, clock: Clock,
    ):  # fmt: skip
        self.seed, self.seconds, self.kills = seed, seconds, kills
        self.clusters, self.postgres, self.proxy, self.receiver, self.clock = clusters, postgres, proxy, receiver, clock
        self.done: Counter = Counter()
        self.deaths: list[tuple[datetime, int]] = []
        """(when, process id) of each worker that was killed."""
        self.wrong: list[str] = []
        self.over = threading.Event()
        self.stopped = 0
        """How many workers are stopped at this moment."""
        self._one_at_a_time = {cluster.name: threading.Lock() for cluster in clusters}
        self.receiver_deaths: list[datetime] = []
        self._receivers = threading.Lock()
        self._ended: dict[str, threading.Event] = {}

    def begin(self) -> None:
        self.began = time.monotonic()
        threading.Thread(target=self._keep_alive, daemon=True).start()
        for name, pause, fault in (
            ("kill", None, self.kill),
            ("stop", 9, self.stop_a_worker),
            ("postgres", min(40, self.seconds / 2.2), self.restart_postgres),
            ("backends", 5, self.end_backends),
            ("proxy", 1.5, self.cut_after_commit),
            ("receiver", 13, self.kill_receiver),
            ("clock", 2, self.jump),
            ("deploy", 40, self.deploy),
        ):
            done = self._ended[name] = threading.Event()
            threading.Thread(target=self._rhythm, args=(name, pause, fault, done), daemon=True).start()

    def end(self) -> None:
        """No more faults: everything that was stopped goes on, everything that was killed is started."""
        self.over.set()
        for name, done in self._ended.items():
            if not done.wait(120):
                self.wrong.append(f"the fault “{name}” did not end")
        for cluster in self.clusters:
            if cluster.failpoint:
                with self._one_at_a_time[cluster.name]:
                    cluster.stop()
                    cluster.start()

    def _rhythm(
        self, name: str, pause: float | None, fault: Callable[[random.Random], None], done: threading.Event
    ) -> None:
        chance = random.Random(f"{self.seed}/{name}")
        while not self.over.wait(self._until_kill() if pause is None else pause * chance.uniform(0.5, 1.5)):
            try:
                fault(chance)
            except Exception as error:
                log.exception("the fault %s went wrong", name)
                self.wrong.append(f"the fault “{name}” went wrong: {type(error).__name__}: {error}")
        connection.close()
        done.set()
        threading.Event().wait()  # what a thread has started, and that shall die with its parent, dies with the thread

    # Processes

    def _until_kill(self) -> float:
        """Seconds until the next kill, so that all of them are done somewhat before the end. Those that are late come at
        twice their rhythm: at once, each worker would be killed as soon as it is there where starting takes long."""
        each = self.seconds * 0.93 / self.kills
        return max(each / 2, self.began + each * (len(self.deaths) + 1) - time.monotonic())

    def kill(self, chance: random.Random) -> None:
        """A worker, or a cluster with all of its processes."""
        cluster = chance.choice(self.clusters)
        if chance.random() < WHOLE_CLUSTER:
            return self.kill_cluster(cluster, chance)
        workers = cluster.workers()
        if not workers:
            return
        self._killed([pid := chance.choice(workers)])
        _signal(pid, signal.SIGKILL)

    def kill_cluster(self, cluster: Cluster, chance: random.Random) -> None:
        with self._one_at_a_time[cluster.name]:
            self._killed(cluster.workers())
            cluster.kill()
            self.done["clusters killed"] += 1
            self.over.wait(chance.uniform(0, 2))
            if chance.random() < 0.5:
                return cluster.start()
            # This time each of its workers dies once more, at a place of their own choosing.
            cluster.start(f"{chance.choice(DEADLY)}:{chance.randint(20, 300)}")
            self.done["clusters with a failpoint"] += 1

    def _killed(self, pids: list[int]) -> None:
        self.deaths += [(datetime.now(UTC), pid) for pid in pids]
        self.done["kills"] = len(self.deaths)

    def stop_a_worker(self, chance: random.Random) -> None:
        """Longer than its lease, shorter than it takes until somebody asks what became of its calls."""
        workers = chance.choice(self.clusters).workers()
        if not workers:
            return
        pid = chance.choice(workers)
        self.stopped += 1
        try:
            _signal(pid, signal.SIGSTOP)
            time.sleep(LEASE_SECONDS * chance.uniform(1.1, 1.7))
        finally:
            _signal(pid, signal.SIGCONT)
            time.sleep(SHORT)
            self.stopped -= 1
        self.done["stopped past the lease"] += 1

    def deploy(self, chance: random.Random) -> None:
        cluster = chance.choice(self.clusters)
        with self._one_at_a_time[cluster.name]:
            cluster.stop()
            cluster.start()
        self.done["deploys"] += 1

    def _keep_alive(self) -> None:
        """What a machine's init does, to the end: a receiver that died is started again. Clusters must not need it."""
        while True:
            time.sleep(0.1)
            with self._receivers:
                if self.receiver.dead():
                    self.receiver_deaths.append(datetime.now(UTC))
                    with suppress(RuntimeError):  # told to die by the first call that it took, before it said its port
                        self.receiver.start()
            for cluster in self.clusters:
                if self._one_at_a_time[cluster.name].acquire(blocking=False):
                    try:
                        if (status := cluster.process.poll()) is not None:
                            self.wrong.append(f"{cluster.name} ended by itself: {status}")
                            cluster.start()
                    finally:
                        self._one_at_a_time[cluster.name].release()

    # Database and network

    def restart_postgres(self, chance: random.Random) -> None:
        """`immediate`: as after a power cut of the server process."""
        self.postgres.process.send_signal(signal.SIGQUIT)
        self.postgres.process.wait(30)
        time.sleep(chance.uniform(0, 1.5))
        self.postgres.launch()
        self.done["database restarts"] += 1

    def end_backends(self, chance: random.Random) -> None:
        """Some of the workers' sessions."""
        try:
            with psycopg.connect(self.postgres.url("holdfast", "postgres"), autocommit=True) as admin:
                ended = admin.execute(
                    "select pg_terminate_backend(pid) from (select pid from pg_stat_activity where application_name "
                    "like 'holdfast%%' order by random() limit %s) chosen", [chance.randint(1, 4)],
                ).fetchall()  # fmt: skip
            self.done["backends ended"] += len(ended)
        except psycopg.OperationalError:
            pass  # it is just away

    def cut_after_commit(self, chance: random.Random) -> None:
        self.proxy.cut_after_commit(chance.randint(1, 12))
        self.done["lines cut after COMMIT"] = self.proxy.cuts

    # The outside

    def kill_receiver(self, chance: random.Random) -> None:
        with self._receivers:
            self.receiver.kill()
        self.done["receiver killed"] += 1

    def jump(self, chance: random.Random) -> None:
        """To the next timer, a moment ahead, or a little back."""
        kind = chance.choice(["timer", "timer", "ahead", "back"])
        if until_it_is_told(lambda: self.clock.jump(kind, chance.uniform(0.5, 2.5))):
            self.done["clock jumps"] += 1


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
