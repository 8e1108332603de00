"""OpenAI's chat completions, and the many servers that speak them.

They differ in what they take, and say so with a 400: some know no `response_format`, OpenAI's newer models want
`max_completion_tokens`. What an endpoint refuses is learnt once per process, and the call is made again without it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from .. import net
from ..jsonvalues import BadJson, loads_strict
from .base import Ask, ProviderFailed, Reply, count, dollars, schema_words

NO_SCHEMA = "no response_format"
NEW_LIMIT = "max_completion_tokens"


class OpenAI:
    path = "/chat/completions"

    def body(self, ask: Ask, quirks: frozenset[str]) -> dict[str, Any]:
        system, body = ask.system, {"model": ask.model}
        if ask.schema is not None and NO_SCHEMA in quirks:
            system = f"{system}\n\n{schema_words(ask.schema)}"
        elif ask.schema is not None:
            shape = {"name": "answer", "schema": ask.schema, "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        if ask.max_tokens is not None:
            body["max_completion_tokens" if NEW_LIMIT in quirks else "max_tokens"] = ask.max_tokens
        if ask.temperature is not None:
            body["temperature"] = ask.temperature
        messages = [{"role": "system", "content": system}, {"role": "user", "content": ask.prompt}]
        return {**body, "messages": messages if system else messages[1:]}

    def headers(self) -> dict[str, str]:
        return {}

    def quirk(self, answer: net.Answer, quirks: frozenset[str]) -> str:
        if answer.status not in (400, 404, 422, 501):
            return ""
        text = answer.body.decode("utf-8", "replace").lower()
        if NEW_LIMIT not in quirks and "max_completion_tokens" in text:
            return NEW_LIMIT
        if NO_SCHEMA not in quirks and any(
            word in text for word in ("response_format", "json_schema", "structured output")
        ):
            return NO_SCHEMA
        return ""

    def read(self, answer: net.Answer, ask: Ask) -> Reply:
        try:
            data = loads_strict(answer.body)
            choice = data["choices"][0]
            message, usage = choice["message"], data.get("usage") or {}
            text = _text(message.get("content"))
        except (BadJson, LookupError, TypeError, AttributeError):
            raise ProviderFailed("The answer is no chat completion.") from None
        return Reply(
            text=text or str(message.get("refusal") or ""),
            tokens_in=count(usage.get("prompt_tokens")),
            tokens_out=count(usage.get("completion_tokens")),
            cost=_cost(usage, answer),
            model=str(data.get("model") or ask.model),
            stopped=_stopped(choice.get("finish_reason"), message),
        )


def _text(content: Any) -> str:
    """Some servers give the content in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def _stopped(reason: Any, message: dict[str, Any]) -> str:
    if message.get("refusal") or reason == "content_filter":
        return "refused"
    return "length" if reason == "length" else ""


def _cost(usage: dict[str, Any], answer: net.Answer) -> Decimal | None:
    """Gateways tell what a call cost them, in US dollars: OpenRouter in the usage, LiteLLM in a header."""
    told = usage.get("cost", answer.headers.get("x-litellm-response-cost"))
    if told is None or isinstance(told, bool):
        return None
    return dollars(told)
