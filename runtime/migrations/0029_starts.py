"""Starts, webhooks and rates are functions, whose plans are kept."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "starts.sql"


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0028_drop_locks'),
    ]

    operations = [
        migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop),
    ]
