"""The guard keeps the plans of its batch to the keys; machinery.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0002_machinery")]
    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
