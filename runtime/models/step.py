"""What a step left behind: its result, the tries of its calls to the outside, and its log."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.models import Q

from ..clock import BusinessNow
from ..states import AttemptOutcome, StepState, values
from .json_in_order import JsonInOrder


class StepResult(models.Model):
    """The memo of a finished step at a path and take. Written once; only `superseded` is set later, by a requeue.

    `scope` is the path of the innermost loop iteration (`each[3]`), or empty. It follows from the path and leads the key,
    so that a resume reads the rows of the open iterations and no others.
    """

    pk = models.CompositePrimaryKey("run_id", "scope", "path", "take")
    run_id = models.BigIntegerField()
    scope = models.TextField(db_collation="C")
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    step = models.TextField()
    state = models.CharField(max_length=9)
    input = JsonInOrder(null=True)
    """The config as it was filled in; null for steps whose attempts keep the request."""
    output = JsonInOrder(null=True)
    output_size = models.IntegerField(null=True)
    """Bytes of an output that is too large for this row: it is in a blob of the same key, and `output` has only its numbers."""
    error = models.JSONField(null=True)
    token = models.BigIntegerField()
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    superseded = models.BooleanField(default=False)
    kept_from = models.BigIntegerField(null=True)
    """The run that gave it, of which this one was made with the results (`runtime.keeping`). It may be gone."""

    class Meta:
        db_table = "step_result"
        constraints = [models.CheckConstraint(condition=Q(state__in=values(StepState)), name="step_result_state")]

    @property
    def value(self) -> Any:
        """The output, wherever it is kept."""
        if self.output_size is None:
            return self.output
        content = Blob.objects.filter(run_id=self.run_id, path=self.path, take=self.take).values_list("content", flat=True)
        return json.loads(content.get())


class Blob(models.Model):
    """A large output, as JSON text. Read in pieces by people, as a whole by the step that refers to it."""

    pk = models.CompositePrimaryKey("run_id", "path", "take")
    run_id = models.BigIntegerField()
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    content = models.TextField()

    class Meta:
        db_table = "blob"


class StepFile(models.Model):
    """The bytes of a file that a step gave; its output names it by `key`, with its name, type and size."""

    pk = models.CompositePrimaryKey("run_id", "path", "take")
    run_id = models.BigIntegerField()
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    key = models.TextField()
    content = models.BinaryField()

    class Meta:
        db_table = "step_file"


class Attempt(models.Model):
    """One try of a call to the outside: committed before the call, settled after it. `outcome` is null in between."""

    pk = models.CompositePrimaryKey("run_id", "scope", "path", "take", "n")
    run_id = models.BigIntegerField()
    scope = models.TextField(db_collation="C")
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    n = models.IntegerField()
    operation = models.TextField(default="call")
    token = models.BigIntegerField()
    seed = models.TextField(null=True)
    """Of a call that another run had made, and this one makes again: what its keys are made from (`paths.key_from`)."""
    request = JsonInOrder(null=True)
    response = JsonInOrder(null=True)
    outcome = models.CharField(max_length=8, null=True)
    error = models.TextField(null=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    tokens_in = models.IntegerField(null=True)
    tokens_out = models.IntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "attempt"
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__isnull=True) | Q(outcome__in=values(AttemptOutcome)), name="attempt_outcome"
            )
        ]


class LogLine(models.Model):
    """One line of a run's log. `level` is info, warning or error."""

    run_id = models.BigIntegerField()
    path = models.TextField(default="")
    at = models.DateTimeField(db_default=BusinessNow())
    level = models.CharField(max_length=7, default="info")
    text = models.TextField()
    data = JsonInOrder(null=True)

    class Meta:
        db_table = "log_line"
        indexes = [models.Index(fields=["run_id", "id"], name="log_line_run")]
