"""A run's lock is let go when its holder falls silent; machinery.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0015_outbox_worker")]
    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
