"""Whether a connection works: one GET with its secret, to a place to which the secret is sent anyway. Of the answer only the
status is told, since a server may send back what it was sent."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import httpx2

from runtime import credentials, net
from runtime.ai.providers import PROVIDERS, base_address
from runtime.models import Credential
from runtime.steps import calls, oauth
from runtime.steps.base import Connection, StepError

SECONDS = 10.0
MODELS = {"openai": "/models", "anthropic": "/v1/models"}
"""What providers list for whoever has a key, and bill nobody for."""


class Found(NamedTuple):
    """`well`: whether it was let in; None where the answer does not tell."""

    well: bool | None
    words: str


def try_connection(row: Credential) -> Found:
    async def ask() -> Found:
        try:
            return await _asked(credentials.open_row(row))
        finally:
            await net.close()

    try:
        return asyncio.run(ask())
    except credentials.CannotOpen:
        return Found(False, "The stored secret cannot be read with the present keys. Enter it again.")
    except StepError as wrong:
        return Found(False, wrong.message)


async def _asked(connection: Connection) -> Found:
    url, token = _place(connection), ""
    if connection.kind == "oauth2":
        token = await oauth.token(connection, SECONDS, anew=True)
    if url is None:
        said = "A token was given. " if token else ""
        return Found(bool(token) or None, f"{said}Without a base address there is nothing to ask.")
    if token:
        calls.check_place(connection, url)
    secret = {"Authorization": f"Bearer {token}"} if token else calls.authorize(connection, url)
    headers = PROVIDERS[connection.kind].headers() if connection.kind in PROVIDERS else {}
    answer = await calls.make(net.Call("GET", url, headers, secret, keeps_head=True), SECONDS)
    return _judged(url.host, answer.status)


def _place(connection: Connection) -> httpx2.URL | None:
    """Where to ask: the base address, else the first host that is one and no pattern. Raises StepError."""
    if connection.kind in MODELS:
        text = base_address(connection) + MODELS[connection.kind]
    else:
        host = next((host for host in connection.hosts if not host.startswith("*")), "")
        text = str(connection.config.get("base_url") or "") or (f"https://{host}/" if host else "")
    try:
        return net.check_location(text) if text else None
    except net.BadLocation as wrong:
        raise StepError(str(wrong)) from None


def _judged(host: str, status: int) -> Found:
    said = f"{host} answered {status}"
    if 200 <= status < 300:
        return Found(True, f"{said}: the connection works.")
    if status in (401, 403):
        return Found(False, f"{said}: it does not let this connection in.")
    return Found(None, f"{said}. It was reached, which does not tell whether it lets this connection in.")
