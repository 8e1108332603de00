"""A webhook's request is counted and starts its run by one statement."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "starts.sql"


class Migration(migrations.Migration):
    dependencies = [("runtime", "0037_team_asked_by_others")]

    operations = [migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop)]
