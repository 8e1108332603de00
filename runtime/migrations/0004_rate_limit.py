from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runtime', '0003_machinery_again'),
    ]

    operations = [
        migrations.CreateModel(
            name='RateLimit',
            fields=[
                ('key', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('until', models.DateTimeField()),
            ],
            options={
                'db_table': 'rate_limit',
            },
        ),
        migrations.RunSQL("alter table rate_limit set unlogged", "alter table rate_limit set logged"),
    ]
