"""`make chaos`: random programs under every fault at once, and a judgement from outside.

Prints a report to standard output, and every breach. Exit status 10 when there is one, with the line that repeats it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

DRAIN_SECONDS = 60
LONGEST_DRAIN_SECONDS = 300
QUIET_SECONDS = 25
LONGEST_FAULTS = 2
CLUSTERS = 3
BREACHED = 10


def main() -> None:
    arguments = argparse.ArgumentParser(prog="tests.chaos", description=__doc__)
    arguments.add_argument("--seed", default="7")
    arguments.add_argument("--minutes", type=float, default=2.0)
    arguments.add_argument("--kills", type=int, default=0, help="worker processes to kill; 20 a minute when 0")
    arguments.add_argument("--broken", default="", help="the name of a deliberate fault, see broken.py")
    arguments.add_argument("--folder", default="", help="where to leave logs and the ledger")
    arguments.add_argument("--failpoints", action="store_true", help="instead: die at every passing of every failpoint")
    chosen = arguments.parse_args()
    if chosen.failpoints:
        test = ["-m", "pytest", "-q", "-s", "tests/runtime/test_engine_failpoints.py", "-k", "every_failpoint"]
        os.execve(sys.executable, [sys.executable, *test], os.environ | {"CHAOS_FAILPOINTS": "all"})
    chosen.kills = chosen.kills or round(20 * chosen.minutes)
    folder = Path(chosen.folder or tempfile.mkdtemp(prefix="holdfast-chaos-"))
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]
    os.environ.update(
        DJANGO_SETTINGS_MODULE="builder.settings",
        HOLDFAST_DATA=str(folder),
        HOLDFAST_LOG_LEVEL="WARNING",
        SECRET_KEY="a key for chaos only, and long enough to be one",
    )
    from builder.postgres import EmbeddedPostgres

    with EmbeddedPostgres(folder / "postgres", folder / "postgres.log") as postgres:
        os.environ["DATABASE_URL"] = postgres.url()
        sys.exit(attack(chosen, folder, postgres))


def attack(chosen: argparse.Namespace, folder: Path, postgres) -> int:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from tests.chaos import history
    from tests.chaos.broken import BROKEN
    from tests.chaos.clock import Clock
    from tests.chaos.clusters import Cluster, until_up
    from tests.chaos.faults import Faults
    from tests.chaos.people import People
    from tests.chaos.receiver import ReceiverServer
    from tests.chaos.report import say
    from tests.servers.pgproxy import PostgresProxy

    history.install()
    more = {}
    if chosen.broken:
        BROKEN[chosen.broken].in_the_database()
        more = {"HOLDFAST_STEP_MODULES": "tests.chaos.broken", "CHAOS_BROKEN": chosen.broken}
    say(f"chaos: seed {chosen.seed}, {chosen.minutes:g} minutes, {chosen.kills} kills; logs in {folder}")
    with ExitStack() as held:
        receiver = held.enter_context(ReceiverServer(folder / "ledger.db"))
        between = Path(tempfile.mkdtemp(prefix="holdfast-"))
        proxy = held.enter_context(PostgresProxy(between, str(postgres.sockets)))
        cut = f"postgresql://holdfast@{quote(str(between), safe='')}/holdfast"
        ways = [postgres.url()] * (CLUSTERS - 1) + [cut]
        clusters = [Cluster(f"cluster{n}", way, folder, **more) for n, way in enumerate(ways)]
        for cluster in clusters:
            cluster.start()
            held.callback(cluster.kill)
        until_up(clusters)
        faults = Faults(
            chosen.seed, chosen.minutes * 60, chosen.kills, clusters, postgres, proxy, receiver, Clock()
        )
        people = People(chosen.seed, receiver, lambda: faults.stopped == 0)
        people.begin()
        faults.begin()
        seconds = watch(chosen.minutes * 60, people, faults)
        faults.end()
        until_up(clusters)
        verdict = drain(people, faults)
        return tell(chosen, seconds / 60, people, faults, verdict)


def watch(seconds: float, people, faults) -> float:
    """Tell how it goes until the time is over and the kills are done, which takes longer on a busy machine. Returns how
    long it took."""
    from runtime.models import Dispatch
    from tests.chaos.patience import until_it_is_told
    from tests.chaos.report import progress

    began, longest = time.monotonic(), LONGEST_FAULTS * seconds
    while (elapsed := time.monotonic() - began) < (seconds if faults.done["kills"] >= faults.kills else longest):
        time.sleep(min(10, max(1, seconds - elapsed)))
        progress(time.monotonic() - began, people, faults, until_it_is_told(Dispatch.objects.count))
    return elapsed


def drain(people, faults):
    """No faults any more: after a minute nothing may be stuck. What is left has its time, as long as anything moves: a run that is
    just being taken up has neither timer, nor wait, nor owner for a moment."""
    from runtime.models import Dispatch
    from tests.chaos import history, oracle
    from tests.chaos.report import progress

    people.enough.set()
    verdict, began = oracle.Verdict(), time.monotonic()
    moved, newest = began, 0
    while Dispatch.objects.exists():
        time.sleep(1)
        faults.clock.jump("timer", 0)
        now = time.monotonic()
        if (last := history.last()) != newest:
            moved, newest = now, last
        if now - began > DRAIN_SECONDS and now - moved > QUIET_SECONDS:
            break
        if now - began > LONGEST_DRAIN_SECONDS:
            break
        if int(now - began) % 10 == 0:
            progress(now - began, people, faults, Dispatch.objects.count())
    verdict.stuck += [f"run {run_id} has neither timer, nor wait, nor owner" for run_id in oracle.stuck()]
    people.end()
    verdict.wrong += faults.wrong
    oracle.judge(people, faults.receiver_deaths, verdict)
    return verdict


def tell(chosen: argparse.Namespace, minutes: float, people, faults, verdict) -> int:
    from tests.chaos import history, report

    times = report.recovery(history.read(), faults.deaths)
    breaches = report.judged(verdict, faults.done["kills"], chosen.kills)
    print(report.table(verdict, people, faults, times, minutes))
    for breach in breaches[: report.SHOWN]:
        print(breach)
    if len(breaches) > report.SHOWN:
        print(f"… and {len(breaches) - report.SHOWN} more")
    if breaches:
        again = f"make chaos SEED={chosen.seed} MINUTES={chosen.minutes:g} KILLS={chosen.kills}"
        print(f"{len(breaches)} breaches. Repeat: {again}")
    return BREACHED if breaches else 0


if __name__ == "__main__":
    main()
