"""A start that may be dropped locks its flow before the flow's limit, as publishing does."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql" / "slots.sql"


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0027_paused_why'),
    ]

    operations = [
        migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop),
    ]
