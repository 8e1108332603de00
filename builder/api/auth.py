"""Bearer tokens, checked against the table of who may do what."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.security import HttpBearer

from builder.gate import VIEWS, admitted, role_of, rule_for, why_not
from builder.tokens import good_token, in_scope


class Bearer(HttpBearer):
    """Admits the holder of a good token whose role and scope suffice for one operation."""

    def __init__(self, operation: str):
        super().__init__()
        self.name = f"api:{operation}"
        if self.name not in VIEWS:
            raise LookupError(f"The operation {operation} is not in the table of builder/gate.py.")

    def authenticate(self, request: HttpRequest, token: str) -> Any | None:
        found = good_token(token)
        if found is None:
            return None
        user, request.token = found.user, found
        request.user = user
        if not in_scope(found, self.name.removeprefix("api:"), request.method or "GET"):
            raise PermissionDenied(f"This token is good for less: “{found.get_scope_display()}”. Make another for this.")
        rule = rule_for(self.name, request.method or "GET")
        if not admitted(user, rule):
            raise PermissionDenied(why_not(rule))
        request.role = role_of(rule)
        return user


def nobody(request: HttpRequest) -> None:
    """The default: an operation that states nothing admits nobody."""


def guarded(operation: str) -> dict[str, Any]:
    """What every operation is registered with: `@router.get("/runs", **guarded("list_runs"))`."""
    return {"operation_id": operation, "url_name": operation, "auth": Bearer(operation)}
