"""Where a webhook's signing secrets come from: a connection of the workflow's team, or made by Holdfast itself."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from runtime.credentials import CannotOpen, open_row
from runtime.hooks import Hook
from runtime.models import Credential

from .signatures import NotSigned, generated_secrets
from .webhook import SHOWN


class SecretUnavailable(Exception):
    """The connection is gone or cannot be opened. Nothing can be checked, so nothing may be let in."""


def check_shown(hook: Hook, headers: Mapping[str, str]) -> str:
    """Raise NotSigned unless the request shows the secret of the webhook's connection. Returns the name of the header that
    holds it, which must not be kept."""
    signature = hook.config["signature"]
    row = Credential.objects.filter(team_id=hook.team_id, name=signature.get("connection", "")).first()
    if row is None or row.kind != signature["kind"]:
        raise SecretUnavailable("The connection that the webhook names is gone, or of another kind.")
    try:
        opened = open_row(row)
    except CannotOpen as problem:
        raise SecretUnavailable(str(problem)) from None
    name = _header(row)
    if row.kind == "basic":
        pair = f"{opened.config.get('username', '')}:{opened.secret['password']}"
        expected = "Basic " + b64encode(pair.encode()).decode()
    else:
        expected = opened.secret["value"]
    given = headers.get(name, "").strip()
    if row.kind == "basic":  # the scheme's name is not case-sensitive (RFC 9110, section 11.1)
        scheme, _, rest = given.partition(" ")
        given = f"{scheme.capitalize()} {rest.strip()}"
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode()):
        raise NotSigned("The request does not show the right secret.")
    return name


def shown_in(team_id: int, signature: Any) -> str:
    """The name of the header that would hold the secret itself; empty where a signature is sent, or nothing."""
    if not isinstance(signature, Mapping) or signature.get("kind") not in SHOWN:
        return ""
    row = Credential.objects.filter(team_id=team_id, name=signature.get("connection", "")).defer("secret").first()
    return _header(row) if row else ""


def _header(row: Credential) -> str:
    return "authorization" if row.kind == "basic" else str(row.config.get("header") or "X-API-Key").lower()


def signing_secrets(hook: Hook) -> list[str]:
    """All secrets that a signature may be made with. Raises SecretUnavailable.

    Every secret of the connection counts, so that the old one goes on working while a new one is brought in.
    """
    name = (hook.config.get("signature") or {}).get("connection", "")
    if not name:
        return generated_secrets(hook.token)
    row = Credential.objects.filter(team_id=hook.team_id, name=name).first()
    if row is None:
        raise SecretUnavailable(f"There is no connection “{name}”.")
    try:
        secrets = [text for text in open_row(row).secret.values() if text]
    except CannotOpen as problem:
        raise SecretUnavailable(str(problem)) from None
    if not secrets:
        raise SecretUnavailable(f"The connection “{name}” holds no secret.")
    return secrets
