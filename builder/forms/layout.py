"""How the fields of a type are arranged in the panel. A type that is not named here, such as a plug-in's, shows its
required fields first and the others under "More options"."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.triggers.manual import fields_of

from ..fields import ConfigField

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Either:
    """Fields of which exactly one is set: shown as a choice. `starts` are the values that a fresh choice begins
    with, an empty one where only whoever makes the flow knows."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    starts: tuple[Any, ...]
    title: str = ""

    def chosen(self, config: Config) -> str:
        return next((name for name in self.names if config.get(name) is not None), self.names[0])


@dataclass(frozen=True, slots=True)
class Said:
    title: str
    help: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """`first` in this order, the rest under More options; `hidden` fields are edited elsewhere. `when` says for which
    configs a field is shown, `beside` which fields share a line with the one before, `under` below which other field one
    stands whenever it is shown, `said` what a config makes of a field's words."""

    first: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    either: Either | None = None
    when: Mapping[str, Callable[[Config], bool]] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    under: Mapping[str, str] = field(default_factory=dict)
    said: Callable[[Config], Mapping[str, Said]] = lambda config: {}


def _task(*names: str) -> Callable[[Config], bool]:
    return lambda config: config.get("task", "extract") in names


PAGES: dict[str, dict[str, Said]] = {
    "next_link": {
        "page_next": Said(
            "Address of the next page",
            "An expression that sees response (its status, headers and body): response.body.links.next, or response.body.?next where "
            "the last page leaves it out. When empty, the answer's Link header says it. Without an address it ends.",
            "response.body.links.next",
        ),
    },
    "cursor": {
        "page_next": Said(
            "The next cursor",
            "An expression that sees response (its status, headers and body): response.body.meta.cursor, or response.body.?cursor where "
            "the last page leaves it out. When empty, response.body.next_cursor. Without a cursor it ends.",
            "response.body.next_cursor",
        ),
        "page_param": Said("Send the cursor as", "The name in the query of the next call: cursor gives ?cursor=…", "cursor"),
    },
    "page": {
        "page_param": Said(
            "Send the page number as",
            "The name in the query: page gives ?page=2, ?page=3 and so on after the first call, or what "
            "follows the number that the query begins with. A page without items ends it.",
            "page",
        ),
    },
    "offset": {
        "page_param": Said(
            "Send the offset as",
            "The name in the query: offset gives ?offset=50, ?offset=100 where each page has 50 items. A page without items ends it.",
            "offset",
        ),
    },
}
"""What leads from page to page, in the words of each way."""

BLANKS: dict[str, Any] = {"integer": 0, "number": 0, "boolean": True, "array": []}

