"""What pages looked for without an index: those who are asked, by their address, mails that failed, and the few test runs,
which figures leave out."""

from django.db import migrations, models
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies = [("runtime", "0029_starts")]

    operations = [
        migrations.AddIndex("run", models.Index(fields=["-id"], condition=models.Q(test=True), name="run_tests")),
        migrations.AddIndex("recipient", models.Index(Upper("address"), name="recipient_address")),
        migrations.AddIndex(
            "outboxmessage", models.Index(fields=["-id"], condition=models.Q(state="failed"), name="outbox_failed")
        ),
    ]
