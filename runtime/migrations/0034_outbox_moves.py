"""The outbox refuses moves that no sender makes; machinery.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "machinery.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0033_claims")]
    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
