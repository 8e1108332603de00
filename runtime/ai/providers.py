"""Ask a provider through the guarded client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import httpx2

from .. import net
from ..masking import excerpt
from ..steps import calls
from ..steps.base import Attempt, Connection, StepError
from .anthropic import Anthropic
from .base import Ask, Provider, ProviderFailed, Reply
from .openai import OpenAI
from .prices import price

PROVIDERS: dict[str, Provider] = {"openai": OpenAI(), "anthropic": Anthropic()}
DEFAULT_ADDRESS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
MOST_TRIES = 3
"""A refused peculiarity costs nothing and does nothing: the call is made again without it, at once."""

_learnt: dict[tuple[str, str], frozenset[str]] = {}
"""(address, model) -> peculiarities, for the life of the process. Small: one entry per endpoint that has any."""


async def ask_provider(connection: Connection, ask: Ask, begin: Callable[[], Awaitable[Attempt]]) -> Reply:
    """The model's reply with its cost, checked no further. `begin` makes an attempt durable before each call. Raises
    StepError."""
    provider, base = PROVIDERS[connection.kind], base_address(connection)
    url = _url(base, provider.path)
    secret = signed_in(connection, url)
    clock, began = asyncio.get_running_loop().time, None
    for _ in range(MOST_TRIES):
        quirks = _learnt.get((base, ask.model), frozenset())
        body = json.dumps(provider.body(ask, quirks), ensure_ascii=False).encode()
        attempt = await begin()
        began = began or clock()
        headers = {**provider.headers(), "Content-Type": "application/json", "Idempotency-Key": _key(attempt, quirks)}
        left = max(0.05, attempt.timeout - (clock() - began))
        answer = await calls.make(net.Call("POST", url, headers, secret, body), left)
        quirk = provider.quirk(answer, quirks) if answer.status >= 400 else ""
        if not quirk:
            break
        _learnt[base, ask.model] = quirks | {quirk}
    if answer.status != 200:
        raise _refusal(answer, connection)
    try:
        reply = provider.read(answer, ask)
    except ProviderFailed as wrong:
        response = {
            "status": answer.status,
            "body": calls.shown(answer.body.decode("utf-8", "replace").replace("\x00", "")),
        }
        raise StepError(f"{wrong} Is {base} the right base address?", field="connection", response=response) from None
    if reply.cost is None:
        reply = replace(reply, cost=await price(base, reply.model, reply.tokens_in, reply.tokens_out))
    return reply


def _key(attempt: Attempt, quirks: frozenset[str]) -> str:
    """One key for one body: a server that keeps answers by key must not give the refusal again."""
    return f"{attempt.idempotency_key}-{len(quirks)}" if quirks else attempt.idempotency_key


def base_address(connection: Connection) -> str:
    base = str(connection.config.get("base_url") or DEFAULT_ADDRESS[connection.kind]).rstrip("/")
    return base.removesuffix("/v1") if connection.kind == "anthropic" else base


def signed_in(connection: Connection, url: httpx2.URL) -> dict[str, str]:
    """The headers of the connection. Azure's endpoints take the key in one of their own."""
    secret = calls.authorize(connection, url)
    if url.host.endswith(".azure.com") and "Authorization" in secret:
        return {"api-key": secret["Authorization"].removeprefix("Bearer ")}
    return secret


def _url(base: str, path: str) -> httpx2.URL:
    """The path comes before what an address asks for: Azure's older ones end in ?api-version=…"""
    base, mark, query = base.partition("?")
    try:
        return net.check_location(f"{base.rstrip('/')}{path}{mark}{query}")
    except net.BadLocation as wrong:
        raise StepError(f"The connection's base address cannot be called: {wrong}", field="connection") from None


def _refusal(answer: net.Answer, connection: Connection) -> StepError:
    outcome, retry, wait = calls.judge(answer.status, answer.headers)
    said = _said(answer)
    message = f"{answer.url.host} answered {answer.status}{f': {said}' if said else '.'}"
    if answer.status in (401, 403):
        message += f" Check the key of the connection “{connection.name}”."
    response = {"status": answer.status, "error": said}
    return StepError(message, field="connection", outcome=outcome, retry=retry, retry_after=wait, response=response)


def _said(answer: net.Answer) -> str:
    """The provider's own words, from the places where they put them."""
    text = answer.body.decode("utf-8", "replace").replace("\x00", "")
    try:
        data = json.loads(text)
        error = data.get("error", data) if isinstance(data, dict) else data
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, RecursionError):
        pass
    return excerpt(" ".join(text.split()), 500)
