"""One exchange: a call, its redirects, its answer, under one deadline.

Read time-outs do not bound an answer that drips, so the deadline spans everything. There are no cookies, no proxies
from the environment and no stored logins: what is sent is what the call says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpcore2
import httpx2

from .. import failpoints
from ..states import AttemptOutcome
from .backend import RESOLVED, Resolve
from .bodies import MIB, BadEncoding, TooLarge, read_body
from .failures import AnswerTooLarge, CallFailed, from_exception, words
from .headers import MOST_HEADERS, check_headers
from .locations import BadLocation, check_location, origin
from .pools import loop_pool, new_pool

MOST_REDIRECTS = 5
PHASES = ("resolve", "connect", "tls", "first_byte", "body")
BEGINS = {
    "connection.connect_tcp.started": "resolve",
    "connection.start_tls.started": "tls",
    "http11.send_request_headers.started": "first_byte",
    "http11.receive_response_headers.complete": "body",
}
"""The transport's events with which a phase begins and the one before it ends."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent. `secret_headers` carry a credential: they go to the first origin only, never on to another."""

    method: str
    url: httpx2.URL
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = b""
    keeps_head: bool = False
    """Whether an answer that is too large is cut and no failure: what the call did is done."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `headers` are lower-case; repeated ones are joined by a comma. `cut` where an error's body, or
    that of a call that `keeps_head`, was longer than the limit; and where an error's body broke off."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: httpx2.URL
    cut: bool = False
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by phase, over all redirects: those of `PHASES` that there were; a connection that was kept has no first
    three."""


async def exchange(call: Call, timeout: float, *, limit: int = MIB, resolve: Resolve | None = None) -> Answer:
    """Make the call and follow its redirects. Raises BadHeader before anything is sent, and CallFailed."""
    call = replace(call, headers=check_headers(call.headers), secret_headers=check_headers(call.secret_headers))
    progress = _Progress()
    RESOLVED.set(lambda: progress.enter("connect"))
    pool = loop_pool() if resolve is None else new_pool(resolve)
    try:
        async with asyncio.timeout(timeout):
            answer = await _follow(pool, call, limit, progress)
        return replace(answer, timings=progress.timings())
    except TimeoutError:
        outcome = AttemptOutcome.UNKNOWN if progress.sent else AttemptOutcome.NOT_SENT
        failed = CallFailed(f"No complete answer within {timeout:g} s.", outcome, retry=True, status=progress.status)
        failed.timings = progress.timings()
        raise failed from None
    except CallFailed as failed:
        failed.timings = progress.timings()
        raise
    finally:
        if resolve is not None:
            await pool.aclose()


async def _follow(pool: httpcore2.AsyncConnectionPool, call: Call, limit: int, progress: _Progress) -> Answer:
    for hop in range(MOST_REDIRECTS + 1):
        try:
            answer = await _send(pool, call, limit, progress)
        except CallFailed as failed:
            if hop:
                failed.message = f"Redirected to {_shown(call.url)}: {failed.message}"
            raise
        onward = _redirected(call, answer)
        if onward is None:
            return answer
        call = onward
        progress.sent, progress.status = False, None
    raise CallFailed(
        f"More than {MOST_REDIRECTS} redirects, the last to {_shown(call.url)}.", AttemptOutcome.ANSWERED, retry=False
    )


def _redirected(call: Call, answer: Answer) -> Call | None:
    """The call to make instead, or None where the answer is the answer. RFC 9110, section 15.4.

    Only what changes nothing follows 301, 302 and 303: after a POST they say that it was done, and repeating the whole
    because the second half failed would do it again. 307 and 308 say that nothing was done yet.
    """
    safe = call.method in ("GET", "HEAD", "OPTIONS")
    if answer.status not in (307, 308) and not (safe and answer.status in (301, 302, 303)):
        return None
    target = answer.headers.get("location", "")
    if not target:
        return None
    try:
        url = check_location(str(answer.url.join(target)))
    except (BadLocation, httpx2.InvalidURL) as wrong:
        raise _refused(f"Redirected to an address that cannot be called: {wrong}") from None
    if call.url.scheme == "https" and url.scheme == "http":
        raise _refused(f"Redirected from https to {_shown(url)}, which is not encrypted.")
    if origin(url) == origin(call.url):
        return replace(call, url=url)
    return replace(call, url=url, headers=_without_secrets(call.headers), secret_headers={})


