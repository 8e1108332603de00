from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0025_job_teams'),
    ]

    operations = [
        migrations.CreateModel(
            name='StepFile',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'path', 'take', blank=True, editable=False, primary_key=True, serialize=False)),
                ('run_id', models.BigIntegerField()),
                ('path', models.TextField(db_collation='C')),
                ('take', models.IntegerField()),
                ('key', models.TextField()),
                ('content', models.BinaryField()),
            ],
            options={
                'db_table': 'step_file',
            },
        ),
        # Uncompressed, so that a piece is read without the rest; most files are packed already.
        migrations.RunSQL("alter table step_file alter column content set storage external", migrations.RunSQL.noop),
    ]
