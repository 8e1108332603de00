"""The data of a dump can be restored into tables that are there; machinery.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0040_workflow_folder")]
    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
