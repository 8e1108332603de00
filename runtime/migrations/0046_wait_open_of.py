"""The index of open waits by kind answers only who names a kind: a plan made when there were none went through all of it for one run."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from runtime.indexing import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runtime", "0045_guard_by_key")]

    operations = [
        AddIndexBeside(
            "wait",
            models.Index(fields=["kind", "-id"], condition=models.Q(state="open") & ~models.Q(kind=""), name="wait_open_of"),
        ),
        RemoveIndexConcurrently("wait", "wait_open_kind"),
    ]
