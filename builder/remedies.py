"""What to do about a step that failed, in a sentence or two."""

from __future__ import annotations

from typing import Any

from builder.runrows import Place
from runtime.states import AttemptOutcome

GOES_ON = "requeue the run: it goes on at this step"
CHANGE = "change the flow, publish it and continue this run on the new version, for it stays on its own"


def in_flow(error: dict[str, Any] | None, place: Place) -> bool:
    """Whether the cause stands in a field of the step, so that the run's own version can only fail again."""
    field = str((error or {}).get("field") or "")
    return bool(field) and field != "connection" and not _gave_up(error, place)


def _gave_up(error: dict[str, Any], place: Place) -> bool:
    """Whether the outside was called and did not answer."""
    last = place.attempts[-1] if place.attempts else None
    never_left = last is not None and last.outcome == AttemptOutcome.NOT_SENT and len(place.attempts) == 1
    return last is not None and last.outcome != AttemptOutcome.ANSWERED and not (never_left and bool(error.get("field")))


def remedy(error: dict[str, Any], place: Place) -> str:
    """A requeue where that helps, and what to do where it only fails again."""
    last = place.attempts[-1] if place.attempts else None
    if _gave_up(error, place):
        tries = f"after {len(place.attempts)} attempts" if len(place.attempts) > 1 else "at the first attempt"
        told = f"It gave up {tries}. When the other system is well again, {GOES_ON}."
        return f"{told} If the address is wrong, {CHANGE}." if last.outcome == AttemptOutcome.NOT_SENT else told
    if error.get("field") == "connection":
        name = (last.request or {}).get("connection") if last is not None and isinstance(last.request, dict) else None
        which = f"the connection “{name}”" if name else "the connection"
        return f"Put {which} right under Connections, then {GOES_ON}."
    if in_flow(error, place):
        return (
            "This run stays on its version: publish the change and continue on the new version, or requeue when the "
            "cause lies outside."
        )
    if place.attempts:
        return f"See what the other system answered under Attempts. When the cause is gone, {GOES_ON}. If what is sent is wrong, {CHANGE}."
    return "Requeue the run when the cause is gone: it goes on at this step, and finished steps do not run again."
