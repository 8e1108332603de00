"""Connections: secrets of other systems, encrypted at rest, opened for one step at a time.

The credential's id stands inside the plaintext, so that a ciphertext copied to another row does not open there. Keys
come from HOLDFAST_CREDENTIAL_KEYS, apart from SECRET_KEY: the first encrypts, all of them decrypt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psycopg
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import transaction

from .models import Credential
from .steps.base import Connection, StepError


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a connection's form. A secret one is write-only."""

    name: str
    label: str
    secret: bool = False
    required: bool = True
    default: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of connection. `provider` marks those that AI steps can use."""

    kind: str
    label: str
    summary: str
    fields: tuple[Field, ...]
    provider: bool = False


_BASE_ADDRESS = Field(
    "base_url", "Base address", required=False, help="Put before an address that begins with /, such as /v1/deals."
)
_PER_MINUTE = Field(
    "per_minute", "Calls a minute", required=False, help="At most so many, over all workers. The others wait. Empty: no limit."
)
_MODEL = Field("model", "Model", required=False, help="Used where a step names none.")
_API_KEY = Field("api_key", "API key", secret=True)

KINDS: dict[str, Kind] = {
    kind.kind: kind
    for kind in (
        Kind(
            "bearer",
            "Bearer token",
            "Sends Authorization: Bearer …",
            (Field("token", "Token", secret=True), _BASE_ADDRESS, _PER_MINUTE),
        ),
        Kind(
            "basic",
            "User and password",
            "Sends Authorization: Basic …",
            (Field("username", "User"), Field("password", "Password", secret=True), _BASE_ADDRESS, _PER_MINUTE),
        ),
        Kind(
            "header",
            "Header",
            "Sends a header of your choice",
            (
                Field("header", "Header", default="X-API-Key"),
                Field("value", "Value", secret=True),
                _BASE_ADDRESS,
                _PER_MINUTE,
            ),
        ),
        Kind(
            "oauth2",
            "OAuth 2 client credentials",
            "Fetches a token by client id and secret, and a new one when it ends",
            (
                Field("token_url", "Token address"),
                Field("client_id", "Client id"),
                Field("client_secret", "Client secret", secret=True),
                Field("scope", "Scope", required=False, help="Several are separated by spaces."),
                Field("audience", "Audience", required=False),
                _BASE_ADDRESS,
                _PER_MINUTE,
            ),
        ),
        Kind(
            "signing",
            "Signing secret",
            "Checks the signature of the webhooks that another system sends",
            (
                Field("secret", "Secret", secret=True),
                Field(
                    "previous",
                    "Earlier secret",
                    secret=True,
                    required=False,
                    help="Honoured too, while a new one is brought in.",
                ),
            ),
        ),
        Kind(
            "openai",
            "OpenAI-compatible",
            "OpenAI, and the many servers that speak its chat completions",
            (
                Field("base_url", "Base address", default="https://api.openai.com/v1"),
                Field("api_key", "API key", secret=True, required=False, help="Empty for a server that asks for none."),
                _MODEL,
            ),
            provider=True,
        ),
        Kind(
            "anthropic",
            "Anthropic",
            "The messages API",
            (Field("base_url", "Base address", default="https://api.anthropic.com"), _API_KEY, _MODEL),
            provider=True,
        ),
    )
}

LOAD = """
-- The connection that a step names, within its workflow's team.
select id, name, kind, hosts, config, secret from credential where team_id = %s and name = %s
"""
USED = """
-- When it was last used, to the minute: a write per call would be a write too many.
update credential set last_used_at = clock_timestamp()
where id = %s and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')
"""


class CannotOpen(Exception):
    """The ciphertext belongs to another row, or none of the present keys made it."""


@transaction.atomic
def seal(credential: Credential, secret: Mapping[str, str]) -> Credential:
    """Encrypt `secret` into the credential and save it. A new row is saved first: its id is part of what is sealed."""
    if credential.pk is None:
        credential.secret = b""
        credential.save()
    credential.secret = _encrypt(credential.pk, secret)
    credential.save()
    return credential


def open_row(row: Credential) -> Connection:
    """Decrypt. Raises CannotOpen."""
    secret = _decrypt(row.pk, bytes(row.secret))
    return Connection(row.name, row.kind, bound_hosts(row.hosts, row.config), row.config, secret)


async def load(conn: psycopg.AsyncConnection[Any], team_id: int, name: str) -> Connection:
    """The team's connection of this name, opened. Raises StepError in words for the person who built the step."""
    row = await (await conn.execute(LOAD, (team_id, name))).fetchone()
    if row is None:
        raise StepError(
            f"There is no connection “{name}”. Add it under Connections, or choose another.", field="connection"
        )
    pk, name, kind, hosts, config, sealed = row
    try:
        secret = _decrypt(pk, bytes(sealed))
    except CannotOpen:
        raise StepError(
            f"The connection “{name}” cannot be opened with the present keys. Enter its secret again.",
            field="connection",
        ) from None
    await conn.execute(USED, (pk,))
    return Connection(name, kind, bound_hosts(hosts, config), config, secret)


@transaction.atomic
def rotate() -> int:
    """Encrypt every credential anew with the first key. Returns how many; raises CannotOpen, changing nothing."""
    rows = list(Credential.objects.select_for_update().order_by("pk"))
    for row in rows:
        row.secret = _encrypt(row.pk, _decrypt(row.pk, bytes(row.secret)))
        row.save(update_fields=["secret"])
    return len(rows)


def bound_hosts(hosts: list[str], config: Mapping[str, Any]) -> tuple[str, ...]:
    """The only hosts that it is sent to: those listed, and the base address's own."""
    base = urlsplit(str(config.get("base_url") or ""))
    own = [base.netloc.rpartition("@")[2].lower()] if base.netloc else []
    return tuple(dict.fromkeys([*(host.strip().lower() for host in hosts), *own]))


def encrypted(text: str) -> str:
    """Any other secret of ours, under the same keys."""
    return _ring().encrypt(text.encode()).decode()


def decrypted(text: str) -> str:
    """What `encrypted` made. Raises CannotOpen."""
    try:
        return _ring().decrypt(text.encode()).decode()
    except InvalidToken:
        raise CannotOpen("None of the present keys opens this secret.") from None


def _ring() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.HOLDFAST_CREDENTIAL_KEYS])


def _encrypt(pk: int, secret: Mapping[str, str]) -> bytes:
    return _ring().encrypt(json.dumps({"id": pk, "secret": dict(secret)}).encode())


def _decrypt(pk: int, sealed: bytes) -> dict[str, str]:
    try:
        plain = json.loads(_ring().decrypt(sealed))
    except InvalidToken:
        raise CannotOpen("None of the present keys opens this connection.") from None
    if plain["id"] != pk:
        raise CannotOpen("This secret was sealed for another connection.")
    return plain["secret"]
