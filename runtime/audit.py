"""Writing the audit trail. Reading it is the pages' business; changing it nobody's."""

from __future__ import annotations

from typing import Any

from .models import AuditEntry, Run


def record(
    action: str, subject: str, *, actor=None, team_id: int | None = None, detail: dict[str, Any] | None = None,
    address: str | None = None,
) -> None:
    """Append one entry, in the caller's transaction. `subject` is `kind:id`, such as `run:48213`."""
    AuditEntry.objects.create(
        action=action, subject=subject, actor=actor, actor_name=str(actor or ""), team_id=team_id,
        detail=detail or {}, address=address,
    )


def record_of_run(action: str, run_id: int | None, *, subject: str = "", **more: Any) -> None:
    """`record`, in the team whose run it is: about the run, unless a `subject` is named that belongs to it."""
    team_id = Run.objects.filter(pk=run_id).values_list("workflow__team_id", flat=True).first()
    record(action, subject or f"run:{run_id}", team_id=team_id, **more)
