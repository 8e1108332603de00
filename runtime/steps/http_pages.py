"""Pages: calls that follow each other until a list is complete. Each is an attempt of its own, durable before it, and kept after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx2

from .. import net
from .base import Context, StepError

_NEXT = re.compile(r'<([^<>]*)>\s*;[^,<]*\brel="?next"?', re.IGNORECASE)
"""Stops at the next <, or a row of them would take a time that grows with its square."""


def items_of(ctx: Context, response: Mapping[str, Any]) -> list[Any]:
    """The page's items: what the step's expression finds, else the body itself."""
    source = ctx.config["page_items"]
    found = ctx.evaluate(source, response=response) if source else response["body"]
    if not isinstance(found, list):
        raise StepError("The page's items are no list. Say where they are, such as response.body.items.", field="page_items")
    return found


def next_page(ctx: Context, url: httpx2.URL, response: Mapping[str, Any], count: int) -> httpx2.URL | None:
    """The address of the page after this one, at `url`, or None. `count` is how many items this one had. Raises StepError."""
    config = ctx.config
    match config["pages"]:
        case "page":
            name = config["page_param"] or "page"
            return _with(url, name, _number(url, name, 1) + 1) if count else None
        case "offset":
            name = config["page_param"] or "offset"
            return _with(url, name, _number(url, name, 0) + count) if count else None
        case "cursor":
            cursor = ctx.evaluate(config["page_next"] or "response.body.?next_cursor", response=response)
            return _with(url, config["page_param"] or "cursor", cursor) if cursor else None
    return _linked(ctx, url, response)


def _linked(ctx: Context, url: httpx2.URL, response: Mapping[str, Any]) -> httpx2.URL | None:
    """By the expression, else by the Link header (RFC 8288)."""
    source = ctx.config["page_next"]
    if source:
        target = ctx.evaluate(source, response=response)
    else:
        found = _NEXT.search(str(response["headers"].get("link", "")))
        target = found[1] if found else None
    if not target:
        return None
    try:
        onward = net.check_location(str(url.join(str(target))))
    except (net.BadLocation, httpx2.InvalidURL) as wrong:
        raise StepError(f"The next page has an address that cannot be called: {wrong}", field="page_next") from None
    if (onward.scheme, onward.host, onward.port) != (url.scheme, url.host, url.port):
        raise StepError(f"The next page is at {onward.host}, not at {url.host}. It is not followed.", field="page_next")
    return onward


def _with(url: httpx2.URL, name: str, value: Any) -> httpx2.URL:
    return url.copy_set_param(name, str(value))


def _number(url: httpx2.URL, name: str, unsaid: int) -> int:
    """What the address says already: some systems count their pages from 0."""
    text = url.params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else unsaid
