"""Request headers: refuse what would break the message or speak for the connection; bound what comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_HEADERS = 200
OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
     "proxy-authorization", "proxy-connection", "accept-encoding"}
)  # fmt: skip
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class BadHeader(ValueError):
    """A header that cannot be sent. The message names it and never shows its value."""


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with their values trimmed. RFC 9110, sections 5.1 and 5.5. Raises BadHeader."""
    return {name: check_header(name, value) for name, value in headers.items()}


def check_header(name: str, value: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise BadHeader(f"“{name[:60]}” is not a header's name.")
    if name.lower() in OURS:
        raise BadHeader(f"The header “{name}” is set by Holdfast. Remove it.")
    if "\r" in value or "\n" in value:
        raise BadHeader(f"The value of the header “{name}” holds a line break.")
    if _NOT_IN_A_VALUE.search(value):
        raise BadHeader(f"The value of the header “{name}” holds a control character.")
    return value.strip(" \t")
