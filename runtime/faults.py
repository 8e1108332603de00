"""pure: what makes two errors one kind: the step, and the message without what differs from run to run."""

from __future__ import annotations

import hashlib
import re
from typing import Any

NOISE = (
    (re.compile(r"https?://\S+"), "…"),
    (re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+"), "…"),
    (re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b", re.IGNORECASE), "…"),
    (re.compile(r"(?<![\w])(?!\d{3}\b)\d[\d.,:]*"), "…"),
)


def signature(message: str) -> str:
    """The error without what differs from run to run; status codes of three digits stay."""
    for pattern, instead in NOISE:
        message = pattern.sub(instead, message)
    return message.strip()[:200]


def kind_of(error: dict[str, Any]) -> str:
    """The key of an error's kind, by which failed runs are found."""
    told = (error.get("step") or "", signature(str(error.get("message") or "")))
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]
