"""OAuth 2 client credentials (RFC 6749, section 4.4): a token is fetched when it is needed, kept in memory until shortly
before it expires, and fetched anew when the other system does not take it any more."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64encode
from urllib.parse import quote_plus, urlencode

from .. import net
from ..jsonvalues import BadJson, loads_strict
from ..states import AttemptOutcome
from . import calls
from .base import Connection, StepError

EARLY = 60.0
"""Seconds before its end at which a token is not used any more."""
UNSAID = 300.0
"""How long a token is used whose answer says nothing."""

_tokens: dict[str, tuple[str, float]] = {}
"""Digest of what it was asked with -> (token, until when by the monotonic clock). For the life of the process."""


async def token(connection: Connection, timeout: float, *, anew: bool = False) -> str:
    """A bearer token. Raises StepError; nothing was sent to the API itself then."""
    key = _key(connection)
    kept = _tokens.get(key)
    if kept and not anew and time.monotonic() < kept[1]:
        return kept[0]
    text, seconds = await _fetch(connection, timeout)
    _tokens[key] = (text, time.monotonic() + max(0.0, seconds - EARLY))
    return text


def _key(connection: Connection) -> str:
    asked = [dict(connection.config), connection.secret["client_secret"]]
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


async def _fetch(connection: Connection, timeout: float) -> tuple[str, float]:
    config = connection.config
    try:
        url = net.check_location(str(config.get("token_url") or ""))
    except net.BadLocation as wrong:
        raise _failed(connection, f"has a token address that cannot be called: {wrong}") from None
    if url.scheme != "https" and not calls.is_private(url):
        raise _failed(connection, "has a token address without https.")
    pair = f"{quote_plus(str(config.get('client_id', '')))}:{quote_plus(connection.secret['client_secret'])}"
    form = {"grant_type": "client_credentials"} | {
        name: str(config[name]) for name in ("scope", "audience") if config.get(name)
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    secret = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    try:
        answer = await calls.make(net.Call("POST", url, headers, secret, urlencode(form).encode()), timeout)
    except StepError as failed:
        raise _failed(connection, f"got no token: {failed.message}", retry=True) from None
    try:
        given = loads_strict(answer.body)
        text, seconds = given["access_token"], given.get("expires_in", UNSAID)
        if answer.status != 200 or not isinstance(text, str) or not text:
            raise LookupError
        return text, float(seconds)
    except (BadJson, LookupError, TypeError, ValueError, AttributeError):
        said = f"{url.host} answered {answer.status}."
        raise _failed(connection, f"got no token: {said}", retry=answer.status >= 500 or answer.status == 429) from None


def _failed(connection: Connection, words: str, retry: bool = False) -> StepError:
    message = f"The connection “{connection.name}” {words}"
    return StepError(message, field="connection", outcome=AttemptOutcome.NOT_SENT, retry=retry)
