"""A new run that begins with results of one that has ended, on another version: what it keeps. `carrying.py` keeps it.

Kept is, in the order of the new version, all up to the first step that failed, had not ended, was changed or is new; from there on
everything runs. Each lane of a parallel goes as far as it goes. A loop that had not ended keeps the iterations that had, if nothing
was changed in it but what failed or had not ended; else a loop, like a parallel that does not wait for all lanes, is kept whole or
not at all.

A call that may have happened is never kept, nor made again unasked: the new run takes it over as its own, and asks. Where its step
says that it may be repeated, it is, with the key that it had if it is the same call. A run that a sub-flow step has started is
taken over too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .courses import NoSuchStep, course_of
from .definition import canonical, children, find
from .models import Run, Version
from .origins import later_of
from .paths import is_within, step_of
from .plan import callback_paths
from .retries import rows
from .states import UNFINISHED, RunState, StepState
from .steps import step_types

FAILED, REPAIRED, CHANGED, NEW, OPEN, ADDRESS = "failed", "repaired", "changed", "new", "open", "address"
"""Why it does not go further: the step failed; failed, and was changed since; was changed; is new; had not ended; has given out
the address of a callback of the old run, on which the new one would wait in vain."""

FRAMES = "select path, cursor, open from frame where run_id = %(run)s and kind = 'loop'"
ENDED = """
select path, state, output ->> 'branch', coalesce(error @> '{"handled": true}', false)
from step_result where run_id = %(run)s and scope = any(%(scopes)s) and not superseded
"""
# What was begun in open iterations, whether or not it has a result.
BEGUN = """
select path from attempt where run_id = %(run)s and scope = any(%(scopes)s)
union select path from wait where run_id = %(run)s and scope = any(%(scopes)s)
"""
# The last call of each place without a result, where it may have happened and nobody has said what became of it; and whether its take
# stands, which a retry gives up.
UNCERTAIN = """
select path, scope, not exists (
    select from step_result r
    where r.run_id = %(run)s and r.scope = last.scope and r.path = last.path and r.take >= last.take) as stands
from (
    select distinct on (scope, path) scope, path, take, n, outcome, error from attempt a
    where run_id = %(run)s and operation <> 'check' and not exists (
        select from step_result r where r.run_id = a.run_id and r.scope = a.scope and r.path = a.path and not r.superseded)
    order by scope, path, take desc, n desc
) last
where (coalesce(outcome, 'unknown') = 'unknown' or outcome = 'answered' and error is null) and not exists (
    select from wait w where w.run_id = %(run)s and w.scope = last.scope and w.path = last.path and w.take = last.take
      and w.n = last.n and w.kind = 'person' and w.outcome ->> 'answer' in ('again', 'fail'))
order by path
"""
# The runs that its sub-flow steps have started and that have given them nothing yet.
CHILDREN = """
select distinct on (w.path) w.path, c.id, c.state from wait w join run c on c.id = (w.data ->> 'run')::bigint
where w.run_id = %(run)s and w.kind = 'child' and not exists (
    select from step_result r where r.run_id = w.run_id and r.scope = w.scope and r.path = w.path and r.take >= w.take)
