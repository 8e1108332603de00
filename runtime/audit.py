"""Writing the audit trail. Reading it is the pages' business; changing it nobody's."""

from __future__ import annotations

from typing import Any

from .models import AuditEntry


def record(
    action: str, subject: str, *, actor=None, team_id: int | None = None, detail: dict[str, Any] | None = None,
    address: str | None = None,
) -> None:
    """Append one entry, in the caller's transaction. `subject` is `kind:id`, such as `run:48213`."""
    AuditEntry.objects.create(
        action=action, subject=subject, actor=actor, actor_name=str(actor or ""), team_id=team_id,
        detail=detail or {}, address=address,
    )
