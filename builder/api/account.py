"""Whose token this is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from builder.access import roles_of, teams_for

from .auth import guarded
from .schemas import WhoOut

router = Router()


@router.get("/me", response=WhoOut, summary="Whose token this is", **guarded("whoami"))
def whoami(request: HttpRequest) -> dict[str, Any]:
    roles = roles_of(request.user)
    teams = {team.name: str(roles.get(team.pk, "admin")) for team in teams_for(request.user)}
    return {"user": request.user.get_username(), "teams": teams}
