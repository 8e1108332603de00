"""API call: sends one request to another system, and keeps its answer.

- `status`, such as 201, and `headers`
- `body`: data where the answer is JSON, as in `steps.create_deal.output.body.id`, else text; nothing where it is empty or no text
- where pages are followed, `items` of all of them instead, `pages`, and `more` where there were more than it may read
- read as a file, `body` tells `filename`, `type` and `size`, and a later API call sends it on as its text body or a field of its
  multipart form; the run's page has it to download

Of the headers those are kept that flows use: content-type, location, etag, link, retry-after, and what begins with x-.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import replace
from email.message import Message
from secrets import token_urlsafe
from typing import Annotated, Any, Literal

import httpx2
from django.conf import settings
from pydantic import AfterValidator, Field, model_validator

from .. import net
from ..jsonvalues import BadJson, loads_strict
from ..masking import excerpt
from ..net.headers import check_header
from . import calls
from .base import Config, Connection, Context, Done, File, Outcome, StepError, StepType
from .fields import Expression, Json, LongText, Pairs, Text, Widget, Words
from .http_bodies import content, filename, files_of, plain, told
from .http_pages import items_of, next_page

KEPT_HEAD = 256 * 1024
"""How much of an answer is kept that is too large, where the call has changed something."""
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
NOT_LET_IN = (401, 403)
"""What a secret that is no longer good is answered with, as a rule."""
LONGEST_TYPE = 200
"""Characters that are read of a Content-Type: Python takes long ones apart in a time that grows with their square."""
CHARSETS = ("utf", "ascii", "iso", "cp", "koi8", "mac", "gb", "big5", "euc", "shift_jis", "hz", "johab", "ptcp154", "tis")
"""How the codecs begin whose time is linear. Punycode's is not: an answer in it would hold up all runs for minutes."""
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
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] = Field("GET", title="Method")
    url: Annotated[Text, AfterValidator(_address)] = Field(
        title="Address",
        description="With a connection that has a base address, what follows it: /v1/deals. A curl command can be pasted here.",
        examples=["https://crm.example/deals"],
    )
    connection: Annotated[str, Widget("connection", calls.SIGN_IN)] = Field(
        "", title="Connection", description="Signs in to the other system."
    )
    query: Pairs = Field(default_factory=dict, title="Query")
    headers: Annotated[Pairs, AfterValidator(_header_names)] = Field(default_factory=dict, title="Headers")
    json_: Json = Field(None, alias="json", title="JSON body", examples=[{"email": "{{ trigger.body.email }}"}])
    form: Pairs = Field(
        default_factory=dict, title="Form", description="Fields of a form. A list sends a field several times."
    )
    form_as: Annotated[Literal["urlencoded", "multipart"], Words({"urlencoded": "URL-encoded"})] = Field(
        "urlencoded", title="Send the form as", description="A multipart form takes files: {filename, content, type, base64}."
    )
    body: LongText = Field("", title="Text body", description="Sent as it is; say its Content-Type among the headers.")
    response: Annotated[
        Literal["auto", "json", "text", "file"],
        Words({"auto": "JSON or text", "json": "JSON"}),
    ] = Field(
        "auto", title="Read the answer as",
        description="Auto is JSON or text, whichever the answer says that it is. A file is kept apart, for later steps and to download.",
    )  # fmt: skip
    success: Annotated[str, AfterValidator(_success)] = Field(
        "2xx", title="Succeeds on", description="Status codes that count as success, such as 2xx, 404."
    )
    success_if: Expression | None = Field(
        None, title="And only if", description="It sees response.status, response.headers and response.body.",
        examples=["response.body.ok == true"],
    )  # fmt: skip
    pages: Annotated[
        Literal["none", "next_link", "cursor", "page", "offset"],
        Words({"none": "No", "next_link": "By a next link", "cursor": "By a cursor", "page": "By page number", "offset": "By offset"}),
    ] = Field(
        "none", title="Follow pages",
        description="Call page after page; the output's items are those of all pages. Only with GET. Each page is an attempt with its own retries.",
    )  # fmt: skip
    page_items: Expression | None = Field(
        None, title="Items of each page", examples=["response.body.items"],
        description="An expression that sees response, one page's answer: response.body.items. When empty, the whole body is the list.",
    )  # fmt: skip
    page_next: Expression | None = Field(
        None, title="What leads on", examples=["response.body.links.next"],
        description="An expression that sees response, and gives the next address or cursor. When empty, the Link header or "
        "response.body.next_cursor.",
    )  # fmt: skip
    page_param: Annotated[str, Field(max_length=100)] = Field(
        "", title="Its name in the query", description="How a cursor, page number or offset is sent; when empty, cursor, page or offset.",
    )  # fmt: skip
    most_pages: Annotated[int, Field(ge=1, le=100)] = Field(
        10, title="Read at most", description="Pages. If there are more, the step succeeds with what it has, and its output says more: true.",
    )  # fmt: skip
    host_per_minute: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, title="Calls to the host in a minute", description="At most, by all steps of the team that say so, on all workers."
    )
    idempotency_header: Annotated[str, AfterValidator(_header_name)] = Field(
        "Idempotency-Key",
        title="Idempotency header",
        description="Sent with POST, PUT, PATCH and DELETE; its value is the same in every attempt. Not sent when empty.",
    )

    @model_validator(mode="after")
    def one_body(self) -> HttpConfig:
        if (self.json_ is not None) + bool(self.body) + bool(self.form) > 1:
            raise ValueError("Give either a JSON body, a form or a text body.")
        if self.pages != "none" and self.method != "GET":
            raise ValueError("Only GET can follow pages: the others might do something on each.")
        if self.pages != "none" and self.response == "file":
            raise ValueError("A file has no pages to follow.")
        if self.url.startswith("/") and not self.connection:
            raise ValueError("Write the whole address, or choose a connection that has a base address.")
        return self


