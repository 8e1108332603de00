"""API tokens: made, shown once, found again by their hash, revoked."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from builder.accountmail import tell
from builder.models import ApiToken, Scope
from runtime.audit import record

PREFIX = "hf_"
SHOWN = 9
"""Characters of a token that stay visible: the prefix and six of 43."""
STARTS = {"whoami", "start_run", "send_signal", "get_run", "list_steps"}
"""The operations of the scope “start”; of runs it sees those that its person has started."""
USED_EVERY = timedelta(minutes=1)


@transaction.atomic
def make_token(user: Any, name: str, *, days: int | None = None, scope: str = Scope.ALL) -> tuple[ApiToken, str]:
    """A new token of 256 bits, for `days` or without an end. Returns (row, text): the text is nowhere kept."""
    text = PREFIX + secrets.token_urlsafe(32)
    expires = timezone.now() + timedelta(days=days) if days else None
    token = ApiToken.objects.create(
        user=user, name=name, prefix=text[:SHOWN], hash=_hash(text), scope=scope, expires_at=expires
    )
    _audit("make_token", token, user)
    tell(user, f"The API token “{name}” was made")
    return token, text


@transaction.atomic
def revoke(token: ApiToken, *, actor: Any) -> bool:
    """End a token now. Whether it was still good."""
    changed = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()) == 1
    if changed:
        _audit("revoke_token", token, actor)
    return changed


@transaction.atomic
def revoke_all(user: Any, *, actor: Any) -> int:
    """End all tokens of somebody. How many were still good."""
    return sum(revoke(token, actor=actor) for token in tokens_of(user))


def good_token(text: str) -> ApiToken | None:
    """The token of this text; None when it is unknown, revoked or expired, or its person may not sign in."""
    now = timezone.now()
    found = (
        ApiToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now), hash=_hash(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if found is None:
        return None
    if found.last_used_at is None or now - found.last_used_at > USED_EVERY:
        ApiToken.objects.filter(pk=found.pk).update(last_used_at=now)
    return found


def in_scope(token: ApiToken, operation: str, method: str) -> bool:
    """Whether the token is meant for this operation of the API, by id."""
    match token.scope:
        case Scope.READ:
            return method in ("GET", "HEAD")
        case Scope.START:
            return operation in STARTS
    return True


def tokens_of(user: Any) -> list[ApiToken]:
    """Those that were not revoked, newest first."""
    return list(ApiToken.objects.filter(user=user, revoked_at=None).order_by("-pk"))


def _hash(text: str) -> str:
    """SHA-256: the token is random, so neither salt nor slowness would add anything."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _audit(action: str, token: ApiToken, actor: Any) -> None:
    record(action, f"token:{token.pk}", actor=actor, detail={"name": token.name, "user": str(token.user), "scope": token.scope})
