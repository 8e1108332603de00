"""All work is paused: what is in hand goes on, nothing is taken up, nothing is lost."""

from __future__ import annotations

from runtime import pausing
from runtime.models import AuditEntry, Dispatch, Pause
from tests.runtime.engine import eventually

# The worker has asked since, and so knows.
ASKED = """
select count(*) from pg_stat_activity where application_name = 'holdfast claims' and datname = current_database()
and query like '%%from pause%%' and query_start > %s
"""


def test_workers_finish_what_they_hold_and_take_up_nothing_until_it_is_resumed(engine):
    steps = [{"id": "long", "type": "probe", "config": {"hold": "go"}}, {"id": "next", "type": "probe"}]
    version = engine.publish(steps)
    held = engine.start(version)
    engine.worker()
    eventually(lambda: engine.ledger(held), 60)
    assert pausing.pause(why="the CRM is down") and not pausing.pause(why="again")
    since = Pause.objects.get().since
    eventually(lambda: engine.sql(ASKED, since)[0][0], 60)
    engine.release("go")
    engine.ends(held, seconds=60)

    later = engine.start(version)
    now = engine.sql("select clock_timestamp()")[0][0]
    eventually(lambda: engine.sql(ASKED, now)[0][0], 60)
    row = Dispatch.objects.get(run_id=later)
    assert (row.state, row.claims, engine.ledger(later)) == ("ready", 0, [])
    assert pausing.resume() and not pausing.resume()
    engine.ends(later, seconds=60)
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))[-2:] == ["pause_all", "resume_all"]
