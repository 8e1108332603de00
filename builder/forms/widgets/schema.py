"""Fields with a name, a type and a description: the result of an AI step as a JSON schema, the fields of a form."""

from __future__ import annotations

import json
import re
from typing import Any

from django.http import QueryDict

from ...editing.ids import slug
from ...fields import ConfigField
from ..base import FieldError, Offer, Widget
from .outline import Json
from .text import clean

TYPES = {
    "string": "Text",
    "number": "Number",
    "integer": "Whole number",
    "boolean": "Yes or no",
    "list": "List of texts",
    "choice": "One of",
}
FORM_TYPES = {"text": "Text", "long_text": "Long text", "email": "E-mail address", "number": "Number", "choice": "Choice", "date": "Date", "checkbox": "Check box"}
KNOWN = {"type", "description", "enum", "items"}


class Schema(Widget):
    """An object's properties as rows. A schema that says more than rows can is edited as JSON."""

    kind, grouped = "schema", True

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        found = schema_rows(value)
        return {
            "rows": found or [],
            "as_rows": found is not None,
            "text": json.dumps(value or {}, indent=2, ensure_ascii=False),
            "types": TYPES,
            "blank": {"name": "", "type": "string", "required": True, "description": "", "options": ""},
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        if post.get("mode") == "json":
            return Json().read_text(post)
        columns = ("name", "type", "required", "description", "options")
        properties: dict[str, Any] = {}
        required = []
        for row, cells in enumerate(zip(*(post.getlist(column) for column in columns), strict=False)):
            name, type_, needed, about, options = (clean(cell).strip() for cell in cells)
            if not name:
                if about:
                    raise FieldError("Give this field a name.", row)
                continue
            if name in properties:
                raise FieldError(f"“{name}” is there twice.", row)
            properties[name] = _property(type_, about, options, row)
            required += [name] if needed == "yes" else []
        if not properties:
            return None
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schema_rows(schema: Any) -> list[dict[str, Any]] | None:
    """The rows of a schema, or None where it says more than they can."""
    if not schema:
        return []
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return None
    if set(schema) - {"type", "properties", "required", "additionalProperties"} or schema.get("additionalProperties"):
        return None
    required = schema.get("required") or []
    found = [_row(name, inner, name in required) for name, inner in schema["properties"].items()]
    return None if None in found else found  # type: ignore[return-value]


def _row(name: str, inner: Any, required: bool) -> dict[str, Any] | None:
    if not isinstance(inner, dict) or set(inner) - KNOWN:
        return None
    row = {
        "name": name,
        "type": inner.get("type"),
        "required": required,
        "description": inner.get("description", ""),
        "options": "",
    }
    if inner.get("enum") is not None:
        if inner.get("type") not in (None, "string") or not all(
            isinstance(one, str) and "," not in one for one in inner["enum"]
        ):
            return None
        return {**row, "type": "choice", "options": ", ".join(inner["enum"])}
    if inner.get("type") == "array":
        return {**row, "type": "list"} if inner.get("items") == {"type": "string"} else None
    return row if row["type"] in ("string", "number", "integer", "boolean") and "items" not in inner else None


def _property(type_: str, about: str, options: str, row: int) -> dict[str, Any]:
    extra = {"description": about} if about else {}
    if type_ == "choice":
        choices = [one.strip() for one in options.split(",") if one.strip()]
        if not choices:
            raise FieldError("Give the options, separated by commas.", row)
        return {"type": "string", "enum": choices, **extra}
    if type_ == "list":
        return {"type": "array", "items": {"type": "string"}, **extra}
    if type_ not in TYPES:
        raise FieldError("Choose a type.", row)
    return {"type": type_, **extra}


class FormFields(Widget):
    """Fields that people fill in. The id is made from the label and then stays."""

    kind, grouped = "form_fields", True

    types = FORM_TYPES

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        fields = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
        rows = [{**one, "options": ", ".join(map(str, one.get("options") or []))} for one in fields]
        return {
            "rows": rows,
            "types": self.types,
            "blank": {"id": "", "label": "", "type": "text", "required": False, "options": ""},
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        columns = ("id", "label", "type", "required", "options")
        found: list[dict[str, Any]] = []
        for row, cells in enumerate(zip(*(post.getlist(column) for column in columns), strict=False)):
            key, label, type_, needed, options = (clean(cell).strip() for cell in cells)
            if not label and not key:
                continue
            key = key or _unused(slug(label), [one["id"] for one in found])
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", key):
                raise FieldError("Use letters, digits and _ for the name in expressions.", row)
            if key in [one["id"] for one in found]:
                raise FieldError(f"“{key}” is there twice.", row)
            one: dict[str, Any] = {"id": key, "label": label, "type": type_, "required": needed == "yes"}
            if type_ == "choice":
                one["options"] = [option.strip() for option in options.split(",") if option.strip()]
                if not one["options"]:
                    raise FieldError("Give the options, separated by commas.", row)
            found.append(one)
        return found or None


class PageFields(FormFields):
    """Those of a page of its own, which takes files, too."""

    kind, types = "page_fields", FORM_TYPES | {"file": "File"}


def _unused(key: str, taken: list[str]) -> str:
    return key if key not in taken else next(f"{key}_{n}" for n in range(2, 1000) if f"{key}_{n}" not in taken)


WIDGETS = (Schema(), FormFields(), PageFields())
