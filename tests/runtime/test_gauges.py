"""What a worker counts about itself reaches the database with its beats."""

from __future__ import annotations

from runtime.gauges import Histogram
from runtime.models import Worker
from tests.runtime.engine import eventually


def test_a_histogram_counts_what_lies_at_or_below_each_bound():
    found = Histogram((1, 5))
    for value in (0, 1, 2, 5, 6):
        found.take(value)
    assert found.told() == {"le": {"1": 2, "5": 4, "+Inf": 5}, "sum": 14}


def test_claims_wakes_and_commits_are_told_with_the_beat(engine, clock):
    run = engine.start(engine.publish([{"id": "hour", "type": "delay", "config": {"for": "1h"}}]))
    engine.worker()
    engine.drive(clock, [run], lambda: engine.state(run) == "succeeded")

    def told() -> bool:
        figures = Worker.objects.latest("pk").figures
        names = ("claim_lag", "wake_lateness", "journal_rows", "journal_flush")
        return bool(figures) and all(figures[name]["le"]["+Inf"] >= 1 for name in names)

    eventually(told, 60, lambda: str(Worker.objects.values("figures", "beat_at")))
