"""What an API call sends: JSON, a form, a multipart form, or text as it is; and how the attempt tells it."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from email.message import Message
from typing import Any
from urllib.parse import unquote, urlencode

from django.conf import settings

from .. import net
from ..net.headers import check_header
from . import calls
from .base import StepError


def files_of(config: Mapping[str, Any]) -> list[str]:
    """The keys of the files of earlier steps that the body is made of."""
    form = config["form"].values() if config["form_as"] == "multipart" else ()
    values = [config["body"], *(one for value in form for one in _each(value))]
    return [one["file"] for one in values if isinstance(one, Mapping) and isinstance(one.get("file"), str)]


def content(config: Mapping[str, Any], files: Mapping[str, bytes], boundary: str) -> tuple[dict[str, str], bytes]:
    """Headers and body. `files` are those of earlier steps. The boundary is given, so that every attempt sends the same.
    Raises StepError."""
    headers = {name: plain(value) for name, value in config["headers"].items()}
    for name, value in headers.items():
        try:
            check_header(name, value)
        except net.BadHeader as wrong:
            raise StepError(str(wrong), field="headers") from None
    if config["json"] is not None:
        return with_type(headers, "application/json"), json.dumps(config["json"], ensure_ascii=False).encode()
    if config["form"] and config["form_as"] == "multipart":
        return with_type(headers, f"multipart/form-data; boundary={boundary}"), _multipart(config["form"], files, boundary)
    if config["form"]:
        pairs = [(name, plain(one)) for name, value in config["form"].items() for one in _each(value)]
        return with_type(headers, "application/x-www-form-urlencoded"), urlencode(pairs).encode()
    if _is_file(config["body"]):
        return with_type(headers, _type(config["body"])), _file(config["body"], files, "body")
    if config["body"]:
        return with_type(headers, "text/plain; charset=utf-8"), plain(config["body"]).encode()
    return headers, b""


def plain(value: Any) -> str:
    """What a template gave for one value of a query, a header or a form: numbers, true and null as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def with_type(headers: dict[str, str], content_type: str) -> dict[str, str]:
    if any(name.lower() == "content-type" for name in headers):
        return headers
    return {**headers, "Content-Type": content_type}


def told(config: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """What the attempt keeps of the body."""
    if config["json"] is not None and len(body) <= calls.SHOWN:
        return {"json": config["json"]}
    if config["form"] and config["json"] is None:
        return {"form": {name: _told(value) for name, value in config["form"].items()}, "form_as": config["form_as"]}
    if _is_file(config["body"]):
        return {"body": _told(config["body"])}
    return {"body": calls.shown(body.decode())} if body else {}


def _each(value: Any) -> list[Any]:
    """A list is sent as the same name several times; null is not sent."""
    return [one for one in (value if isinstance(value, list) else [value]) if one is not None]


def _told(value: Any) -> Any:
    if _is_file(value):
        size = {"size": len(str(value["content"]))} if "content" in value else {}
        return {**{name: value[name] for name in value if name not in ("content", "base64", "file")}, **size}
    return calls.shown(value) if isinstance(value, str) else value


def _multipart(form: Mapping[str, Any], files: Mapping[str, bytes], boundary: str) -> bytes:
    """RFC 7578. A value of the form `{"filename", "content", "type"?, "base64"?}` is sent as a file, and so is what an API
    call gave as one."""
    parts = bytearray()
    for name, value in form.items():
        for one in _each(value):
            parts += f"--{boundary}\r\nContent-Disposition: form-data; name={_quoted(name)}".encode()
            if _is_file(one):
                parts += f"; filename={_quoted(str(one.get('filename') or name))}\r\n".encode()
                parts += f"Content-Type: {_type(one)}\r\n\r\n".encode()
                parts += _file(one, files, "form", name)
            else:
                parts += b"\r\n\r\n" + plain(one).encode()
            parts += b"\r\n"
    return bytes(parts) + f"--{boundary}--\r\n".encode()


def _is_file(value: Any) -> bool:
    return isinstance(value, Mapping) and ("content" in value or isinstance(value.get("file"), str))


def _type(one: Mapping[str, Any]) -> str:
    return _line(str(one.get("type") or "application/octet-stream"))


def _file(one: Mapping[str, Any], files: Mapping[str, bytes], field: str, name: str = "") -> bytes:
    if isinstance(one.get("file"), str):
        return files[one["file"]]
    given = one["content"]
    try:
        data = b64decode(str(given), validate=True) if one.get("base64") else plain(given).encode()
    except (NotBase64, ValueError):
        raise StepError(f"The content of the file “{name or field}” is not base64.", field=field) from None
    if len(data) > settings.HOLDFAST_LARGEST_OUTPUT_MIB * net.MIB:
        words = f"larger than {settings.HOLDFAST_LARGEST_OUTPUT_MIB:g} MiB. Send less, or have HOLDFAST_LARGEST_OUTPUT_MIB raised."
        raise StepError(f"The file “{name or field}” is {words}", field=field)
    return data


def filename(answer: net.Answer) -> str:
    """What the answer says that it is called (RFC 6266), else the end of its address. Never a path."""
    message = Message()
    message["Content-Disposition"] = _line(answer.headers.get("content-disposition", ""))
    try:
        name = message.get_filename()
    except (LookupError, UnicodeError):  # a character set that nobody has
        name = None
    return file_name(name or unquote(answer.url.path))


def file_name(told: str) -> str:
    """The last part of what somebody calls a file, without what would hide or turn it around."""
    return _line(re.split(r"[/\\]", told.rstrip("/"))[-1])[:100].strip(". ") or "file"


def _quoted(text: str) -> str:
    """As browsers write it (WHATWG HTML, multipart/form-data encoding): only what would end it is escaped."""
    return '"' + text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22") + '"'


def _line(text: str) -> str:
    return "".join(char for char in text if char.isprintable())[:200]