class Http(StepType):
    type = "http"
    label = "API call"
    icon = "api"
    category = "Actions"
    summary = "Call another system over HTTP"
    also = "http request rest fetch post get curl graphql web"
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
        if connection:
            calls.check_place(connection, url)
        files = {key: await ctx.file(key) for key in files_of(config)}
        headers, body = content(config, files, ctx.idempotency_key("call").replace("hf", "holdfast", 1))
        if config["method"] in CHANGING and config["idempotency_header"]:
            headers.setdefault(config["idempotency_header"], ctx.idempotency_key("call"))
        call = net.Call(config["method"], url, headers, {}, body, keeps_head=config["method"] in CHANGING)
        if config["pages"] != "none":
            return await _follow(ctx, connection, call)
        return _done(ctx, await _made(ctx, connection, call))


async def _made(ctx: Context, connection: Connection | None, call: net.Call, operation: str = "call") -> net.Answer:
    """One attempt. A token that is not taken any more is fetched anew, once: a 401 says that nothing was done."""
    if connection is not None:
        await ctx.admit(f"connection:{connection.name}", calls.per_minute(connection))
    if ctx.config["host_per_minute"]:
        await ctx.admit(f"host:{call.url.host}", ctx.config["host_per_minute"])
    attempt = await ctx.begin(_summary(ctx.config, call.url, call.headers, call.body), operation)
    limit, remedy = int(_largest(ctx.config) * net.MIB), _remedy(ctx.config)
    if connection is None:
        return await calls.make(call, attempt.timeout, limit, remedy)
    signed = await calls.sign_in(ctx, connection, call.url, attempt.timeout)
    answer = await calls.make(replace(call, secret_headers=signed), attempt.timeout, limit, remedy)
    if answer.status == 401 and connection.kind == "oauth2":
        ctx.log("The token was not taken any more; a new one was fetched.")
        signed = await calls.sign_in(ctx, connection, call.url, attempt.timeout, anew=True)
        answer = await calls.make(replace(call, secret_headers=signed), attempt.timeout, limit, remedy)
    return answer


async def _follow(ctx: Context, connection: Connection | None, call: net.Call) -> Done:
    """Page after page, until one leads nowhere or there were as many as allowed. Each is kept with the address of the next
    one: after a failure or a death the step goes on there."""
    items: list[Any] = [item for part in ctx.kept for item in part.value]
    url = httpx2.URL(ctx.kept[-1].onward) if ctx.kept else call.url
    pages = len(ctx.kept)
    while True:
        pages += 1
        done = _done(ctx, await _made(ctx, connection, replace(call, url=url), f"page.{pages}" if pages > 1 else "call"))
        found = items_of(ctx, done.output)
        items += found
        onward = next_page(ctx, url, done.output, len(found))
        if onward is None or pages == ctx.config["most_pages"]:
            break
        await ctx.keep(found, str(onward), done.response)
        url = onward
    first = {"status": done.output["status"], "headers": done.output["headers"]}
    return Done({**first, "items": items, "pages": pages, "more": onward is not None}, response=done.response)


