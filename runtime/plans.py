"""Versions made ready to run, kept for the life of the process; and those that this process cannot run."""

from __future__ import annotations

import json
import logging
from typing import Any

import psycopg

from .definition import check
from .jsonvalues import storable_text
from .plan import Plan, make_plan

log = logging.getLogger(__name__)

MOST_PLANS = 500
LONGEST_REASON = 500

VERSION = """
select v.definition, v.number, w.name, w.team_id from version v join workflow w on w.id = v.workflow_id where v.id = %s
"""


class Plans:
    """`unable`: versions that this process cannot make ready: a step type or a format that it does not have, or a step
    that it cannot make sense of. `reasons` says why, by version, as JSON for the worker's row."""

    def __init__(self) -> None:
        self.unable: list[int] = []
        self.reasons = "{}"
        self._why: dict[int, str] = {}
        self._plans: dict[int, Plan] = {}

    async def get(self, connection: psycopg.AsyncConnection, version_id: int) -> Plan | None:
        """The version made ready; None when this worker cannot run it."""
        plan = self._plans.get(version_id)
        if plan is None and version_id not in self.unable:
            row = await (await connection.execute(VERSION, [version_id])).fetchone()
            try:
                definition, number, name, team_id = row
                if len(self._plans) >= MOST_PLANS:  # each test of a draft is a version of its own
                    self._plans.pop(next(iter(self._plans)))
                plan = self._plans[version_id] = make_plan(definition, number=number, workflow_name=name, team_id=team_id)
            except Exception as wrong:
                log.error("version %s cannot be run here and is left to other workers: %r", version_id, wrong)
                self._give_up(version_id, reason(row[0] if row else None, wrong))
        return plan

    def _give_up(self, version_id: int, why: str) -> None:
        self.unable.append(version_id)
        self._why[version_id] = why
        self.reasons = json.dumps(self._why)


def reason(definition: Any, wrong: Exception) -> str:
    """Why a version cannot be made ready: the first problem that its definition has here, which names step and field."""
    try:
        problem = next((str(problem) for problem in check(definition) if not problem.warning), "")
    except Exception as broke:
        problem = f"Its definition cannot be read: {type(broke).__name__}."
    return storable_text(problem or str(wrong))[:LONGEST_REASON]
