"""What `/metrics` tells Prometheus, all of it from the database: any web process answers for the whole installation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db import connection

from runtime.slots import DUE

MOST = 100_000
"""No count goes further: the gauge stays there."""


class Metric(NamedTuple):
    name: str
    help: str
    sql: str
    labels: tuple[str, ...] = ()
    kind: str = "gauge"


UNFINISHED = "dispatch d join run r on r.id = d.run_id"
REAL = "not exists (select from run t where t.test and t.id = {}.run_id)"
"""Test runs are few and have an index: looked up there, the other runs need not be read."""
ALIVE = "ended_at is null and beat_at > clock_timestamp() - interval '1 hour'"


def told_by_workers(name: str, figure: str, help: str, kind: str = "histogram") -> Metric:
    """What each worker counts about itself and tells with its beat: a histogram (`runtime.gauges`) or a number."""
    sql = f"select id, host, figures -> '{figure}' from worker where {ALIVE} and figures ? '{figure}'"
    return Metric(name, help, sql, ("worker", "host"), kind)


# Each query gives rows of label values and, last, the value. Test runs are counted nowhere.
METRICS = (
    Metric("holdfast_runs", "Unfinished runs by what they do.", f"""
        select state, count(*) from (select d.state from dispatch d where {REAL.format("d")} limit {MOST}) d group by state""",
           ("state",)),
    Metric("holdfast_runs_attention", "Runs that need a person.", f"""
        select count(*) from (select from run where state = 'attention' and not test limit {MOST}) r"""),
    Metric("holdfast_runs_ended_last_hour", "Runs that ended within an hour, among the latest 20,000.", """
        select state, count(*) from (select state, ended_at, test from run order by id desc limit 20000) r
        where not test and ended_at > (select holdfast_now() - interval '1 hour') group by state""", ("state",)),
    Metric("holdfast_run_oldest_seconds", "Age of the oldest run that is due or in hand.", f"""
        select coalesce(extract(epoch from holdfast_now() - min(created_at)), 0)::float8
        from (select r.created_at from {UNFINISHED}
              where d.state <> 'waiting' and not d.queued and not r.test order by d.run_id limit 1) o"""),
    Metric("holdfast_due_runs", "Runs that are due and that no worker holds.", f"""
        select count(*) from (select from dispatch d where {DUE} and {REAL.format("d")} limit {MOST}) d"""),
    Metric("holdfast_claim_lag_seconds", "How long the longest of them has been due.", f"""
        select greatest(0, coalesce(extract(epoch from holdfast_now() - min(due_at)), 0))::float8
        from (select d.due_at from dispatch d where {DUE} and {REAL.format("d")} order by d.due_at limit 1) d"""),
    Metric("holdfast_queued_runs", "Runs that wait for a slot of their flow.", f"""
        select count(*) from (select from dispatch
            where slot_of is not null and queued and due_at <= (select holdfast_now()) limit {MOST}) d"""),
    Metric("holdfast_wake_lateness_seconds", "How late the wait is that should have ended first.", """
        select greatest(0, coalesce(extract(epoch from holdfast_now() - min(due_at)), 0))::float8
        from (select w.due_at from wait w join run r on r.id = w.run_id
              where w.state = 'open' and w.due_at <= (select holdfast_now()) and not r.test
              order by w.due_at limit 1) w"""),
    Metric("holdfast_waits", "Open waits by kind.", f"""
        select kind, count(*) from (select w.kind from wait w where w.state = 'open' and {REAL.format("w")} limit {MOST}) w
        group by kind""", ("kind",)),
    told_by_workers("holdfast_start_lag_seconds", "claim_lag", "From the start of a run to its first claim."),
    told_by_workers("holdfast_wake_late_seconds", "wake_lateness", "From the due time of a wait to its end."),
    told_by_workers("holdfast_journal_batch_rows", "journal_rows", "Rows of one commit of the journal."),
    told_by_workers("holdfast_journal_flush_seconds", "journal_flush", "How long a commit of the journal took."),
    told_by_workers("holdfast_leases_taken_back_total", "taken_back", "Runs taken back from those that lost them.", "counter"),
    Metric("holdfast_leases_expired", "Runs whose lease ran out and that nobody has taken back yet.", """
        select count(*) from dispatch where token is not null and leased_until < clock_timestamp()"""),
    Metric("holdfast_runs_lost", "Runs that lost their worker and have not gone on since.", """
        select count(*) from dispatch where token is null and lost > 0"""),
    Metric("holdfast_workers", "Worker processes that beat.", """
        select count(*) from worker where ended_at is null and beat_at > clock_timestamp() - interval '15 seconds'"""),
    Metric("holdfast_worker_slots", "Slots of each worker.", f"""
        select id, host, slots from worker where {ALIVE}""", ("worker", "host")),
    Metric("holdfast_worker_in_flight", "Runs in each worker's hands.", f"""
        select id, host, in_flight from worker where {ALIVE}""", ("worker", "host")),
    Metric("holdfast_worker_beat_age_seconds", "Since each worker's last beat.", f"""
        select id, host, extract(epoch from clock_timestamp() - beat_at)::float8 from worker
        where {ALIVE}""", ("worker", "host")),
    Metric("holdfast_worker_advanced_total", "How often each worker took a run as far as it went.", f"""
        select id, host, finished from worker where {ALIVE}""", ("worker", "host"), "counter"),
    Metric("holdfast_step_seconds", "How long the calls of the latest 2,000 attempts took, by quantile.", """
        select q::text, percentile_cont(q) within group (order by extract(epoch from ended_at - started_at))::float8
        from (select a.started_at, a.ended_at from (select id, test from run order by id desc limit 1000) r
              cross join lateral (select started_at, ended_at from attempt where run_id = r.id and ended_at is not null limit 2000) a
              where not r.test limit 2000) a, unnest(array[0.5, 0.9, 0.99]::float8[]) q group by q order by q""", ("quantile",)),
    Metric("holdfast_outbox", "Mails and webhooks that are not sent yet.", """
        select count(*) from outbox where state in ('queued', 'sending')"""),
    Metric("holdfast_outbox_oldest_seconds", "How long the oldest of them has been due.", """
        select greatest(0, coalesce(extract(epoch from holdfast_now() - min(due_at)), 0))::float8
        from outbox where state in ('queued', 'sending')"""),
    Metric("holdfast_paused", "1 while all work is paused.", "select count(*) from pause"),
    Metric("holdfast_jobs", "Bulk acts and exports that are not done.", """
        select count(*) from job where state in ('queued', 'working')"""),
    Metric("holdfast_database_connections", "Connections to this database, by what they serve and do.", """
        select case when application_name like 'holdfast%' then substr(application_name, 10) else 'web and others' end,
            coalesce(state, 'other'), count(*)
        from pg_stat_activity where datname = current_database() group by 1, 2""", ("pool", "state")),
    Metric("holdfast_database_connections_most", "Connections that the database takes.", """
        select setting::int from pg_settings where name = 'max_connections'"""),
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
        named = [f'{name}="{_escaped(label)}"' for name, label in zip(metric.labels, labels, strict=True)]
        if metric.kind == "histogram":
            yield from _buckets(metric.name, named, json.loads(value))
        else:
            yield _line(metric.name, named, value)


def _buckets(name: str, labels: list[str], told: dict[str, Any]) -> Iterable[str]:
    for bound, number in told["le"].items():
        yield _line(f"{name}_bucket", [*labels, f'le="{bound}"'], number)
    yield _line(f"{name}_sum", labels, told["sum"])
    yield _line(f"{name}_count", labels, told["le"]["+Inf"])


def _line(name: str, labels: list[str], value: Any) -> str:
    return f"{name}{{{','.join(labels)}}} {value}\n" if labels else f"{name} {value}\n"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
