"""Secrets in links: approval tokens and callback signatures, both made by HMAC-SHA256 from the key ring.

Nothing here is stored but a nonce, the id of the key and the hash of the token, so a copy of the database opens no
approval. The address comes from `HOLDFAST_PUBLIC_URL`, never from a request's host. The first key of the ring makes
links; links made with any other key of the ring go on working.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from django.conf import settings

from .masking import MASK

URLSAFE = re.compile(r"[A-Za-z0-9_-]{16,64}")
"""What `secrets.token_urlsafe` makes: the tokens in the addresses of triggers, and the keys of forms that count once."""
_SLASH = r"(?:\\?/|%(?:25)*2F)"
_CALLBACK = re.compile(rf"({_SLASH}callbacks{_SLASH}\d+{_SLASH})([A-Za-z0-9_-]+)", re.IGNORECASE)
"""Also inside of another address, and as others escape it in JSON."""


class KeyGone(LookupError):
    """The key that made this link is no longer in HOLDFAST_LINK_KEYS."""


class Minted(NamedTuple):
    """What a recipient row keeps of a link."""

    nonce: str
    key_id: str
    token_hash: str


def mint(run_id: int, path: str, take: int, address: str) -> Minted:
    """A new link for one approver of one approval."""
    nonce = secrets.token_urlsafe(24)
    key_id = _key_id(settings.HOLDFAST_LINK_KEYS[0])
    token = token_for(run_id, path, take, address, nonce, key_id)
    return Minted(nonce, key_id, token_hash(token))


def token_for(run_id: int, path: str, take: int, address: str, nonce: str, key_id: str) -> str:
    """The token of a minted link, made again: 43 characters of URL-safe base64. Raises KeyGone."""
    for key in settings.HOLDFAST_LINK_KEYS:
        if _key_id(key) == key_id:
            return _sign(key, "approval", run_id, path, take, address, nonce)
    raise KeyGone(f"The link key {key_id} is not in HOLDFAST_LINK_KEYS any more.")


def token_hash(token: str) -> str:
    """What is stored and looked up: SHA-256 in hex. The token is 256 random-looking bits, so no salt is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def approval_url(token: str) -> str:
    return f"{settings.HOLDFAST_PUBLIC_URL}/a/{token}/"


def callback_signature(run_id: int, path: str) -> str:
    """The signature in the address of a callback step."""
    return _sign(settings.HOLDFAST_LINK_KEYS[0], "callback", run_id, path)


def callback_url(run_id: int, path: str) -> str:
    """Where another system calls this run back. `each[3]/call` keeps its brackets only in escaped form."""
    signature = callback_signature(run_id, path)
    return f"{settings.HOLDFAST_PUBLIC_URL}/callbacks/{run_id}/{signature}/{quote(path, safe='/')}/"


def without_signatures(value: Any, mask: str = MASK) -> Any:
    """A value for people to read, at any depth without the signatures of callback addresses: whoever has one may answer in the
    place of the other system, and not everybody who sees a run may. Also JSON text, which stays the JSON that it is."""
    return _without(value, mask) if "callbacks" in str(value) else value


def _without(value: Any, mask: str) -> Any:
    if isinstance(value, str):
        return _CALLBACK.sub(rf"\1{mask}", value)
    if isinstance(value, Mapping):
        return {_without(name, mask): _without(inner, mask) for name, inner in value.items()}
    return [_without(inner, mask) for inner in value] if isinstance(value, list | tuple) else value


def with_signatures_blotted(text: str) -> str:
    """As `without_signatures`, of a text that keeps its length, so that parts of it can be read."""
    return _CALLBACK.sub(lambda found: found[1] + MASK[0] * len(found[2]), text) if "callbacks" in text else text


def callback_verified(run_id: int, path: str, signature: str) -> bool:
    """Whether any key of the ring made this signature. Takes the same time wherever it differs."""
    given = signature.encode("utf-8", "surrogatepass")
    made = [_sign(key, "callback", run_id, path).encode() for key in settings.HOLDFAST_LINK_KEYS]
    return any([hmac.compare_digest(one, given) for one in made])


def _sign(key: str, *parts: str | int) -> str:
    """The first part tells purposes apart, and JSON keeps the parts from running into each other."""
    digest = hmac.digest(key.encode(), json.dumps(parts).encode(), hashlib.sha256)
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _key_id(key: str) -> str:
    return hashlib.sha256(b"holdfast link key\0" + key.encode()).hexdigest()[:16]
