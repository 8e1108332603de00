"""Limits of flows: dispatch rows are slots, and functions hand them out."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).parent.parent / "sql" / "slots.sql"


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0021_pause'),
    ]

    operations = [
        migrations.CreateModel(
            name='FlowLimit',
            fields=[
                ('workflow', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='limit', serialize=False, to='runtime.workflow')),
                ('at_most', models.IntegerField(null=True)),
                ('per_key', models.IntegerField(null=True)),
                ('key', models.TextField(default='')),
                ('per_minute', models.IntegerField(null=True)),
                ('drops', models.BooleanField(default=False)),
                ('yields', models.BooleanField(default=False)),
                ('priority', models.TextField(default='')),
                ('max_age', models.FloatField(null=True)),
            ],
            options={
                'db_table': 'flow_limit',
            },
        ),
        migrations.RemoveIndex(
            model_name='dispatch',
            name='dispatch_due',
        ),
        migrations.AddField(
            model_name='dispatch',
            name='expires_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='dispatch',
            name='priority',
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='dispatch',
            name='queued',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='dispatch',
            name='slot_key',
            field=models.TextField(db_collation='C', null=True),
        ),
        migrations.AddField(
            model_name='dispatch',
            name='slot_of',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='dispatch',
            name='yields',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name='dispatch',
            index=models.Index(condition=models.Q(('due_at__isnull', False), ('queued', False), ('token__isnull', True)), fields=['priority', 'due_at'], name='dispatch_due'),
        ),
        migrations.AddIndex(
            model_name='dispatch',
            index=models.Index(condition=models.Q(('slot_of__isnull', False)), fields=['slot_of', 'queued', 'slot_key', 'priority', 'due_at'], name='dispatch_slots'),
        ),
        migrations.AddIndex(
            model_name='dispatch',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='dispatch_expires'),
        ),
        migrations.AddConstraint(
            model_name='dispatch',
            constraint=models.CheckConstraint(condition=models.Q(('queued', False), ('slot_of__isnull', False), _connector='OR'), name='dispatch_queued'),
        ),
        migrations.RunSQL(SQL.read_text(), migrations.RunSQL.noop),
    ]
