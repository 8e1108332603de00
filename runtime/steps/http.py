"""API call: one HTTP request and its answer.

Its output is `{"status": 201, "headers": {...}, "body": ...}`: a later step reads `steps.<id>.output.body.id`.
`headers` holds those that flows use: content-type, location, etag, link, retry-after, and what begins with x-. `body`
is parsed JSON where the answer says it is JSON, text otherwise, and null where it is empty or binary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.message import Message
from typing import Annotated, Any, Literal

import httpx2
from pydantic import AfterValidator, Field, model_validator

from .. import net
from ..jsonvalues import BadJson, loads_strict
from ..masking import excerpt
from ..net.headers import check_header
from . import calls
from .base import Config, Connection, Context, Done, Outcome, StepError, StepType
from .fields import Json, LongText, Pairs, Text, Widget

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
KEPT_HEADERS = ("content-type", "location", "etag", "last-modified", "link", "retry-after")


def _address(source: str) -> str:
    """Refuse at save what can be seen before anything is filled in."""
    sample = _TEMPLATE.sub("x", source)
    if source.startswith("/") or source.startswith("{{") or "}}" in sample:
        return source
    if not sample.lower().startswith(("http://", "https://")):
        raise ValueError("Begin the address with https://, or with / when a connection has a base address.")
    try:
        net.check_location(sample)
    except net.BadLocation as wrong:
        raise ValueError(str(wrong)) from None
    return source


def _success(text: str) -> str:
    for word in text.split(","):
        word = word.strip().lower()
        if not (len(word) == 3 and word[0] in "12345" and (word[1:] == "xx" or word[1:].isdigit())):
            raise ValueError("Write status codes or classes, separated by commas, such as 2xx, 404.")
    return text


def _header_name(name: str) -> str:
    if name:
        try:
            check_header(name, "")
        except net.BadHeader as wrong:
            raise ValueError(str(wrong)) from None
    return name


def _header_names(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        _header_name(name)
    return headers


class HttpConfig(Config):
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = Field("GET", title="Method")
    url: Annotated[Text, AfterValidator(_address)] = Field(
        title="Address",
        description="With a connection that has a base address, what follows it: /v1/deals.",
        examples=["https://crm.example/deals"],
    )
    connection: Annotated[str, Widget("connection", calls.SIGN_IN)] = Field(
        "", title="Connection", description="Signs in to the other system."
    )
    query: Pairs = Field(default_factory=dict, title="Query")
    headers: Annotated[Pairs, AfterValidator(_header_names)] = Field(default_factory=dict, title="Headers")
    json_: Json = Field(None, alias="json", title="JSON body", examples=[{"email": "{{ trigger.body.email }}"}])
    body: LongText = Field("", title="Text body", description="Sent as it is; say its Content-Type among the headers.")
    response: Literal["auto", "json", "text"] = Field(
        "auto", title="Read the answer as", description="JSON or text: whichever the answer says that it is."
    )
    success: Annotated[str, AfterValidator(_success)] = Field(
        "2xx", title="Succeeds on", description="Status codes that count as success, such as 2xx, 404."
    )
    idempotency_header: Annotated[str, AfterValidator(_header_name)] = Field(
        "Idempotency-Key",
        title="Idempotency header",
        description="Sent with POST, PUT, PATCH and DELETE; its value is the same in every attempt. Not sent when empty.",
    )

    @model_validator(mode="after")
    def one_body(self) -> HttpConfig:
        if self.json_ is not None and self.body:
            raise ValueError("Give either a JSON body or a text body.")
        if self.url.startswith("/") and not self.connection:
            raise ValueError("Write the whole address, or choose a connection that has a base address.")
        return self


class Http(StepType):
    type = "http"
    label = "API call"
    icon = "http"
    category = "Actions"
    summary = "Call another system over HTTP"
    Config = HttpConfig
    example = {"method": "GET", "url": "https://api.example.com/items"}
    outside = True

    def line(self, config: Mapping[str, Any]) -> str:
        return f"{config.get('method', 'GET')} {config['url']}" if config.get("url") else self.summary

    def interrupted(self, config: Mapping[str, Any]) -> str:
        return "ask" if config.get("method", "GET") in ("POST", "PATCH") else "repeat"

    async def run(self, ctx: Context) -> Outcome:
        config = ctx.config
        connection = await ctx.connection(config["connection"]) if config["connection"] else None
        url = _url(config, connection)
        secret_headers = calls.authorize(connection, url) if connection else {}
        headers, body = _content(config)
        if config["method"] in CHANGING and config["idempotency_header"]:
            headers.setdefault(config["idempotency_header"], ctx.idempotency_key("call"))
        attempt = await ctx.begin(_summary(config, url, headers, body))
        call = net.Call(config["method"], url, headers, secret_headers, body)
        answer = await calls.make(call, attempt.timeout)
        return _done(ctx, answer)


def _url(config: Mapping[str, Any], connection: Connection | None) -> httpx2.URL:
    text = str(config["url"])
    if text.startswith("/") and connection is not None:
        base = str(connection.config.get("base_url") or "")
        if not base:
            raise StepError(
                f"The connection “{connection.name}” has no base address to put before {text}.", field="url"
            )
        text = base.rstrip("/") + text
    try:
        url = net.check_location(text)
    except net.BadLocation as wrong:
        raise StepError(str(wrong), field="url") from None
    query = {name: _plain(value) for name, value in config["query"].items() if value is not None}
    return url.copy_merge_params(query) if query else url


def _content(config: Mapping[str, Any]) -> tuple[dict[str, str], bytes]:
    headers = {name: _plain(value) for name, value in config["headers"].items()}
    for name, value in headers.items():
        try:
            check_header(name, value)
        except net.BadHeader as wrong:
            raise StepError(str(wrong), field="headers") from None
    if config["json"] is not None:
        return _with_type(headers, "application/json"), json.dumps(config["json"], ensure_ascii=False).encode()
    if config["body"]:
        return _with_type(headers, "text/plain; charset=utf-8"), str(config["body"]).encode()
    return headers, b""


def _plain(value: Any) -> str:
    """What a template gave for one value of a query or a header: numbers, true and null as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _with_type(headers: dict[str, str], content_type: str) -> dict[str, str]:
    if any(name.lower() == "content-type" for name in headers):
        return headers
    return {**headers, "Content-Type": content_type}


