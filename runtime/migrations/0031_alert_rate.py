from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runtime", "0030_large_database")]

    operations = [
        migrations.RemoveConstraint("alert", "alert_kind"),
        migrations.AddConstraint(
            "alert",
            models.CheckConstraint(
                condition=models.Q(kind__in=["oldest", "failed", "rate", "stuck", "overdue", "silent", "outbox", "cost"]),
                name="alert_kind",
            ),
        ),
    ]
