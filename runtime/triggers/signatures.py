"""Whether a webhook request was signed by somebody who has the secret: HMAC-SHA256 over the body as it came.

Sources: the Standard Webhooks specification (standardwebhooks.com), and the guides of GitHub ("Validating webhook
deliveries"), Stripe ("Resolve webhook signature verification errors") and Slack ("Verifying requests from Slack").
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from django.conf import settings

WINDOW = 300
"""Seconds that a signed time may lie before or after ours."""

PREFIX = "whsec_"
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class NotSigned(Exception):
    """The request is refused; the message says why and may be told to the sender."""


def verify(kind: str, secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Raise NotSigned unless one of the signatures was made with one of the secrets. Header names are in lower case."""
    if not secrets:
        raise NotSigned("This webhook has no secret to check the signature with.")
    message, signatures = _READERS[kind](headers, body, now)
    given = [signature.encode("utf-8", "surrogatepass") for signature in signatures]
    expected = [_SIGNERS[kind](secret, message) for secret in secrets]
    if not any([hmac.compare_digest(one, other) for one in expected for other in given]):
        raise NotSigned("The signature does not fit the body.")


def generated_secrets(token: str) -> list[str]:
    """The secrets that Holdfast makes for the webhook with this token, one for each key of the ring. Show the first.

    They are derived and nowhere stored, in the form of Standard Webhooks: `whsec_` and 32 bytes in base64.
    """
    digests = [
        hmac.digest(key.encode(), f"webhook\0{token}".encode(), hashlib.sha256) for key in settings.HOLDFAST_LINK_KEYS
    ]
    return [PREFIX + b64encode(digest).decode() for digest in digests]


def sign(secrets: Sequence[str], event: str, timestamp: str, body: bytes) -> str:
    """The `webhook-signature` of a message of ours, as Standard Webhooks says: one for each secret."""
    message = f"{event}.{timestamp}.".encode() + body
    return " ".join(_sign_standard(secret, message).decode() for secret in secrets)


def _read_standard(headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[bytes, list[str]]:
    """`webhook-signature: v1,<base64> v1,<base64>` over `<id>.<timestamp>.<body>`; Svix sends `svix-*`."""
    prefix = "webhook-" if "webhook-signature" in headers else "svix-"
    signatures = _header(headers, f"{prefix}signature", "webhook-signature").split()
    event, timestamp = headers.get(f"{prefix}id", ""), headers.get(f"{prefix}timestamp", "")
    _check_time(timestamp, now)
    return f"{event}.{timestamp}.".encode("utf-8", "surrogatepass") + body, signatures


def _read_github(headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[bytes, list[str]]:
    """`X-Hub-Signature-256: sha256=<hex>` over the body. GitHub signs no time: dedupe by `X-GitHub-Delivery`."""
    return body, [_header(headers, "x-hub-signature-256").strip()]


def _read_stripe(headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[bytes, list[str]]:
    """`Stripe-Signature: t=<timestamp>,v1=<hex>,v1=<hex>` over `<timestamp>.<body>`; other schemes are passed over."""
    parts = [part.strip().partition("=") for part in _header(headers, "stripe-signature").split(",")]
    timestamp = next((value for name, _, value in parts if name == "t"), "")
    _check_time(timestamp, now)
    return f"{timestamp}.".encode() + body, [value for name, _, value in parts if name == "v1"]


def _read_slack(headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[bytes, list[str]]:
    """`X-Slack-Signature: v0=<hex>` over `v0:<timestamp>:<body>`."""
    signature = _header(headers, "x-slack-signature").strip()
    timestamp = headers.get("x-slack-request-timestamp", "")
    _check_time(timestamp, now)
    return f"v0:{timestamp}:".encode() + body, [signature]


def _header(headers: Mapping[str, str], name: str, shown: str = "") -> str:
    value = headers.get(name, "")
    if not value.strip():
        raise NotSigned(f"The request is not signed: {shown or name} is missing.")
    return value


def _check_time(timestamp: str, now: datetime) -> None:
    if not _TIMESTAMP.fullmatch(timestamp):
        raise NotSigned("The signature has no time in it that could be read.")
    if abs(now.timestamp() - int(timestamp)) > WINDOW:
        raise NotSigned(f"The signature's time is more than {WINDOW} seconds away from ours.")


def _sign_standard(secret: str, message: bytes) -> bytes:
    return b"v1," + b64encode(hmac.digest(_standard_key(secret), message, hashlib.sha256))


def _standard_key(secret: str) -> bytes:
    """The specification's secrets are base64; what is not is taken as it stands."""
    try:
        return b64decode(secret.removeprefix(PREFIX), validate=True)
    except (NotBase64, ValueError):
        return secret.encode()


def _hexadecimal(prefix: str) -> Callable[[str, bytes], bytes]:
    return lambda secret, message: (prefix + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()).encode()


_READERS = {"standard": _read_standard, "github": _read_github, "stripe": _read_stripe, "slack": _read_slack}
_SIGNERS = {
    "standard": _sign_standard,
    "github": _hexadecimal("sha256="),
    "stripe": _hexadecimal(""),
    "slack": _hexadecimal("v0="),
}