LAYOUTS: dict[str, Layout] = {
    "ai": Layout(
        first=("task", "prompt", "schema", "labels", "connection"),
        when={"schema": _task("extract"), "labels": _task("classify")},
        said=lambda config: _examples(config),
    ),
    "http": Layout(
        first=("connection", "method", "url", "json"),
        when={
            "form_as": lambda config: bool(config.get("form")),
            "pages": lambda config: config.get("method", "GET") == "GET",
            "page_items": lambda config: _paged(config),
            "page_next": lambda config: config.get("pages") in ("next_link", "cursor"),
            "page_param": lambda config: config.get("pages") in ("cursor", "page", "offset"),
            "most_pages": lambda config: _paged(config),
        },
        under={name: "pages" for name in ("page_items", "page_next", "page_param", "most_pages")},
        said=lambda config: PAGES.get(str(config.get("pages")), {}),
        hidden=("idempotency_header",),
        beside={"method": "narrow", "url": "wide"},
        titles={"json": "Body"},
    ),
    "email": Layout(first=("to", "subject", "body", "attachments")),
    "delay": Layout(
        first=("for", "until", "at", "days", "business_days", "then_at", "zone", "calendar"),
        either=Either(
            ("for", "until", "at", "business_days"),
            ("For", "Until", "Clock", "Days"),
            ("1h", "", "", 3),
            "Wait",
        ),
        when={
            "days": lambda config: config.get("at") is not None,
            "then_at": lambda config: config.get("business_days") is not None,
            "zone": lambda config: config.get("for") is None,
            "calendar": lambda config: _by_days(config),
            "closed": lambda config: _by_days(config) or config.get("at") is not None,
        },
    ),
    "approval": Layout(
        first=("approvers", "policy", "needed", "expires", "subject", "message", "details", "form"),
        when={
            "needed": lambda config: config.get("policy") == "count",
            "rejection": lambda config: config.get("policy") != "all",
            "escalate_to": lambda config: bool(config.get("escalate_after") or config.get("escalate_to")),
        },
    ),
    "callback": Layout(first=("expires", "on_expired", "schema")),
    "loop": Layout(
        first=("items", "while", "concurrency", "max", "collect", "on_item_error"),
        either=Either(
            ("items", "while"), ("For each item", "While"), ("", ""), "Repeat"
        ),
        when={
            "concurrency": lambda config: config.get("while") is None,
            "max": lambda config: config.get("while") is not None,
        },
    ),
    "workflow": Layout(first=("flow", "input", "wait")),
    "parallel": Layout(first=("join", "needed"), when={"needed": lambda config: config.get("join") == "count"}),
    "ended": Layout(first=("when", "flow")),
    "set": Layout(first=("values",)),
    "stop": Layout(first=("outcome", "message", "output")),
    "webhook": Layout(
        first=("sample", "dedupe", "signature.kind", "signature.connection", "respond"),
        when={
            "signature.connection": lambda config: _is_signed(config),
            "respond_within": lambda config: config.get("respond") == "at_end",
        },
    ),
    "schedule": Layout(
        first=("cron", "zone", "overlap"), when={"most": lambda config: config.get("missed") == "all" or config.get("overlap") == "queue"}
    ),
    "form": Layout(first=("title", "intro", "fields", "thanks", "access"), when={"largest_mib": lambda config: _takes_files(config)}),
    "manual": Layout(first=("fields",)),
    "api": Layout(first=("sample",)),
}


def layout_of(type_: str, specs: list[tuple[str, ConfigField]]) -> Layout:
    if type_ in LAYOUTS:
        return LAYOUTS[type_]
    required = tuple(name for name, spec in specs if spec.required)
    return Layout(first=required or tuple(name for name, _ in specs[:6]))


def _examples(config: Config) -> Mapping[str, Said]:
    """What the answer of an example is written as depends on the task."""
    match config.get("task", "extract"):
        case "extract":
            answer = json.dumps({name: BLANKS.get(kind, "…") for name, kind in _properties(config) or [("field", "")]}, ensure_ascii=False)
            return {"examples": Said("Examples", "Inputs, each with the answer that you want, as JSON with the fields above.", answer)}
        case "classify":
            labels = config.get("labels")
            first = next(iter(labels), "") if isinstance(labels, Mapping) else ""
            return {"examples": Said("Examples", "Inputs, each with its label.", str(first))}
    return {}


def _properties(config: Config) -> list[tuple[str, str]]:
    schema = config.get("schema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    properties = properties if isinstance(properties, Mapping) else {}
    return [(str(name), str(one.get("type")) if isinstance(one, Mapping) else "") for name, one in properties.items()]


def _paged(config: Config) -> bool:
    return config.get("pages", "none") != "none"


def _by_days(config: Config) -> bool:
    return config.get("business_days") is not None or config.get("days") == "workdays"


def _takes_files(config: Config) -> bool:
    return any(one.get("type") == "file" for one in fields_of(config))


def _is_signed(config: Config) -> bool:
    signature = config.get("signature")
    return isinstance(signature, Mapping) and signature.get("kind", "none") != "none"
