"""django-q2 as it is, without Holdfast's worker inside: a run is a chain of three tasks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import django
import psycopg.conninfo
from django.conf import settings

from tests.bench.peers import PAD, URL, ended_by, late

PACKAGES = ("django-q2",)
SETTING = "a cluster of 32 processes, poll 50 ms, 50 tasks at a time from the ORM broker; three chained tasks; timers are schedules"
PROCESSES = 1
DATABASE = psycopg.conninfo.conninfo_to_dict(URL) if URL else {"user": "", "host": "", "dbname": ""}
settings.configure(
    SECRET_KEY="a key for measurements only, and long enough to be one",
    INSTALLED_APPS=["django.contrib.contenttypes", "django_q"],
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": DATABASE["dbname"], "USER": DATABASE["user"],
                           "HOST": DATABASE["host"], "CONN_MAX_AGE": None}},
    Q_CLUSTER={"name": "bench", "orm": "default", "workers": 32, "poll": 0.05, "bulk": 50, "queue_limit": 100, "timeout": 60,
               "retry": 120, "save_limit": 0, "log_level": "ERROR", "guard_cycle": 0.1},
)  # fmt: skip
django.setup()

from django.core.management import call_command  # noqa: E402
from django_q.cluster import Cluster  # noqa: E402
from django_q.models import Schedule  # noqa: E402
from django_q.tasks import async_chain, async_task  # noqa: E402

HERE = "tests.bench.peers.django_q2."


def step(n: int) -> dict[str, Any]:
    return {"step": n, "pad": PAD}


def last(n: int) -> dict[str, Any]:
    return step(n)


def sleep(n: int) -> None:
    time.sleep(0.2)


def timer(at: float) -> None:
    late(at)


@contextlib.contextmanager
def served() -> Iterator[None]:
    call_command("migrate", verbosity=0)
    yield


def work() -> None:
    Cluster().start()
    threading.Event().wait()


def start(kind: str, count: int, at: float = 0) -> None:
    for n in range(count):
        if kind == "three":
            async_chain([(HERE + "step", (n,)), (HERE + "step", (n,)), (HERE + "last", (n,))])
        elif kind == "sleep":
            async_task(HERE + "sleep", n)
    if kind == "timer":
        when = datetime.fromtimestamp(at, timezone.utc)
        Schedule.objects.bulk_create(
            Schedule(func=HERE + "timer", args=f"({at},)", schedule_type=Schedule.ONCE, next_run=when) for _ in range(count)
        )


def ended(since: float) -> tuple[int, float]:
    ends = """select stopped from django_q_task where success and stopped > to_timestamp(%(since)s)
              and func in ('{0}last', '{0}sleep', '{0}timer')""".format(HERE)
    return ended_by(ends, since)