def _largest(config: Mapping[str, Any]) -> float:
    """MiB that are read of an answer."""
    return settings.HOLDFAST_LARGEST_OUTPUT_MIB if config["response"] == "file" else 1


def _remedy(config: Mapping[str, Any]) -> str:
    """What to do about an answer that is larger."""
    if config["response"] == "file":
        return "Fetch less, or have HOLDFAST_LARGEST_OUTPUT_MIB raised."
    return "Ask for less, such as fewer fields or a page at a time, or read the answer as a file."


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
    query = {name: plain(value) for name, value in config["query"].items() if value is not None}
    return url.copy_merge_params(query) if query else url


def _summary(config: Mapping[str, Any], url: httpx2.URL, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """What the attempt keeps of the request. The credential is named, not shown."""
    summary: dict[str, Any] = {"method": config["method"], "url": str(url), "headers": dict(headers)}
    if config["connection"]:
        summary["connection"] = config["connection"]
    return summary | told(config, body)


def _done(ctx: Context, answer: net.Answer) -> Done:
    """What the answer comes to; the attempt keeps how long each phase of the call took. Raises StepError."""
    timings = {"timings": dict(answer.timings)}
    try:
        done = _told(ctx, answer)
    except StepError as failed:
        failed.response = failed.response and failed.response | timings
        raise
    return replace(done, response=done.response | timings)


def _told(ctx: Context, answer: net.Answer) -> Done:
    headers = {name: value for name, value in answer.headers.items() if name in KEPT_HEADERS or name.startswith("x-")}
    response = {"status": answer.status, "headers": headers}
    if not _succeeds(answer.status, ctx.config["success"]):
        outcome, retry, wait = calls.judge(answer.status, answer.headers)
        response["body"] = calls.shown(_text(answer))
        message = _failure(answer, ctx.config["method"])
        field = "connection" if answer.status in NOT_LET_IN and ctx.config["connection"] else None
        raise StepError(message, field=field, outcome=outcome, retry=retry, retry_after=wait, response=response)
    if answer.cut:
        words = f"The answer is larger than {_largest(ctx.config):g} MiB; of it the first {KEPT_HEAD:,} bytes were kept. {_remedy(ctx.config)}"
        ctx.log(words, level="warning")
    if ctx.config["response"] == "file" and answer.body:
        return _file(ctx, answer, response)
    if answer.cut:
        head = _text(answer)[:KEPT_HEAD]
        return _judged(ctx, {**response, "body": head, "cut": True}, {**response, "body": calls.shown(head), "cut": True})
    try:
        body = _body(ctx, answer)
    except BadJson as wrong:
        response["body"] = calls.shown(_text(answer))
        raise StepError(f"The answer's {wrong}", field="response", response=response) from None
    kept = body if len(answer.body) <= calls.SHOWN else calls.shown(_text(answer))
    return _judged(ctx, {**response, "body": body}, {**response, "body": kept})


def _file(ctx: Context, answer: net.Answer, response: dict[str, Any]) -> Done:
    """The answer's bytes, kept apart from the output that tells of them."""
    file = File(token_urlsafe(16), answer.body[:KEPT_HEAD] if answer.cut else answer.body)
    about = {"filename": filename(answer), "type": _media_type(answer) or "application/octet-stream", "size": len(file.content)}
    cut = {"cut": True} if answer.cut else {}
    done = _judged(ctx, {**response, "body": {**about, "file": file.key}, **cut}, {**response, "body": about, **cut})
    return replace(done, file=file)


def _judged(ctx: Context, output: dict[str, Any], kept: dict[str, Any]) -> Done:
    """A success only if the step's expression says so too."""
    if ctx.config["success_if"]:
        fine = ctx.evaluate(ctx.config["success_if"], response=output)
        if fine is not True:
            words = "is neither true nor false" if fine is not False else f"is not true: {ctx.config['success_if']}"
            raise StepError(f"The answer does not count as success: the condition {excerpt(words, 200)}.", field="success_if", response=kept)
    return Done(output, response=kept)


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
        ctx.log(f"The answer is {kind or 'binary'}, {len(answer.body):,} bytes, and was not kept. Read it as a file to keep it.")
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
    message["Content-Type"] = answer.headers.get("content-type", "")[:LONGEST_TYPE]
    try:
        codec = codecs.lookup(message.get_content_charset("utf-8")).name
        text = answer.body.decode(codec if codec.startswith(CHARSETS) else "utf-8", "replace")
    except (LookupError, ValueError):
        text = answer.body.decode("utf-8", "replace")
    return text.replace("\x00", "\ufffd")


STEP = Http()
