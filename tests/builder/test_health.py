"""Health: what is well, what is not, and nothing that should not be told."""

from __future__ import annotations

import json
import re

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from builder import metrics
from runtime.gauges import Histogram
from tests.builder import factories

pytestmark = pytest.mark.django_db


def look(path: str = "/healthz") -> tuple[int, dict]:
    response = Client().get(path)
    assert "no-store" in response["Cache-Control"] or "no-cache" in response["Cache-Control"]
    return response.status_code, response.json()


def beat(worker, seconds_ago: float) -> None:
    """Beats are the wall clock's, so the row is made older and the clock is left alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "update worker set beat_at = clock_timestamp() - make_interval(secs => %s) where id = %s",
            [seconds_ago, worker.pk],
        )


def test_without_a_worker_it_is_not_well_and_says_what_to_do():
    status, told = look()
    assert (status, told["ok"], told["workers"]["ok"]) == (503, False, False)
    assert "qcluster" in told["workers"]["message"]
    assert told["database"]["ok"] and told["migrations"]["ok"]


def test_with_a_worker_alive_it_is_well():
    beat(factories.worker(in_flight=3), 2)
    status, told = look()
    assert (status, told["ok"]) == (200, True)
    assert (told["workers"]["alive"], told["workers"]["in_flight"]) == (1, 3)
    assert told["due_runs"] == {"ok": True, "waiting": 0, "oldest_seconds": 0}


@pytest.mark.parametrize(("seconds", "alive"), [(14, 1), (16, 0)])
def test_a_worker_is_alive_for_fifteen_seconds_after_its_beat(seconds, alive):
    beat(factories.worker(), seconds)
    assert look()[1]["workers"]["alive"] == alive


def test_a_worker_that_has_ended_or_is_stopping_takes_no_more_runs():
    ended, stopping = factories.worker(), factories.worker(stopping=True)
    ended.ended_at = ended.beat_at
    ended.save()
    for worker in (ended, stopping):
        beat(worker, 1)
    assert look()[0] == 503


def test_the_oldest_due_run_is_told_and_is_no_illness(clock):
    beat(factories.worker(), 1)
    run = factories.run(dispatch="ready")
    with connection.cursor() as cursor:
        cursor.execute("update dispatch set due_at = holdfast_now() where run_id = %s", [run.pk])
    clock.advance(seconds=90)
    status, told = look()
    assert status == 200
    assert told["due_runs"]["waiting"] == 1
    assert 90 <= told["due_runs"]["oldest_seconds"] < 600


def test_a_web_process_is_ready_without_workers():
    status, told = look("/readyz")
    assert (status, set(told)) == (200, {"ok", "database", "migrations"})


def test_missing_migrations_are_told():
    from builder import health

    with connection.cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'builder'")
    before, health._all_applied = health._all_applied, False
    try:
        status, told = look()
        assert (status, told["migrations"]["ok"]) == (503, False)
        assert told["migrations"]["missing"] >= 1
    finally:
        health._all_applied = before


def test_nothing_secret_is_told():
    beat(factories.worker(), 1)
    text = json.dumps(look()[1])
    database = connection.settings_dict
    for secret in (settings.SECRET_KEY, database["NAME"], database["HOST"], database["USER"], "host-1"):
        assert secret not in text


def test_it_only_answers_questions():
    assert Client().post("/healthz").status_code == 405


def test_metrics_are_for_who_shows_the_token(client, settings):
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401
    settings.HOLDFAST_METRICS_TOKEN = "a long secret"
    assert client.get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 401
    assert client.post("/metrics").status_code == 405
    settings.HOLDFAST_MISSES_PER_MINUTE = 2
    guesses = [client.get("/metrics", headers={"Authorization": f"Bearer {n}"}, REMOTE_ADDR="192.0.2.7").status_code for n in range(3)]
    assert guesses == [401, 401, 429]


def test_metrics_are_what_prometheus_reads(client, settings):
    settings.HOLDFAST_METRICS_TOKEN = "a long secret"
    factories.run(dispatch="ready")
    factories.run(state="attention")
    run = factories.run()
    factories.wait(run, "x", "timer", 0, due=1)
    factories.attempt(run, "qualify", 1, 0, 2)
    late = Histogram((0.5, 1.0))
    for seconds in (0.2, 0.7, 9.0):
        late.take(seconds)
    factories.worker(host='a "host"\\', finished=7, figures={"wake_lateness": late.told(), "taken_back": 2})
    factories.mail(run)
    answer = client.get("/metrics", headers={"Authorization": "Bearer a long secret"})
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    values = {}
    for line in answer.content.decode().splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP holdfast_\w+ .+|TYPE holdfast_\w+ (gauge|counter|histogram))", line)
        else:
            found = re.fullmatch(r'(holdfast_\w+(?:\{(?:\w+="(?:[^"\\]|\\.)*",?)+\})?) (\S+)', line)
            assert found, line
            values[found[1]] = float(found[2])
    assert values['holdfast_runs{state="ready"}'] == 1 and values["holdfast_runs_attention"] == 1
    assert values['holdfast_step_seconds{quantile="0.5"}'] == 2 and values["holdfast_outbox"] == 1
    buckets = {name: value for name, value in values.items() if name.startswith("holdfast_wake_late_seconds")}
    assert list(buckets.values()) == [1, 2, 3, 9.9, 3] and any('le="+Inf"' in name for name in buckets)
    assert [value for name, value in values.items() if name.startswith("holdfast_leases_taken_back_total")] == [2]
    assert values["holdfast_wake_lateness_seconds"] > 0 and values["holdfast_claim_lag_seconds"] > 0


def test_test_runs_are_counted_in_no_metric():
    before = metrics.exposition()
    run = factories.run(dispatch="ready", test=True)
    factories.run(state="attention", test=True)
    factories.wait(run, "x", "timer", 0, due=1)
    factories.attempt(run, "qualify", 1, 0, 2)
    after = metrics.exposition()
    assert [line for line in after.splitlines() if "connections" not in line] == [
        line for line in before.splitlines() if "connections" not in line
    ]


def test_the_dashboard_asks_only_for_what_is_told():
    dashboard = json.loads((settings.BASE_DIR / "static/grafana/holdfast.json").read_text())
    told = set()
    for metric in metrics.METRICS:
        parts = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        told |= {metric.name + part for part in parts}
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    asked = {name for panel in panels for one in panel["targets"] for name in re.findall(r"holdfast_\w+", one["expr"])}
    assert asked <= told, asked - told
    shown = {re.sub("_(bucket|sum|count)$", "", name) for name in asked}
    assert {metric.name for metric in metrics.METRICS} == shown, "what is told and not shown"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