def _summary(config: Mapping[str, Any], url: httpx2.URL, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """What the attempt keeps of the request. The credential is named, not shown."""
    summary: dict[str, Any] = {"method": config["method"], "url": str(url), "headers": dict(headers)}
    if config["connection"]:
        summary["connection"] = config["connection"]
    if config["json"] is not None and len(body) <= calls.SHOWN:
        summary["json"] = config["json"]
    elif body:
        summary["body"] = calls.shown(body.decode())
    return summary


def _done(ctx: Context, answer: net.Answer) -> Done:
    headers = {name: value for name, value in answer.headers.items() if name in KEPT_HEADERS or name.startswith("x-")}
    response = {"status": answer.status, "headers": headers}
    if not _succeeds(answer.status, ctx.config["success"]):
        outcome, retry, wait = calls.judge(answer.status, answer.headers)
        response["body"] = calls.shown(_text(answer))
        message = _failure(answer, ctx.config["method"])
        raise StepError(message, outcome=outcome, retry=retry, retry_after=wait, response=response)
    try:
        body = _body(ctx, answer)
    except BadJson as wrong:
        response["body"] = calls.shown(_text(answer))
        raise StepError(f"The answer's {wrong}", field="response", response=response) from None
    kept = body if len(answer.body) <= calls.SHOWN else calls.shown(_text(answer))
    return Done({**response, "body": body}, response={**response, "body": kept})


def _succeeds(status: int, success: str) -> bool:
    words = [word.strip().lower() for word in success.split(",")]
    return str(status) in words or f"{status // 100}xx" in words


def _failure(answer: net.Answer, method: str) -> str:
    reason = httpx2.codes.get_reason_phrase(answer.status)
    message = f"{answer.url.host} answered {answer.status}{f' {reason}' if reason else ''}."
    if 300 <= answer.status < 400 and answer.headers.get("location"):
        return f"{message} It points to {excerpt(answer.headers['location'], 200)}: a {method} is not sent there by itself."
    return message


def _body(ctx: Context, answer: net.Answer) -> Any:
    """The answer's body as the step hands it on. Raises BadJson."""
    if not answer.body:
        return None
    how, kind = ctx.config["response"], _media_type(answer)
    if how == "json" or how == "auto" and (kind == "application/json" or kind.endswith("+json")):
        return loads_strict(answer.body)
    if how == "auto" and _is_binary(answer, kind):
        ctx.log(f"The answer is {kind or 'binary'}, {len(answer.body):,} bytes, and was not kept.")
        return None
    return _text(answer)


def _media_type(answer: net.Answer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_binary(answer: net.Answer, kind: str) -> bool:
    if kind.startswith("text/") or kind in ("application/xml", "application/x-www-form-urlencoded"):
        return False
    try:
        return "\x00" in answer.body.decode()
    except UnicodeDecodeError:
        return True


def _text(answer: net.Answer) -> str:
    """As text that can be stored: what its charset cannot read, and NUL, become U+FFFD."""
    message = Message()
    message["Content-Type"] = answer.headers.get("content-type", "")
    name = message.get_content_charset("utf-8")
    try:
        text = answer.body.decode(name, "replace")
    except LookupError:
        text = answer.body.decode("utf-8", "replace")
    return text.replace("\x00", "\ufffd")


STEP = Http()
