"""Messages to other systems: outbox rows of kind `webhook`, posted through the guarded client and signed as Standard
Webhooks says, so that a receiver can tell them from forged ones and old ones."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from . import net
from .mailer import Deferred, Letter, Rejected
from .triggers.signatures import generated_secrets, sign

KIND = "webhook"
SECONDS = 10.0
GONE = 410


def secrets_for(sender: str, url: str) -> list[str]:
    """What a receiver checks the signatures with, one for each key of the ring. Show the first."""
    return generated_secrets(f"{sender} to {url}")


async def post(letter: Letter) -> None:
    """Post the event. Raises Rejected where it makes no sense to try again, else Deferred."""
    try:
        answer = await net.exchange(call(letter.recipient, letter.message_id, letter.payload), SECONDS)
    except (net.BadLocation, net.BadHeader) as wrong:
        raise Rejected(str(wrong)) from None
    except net.CallFailed as failed:
        raise (Deferred if failed.retry else Rejected)(failed.message) from None
    if answer.status == GONE:
        raise Rejected("It answered 410: nobody wants this any more.")
    if not 200 <= answer.status < 300:
        raise Deferred(f"It answered {answer.status}.")


def call(url: str, message_id: str, payload: Mapping[str, Any]) -> net.Call:
    """The id stays the same in every attempt; the time is that of the attempt."""
    body = json.dumps(payload["event"], ensure_ascii=False).encode()
    at = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": at,
        "webhook-signature": sign(secrets_for(payload["sender"], url), message_id, at, body),
    }
    return net.Call("POST", net.check_location(url), headers, {}, body, keeps_head=True)
