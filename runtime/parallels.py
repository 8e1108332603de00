"""Parallels: lanes as coroutines of the one owner, until all have ended, or enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .execution import Execution
from .lanes import Group, Scope, StepFailed
from .plan import Node


class Enough(Exception):
    """The other lanes of this parallel have ended: this one is not waited for."""


async def run_parallel(
    execution: Execution, node: Node, path: str, scope: Scope, group: Group, sequence: Callable[..., Any]
) -> list[str]:
    """Run the lanes until as many as are needed have ended well. Returns their ids, in the lanes' order. Raises
    StepFailed when they cannot be as many any more."""
    inner = Group(group)
    groups = {lane.id: Group(inner) for lane in node.lanes}
    needed = min(node.needed or len(node.lanes), len(node.lanes))
    ended: list[str] = []
    failed: list[str] = []

    async def run_lane(lane: Any) -> None:
        own = groups[lane.id]
        try:
            await sequence(execution, lane.nodes, f"{path}/{lane.id}/", scope, own)
        except StepFailed as failure:
            execution.fail_group(own, failure)
            failed.append(lane.id)
            if len(node.lanes) - len(failed) < needed:
                raise
            return
        ended.append(lane.id)
        if len(ended) >= needed:
            for other in groups.keys() - {*ended, *failed}:
                execution.fail_group(groups[other], Enough())

    await execution.together([lambda lane=lane: run_lane(lane) for lane in node.lanes], inner)
    return [lane.id for lane in node.lanes if lane.id in ended]
