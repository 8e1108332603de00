"""OAuth 2 client credentials (RFC 6749, section 4.4): a token is fetched when it is needed, kept in memory until shortly
before it expires, and fetched anew when the other system does not take it any more."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64encode
from urllib.parse import quote_plus, urlencode

import httpx2

from .. import net
from ..jsonvalues import BadJson, loads_strict
from ..states import AttemptOutcome
from . import calls
from .base import Connection, StepError

EARLY = 60.0
"""Seconds before its end at which a token is not used any more."""
UNSAID = 300.0
"""How long a token is used whose answer says nothing."""

_in_form: set[str] = set()
"""Digests of those whose secret is taken in the form only. For the life of the process."""
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
    key = _key(connection)
    answer = await _ask(connection, url, timeout, in_form=key in _in_form)
    if answer.status in (400, 401) and key not in _in_form:  # all have to take the header, and some do not
        again = await _ask(connection, url, timeout, in_form=True)
        if again.status == 200:
            _in_form.add(key)
            answer = again
    try:
        given = loads_strict(answer.body)
        text, seconds = given["access_token"], given.get("expires_in", UNSAID)
        if answer.status != 200 or not isinstance(text, str) or not text:
            raise LookupError
        return text, float(seconds)
    except (BadJson, LookupError, TypeError, ValueError, AttributeError):
        said = f"{url.host} answered {answer.status}."
        raise _failed(connection, f"got no token: {said}", retry=answer.status >= 500 or answer.status == 429) from None


async def _ask(connection: Connection, url: httpx2.URL, timeout: float, *, in_form: bool) -> net.Answer:
    """The client's secret goes into a header, or into the form (RFC 6749, section 2.3.1)."""
    config, secret = connection.config, connection.secret["client_secret"]
    form = {"grant_type": "client_credentials"} | {name: str(config[name]) for name in ("scope", "audience") if config.get(name)}
    client, signed = str(config.get("client_id", "")), {}
    if in_form:
        form |= {"client_id": client, "client_secret": secret}
    else:
        pair = f"{quote_plus(client)}:{quote_plus(secret)}"
        signed = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    try:
        return await calls.make(net.Call("POST", url, headers, signed, urlencode(form).encode()), timeout)
    except StepError as failed:
        raise _failed(connection, f"got no token: {failed.message}", retry=True) from None


def _failed(connection: Connection, words: str, retry: bool = False) -> StepError:
    message = f"The connection “{connection.name}” {words}"
    return StepError(message, field="connection", outcome=AttemptOutcome.NOT_SENT, retry=retry)
