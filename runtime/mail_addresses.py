"""One e-mail address in one string, and nothing else: what could add a recipient or a header is refused."""

from __future__ import annotations

import re

LONGEST = 254
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL = re.compile(r"[^\W_](?:(?:[^\W_]|-)*[^\W_])?")


class BadAddress(ValueError):
    """Not an address, in words for the person who wrote it."""


def check_address(text: object) -> str:
    """The trimmed address: RFC 5321's dot-string at a domain, without names, quotes or comments. Raises BadAddress."""
    if not isinstance(text, str):
        raise BadAddress(f"An e-mail address is text, not {_kind(text)}.")
    address = text.strip(" ")
    local, _, domain = address.rpartition("@")
    if not _LOCAL.fullmatch(local) or len(local) > 64 or len(address) > LONGEST or not _is_domain(domain):
        raise BadAddress(f"“{_shown(text)}” is not one e-mail address.")
    return address


def check_line(text: str, what: str) -> str:
    """Text that becomes a mail's header. Raises ValueError where it would become two."""
    if any(ord(char) < 0x20 or char in "\x7f\x85\u2028\u2029" for char in text):
        raise ValueError(
            f"The {what} holds a line break or a control character. Take it out, or put the text into the body."
        )
    return text


def _is_domain(domain: str) -> bool:
    labels = domain.split(".")
    if domain != "localhost" and len(labels) < 2:
        return False
    return all(len(label) <= 63 and _LABEL.fullmatch(label) for label in labels)


def _kind(value: object) -> str:
    return {dict: "an object", list: "a list", type(None): "null", bool: "true or false"}.get(type(value), "a number")


def _shown(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "�", text)[:80]
