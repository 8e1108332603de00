"""The editable definition of a workflow, and every revision of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime.models.json_in_order import JsonInOrder


class Draft(models.Model):
    """One per workflow. `revision` is the number of the newest Revision, and the lock: an edit names the revision
    that it was made on, and is refused on any other."""

    workflow = models.OneToOneField("runtime.Workflow", models.CASCADE, primary_key=True, related_name="draft")
    revision = models.IntegerField(default=1)
    definition = JsonInOrder()
    updated_at = models.DateTimeField(db_default=Now())
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        db_table = "draft"

    def __str__(self) -> str:
        return f"{self.workflow}, revision {self.revision}"


class Revision(models.Model):
    """A definition as it was after one edit, never changed afterwards. Undo and redo are edits too: they write a new
    revision with an old definition, so that numbers only grow and nothing that was ever saved is lost.

    `undo` and `redo` are the numbers of the revisions that those would bring back. `key` is the editor's own name for
    the edit: one that is sent again after a lost reply is recognised by it.
    """

    draft = models.ForeignKey(Draft, models.CASCADE, related_name="revisions")
    number = models.IntegerField()
    definition = JsonInOrder()
    label = models.TextField(default="")
    key = models.CharField(max_length=40, blank=True, default="")
    undo = models.IntegerField(null=True, blank=True)
    redo = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        db_table = "draft_revision"
        constraints = [models.UniqueConstraint(fields=["draft", "number"], name="draft_revision_number")]

    def __str__(self) -> str:
        return f"revision {self.number}: {self.label}"
