"""Where a webhook's signing secrets come from: a connection of the workflow's team, or made by Holdfast itself."""

from __future__ import annotations

from runtime.credentials import CannotOpen, open_row
from runtime.models import Credential, Trigger

from .signatures import generated_secrets


class SecretUnavailable(Exception):
    """The connection is gone or cannot be opened. Nothing can be checked, so nothing may be let in."""


def signing_secrets(trigger: Trigger) -> list[str]:
    """All secrets that a signature may be made with. Raises SecretUnavailable.

    Every secret of the connection counts, so that the old one goes on working while a new one is brought in.
    """
    name = (trigger.config.get("signature") or {}).get("connection", "")
    if not name:
        return generated_secrets(trigger.token)
    row = Credential.objects.filter(team_id=trigger.workflow.team_id, name=name).first()
    if row is None:
        raise SecretUnavailable(f"There is no connection “{name}”.")
    try:
        secrets = [text for text in open_row(row).secret.values() if text]
    except CannotOpen as problem:
        raise SecretUnavailable(str(problem)) from None
    if not secrets:
        raise SecretUnavailable(f"The connection “{name}” holds no secret.")
    return secrets
