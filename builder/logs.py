"""Log lines, plain or as JSON, without the secrets that addresses carry: whoever reads a log must not be able to decide or to
post."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

# Webhook, approval and callback links hold their secret as a path segment; other long random segments are hidden too.
LINK = re.compile(r"(/(?:hooks|a|callbacks/\d+)/)[^/\s?#'\"]+")
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
SEGMENT = re.compile(r"(?<=/)[A-Za-z0-9_-]{32,}(?=[/\s?#'\"]|$)")


def scrub(text: str) -> str:
    return SEGMENT.sub("***", LINK.sub(r"\1***", text))


class WithoutTraceback(logging.Filter):
    """For what somebody outside did wrong: where our code noticed it helps nobody."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return True


class ScrubbedFormatter(logging.Formatter):
    """One plain line a record, its traceback below it, tokens hidden in both. What others have put into a message cannot
    begin a line of its own, nor steer a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        return CONTROL.sub(lambda found: ascii(found[0])[1:-1], super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for what collects logs and finds the lines of a run: `at`, `level`, `logger`, `message`, what of
    `ABOUT` is known, and `traceback`."""

    ABOUT = ("run", "step", "workflow", "error_kind", "status_code")

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {"at": at, "level": record.levelname, "logger": record.name, "message": scrub(record.getMessage())}
        told |= {name: value for name in self.ABOUT if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            told["traceback"] = scrub(self.formatException(record.exc_info))
        return json.dumps(told, default=str)
