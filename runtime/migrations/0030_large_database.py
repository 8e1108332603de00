"""What pages looked for without an index: those who are asked, by their address, mails that failed, and the few test runs,
which figures leave out. Built beside the work, as all indexes of tables that grow with the runs are from here on."""

from django.db import migrations, models
from django.db.models.functions import Upper

from runtime.indexing import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runtime", "0029_starts")]

    operations = [
        AddIndexBeside("run", models.Index(fields=["-id"], condition=models.Q(test=True), name="run_tests")),
        AddIndexBeside("recipient", models.Index(Upper("address"), name="recipient_address")),
        AddIndexBeside("outboxmessage", models.Index(fields=["-id"], condition=models.Q(state="failed"), name="outbox_failed")),
    ]
