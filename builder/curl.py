"""A `curl` command, as people copy it from documentation or from their browser -> the settings of an API call, and back.

Options that only say how curl behaves are left out; what would change the call and cannot be said here is refused by name.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .forms.base import FieldError

TAKES_VALUE = {
    "-X": "method", "--request": "method", "-H": "header", "--header": "header", "-d": "data", "--data": "data",
    "--data-raw": "raw", "--data-ascii": "data", "--data-binary": "data", "--data-urlencode": "urlencode", "--json": "json",
    "-F": "part", "--form": "part", "--form-string": "part", "--url": "url", "-A": "agent", "--user-agent": "agent",
    "-e": "referer", "--referer": "referer", "-b": "cookie", "--cookie": "cookie", "-u": "user", "--user": "user",
}  # fmt: skip
NO_EFFECT = {
    "-s", "--silent", "-S", "--show-error", "-v", "--verbose", "-i", "--include", "-L", "--location", "--compressed", "-f",
    "--fail", "--fail-with-body", "-sS", "-fsSL", "-sSL", "-g", "--globoff", "--http1.1", "--http2", "-N", "--no-buffer",
}  # fmt: skip
SKIPS_VALUE = {"-o", "--output", "-m", "--max-time", "--connect-timeout", "--retry", "-w", "--write-out"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
NOT_KEPT = ("content-length", "host", "accept-encoding", "connection")


def is_curl(text: str) -> bool:
    return text.lstrip().lower().startswith("curl ")


def read_curl(text: str) -> dict[str, Any]:
    """The config that says the same. Raises FieldError. Braces of the command stay braces, and are no expressions."""
    given = _options(text.replace("\\\r\n", " ").replace("\\\n", " "))
    if len(given["url"]) != 1:
        raise FieldError("The command names no address." if not given["url"] else "The command names several addresses.")
    headers = _headers(given)
    body = _body(given, headers)
    method = (given["method"] or [given["get"] and "GET" or ("POST" if body else "GET")])[-1].upper()
    if given["head"]:
        method = "HEAD"
    if method not in METHODS:
        raise FieldError(f"The method {method[:20]} cannot be used here.")
    parts = urlsplit(given["url"][0] if "://" in given["url"][0] else f"https://{given['url'][0]}")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if given["get"] and "body" in body or given["get"] and "form" in body:
        pairs += parse_qsl("&".join(given["data"]), keep_blank_values=True)
        body = {}
    query = dict(pairs)
    whole = len(query) == len(pairs)  # the same name twice can only stand in the address
    address = urlunsplit((parts.scheme, parts.netloc, parts.path or "/", "" if whole else urlencode(pairs), ""))
    found: dict[str, Any] = {"method": method, "url": address, "query": query if whole and query else None, "headers": headers or None}
    return {**{name: _escaped(value) for name, value in found.items()}, "json": None, "body": None, "form": None, "form_as": None,
            **{name: _escaped(value) for name, value in body.items()}}  # fmt: skip


def _options(text: str) -> dict[str, Any]:
    try:
        words = shlex.split(text.replace("$'", "'"))
    except ValueError:
        raise FieldError("The command has a quote that does not end.") from None
    names = {*TAKES_VALUE.values()}
    given: dict[str, Any] = {**{name: [] for name in names}, "get": False, "head": False}
    rest = iter(words[1:])
    for word in filter(str.strip, rest):  # of a line that was continued a backslash and blanks are left
        name, has_value, value = word, False, ""
        if word.startswith("--") and "=" in word:
            name, _, value = word.partition("=")
            has_value = True
        elif len(word) > 2 and word[:2] in TAKES_VALUE and word[0] == "-" and word[1] != "-":
            name, value, has_value = word[:2], word[2:], True
        if name in TAKES_VALUE:
            given[TAKES_VALUE[name]].append(value if has_value else next(rest, ""))
        elif name in ("-G", "--get", "-I", "--head"):
            given["get" if name in ("-G", "--get") else "head"] = True
        elif name in SKIPS_VALUE:
            next(rest, "")
        elif not word.startswith("-"):
            given["url"].append(word)
        elif word not in NO_EFFECT:
            raise FieldError(f"The option {word[:30]} cannot be said here. Take it out of the command, then paste it again.")
    return given


def _headers(given: Mapping[str, list[str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in given["header"]:
        name, colon, value = line.partition(":")
        if colon and value.strip() and name.strip().lower() not in NOT_KEPT:
            headers[name.strip()] = value.strip()
    for option, name in (("agent", "User-Agent"), ("referer", "Referer"), ("cookie", "Cookie")):
        if given[option]:
            headers[name] = given[option][-1]
    secret = next((name for name in headers if name.lower() == "authorization"), None)
    if secret or given["user"]:
        raise FieldError("The command holds a secret. Store it as a connection, take it out of the command, then paste it again.")
    return headers


def _body(given: Mapping[str, list[str]], headers: dict[str, str]) -> dict[str, Any]:
    if given["part"]:
        pairs = [part.partition("=")[::2] for part in given["part"]]
        if bad := next((value for _, value in pairs if value.startswith(("@", "<"))), None):
            raise FieldError(f"The command sends the file {bad[1:40]}, which is not here.")
        return {"form": dict(pairs), "form_as": "multipart"}
    if given["json"]:
        return _json("".join(given["json"]))
    if bad := next((value for value in given["data"] if value.startswith("@")), None):
        raise FieldError(f"The command sends the file {bad[1:40]}, which is not here.")
    text = "&".join([*given["data"], *given["raw"]])
    if given["urlencode"]:
        return {"form": dict(pair.partition("=")[::2] for pair in given["urlencode"]), "form_as": "urlencoded"}
    if not text:
        return {}
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if "json" in kind or not kind and text.lstrip()[:1] in ("{", "["):
        return _json(text)
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=False)
    if (not kind or "urlencoded" in kind) and pairs and len(dict(pairs)) == len(pairs) and urlencode(pairs) == text:
        return {"form": dict(pairs), "form_as": "urlencoded"}
    return {"body": text}


def _json(text: str) -> dict[str, Any]:
    try:
        return {"json": json.loads(text)}
    except ValueError:
        return {"body": text}


def _escaped(value: Any) -> Any:
    """Double braces would be evaluated."""
    if isinstance(value, str):
        return value.replace("{{", '{{ "{{" }}') if "{{" in value else value
    if isinstance(value, dict):
        return {name: _escaped(inner) for name, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list) else value


def as_curl(request: Any) -> str:
    """The request that an attempt keeps, as a command. Its credential is not in it: what signs in has to be added."""
    if not isinstance(request, dict) or not isinstance(request.get("url"), str) or "method" not in request:
        return ""
    words = ["curl", "-X", str(request["method"])]
    for name, value in (request.get("headers") or {}).items():
        words += ["-H", f"{name}: {value}"]
    if "json" in request:
        words += ["--data-raw", json.dumps(request["json"], ensure_ascii=False)]
    elif "form" in request:
        option = "--form-string" if request.get("form_as") == "multipart" else "--data-urlencode"
        for name, value in request["form"].items():
            is_file = isinstance(value, dict) and "size" in value
            words += ["-F", f"{name}=@{value.get('filename', name)}"] if is_file else [option, f"{name}={value}"]
    elif isinstance(request.get("body"), dict):
        words += ["--data-binary", f"@{request['body'].get('filename', 'file')}"]
    elif request.get("body"):
        words += ["--data-raw", str(request["body"])]
    return shlex.join([*words, request["url"]])