order by w.path, w.take desc, w.n desc
"""


class Ended(NamedTuple):
    """What the old run has of a place."""

    state: str
    lane: str | None
    handled: bool


class Frame(NamedTuple):
    """Where a loop stands: the next iteration to begin, and those that had not ended."""

    cursor: int
    open: list[int]


@dataclass(slots=True)
class Past:
    """What the old run did, outside loops and in iterations that had not ended, by path. `failed_at` is where it failed."""

    ended: dict[str, Ended] = field(default_factory=dict)
    frames: dict[str, Frame] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    failed_at: str = ""


class NotKept(ValueError):
    """No new run can begin with results of this one; the message says why, and what to do instead."""


@dataclass(slots=True)
class Kept:
    """`places` are kept, and everything whose path begins as in `below`. `stops` are where it goes on, and why; `again` are the
    paths that run, with everything below them. `doubts` are calls that may have happened, which the new run asks about; `repeats`
    those that it makes again by itself; `same` those of both that would be the same call. `children` are where it waits for a run
    that the old one started."""

    places: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    loops: list[tuple[str, list[int], list[dict[str, Any]]]] = field(default_factory=list)
    """Loops that go on: path, open iterations, body. The other iterations that began are kept."""
    stops: list[tuple[str, str]] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    whole: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The kept steps that are no conditions and no parallels, by path."""

    def keeps(self, path: str) -> bool:
        if path in self.places or path.startswith(tuple(self.below)):
            return True
        return any(path.startswith(f"{loop}[") and not path.startswith(_of(loop, open)) for loop, open, _ in self.loops)

    def runs(self, path: str) -> bool:
        return any(is_within(path, root) for root in self.again)


def kept(run: Run, version: Version, input: dict[str, Any] | None = None) -> Kept:
    """What a new run of this version, with another input where one is given, would keep. Raises NotKept."""
    if run.state not in (RunState.FAILED, RunState.CANCELLED):
        raise NotKept("Only a run that failed or was cancelled can be gone on with.")
    if later := later_of(run.pk):
        how = "started" if later > run.pk else "taken up again"
        raise NotKept(f"Run {later:,} was {how} after this one, and does the same. Go on with that one.")
    if input is not None and input != run.input:
        raise NotKept("With another input the results would be others. Leave the input as it was, or start from the top.")
    found = carried(run.version.definition, version.definition, _past(run))
    if not found.again:
        raise NotKept(f"Nothing is left to run: every step of {version} has ended, and none was changed.")
    _take_over_calls(run, version, found)
    _take_over_children(run, found)
    return found


def _past(run: Run) -> Past:
    frames = {path: Frame(cursor, json.loads(open)) for path, cursor, open in rows(FRAMES, {"run": run.pk})}
    given = {"run": run.pk, "scopes": [f"{path}[{index}]" for path, frame in frames.items() for index in frame.open]}
    begun = {path for (path,) in rows(BEGUN, given)}
    given["scopes"].append("")
    ended = {path: Ended(*told) for path, *told in rows(ENDED, given)}
    return Past(ended, frames, begun, (run.error or {}).get("path") or "")


def carried(old: dict[str, Any], new: dict[str, Any], past: Past) -> Kept:
    """pure: how far the results of a run of the old definition carry in the new one."""
    steps, never = new.get("steps") or [], set()
    while True:
        walk = _Walk(past, never)
        walk.sequence(steps, old.get("steps") or [], "")
        if not (gone := set(_in_vain(steps, walk.kept))):
            return walk.kept
        never |= gone


