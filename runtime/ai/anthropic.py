"""Anthropic's messages. JSON is asked for as the input of a tool that the model is made to use."""

from __future__ import annotations

from typing import Any

from .. import net
from ..jsonvalues import BadJson, loads_strict
from .base import Ask, ProviderFailed, Reply, count

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 2048
TOOL = "answer"


class Anthropic:
    path = "/v1/messages"

    def body(self, ask: Ask, quirks: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": ask.model,
            "max_tokens": ask.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": [{"role": "user", "content": ask.prompt}],
        }
        if ask.system:
            body["system"] = ask.system
        if ask.temperature is not None:
            body["temperature"] = ask.temperature
        if ask.schema is not None:
            body["tools"] = [{"name": TOOL, "description": "Give the answer.", "input_schema": ask.schema}]
            body["tool_choice"] = {"type": "tool", "name": TOOL}
        return body

    def headers(self) -> dict[str, str]:
        return {"anthropic-version": VERSION}

    def quirk(self, answer: net.Answer, quirks: frozenset[str]) -> str:
        return ""

    def read(self, answer: net.Answer, ask: Ask) -> Reply:
        try:
            data = loads_strict(answer.body)
            blocks, usage = data["content"], data.get("usage") or {}
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            inputs = [block["input"] for block in blocks if block["type"] == "tool_use" and block["name"] == TOOL]
        except (BadJson, LookupError, TypeError, AttributeError):
            raise ProviderFailed("The answer is no message.") from None
        return Reply(
            text=text,
            value=inputs[0] if inputs else None,
            tokens_in=_all_input(usage),
            tokens_out=count(usage.get("output_tokens")),
            model=str(data.get("model") or ask.model),
            stopped={"max_tokens": "length", "refusal": "refused"}.get(str(data.get("stop_reason")), ""),
        )


def _all_input(usage: dict[str, Any]) -> int | None:
    """Cached input is counted apart there, and is input all the same."""
    fresh = count(usage.get("input_tokens"))
    if fresh is None:
        return None
    cached = (count(usage.get(name)) or 0 for name in ("cache_creation_input_tokens", "cache_read_input_tokens"))
    return count(fresh + sum(cached))
