"""What `/metrics` tells Prometheus, all of it from the database: any web process answers for the whole installation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db import connection

MOST = 100_000
"""No count goes further: the gauge stays there."""


class Metric(NamedTuple):
    name: str
    help: str
    sql: str
    labels: tuple[str, ...] = ()
    kind: str = "gauge"


# Each query gives rows of label values and, last, the value.
METRICS = (
    Metric("holdfast_runs", "Unfinished runs by what they do.", f"""
        select state, count(*) from (select state from dispatch limit {MOST}) d group by state""", ("state",)),
    Metric("holdfast_runs_attention", "Runs that need a person; tests are not counted.", f"""
        select count(*) from (select from run where state = 'attention' and not test limit {MOST}) r"""),
    Metric("holdfast_runs_ended_last_hour", "Runs that ended within an hour, tests not counted, among the latest 20,000.", """
        select state, count(*) from (select state, ended_at, test from run order by id desc limit 20000) r
        where not test and ended_at > (select holdfast_now() - interval '1 hour') group by state""", ("state",)),
    Metric("holdfast_run_oldest_seconds", "Age of the oldest run that is due or in hand.", """
        select coalesce(extract(epoch from holdfast_now() - min(created_at)), 0)::float8
        from (select r.created_at from dispatch d join run r on r.id = d.run_id where d.state <> 'waiting' order by d.run_id limit 1) o"""),
    Metric("holdfast_due_runs", "Runs that are due and that no worker holds.", f"""
        select count(*) from (select from dispatch where token is null and due_at <= (select holdfast_now()) limit {MOST}) d"""),
    Metric("holdfast_claim_lag_seconds", "How long the longest of them has been due.", """
        select greatest(0, coalesce(extract(epoch from holdfast_now() - min(due_at)), 0))::float8
        from dispatch where token is null and due_at <= (select holdfast_now())"""),
    Metric("holdfast_wake_lateness_seconds", "How late the wait is that should have ended first.", """
        select greatest(0, coalesce(extract(epoch from holdfast_now() - min(due_at)), 0))::float8
        from wait where state = 'open' and due_at <= (select holdfast_now())"""),
    Metric("holdfast_waits", "Open waits by kind.", f"""
        select kind, count(*) from (select kind from wait where state = 'open' limit {MOST}) w group by kind""", ("kind",)),
    Metric("holdfast_leases_expired", "Runs whose lease ran out and that nobody has taken back yet.", """
        select count(*) from dispatch where token is not null and leased_until < clock_timestamp()"""),
    Metric("holdfast_runs_lost", "Runs that lost their worker and have not gone on since.", """
        select count(*) from dispatch where token is null and lost > 0"""),
    Metric("holdfast_workers", "Worker processes that beat.", """
        select count(*) from worker where ended_at is null and beat_at > clock_timestamp() - interval '15 seconds'"""),
    Metric("holdfast_worker_slots", "Slots of each worker.", """
        select id, host, slots from worker where ended_at is null and beat_at > clock_timestamp() - interval '1 hour'""",
           ("worker", "host")),
    Metric("holdfast_worker_in_flight", "Runs in each worker's hands.", """
        select id, host, in_flight from worker where ended_at is null and beat_at > clock_timestamp() - interval '1 hour'""",
           ("worker", "host")),
    Metric("holdfast_worker_beat_age_seconds", "Since each worker's last beat.", """
        select id, host, extract(epoch from clock_timestamp() - beat_at)::float8 from worker
        where ended_at is null and beat_at > clock_timestamp() - interval '1 hour'""", ("worker", "host")),
    Metric("holdfast_worker_advanced_total", "How often each worker took a run as far as it went.", """
        select id, host, finished from worker where ended_at is null and beat_at > clock_timestamp() - interval '1 hour'""",
           ("worker", "host"), "counter"),
    Metric("holdfast_step_seconds", "How long the calls of the latest 2,000 attempts took, by quantile.", """
        select q::text, percentile_cont(q) within group (order by extract(epoch from ended_at - started_at))::float8
        from (select started_at, ended_at from attempt where run_id > (select coalesce(max(id), 0) - 1000 from run)
              and ended_at is not null limit 2000) a, unnest(array[0.5, 0.9, 0.99]::float8[]) q group by q order by q""", ("quantile",)),
    Metric("holdfast_outbox", "Mails that are not sent yet.", """
        select count(*) from outbox where state in ('queued', 'sending')"""),
    Metric("holdfast_outbox_oldest_seconds", "How long the oldest of them has been due.", """
        select greatest(0, coalesce(extract(epoch from holdfast_now() - min(due_at)), 0))::float8
        from outbox where state in ('queued', 'sending')"""),
    Metric("holdfast_jobs", "Bulk acts and exports that are not done.", """
        select count(*) from job where state in ('queued', 'working')"""),
    Metric("holdfast_database_connections", "Connections to this database.", """
        select coalesce(state, 'other'), count(*) from pg_stat_activity where datname = current_database() group by 1""", ("state",)),
)  # fmt: skip


def exposition() -> str:
    """All metrics in the text format 0.0.4."""
    return "".join(line for metric in METRICS for line in _lines(metric, _rows(metric.sql)))


def _rows(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def _lines(metric: Metric, rows: Iterable[tuple]) -> Iterable[str]:
    yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
    for *labels, value in rows:
        named = ",".join(f'{name}="{_escaped(label)}"' for name, label in zip(metric.labels, labels, strict=True))
        yield f"{metric.name}{{{named}}} {value if value is not None else 'NaN'}\n" if named else f"{metric.name} {value}\n"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
