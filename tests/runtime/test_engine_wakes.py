"""What happens to a run while it is taken up again is acted upon."""

from __future__ import annotations

import pytest
from django.db import connection

from runtime import waits
from tests.runtime.engine import eventually


@pytest.fixture
def slow_chunks(engine):
    """Makes each look at a loop's items take its time, from the call on."""

    def slow_down() -> None:
        engine.sql("alter table frame_chunk rename to frame_chunk_itself")
        engine.sql("create view frame_chunk as select c.* from frame_chunk_itself c, pg_sleep(0.5)")

    yield slow_down
    engine.kill_all()
    with connection.cursor() as cursor:
        cursor.execute("drop view frame_chunk")
        cursor.execute("alter table frame_chunk_itself rename to frame_chunk")


def test_a_signal_is_heard_by_a_lane_that_is_still_on_its_way_to_its_wait(engine, slow_chunks):
    def loop(name: str, steps: list[dict]) -> dict:
        return {"id": name, "type": "loop", "config": {"items": "[1]"}, "steps": steps}

    lanes = [
        {"id": "a", "steps": [loop("x", [loop("y", [loop("z", [{"id": "late", "type": "callback"}])])])]},
        {"id": "b", "steps": [{"id": "first", "type": "callback"}]},
    ]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.worker()
    late = engine.wait(run, "both/a/x[0]/y[0]/z[0]/late").path
    engine.wait(run, "both/b/first")
    engine.parked(run)
    slow_chunks()
    assert waits.signal(run, "both/b/first", 1, "once")
    looking = "select pid from pg_stat_activity where state = 'active' and query like 'select items from frame_chunk%'"
    eventually(lambda: engine.sql(looking), what=lambda: engine.told(run))
    assert waits.signal(run, late, 2, "once")
    engine.ends(run)
