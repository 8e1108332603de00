"""JSON that keeps the order of its keys. `jsonb` sorts them by length, and people would find the rows that they wrote
in another order than they wrote them."""

from __future__ import annotations

from typing import Any

from django.db import models
from psycopg.types.json import Json


class JsonInOrder(models.JSONField):
    """Postgres `json` instead of `jsonb`: kept as it was written, for whole values that nothing looks into by SQL."""

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Django would send it as `jsonb`, and the order would be gone on the way."""
        return value if value is None or hasattr(value, "resolve_expression") else Json(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """psycopg has parsed it already, in order."""
        return super().from_db_value(value, expression, connection) if isinstance(value, (str, bytes)) else value
