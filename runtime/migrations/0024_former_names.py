"""The names that flows had before, kept by a trigger."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

SQL = Path(__file__).parent.parent / "sql" / "names.sql"


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0023_large_outputs'),
    ]

    operations = [
        migrations.CreateModel(
            name='FormerName',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('team_id', models.BigIntegerField()),
                ('name', models.CharField(max_length=200)),
                ('until', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('workflow', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='former_names', to='runtime.workflow')),
            ],
            options={
                'db_table': 'former_name',
                'indexes': [models.Index(fields=['team_id', 'name', 'until'], name='former_name_of')],
            },
        ),
        migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop),
    ]
