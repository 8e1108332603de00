"""What is told while somebody types an expression: which functions there are, and what the field gives."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from runtime.models import Role

from ..access import get_workflow
from ..board import Board
from ..functionhelp import as_json
from ..trying import TEMPLATE, tried

LONGEST = 100_000


@require_POST
def flow_try(request: HttpRequest, pk: int) -> JsonResponse:
    """`owner`, `field`, `text` as it stands in the field, `kind`: what it gives with the sample data."""
    board = Board.of(get_workflow(request.user, pk, Role.BUILDER))
    asked = request.POST
    text, kind = asked.get("text", "")[:LONGEST], asked.get("kind", TEMPLATE)
    found = tried(board, asked.get("owner", ""), asked.get("field", ""), text, kind)
    return JsonResponse(asdict(found))


@require_safe
def functions(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"functions": as_json()})


urlpatterns = [
    path("flows/<int:pk>/try/", flow_try, name="flow_try"),
    path("expressions/functions/", functions, name="functions"),
]
