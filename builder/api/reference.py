"""The OpenAPI description, arranged for reading."""

from __future__ import annotations

from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")


def sections(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """[{"name", "operations": [{"method", "path", "summary", "text", "parameters", "body", "answers"}]}], in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, item in schema["paths"].items():
        for method in METHODS:
            if operation := item.get(method):
                tag = (operation.get("tags") or ["Other"])[0]
                found.setdefault(tag, []).append(_operation(schema, method, path, operation))
    return [{"name": name, "operations": operations} for name, operations in found.items()]


def _operation(schema: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation.get("summary", ""),
        "text": operation.get("description", ""),
        "parameters": [
            _field(one["name"], one["schema"], one.get("required", False), one)
            for one in operation.get("parameters", ())
        ],
        "body": _fields(schema, _json_schema(operation.get("requestBody"))),
        "answers": [
            (status, _fields(schema, _json_schema(answer))) for status, answer in operation["responses"].items()
        ],
    }


def _json_schema(part: dict[str, Any] | None) -> dict[str, Any]:
    return ((part or {}).get("content") or {}).get("application/json", {}).get("schema", {})


def _fields(schema: dict[str, Any], of: dict[str, Any]) -> list[dict[str, Any]]:
    of = _resolved(schema, of)
    required = of.get("required", ())
    return [_field(name, one, name in required) for name, one in of.get("properties", {}).items()]


def _field(name: str, of: dict[str, Any], required: bool, more: dict[str, Any] | None = None) -> dict[str, Any]:
    text = of.get("description") or (more or {}).get("description", "")
    return {"name": name, "type": _type(of), "required": required, "text": text}


def _type(of: dict[str, Any]) -> str:
    if "$ref" in of:
        return of["$ref"].rsplit("/", 1)[-1]
    if "enum" in of:
        return " | ".join(str(value) for value in of["enum"])
    if "anyOf" in of:
        return " | ".join(dict.fromkeys(_type(one) for one in of["anyOf"]))
    if of.get("type") == "array":
        return f"list of {_type(of.get('items', {}))}"
    return of.get("format") or of.get("type") or "any JSON"


def _resolved(schema: dict[str, Any], of: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in of:
        return of
    return schema["components"]["schemas"][of["$ref"].rsplit("/", 1)[-1]]
