"""Somebody's program, which calls the API with a token, and a flow for it."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from builder.tokens import make_token
from runtime.models import Team
from tests.builder import factories

KEEP = {"id": "keep", "type": "set", "config": {"values": {"seen": "{{ trigger.body.company }}"}}}
FLOW = {
    "format": 1,
    "name": "Lead qualification",
    "triggers": [{"id": "program", "type": "api", "config": {}}, {"id": "person", "type": "manual", "config": {}}],
    "steps": [KEEP],
}


class Program:
    """Calls the API with the token of somebody in a team."""

    def __init__(self, role: str | None = "admin", *, of: Team | None = None, **more: Any):
        self.person = factories.user(role, of=of, **more)
        self.token = make_token(self.person, "test")[1]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "Authorization": f"Bearer {self.token}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        kind = given.pop("Content-Type", "application/json")
        return Client(enforce_csrf_checks=True).generic(method, f"/api/v1{path}", data, kind, headers=given)


def published(program: Program, definition: dict = FLOW) -> int:
    made = program("POST", "/workflows/import", {"definition": definition})
    assert made.status_code == 201, made.content
    workflow = made.json()["id"]
    assert program("POST", f"/workflows/{workflow}/publish", {}).status_code == 201
    return workflow


def problems(response) -> list[tuple[str, str]]:
    return [(one["step"], one["field"]) for one in response.json()["error"]["problems"]]
