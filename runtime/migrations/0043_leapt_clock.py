"""Rates that were used up by a clock that leapt back since count for nothing; slots.sql and starts.sql may be run any number of times."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0042_test_signals")]
    operations = [migrations.RunSQL((SQL / name).read_text(), migrations.RunSQL.noop) for name in ("slots.sql", "starts.sql")]