def _refused(message: str) -> CallFailed:
    return CallFailed(message, AttemptOutcome.ANSWERED, retry=False)


def _without_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """What somebody may have typed by hand is dropped with the credential."""
    telling = ("authorization", "cookie", "token", "secret", "api-key", "apikey", "signature")
    return {name: value for name, value in headers.items() if not any(word in name.lower() for word in telling)}


async def _send(pool: httpcore2.AsyncConnectionPool, call: Call, limit: int, progress: _Progress) -> Answer:
    request = httpcore2.Request(
        call.method,
        httpcore2.URL(scheme=call.url.raw_scheme, host=call.url.raw_host, port=call.url.port, target=call.url.raw_path),
        headers=_wire_headers(call),
        content=call.body,
        extensions={"trace": progress.trace},
    )
    try:
        response = await pool.handle_async_request(request)
    except Exception as wrong:
        raise from_exception(wrong, progress.sent) from wrong
    try:
        progress.status = response.status
        return await _read(call, response, limit)
    finally:
        await response.aclose()


async def _read(call: Call, response: httpcore2.Response, limit: int) -> Answer:
    """Take the answer in. Where its status already tells a failure, a body that cannot be had changes nothing."""
    if len(response.headers) > MOST_HEADERS:
        raise CallFailed(
            f"The answer has {len(response.headers):,} headers; at most {MOST_HEADERS} are taken.",
            AttemptOutcome.ANSWERED, retry=False, status=response.status,
        )  # fmt: skip
    headers = _joined(response.headers)
    failed = response.status >= 400
    try:
        body = await read_body(response.aiter_stream(), headers.get("content-encoding", ""), limit)
    except TooLarge as large:
        if failed or call.keeps_head:
            return Answer(response.status, headers, large.beginning, call.url, cut=True)
        size = f"{limit / MIB:g} MiB" if limit >= MIB else f"{limit:,} bytes"
        message = f"The answer is larger than {size}."
        raise AnswerTooLarge(message, AttemptOutcome.ANSWERED, retry=False, status=response.status) from None
    except BadEncoding as wrong:
        if failed:
            return Answer(response.status, headers, b"", call.url, cut=True)
        raise CallFailed(str(wrong), AttemptOutcome.ANSWERED, retry=False, status=response.status) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError) as wrong:
        if failed:
            return Answer(response.status, headers, b"", call.url, cut=True)
        message = f"The answer broke off: {words(wrong)}"
        raise CallFailed(message, AttemptOutcome.UNKNOWN, retry=True, status=response.status) from wrong
    return Answer(response.status, headers, body, call.url)


def _wire_headers(call: Call) -> list[tuple[bytes, bytes]]:
    headers = {"User-Agent": "Holdfast", "Accept": "*/*"}
    given = {**call.headers, **call.secret_headers}
    names = {name.lower() for name in given}
    headers = {name: value for name, value in headers.items() if name.lower() not in names} | given
    headers["Host"] = call.url.netloc.decode("ascii")
    headers["Accept-Encoding"] = "gzip, deflate"
    if call.body or call.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(call.body))
    return [(name.encode("ascii"), value.encode()) for name, value in headers.items()]


def _joined(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace").replace("\x00", "")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


class _Progress:
    """How far an exchange has got: whether a byte of the present request can have left, what was answered, and how long each
    phase took."""

    def __init__(self) -> None:
        self.sent, self.status = False, None
        self._spent: dict[str, float] = {}
        self._phase, self._since = "", 0.0

    def timings(self) -> dict[str, float]:
        self.enter("")
        return {phase: round(1000 * self._spent[phase], 1) for phase in PHASES if phase in self._spent}

    def enter(self, phase: str) -> None:
        now = time.monotonic()
        if self._phase:
            self._spent[self._phase] = self._spent.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        if phase := BEGINS.get(event):
            self.enter(phase)
        if event == "http11.send_request_headers.started":
            self.sent = True
        elif event == "http11.send_request_body.complete":
            failpoints.hit("call.during")


def _shown(url: httpx2.URL) -> str:
    """An address for a message: without its query, which may carry secrets."""
    return str(url.copy_with(query=None, fragment=None))
