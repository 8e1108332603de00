"""A batch's runs are locked by key, whatever the statistics say; machinery.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0044_attempt_seed")]

    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