class _Walk:
    def __init__(self, past: Past, never: set[str]):
        self.past, self.ended, self.never, self.kept = past, past.ended, never, Kept()

    def sequence(self, steps: list[dict[str, Any]], old: list[dict[str, Any]], prefix: str) -> bool:
        """Whether all of it is kept."""
        before = {step["id"]: step for step in old}
        for at, step in enumerate(steps):
            if not step.get("off") and not self.step(step, before.get(step["id"]), prefix + step["id"]):
                self.kept.again += [prefix + later["id"] for later in steps[at + 1 :] if not later.get("off")]
                return False
        return True

    def step(self, step: dict[str, Any], before: dict[str, Any] | None, path: str) -> bool:
        if before is None:
            return self.stop(path, NEW)
        if path in self.never:
            return self.stop(path, ADDRESS)
        if step["type"] not in ("condition", "parallel", "loop"):
            return self.leaf(step, before, path)
        if f"{path}/on_error" in self.ended:
            return self.handled(step, before, path)
        if step["type"] == "loop" and path in self.past.frames and path not in self.ended:
            return self.loop(step, before, path)
        if step["type"] == "loop" or step["type"] == "parallel" and (step.get("config") or {}).get("join", "all") != "all":
            return self.box(step, before, path)
        if own(step) != own(before):
            return self.stop(path, CHANGED)
        return (self.condition if step["type"] == "condition" else self.lanes)(step, before, path)

    def leaf(self, step: dict[str, Any], before: dict[str, Any], path: str) -> bool:
        result, same = self.ended.get(path), own(step) == own(before)
        if result is not None and result.state == StepState.FAILED:
            same = same and _on_error(step) == _on_error(before)
        if not same or result is None or result.state == StepState.FAILED and not result.handled:
            return self.stop(path, OPEN if same else CHANGED)
        self.kept.places.append(path)
        self.kept.whole.append((path, step))
        return result.state != StepState.FAILED or self.sequence(*(_lane(one, "on_error") for one in (step, before)), f"{path}/on_error/")

    def condition(self, step: dict[str, Any], before: dict[str, Any], path: str) -> bool:
        """The lane that it took is kept; its steps go as far as they go."""
        if (result := self.ended.get(path)) is None:
            return self.stop(path, OPEN)
        self.kept.places.append(path)
        return self.sequence(*(_lane(one, result.lane) for one in (step, before)), f"{path}/{result.lane}/")

    def lanes(self, step: dict[str, Any], before: dict[str, Any], path: str) -> bool:
        """The join itself is made anew: it calls nothing."""
        names = [branch["id"] for branch in step.get("branches") or ()]
        return all([self.sequence(_lane(step, name), _lane(before, name), f"{path}/{name}/") for name in names])

    def box(self, step: dict[str, Any], before: dict[str, Any], path: str) -> bool:
        """With all that is in it."""
        same = content(step) == content(before)
        if not same or path not in self.ended:
            return self.stop(path, OPEN if same else CHANGED)
        self.kept.places.append(path)
        return self.all_of(step, path)

    def handled(self, step: dict[str, Any], before: dict[str, Any], path: str) -> bool:
        """A container whose failure was taken care of: with its error lane, when that has ended."""
        lane, same = _lane(step, "on_error"), content(step) == content(before)
        if not same or not _Walk(self.past, self.never).sequence(lane, lane, f"{path}/on_error/"):
            return self.stop(path, FAILED if same else REPAIRED)
        return self.all_of(step, path)

    def loop(self, step: dict[str, Any], before: dict[str, Any], path: str) -> bool:
        """One that had not ended: each open iteration goes as far as it goes."""
        frame, stops = self.past.frames[path], len(self.kept.stops)
        within = tuple(f"{path}[{index}]/" for index in frame.open)
        stood = {at for at, result in self.ended.items() if result.state == StepState.FAILED}
        stood |= self.past.begun - self.ended.keys() | {self.past.failed_at}
        bad = {step_of(at) for at in stood if at.startswith(within)}
        if content(step, bad) != content(before, bad):
            return self.stop(path, CHANGED)
        self.kept.loops.append((path, frame.open, _lane(step, "")))
        self.kept.whole.append((path, step))
        for prefix in within:
            self.sequence(_lane(step, ""), _lane(before, ""), prefix)
        if len(self.kept.stops) == stops:
            self.stop(f"{path}[{frame.cursor}]", OPEN)
        return False

    def all_of(self, step: dict[str, Any], path: str) -> bool:
        self.kept.below += [f"{path}/", f"{path}["]
        self.kept.whole.append((path, step))
        return True

    def stop(self, path: str, why: str) -> bool:
        if is_within(self.past.failed_at, path) or (result := self.ended.get(path)) and result.state == StepState.FAILED:
            why = {OPEN: FAILED, CHANGED: REPAIRED}.get(why, why)
        self.kept.stops.append((path, why))
        self.kept.again.append(path)
        return False


def own(step: dict[str, Any]) -> list[Any]:
    """What a step does by itself. Its name and note, its retries, its time-out, and what follows a failure do not change what
    it gave."""
    kind, config = step_types().get(step["type"]), step.get("config") or {}
    if kind is not None:
        try:
            config = kind.Config.model_validate(config).model_dump(by_alias=True, mode="json")
        except ValueError:
            pass  # what the kind cannot read is compared as it was written
    whens = [(branch["id"], branch.get("when")) for branch in step.get("branches") or ()] if step["type"] == "condition" else []
    return [step["type"], config, whens]


