"""A step's call to the outside, judged: what its status means for the attempt, and whether trying again may help."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx2

from .. import net
from ..masking import excerpt
from ..net.locations import origin
from ..states import AttemptOutcome
from .base import Connection, Context, StepError

SHOWN = 16 * 1024
"""How much of a request's and an answer's body an attempt keeps."""

SIGN_IN = ("bearer", "basic", "header", "oauth2", "openai", "anthropic")
"""The kinds of connection that a call can be signed in with."""

REFUSED = (408, 425, 429)
"""The other side says that it did nothing: it waited in vain, would not be replayed to, or is overrun."""


class Verdict(NamedTuple):
    outcome: AttemptOutcome
    retry: bool
    retry_after: float | None = None


async def make(call: net.Call, timeout: float, limit: int = net.MIB, remedy: str = "") -> net.Answer:
    """The answer, whatever its status, of at most so many bytes. Raises StepError where there is none; `remedy` says what to
    do about one that is larger."""
    try:
        return await net.exchange(call, timeout, limit=limit)
    except net.BadHeader as wrong:
        raise StepError(str(wrong), field="headers", outcome=AttemptOutcome.NOT_SENT) from None
    except net.CallFailed as failed:
        outcome, retry = failed.outcome, failed.retry
        if failed.status is not None and failed.status >= 400:
            outcome, retry, _ = judge(failed.status, {})
        response = {"status": failed.status} if failed.status is not None else {}
        response |= {"timings": failed.timings} if failed.timings else {}
        message = f"{failed.message} {remedy}".strip() if isinstance(failed, net.AnswerTooLarge) else failed.message
        raise StepError(message, field="url", outcome=outcome, retry=retry, response=response or None) from failed


def judge(status: int, headers: Mapping[str, str]) -> Verdict:
    """What an answer that is not a success says about the attempt.

    A server that fails (5xx) may have done it; one that says when to come back has not begun.
    """
    wait = retry_after(headers)
    if status in REFUSED or (status == 503 and wait is not None):
        return Verdict(AttemptOutcome.REFUSED, True, wait)
    if status >= 500:
        return Verdict(AttemptOutcome.UNKNOWN, True, wait)
    return Verdict(AttemptOutcome.ANSWERED, False)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, from either of its forms (RFC 9110, section 10.2.3). A date is measured from the answer's
    own Date, so that the clocks need not agree."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = _date(text)
    if moment is None:
        return None
    sent = _date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (moment - sent).total_seconds())


def authorize(connection: Connection, url: httpx2.URL) -> dict[str, str]:
    """The headers of a credential, for a host that it is bound to. Raises StepError for any other."""
    check_place(connection, url)
    return _headers_of(connection)


async def sign_in(ctx: Context, connection: Connection, url: httpx2.URL, timeout: float, *, anew: bool = False) -> dict[str, str]:
    """As `authorize`, also for those whose token has to be fetched first."""
    if connection.kind != "oauth2":
        return authorize(connection, url)
    from . import oauth

    check_place(connection, url)
    token = await oauth.token(connection, timeout, anew=anew)
    ctx.hide(token)
    return {"Authorization": f"Bearer {token}"}


def per_minute(connection: Connection) -> int:
    """How many calls a minute its team allows it; 0: as many as come."""
    text = str(connection.config.get("per_minute") or "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def check_place(connection: Connection, url: httpx2.URL) -> None:
    """Raise StepError unless the credential may be sent there."""
    if not bound_to(connection, url):
        hosts = ", ".join(connection.hosts) or "none yet"
        raise StepError(
            f"The connection “{connection.name}” is not for {url.host}. It may be sent to: {hosts}.", field="connection"
        )
    if url.scheme != "https" and not is_private(url):
        raise StepError(
            f"A connection is sent over https only. Begin the address of {url.host} with https://.", field="url"
        )


def bound_to(connection: Connection, url: httpx2.URL) -> bool:
    """Whether the url's host is one of the connection's: `crm.example`, `crm.example:8443`, `*.crm.example`."""
    host, (_, _, port) = url.host.lower(), origin(url)
    for entry in connection.hosts:
        if entry in (host, f"{host}:{port}", f"[{host}]", f"[{host}]:{port}"):
            return True
        if entry.startswith("*.") and host.endswith(entry[1:]):
            return True
    return False


def _headers_of(connection: Connection) -> dict[str, str]:
    secret, config = connection.secret, connection.config
    match connection.kind:
        case "bearer":
            return {"Authorization": f"Bearer {secret['token']}"}
        case "basic":
            return {"Authorization": _basic(str(config.get("username", "")), secret["password"])}
        case "header":
            return {str(config.get("header") or "X-API-Key"): secret["value"]}
        case "openai":
            return {"Authorization": f"Bearer {secret['api_key']}"} if secret.get("api_key") else {}
        case "anthropic":
            return {"x-api-key": secret["api_key"]}
    raise StepError(f"A connection of kind “{connection.kind}” cannot be used here.", field="connection")


def _basic(user: str, password: str) -> str:
    """RFC 7617, in UTF-8."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def is_private(url: httpx2.URL) -> bool:
    """Whether the operator named this place: what stays inside may go without TLS."""
    return net.private_hosts().names(url.host, origin(url)[2])


def _date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text[:100])
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown(text: str) -> str:
    """A body as the run's page keeps it."""
    return excerpt(text, SHOWN, f" ({len(text):,} characters)")
