"""Signals that are sent for test runs. What is there was sent for real ones."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runtime", "0041_restored_data")]
    operations = [
        migrations.AddField("namedsignal", "test", models.BooleanField(default=False, db_default=False)),
    ]
