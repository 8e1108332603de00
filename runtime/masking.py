"""Keep known secrets out of everything that is stored: results, attempts, logs, errors.

A secret shows up as it is, but also as other systems echo it: in base64 (alone, or in the middle of a longer text), in
hexadecimal, in URLs, in JSON and in HTML. All these forms are replaced, at any depth, in values and in keys; so is what is
left of one where `excerpt` cut through it.
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
CUT = "…"
MOST_CUTS = 8
"""How many cuts of one text are looked at, counted from its end: what we cut ourselves has one or two."""
SHORTEST = 4
"""Shorter values are not masked: they would blot out half of every log and are no secrets."""


def excerpt(text: str, most: int, told: str = "") -> str:
    """At most the first `most` characters, and `told` after them where there were more."""
    return text if len(text) <= most else f"{text[:most]}{CUT}{told}"


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

    def mask_bytes(self, content: bytes) -> bytes:
        """As `mask`, for a file. Form by form: a pattern takes a hundred times as long for megabytes."""
        for form in sorted(self._forms, key=len, reverse=True):
            content = content.replace(form.encode(), MASK.encode())
        return content

    def _masked(self, value: Any, pattern: re.Pattern[str]) -> Any:
        if isinstance(value, str):
            text = pattern.sub(MASK, value)
            return self._without_halves(text) if CUT in text else text
        if isinstance(value, dict):
            return {self._masked(key, pattern): self._masked(inner, pattern) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(inner, pattern) for inner in value]
        return value

    def _without_halves(self, text: str) -> str:
        """Without the beginnings of secrets that stand right before a cut."""
        *cut, rest = text.rsplit(CUT, MOST_CUTS)
        return CUT.join([*map(self._without_half, cut), rest])

    def _without_half(self, text: str) -> str:
        for form in self._forms:
            for length in range(min(len(form), len(text)), SHORTEST - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + MASK
        return text


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for escaped in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield escaped
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), escaped)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield html.escape(secret)
    yield secret.encode().hex()
    yield secret.encode().hex().upper()
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
