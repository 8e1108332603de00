"""Runs are looked up by their idempotency key first. An index that began with the flow told a planner without statistics nothing
that the index of a flow's runs did not, and each start could go through all of them."""

from pathlib import Path

from django.db import migrations, models

from runtime.indexing import AddUniqueBeside

SQL = Path(__file__).parent.parent / "sql"
BEFORE = """create unique index concurrently if not exists run_idempotency
    on run (workflow_id, trigger_key, idempotency_key) where idempotency_key is not null"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runtime", "0046_wait_open_of")]

    operations = [
        AddUniqueBeside(
            "run",
            models.UniqueConstraint(
                fields=["idempotency_key", "trigger_key", "workflow"], condition=models.Q(idempotency_key__isnull=False), name="run_key"
            ),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL("drop index concurrently if exists run_idempotency", BEFORE)],
            [migrations.RemoveConstraint("run", "run_idempotency")],
        ),
        *(migrations.RunSQL((SQL / name).read_text(), migrations.RunSQL.noop) for name in ("slots.sql", "starts.sql")),
    ]
