"""A claim begins where the one before came to; the function of workers of the version before stays beside it."""

from pathlib import Path

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from runtime.indexing import AddIndexBeside

SQL = Path(__file__).parent.parent / "sql" / "claims.sql"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runtime", "0035_unfinished")]

    operations = [
        AddIndexBeside("dispatch", models.Index(
            fields=["priority", "due_at", "run"], name="dispatch_due_runs",
            condition=models.Q(token__isnull=True, due_at__isnull=False, queued=False),
        )),
        RemoveIndexConcurrently("dispatch", "dispatch_due"),
        migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop),
    ]  # fmt: skip
