"""Signals: telling whichever run waits for this name and key."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja import Router

from builder.access import OPERATOR, refusal, teams_for
from runtime.jsonvalues import BadJson, check_json
from runtime.models import Team
from runtime.signals import send
from runtime.waits import TooManySignals

from .auth import guarded
from .errors import Refused
from .schemas import ErrorOut, SignalIn, SignalOut

router = Router()


@router.post(
    "/signals",
    response={200: SignalOut, 422: ErrorOut, 429: ErrorOut},
    summary="Send a signal",
    **guarded("send_signal"),
)
def send_signal(request: HttpRequest, data: SignalIn) -> dict[str, Any]:
    """To the callback step of your team that waits for this name and key, or that will."""
    try:
        check_json([data.name, data.key, data.payload], "signal")
    except BadJson as wrong:
        raise Refused(422, f"The {wrong}") from None
    try:
        return {"state": send(_team(request, data.team).pk, data.name, data.key, data.payload, _dedupe(data), test=data.test)}
    except TooManySignals:
        raise Refused(429, "100 signals of this name and key are kept and not used; more are not taken.") from None


def _team(request: HttpRequest, name: str) -> Team:
    teams = teams_for(request.user, OPERATOR)
    found = list(teams.filter(name__iexact=name) if name else teams[:2])
    if len(found) == 1:
        return found[0]
    if name:
        raise PermissionDenied(refusal(OPERATOR))
    raise Refused(422, "Name the team: you are operator in several." if found else "You are operator in no team.")


def _dedupe(data: SignalIn) -> str:
    if data.idempotency_key:
        return f"key:{data.idempotency_key}"
    return f"payload:{hashlib.sha256(json.dumps(data.payload, sort_keys=True).encode()).hexdigest()}"
