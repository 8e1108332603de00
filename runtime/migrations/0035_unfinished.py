"""A run ends with its dispatch row, and goes only when it has ended; machinery.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0034_outbox_moves")]
    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
