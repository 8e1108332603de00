"""Keep known secrets out of everything that is stored: results, attempts, logs, errors.

A secret shows up as it is, but also as other systems echo it: in base64 (alone, or in the middle of a longer text), in
URLs, in JSON and in HTML. All these forms are replaced, at any depth, in values and in keys.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "•••"
SHORTEST = 4
"""Shorter values are not masked: they would blot out half of every log and are no secrets."""


class Masker:
    """Knows the secrets of one run. Costs nothing while it knows none."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these values from now on."""
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        if forms <= self._forms:
            return
        self._forms |= forms
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def mask(self, value: Any) -> Any:
        """The value, or a copy of it in which every known secret reads `•••`. The original is left alone."""
        if self._pattern is None:
            return value
        return self._masked(value, self._pattern)

    def _masked(self, value: Any, pattern: re.Pattern[str]) -> Any:
        if isinstance(value, str):
            return pattern.sub(MASK, value)
        if isinstance(value, dict):
            return {self._masked(key, pattern): self._masked(inner, pattern) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(inner, pattern) for inner in value]
        return value


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for escaped in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield escaped
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), escaped)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield html.escape(secret)
    yield from _base64_forms(secret.encode())


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Base64 packs three bytes into four characters, so a secret inside a longer text has three possible spellings.
    The characters that it shares with its neighbours are left out."""
    for before in range(3):
        packed = b64encode(bytes(before) + secret).rstrip(b"=").decode()
        shared_at_start = (0, 2, 3)[before]
        shared_at_end = 1 if (before + len(secret)) % 3 else 0
        core = packed[shared_at_start : len(packed) - shared_at_end]
        if len(core) >= 2 * SHORTEST - 2:
            yield core
            yield core.replace("+", "-").replace("/", "_")
