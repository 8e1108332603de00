"""JSON that keeps the order of its keys. `jsonb` sorts them by length, and people would find what they wrote in another
order than they wrote it; and what is stored whole and never looked into by SQL is cheaper as it is."""

from __future__ import annotations

from typing import Any

from django.db import models
from psycopg.types.json import Json


class JsonInOrder(models.JSONField):
    """Postgres `json` instead of `jsonb`."""

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Django would send it as `jsonb`, and the order would be gone on the way."""
        return value if value is None or hasattr(value, "resolve_expression") else Json(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """psycopg has parsed it already, in order."""
        return super().from_db_value(value, expression, connection) if isinstance(value, (str, bytes)) else value
