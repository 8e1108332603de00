"""A `curl` command, as people copy it from documentation or from their browser -> the settings of an API call, and back.

Options that only say how curl behaves are left out; what would change the call and cannot be said here is refused by name.
What signs in is left out too, since it belongs into a connection: `sign_in_of` names it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit, urlunsplit

from .forms.base import FieldError
from .shellwords import shell_words

TAKES_VALUE = {
    "-X": "method", "--request": "method", "-H": "header", "--header": "header", "-d": "data", "--data": "data",
    "--data-raw": "raw", "--data-ascii": "data", "--data-binary": "data", "--data-urlencode": "urlencode", "--json": "json",
    "-F": "part", "--form": "part", "--form-string": "text_part", "--url": "url", "-A": "agent", "--user-agent": "agent",
    "-e": "referer", "--referer": "referer", "-b": "cookie", "--cookie": "cookie", "-u": "user", "--user": "user",
    "--oauth2-bearer": "bearer",
}  # fmt: skip
FLAGS = {"-G": "get", "--get": "get", "-I": "head", "--head": "head"}
NO_EFFECT = {
    "-s", "--silent", "-S", "--show-error", "-v", "--verbose", "-i", "--include", "-L", "--location", "--compressed", "-f",
    "--fail", "--fail-with-body", "-g", "--globoff", "--http1.1", "--http2", "-N", "--no-buffer", "-#", "--progress-bar",
    "--tlsv1.2", "-4", "-6", "--no-progress-meter", "-O", "--remote-name", "-J",
}  # fmt: skip
SKIPS_VALUE = {"-o", "--output", "-m", "--max-time", "--connect-timeout", "--retry", "--retry-delay", "-w", "--write-out", "--max-redirs"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
NOT_KEPT = ("content-length", "host", "accept-encoding", "connection")
SIGNS_IN = re.compile(r"(proxy-)?authorization|cookie|(.*[-_])?(api[-_]?key|token|secret|password)", re.IGNORECASE)
"""Names of headers that hold a secret."""
_BODIES = ("data", "raw", "urlencode")
_SHELL = re.compile(r"(\$ )?curl(\.exe)?\s", re.IGNORECASE)


def is_curl(text: str) -> bool:
    return bool(_SHELL.match(text.lstrip()))


def read_curl(text: str) -> dict[str, Any]:
    """The config that says the same. Raises FieldError. Braces of the command stay braces, and are no expressions."""
    given = _options(text)
    if len(given["url"]) != 1:
        raise FieldError("The command names no address." if not given["url"] else "The command names several addresses.")
    headers = {name: value for name, value in _headers(given) if not SIGNS_IN.fullmatch(name)}
    body = _body(given, headers)
    method = (given["method"] or ["HEAD" if given["head"] else "GET" if given["get"] or not body else "POST"])[-1].upper()
    if method not in METHODS:
        raise FieldError(f"The method {method[:20]} cannot be used here.")
    address, pairs = _address(given)
    query = dict(pairs)
    if len(query) != len(pairs):  # the same name twice can only stand in the address
        address, query = f"{address}?{urlencode(pairs)}", {}
    found = {"method": method, "url": address, "query": query or None, "headers": headers or None}
    return {name: _escaped(value) for name, value in (found | {"json": None, "body": None, "form": None, "form_as": None} | body).items()}


def sign_in_of(text: str) -> list[str]:
    """What of the command signs in, and is not taken over: names of headers, or “user and password”. Raises FieldError."""
    given = _options(text)
    found = [name for name, _ in _headers(given) if SIGNS_IN.fullmatch(name)]
    if given["bearer"]:
        found.append("Authorization")
    if given["user"] or given["url"] and "@" in urlsplit(_with_scheme(given["url"][0])).netloc:
        found.append("user and password")
    return list(dict.fromkeys(found))


def _options(text: str) -> dict[str, Any]:
    """Option -> its values in order; `body` has (option, value) of all that make the body."""
    names = {*TAKES_VALUE.values()}
    given: dict[str, Any] = {**{name: [] for name in names}, "get": False, "head": False, "body": []}
    try:
        words = iter(shell_words(text))
    except ValueError:
        raise FieldError("The command has a quote that does not end.") from None
    next(word for word in words if word != "$")  # curl itself
    for word in words:
        for name, value in _read(word, words):
            if name in FLAGS:
                given[FLAGS[name]] = True
            elif name in TAKES_VALUE:
                given[TAKES_VALUE[name]].append(value)
                given["body"] += [(TAKES_VALUE[name], value)] if TAKES_VALUE[name] in _BODIES else []
    return given


def _read(word: str, rest: Iterator[str]) -> Iterator[tuple[str, str]]:
    """(option, value) of one word, with its value from the next where it has one. Letters may stand together: `-sXPOST`."""
    if not word.startswith("-") or word == "-":
        yield "--url", word
        return
    name, equals, value = word.partition("=")
    if word.startswith("--"):
        if name in TAKES_VALUE or name in SKIPS_VALUE:
            yield name, value if equals else next(rest, "")
        elif word in FLAGS:
            yield word, ""
        elif word not in NO_EFFECT:
            raise _cannot(word)
        return
    for place, letter in enumerate(word[1:], 2):
        name = f"-{letter}"
        if name in TAKES_VALUE or name in SKIPS_VALUE:
            yield name, word[place:] or next(rest, "")
            return
        if name in FLAGS:
            yield name, ""
        elif name not in NO_EFFECT:
            raise _cannot(name)


def _cannot(option: str) -> FieldError:
    return FieldError(f"The option {option[:30]} cannot be said here. Take it out of the command, then paste it again.")


def _with_scheme(address: str) -> str:
    return address if "://" in address else f"https://{address}"


def _address(given: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """The address without its query and what signs in, and the query's pairs."""
    parts = urlsplit(_with_scheme(given["url"][0]))
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if given["get"]:
        pairs += parse_qsl(_text(given), keep_blank_values=True)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path or "/", "", "")), pairs


