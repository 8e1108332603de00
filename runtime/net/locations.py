"""Addresses that may be called: http or https, a host, no user or password inside."""

from __future__ import annotations

import re

import httpx2

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]|^ | $")
_HOST = re.compile(rb"[A-Za-z0-9._:-]+")
_USERINFO = re.compile(r"[^/?#]*//[^/?#]*@")


class BadLocation(ValueError):
    """The address cannot be called, in words for the person who wrote it."""


def check_location(text: str) -> httpx2.URL:
    """The parsed address. Raises BadLocation; the message never repeats a password."""
    if _CONTROL.search(text):
        raise BadLocation("The address holds a control character, a backslash, or a space at its beginning or end.")
    try:
        url = httpx2.URL(text)
        port = url.port
    except (httpx2.InvalidURL, ValueError):
        raise BadLocation("This is not an address.") from None
    if url.scheme not in ("http", "https"):
        raise BadLocation(f"“{url.scheme}:” cannot be called. Begin the address with https://.")
    if url.userinfo or _USERINFO.match(text):
        raise BadLocation("The address holds a user or password. Put them into a connection.")
    if not _HOST.fullmatch(url.raw_host) or port is not None and not 0 < port < 65536:
        raise BadLocation("The address names no host.")
    return url.copy_with(fragment=None)


def origin(url: httpx2.URL) -> tuple[str, str, int]:
    """(scheme, host, port), as RFC 6454 compares them."""
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}[url.scheme]
