"""Which flows of a team use one of them: a step of theirs runs it, or they begin when it ends. A published version means by a name
the flow that had it then, a draft the one that has it now (`holdfast_flow`). And what one that is run wants to be given."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from django.db import connection

from runtime.models import Workflow
from runtime.steps import step_types

from .circles import SUB_FLOW_STEPS

# The places of what is live, and of the drafts, that name this flow: the flow that they are in, and the step's label, or none for a trigger.
USED_BY = f"""
with told as (
  select w.id, w.name, v.definition, v.created_at as made_at, true as live
  from workflow w join version v on v.id = w.live_version_id where w.team_id = %(team)s and w.deleted_at is null
  union all
  select w.id, w.name, d.definition, clock_timestamp(), false
  from workflow w join draft d on d.workflow_id = w.id where w.team_id = %(team)s and w.deleted_at is null
), naming as materialized (
  select id, name, definition::jsonb, made_at, live from told where id <> %(flow)s and position('"flow"' in definition::text) > 0
)
select distinct id, name, live, coalesce(nullif(step ->> 'name', ''), %(unnamed)s)
from naming cross join lateral jsonb_path_query(definition, {SUB_FLOW_STEPS}) as step
where holdfast_flow(%(team)s, step #>> '{{config,flow}}', made_at) = %(flow)s
union all
select distinct id, name, live, null
from naming cross join lateral jsonb_path_query(definition, '$.triggers[*] ? (@.type == "ended" && @.config.flow.type() == "string")') as began
where holdfast_flow(%(team)s, began #>> '{{config,flow}}', made_at) = %(flow)s
order by 2, 1, 4
"""
_READ = re.compile(r"\btrigger\.body\.\??([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Caller:
    """`steps` are the labels of those that run it; `after`: it begins when that one ends; `live`: what is live does so, else
    only its draft."""

    id: int
    name: str
    steps: tuple[str, ...]
    after: bool
    live: bool

    @property
    def how(self) -> str:
        ways = [f"runs it in {', '.join(f'“{step}”' for step in self.steps)}"] if self.steps else []
        ways += ["begins when it ends"] if self.after else []
        return " and ".join(ways) + ("" if self.live else ", in its draft")


def callers_of(workflow: Workflow) -> list[Caller]:
    with connection.cursor() as cursor:
        cursor.execute(USED_BY, {"team": workflow.team_id, "flow": workflow.pk, "unnamed": step_types()["workflow"].label})
        rows = cursor.fetchall()
    callers = []
    for flow, name in dict.fromkeys((flow, name) for flow, name, *_ in rows):
        places = [(live, step) for of, _, live, step in rows if of == flow]
        steps = tuple(dict.fromkeys(step for _, step in places if step is not None))
        callers.append(Caller(flow, name, steps, any(step is None for _, step in places), any(live for live, _ in places)))
    return callers


def reads_of(flow: int) -> list[str]:
    """The names that a flow reads of `trigger.body`, as it is live, else as its draft has it; each once, in their order."""
    [(live, draft)] = Workflow.objects.filter(pk=flow).values_list("live_version__definition", "draft__definition")
    return list(dict.fromkeys(_READ.findall(json.dumps(live or draft or {}))))