def _headers(given: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    found = []
    for line in given["header"]:
        name, colon, value = line.partition(":")
        if colon and value.strip() and name.strip().lower() not in NOT_KEPT:
            found.append((name.strip(), value.strip()))
    options = (("agent", "User-Agent"), ("referer", "Referer"), ("cookie", "Cookie"))
    return found + [(name, given[option][-1]) for option, name in options if given[option]]


def _body(given: Mapping[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    """What is sent, as fields of the config. Puts the Content-Type that curl would send among the headers where it matters."""
    if given["part"] or given["text_part"]:
        return _parts(given)
    if given["json"]:
        return _json("".join(given["json"]))
    text = "" if given["get"] else _text(given)
    if not text:
        return {}
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if "json" in kind or not kind and text.lstrip()[:1] in ("{", "["):
        return _json(text)
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=False)
    if (not kind or "urlencoded" in kind) and pairs and len(dict(pairs)) == len(pairs) and _says_the_same(text, pairs):
        return {"form": dict(pairs), "form_as": "urlencoded"}
    if not kind:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    return {"body": text}


def _says_the_same(text: str, pairs: list[tuple[str, str]]) -> bool:
    """Whether a form of these pairs means the text: written as a form is, or in plain letters, as people write after `-d`."""
    if "%" in text or "+" in text:
        return urlencode(pairs) == text.replace("%20", "+")
    return all("=" in part and part.partition("=")[::2] in pairs for part in text.split("&"))


def _parts(given: Mapping[str, list[str]]) -> dict[str, Any]:
    pairs = [part.partition("=")[::2] for part in given["part"]]
    if bad := next((value for _, value in pairs if value.startswith(("@", "<"))), None):
        raise _file(bad)
    pairs = [(name, value.partition(";type=")[0]) for name, value in pairs] + [part.partition("=")[::2] for part in given["text_part"]]
    if len(dict(pairs)) != len(pairs):
        raise FieldError("The command sends a field several times. Take the others out of it, then paste it again.")
    return {"form": dict(pairs), "form_as": "multipart"}


def _text(given: Mapping[str, Any]) -> str:
    """What `-d` and its like make together, in their order."""
    return "&".join(_encoded(value) if option == "urlencode" else _plain(option, value) for option, value in given["body"])


def _plain(option: str, value: str) -> str:
    if option == "data" and value.startswith("@"):
        raise _file(value)
    return value


def _encoded(value: str) -> str:
    """`content`, `=content`, or `name=content`, of which the name is encoded already."""
    name, equals, content = value.partition("=")
    if not equals and "@" in value:
        raise _file(value.partition("@")[1] + value.partition("@")[2])
    if not equals:
        return quote_plus(value)
    return f"{name}={quote_plus(content)}" if name else quote_plus(content)


def _file(value: str) -> FieldError:
    return FieldError(f"The command sends the file {value[1:40]}, which is not here.")


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
        for name, value in request["form"].items():
            words += [word for one in (value if isinstance(value, list) else [value]) for word in _part(name, one, request.get("form_as"))]
    elif isinstance(request.get("body"), dict):
        words += ["--data-binary", f"@{request['body'].get('filename', 'file')}"]
    elif request.get("body"):
        words += ["--data-raw", str(request["body"])]
    if set("[]{}") & set(request["url"]):  # of which curl would make many
        words.append("--globoff")
    return shlex.join([*words, request["url"]])


def _part(name: str, value: Any, form_as: Any) -> list[str]:
    """A field of a form, sent as `runtime.steps.http_bodies` does. Its name may be anybody's, and must name no file to curl."""
    if value is None:
        return []
    if isinstance(value, dict) and "size" in value:
        return ["-F", f"{name.replace('=', '%3D')}=@{value.get('filename', name)}"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if form_as == "multipart":
        return ["--form-string", f"{name.replace('=', '%3D')}={text}"]
    return ["--data-urlencode", f"{quote_plus(name)}={text}"]
