"""Sub-flow: runs another flow of the team, and waits for its end or goes on at once.

It runs what is live at that moment, and calls what it is given `trigger.body`. Waiting gives `run`, `state` and `output`, which is
what its Stop step said. Where it fails or is cancelled, this step fails. Cancelling a run cancels those that it waits for, and
what they cost is counted in it. Flows may run each other ten deep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from ..states import RunState, WaitKind
from .base import Config, Context, Done, Outcome, Park, StepError, StepType
from .fields import Json, Widget


class WorkflowConfig(Config):
    flow: Annotated[str, Field(min_length=1, max_length=200), Widget("flow")] = Field(title="Flow")
    input: Json = Field(
        None, title="Give it", description="What it calls trigger.body.", examples=[{"email": "{{ trigger.body.email }}"}]
    )
    wait: bool = Field(True, title="Wait for its end", description="Otherwise this flow goes on at once.")


class Workflow(StepType):
    type = "workflow"
    label = "Sub-flow"
    icon = "sub"
    category = "Flow"
    summary = "Run another flow"
    also = "subflow execute workflow call child"
    Config = WorkflowConfig
    example = {"flow": "Lead qualification", "input": {"email": "{{ trigger.body.email }}"}}

    def line(self, config: Mapping[str, Any]) -> str:
        if not config.get("flow"):
            return self.summary
        return f"{'Runs' if config.get('wait', True) else 'Starts'} {config['flow']}"

    async def run(self, ctx: Context) -> Outcome:
        started = await ctx.start_run(ctx.config["flow"], ctx.config["input"])
        ctx.log(f"Started run {started:,} of {ctx.config['flow']}.")
        if not ctx.config["wait"]:
            return Done({"run": started})
        return Park(WaitKind.CHILD, data={"run": started})

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        if outcome["state"] != RunState.SUCCEEDED:
            words = f": {outcome['message']}" if outcome.get("message") else "."
            raise StepError(f"Run {outcome['run']:,} {'was ' * (outcome['state'] == 'cancelled')}{outcome['state']}{words}", field="flow")
        return Done({"run": outcome["run"], "state": outcome["state"], "output": outcome["output"]})


STEP = Workflow()
