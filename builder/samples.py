"""Sample data for the builder: what the newest run of a flow had."""

from __future__ import annotations

import json

from django.db import connection

from runtime.models import Workflow

from .dataflow import Samples
from .templatetags.formats import count

LARGEST = 64 * 1024
"""Bytes of one output; larger ones are of no use as a sample."""

# The newest run of a workflow that got anywhere: its input.
NEWEST_RUN = """
select id, input from run
where workflow_id = %(workflow)s and (state <> 'cancelled' or ended_at is not null)
order by id desc limit 1
"""

# One output per step of a run: the newest at the top level or in a loop's first iterations.
OUTPUTS = """
select distinct on (step) step, output from step_result
where run_id = %(run)s and state = 'succeeded' and not superseded and pg_column_size(output) < %(largest)s
  and (scope = '' or scope like '%%[0]')
order by step, finished_at desc
"""


def samples_of(workflow: Workflow) -> Samples:
    """The newest run's input and outputs; nothing before the first run."""
    with connection.cursor() as cursor:
        cursor.execute(NEWEST_RUN, {"workflow": workflow.pk})
        run = cursor.fetchone()
        if run is None:
            return Samples()
        cursor.execute(OUTPUTS, {"run": run[0], "largest": LARGEST})
        outputs = {step: _json(output) for step, output in cursor.fetchall()}
    return Samples(_json(run[1]), outputs, f"run {count(run[0])}")


def _json(value: object) -> object:
    """psycopg hands JSON to Django as text."""
    return json.loads(value) if isinstance(value, (str, bytes)) else value
