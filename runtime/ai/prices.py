"""What a call cost, from the offline price table, where the endpoint is a known provider's and the model is in it."""

from __future__ import annotations

import asyncio
from decimal import Decimal

from .base import dollars


async def price(base_url: str, model: str, tokens_in: int | None, tokens_out: int | None) -> Decimal | None:
    """US dollars, or None: unknown is not free. A model of the same name on a server of one's own has no list price."""
    if tokens_in is None or tokens_out is None:
        return None
    return await asyncio.to_thread(_look_up, base_url, model, tokens_in, tokens_out)


def _look_up(base_url: str, model: str, tokens_in: int, tokens_out: int) -> Decimal | None:
    from genai_prices import Usage, calc_price  # reads a large table: not before it is needed, and off the event loop

    usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
    try:
        return dollars(calc_price(usage, model, provider_api_url=base_url).total_price)
    except (LookupError, ValueError):
        return None