def content(step: dict[str, Any], but: Collection[str] = ()) -> list[Any]:
    """What a step does with all that is in it, but for these steps that hold no others."""
    if step["id"] in but and step["type"] not in ("condition", "parallel", "loop"):
        return [step["id"]]
    inner = [(name, [content(one, but) for one in steps]) for name, steps in children(step)]
    return [step["id"], bool(step.get("off")), own(step), _on_error(step), inner]


def _on_error(step: dict[str, Any]) -> str:
    on_error = step.get("on_error") or "fail"
    return "lane" if isinstance(on_error, dict) else on_error


def _lane(step: dict[str, Any], name: str | None) -> list[dict[str, Any]]:
    return next((steps for found, steps in children(step) if found == name), [])


def _of(loop: str, open: list[int]) -> tuple[str, ...]:
    return tuple(f"{loop}[{index}]" for index in open)


def _in_vain(steps: list[dict[str, Any]], found: Kept) -> Iterator[str]:
    """The kept steps that gave out the address of a callback which is still to come."""
    scopes = [("", steps), *((f"{one}/", body) for loop, open, body in found.loops for one in _of(loop, open))]
    for prefix, sequence in scopes:
        waits = {id for id, path in callback_paths(sequence, prefix).items() if found.runs(path)}
        yield from (path for path, step in found.whole if path.startswith(prefix) and waits & _addresses_in(step))


def _addresses_in(step: dict[str, Any]) -> set[str]:
    """Ids of the callbacks whose address the step, or a step in it, gives out."""
    return set(re.findall(r"\bcallbacks\s*\.\s*([a-z]\w*)", canonical(step)))


def _take_over_calls(run: Run, version: Version, found: Kept) -> None:
    """Find the places whose call may have happened and would be made again. Raises NotKept for one about which nobody can be asked."""
    for path, scope, take_stands in rows(UNCERTAIN, {"run": run.pk}):
        step = find(version.definition, step_of(path))
        kind = step and step_types().get(step["type"])
        if not kind or step.get("off") or found.keeps(path):
            continue
        same = take_stands and (path, OPEN) in found.stops and not _SEES_ITS_RUN.search(canonical(step.get("config") or {}))
        repeats = (step.get("on_interrupted") or kind.interrupted(step.get("config") or {})) == "repeat"
        if repeats and not same:
            continue
        if (stands := _stands_at(version, path)) and not found.runs(path):
            continue
        if not stands or scope and not scope.startswith(tuple(one for loop, open, _ in found.loops for one in _of(loop, open))):
            name = step.get("name") or step["id"]
            raise NotKept(f"A call of “{name}” may have happened, and there is no place in {version} to ask about it. Look in the "
                          "other system, then start again from the top, or requeue this run.")  # fmt: skip
        (found.repeats if repeats else found.doubts).append(path)
        found.same += [path] * same


_SEES_ITS_RUN = re.compile(r"\b(run|workflow)\s*\.")
"""In a step of which the new run makes another call, though nothing was changed."""


def _take_over_children(run: Run, found: Kept) -> None:
    """Find the started runs that are waited for further. Raises NotKept for one that goes on and would be started once more."""
    for path, child, state in rows(CHILDREN, {"run": run.pk}):
        if found.keeps(path):
            continue
        if (path, OPEN) in found.stops and state in (*UNFINISHED, RunState.SUCCEEDED):
            found.children.append(path)
        elif state in UNFINISHED:
            raise NotKept(f"Run {child:,}, which “{step_of(path)}” has started, goes on. Wait for its end, or cancel it first.")


def _stands_at(version: Version, path: str) -> bool:
    try:
        course_of(version.definition, path)
    except NoSuchStep:
        return False
    return True
