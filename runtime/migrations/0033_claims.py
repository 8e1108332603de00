"""The claim is a function, whose plans are kept and go by keys."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "claims.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0032_run_workflow_state")]

    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
