"""Versions made ready to run, kept for the life of the process; and those that this process cannot run."""

from __future__ import annotations

import logging

import psycopg

from .plan import Plan, make_plan

log = logging.getLogger(__name__)

MOST_PLANS = 500

VERSION = """
select v.definition, v.number, w.id, w.name, w.team_id from version v join workflow w on w.id = v.workflow_id where v.id = %s
"""


class Plans:
    """`unable`: versions that need a step type or a format which this process does not have."""

    def __init__(self) -> None:
        self.unable: list[int] = []
        self._plans: dict[int, Plan] = {}

    async def get(self, connection: psycopg.AsyncConnection, version_id: int) -> Plan | None:
        """The version made ready; None when this worker lacks something that it needs."""
        plan = self._plans.get(version_id)
        if plan is None and version_id not in self.unable:
            row = await (await connection.execute(VERSION, [version_id])).fetchone()
            try:
                definition, number, workflow_id, name, team_id = row
                if len(self._plans) >= MOST_PLANS:  # each test of a draft is a version of its own
                    self._plans.pop(next(iter(self._plans)))
                plan = self._plans[version_id] = make_plan(
                    definition, version_id=version_id, number=number, workflow_id=workflow_id, workflow_name=name, team_id=team_id
                )
            except Exception as wrong:
                log.error("version %s cannot be run here and is left to other workers: %r", version_id, wrong)
                self.unable.append(version_id)
        return plan

