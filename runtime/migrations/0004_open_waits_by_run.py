from django.db import migrations, models


class Migration(migrations.Migration):
    """A release asks when its run's next wait is due: without the index it read every wait that the run ever had."""

    dependencies = [("runtime", "0003_json_in_order")]

    operations = [
        migrations.AddIndex(
            model_name="wait",
            index=models.Index(fields=["run_id", "due_at"], condition=models.Q(state="open"), name="wait_open_run"),
        ),
        migrations.AddIndex(
            model_name="dispatch",
            index=models.Index(fields=["lost"], condition=models.Q(token__isnull=True, lost__gt=0), name="dispatch_lost"),
        ),
    ]
