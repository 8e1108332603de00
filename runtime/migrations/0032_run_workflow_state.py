"""What the counts of one flow looked for among all of its runs: the few that failed, were cancelled or ask a person. Runs that go
well never stand in it."""

from django.db import migrations, models

from runtime.indexing import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runtime", "0031_alert_rate")]

    operations = [
        AddIndexBeside(
            "run",
            models.Index(
                fields=["workflow", "state", "-id"],
                condition=models.Q(state__in=["attention", "failed", "cancelled"]),
                name="run_workflow_state",
            ),
        ),
    ]
