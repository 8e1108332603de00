"""Text to tokens, after the lexis of the CEL specification."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from . import limits
from .errors import SyntaxProblem
from .values import Uint


class Token(NamedTuple):
    kind: str  # int uint double string bytes name quoted operator end
    value: Any  # decoded for literals, the text for names and operators
    start: int
    end: int


_LEXIS = re.compile(
    r"""
    (?P<space>    (?:[ \t\n\f\r]+|//[^\n]*)++ )
  | (?P<string>   (?P<prefix>[bB][rR]?|[rR][bB]?)?
                  (?P<quote>\"{3}|'{3}|"|') )
  | (?P<double>   [0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ )
  | (?P<integer>  (?:0[xX][0-9a-fA-F]+|[0-9]+) (?P<unsigned>[uU])? )
  | (?P<name>     [A-Za-z_][A-Za-z0-9_]* )
  | (?P<quoted>   `[A-Za-z0-9_.\-/ ]+` )
  | (?P<operator> &&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}] )
    """,
    re.VERBOSE,
)
_CLOSING = {  # the rest of a string literal after its opening quote, by (quote, raw); possessive, hence linear
    ('"', False): re.compile(r'((?:[^"\\\n\r]+|\\.)*+)"'),
    ("'", False): re.compile(r"((?:[^'\\\n\r]+|\\.)*+)'"),
    ('"""', False): re.compile(r'((?:[^"\\]+|\\.|"(?!""))*+)"""', re.DOTALL),
    ("'''", False): re.compile(r"((?:[^'\\]+|\\.|'(?!''))*+)'''", re.DOTALL),
    ('"', True): re.compile(r'([^"\n\r]*+)"'),
    ("'", True): re.compile(r"([^'\n\r]*+)'"),
    ('"""', True): re.compile(r'((?:[^"]+|"(?!""))*+)"""'),
    ("'''", True): re.compile(r"((?:[^']+|'(?!''))*+)'''"),
}
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2})|(?P<bad>.|\Z))",
    re.DOTALL,
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


_REMEDIES = {
    "&": " Write && for and.",
    "|": " Write || for or.",
    "=": " Write == to compare.",
    "$": " Names have no $ here: write trigger.body, steps.<id>.output or loop.item.",
}


def tokens(text: str, start: int = 0, in_braces: bool = False) -> list[Token]:
    """The tokens from `start` to the end of the text, closed by one of kind "end".

    in_braces  stop instead at the `}}` that closes a template's part: the first that no bracket is open before
    """
    found: list[Token] = []
    offset, open_braces = start, 0
    while offset < len(text):
        if in_braces and open_braces == 0 and text.startswith("}}", offset):
            break
        token, offset = _token(text, offset)
        if offset - start > limits.SOURCE_LENGTH:
            raise SyntaxProblem(f"The expression is longer than {limits.SOURCE_LENGTH:,} characters.", start + 1, text)
        if token is None:
            continue
        if token.kind == "operator":
            open_braces += (token.value == "{") - (token.value == "}")
        found.append(token)
    else:
        if in_braces:
            raise SyntaxProblem("`{{` is not closed by `}}`.", start - 1, text)
    found.append(Token("end", "", offset, offset))
    return found


def _token(text: str, offset: int) -> tuple[Token | None, int]:
    match = _LEXIS.match(text, offset)
    if match is None:
        raise _unexpected(text, offset)
    end = match.end()
    if match["space"]:
        return None, end
    if match["string"]:
        return _string(text, match)
    if match["double"]:
        return Token("double", _double(text, match), offset, end), end
    if match["integer"]:
        return _integer(text, match), end
    if match["name"]:
        return Token("name", match["name"], offset, end), end
    if match["quoted"]:
        return Token("quoted", match["quoted"][1:-1], offset, end), end
    return Token("operator", match["operator"], offset, end), end


def _unexpected(text: str, offset: int) -> SyntaxProblem:
    character = text[offset]
    remedy = _REMEDIES.get(character, "")
    if character in "“”‘’„":
        remedy = ' Write plain quotes: "text".'
    return SyntaxProblem(f"`{character}` is not expected here.{remedy}", offset + 1, text)


def _double(text: str, match: re.Match[str]) -> float:
    value = float(match["double"])
    if value in (float("inf"), float("-inf")):
        raise SyntaxProblem(f"`{match['double'][:40]}` is too large for a number.", match.start() + 1, text)
    return value


def _integer(text: str, match: re.Match[str]) -> Token:
    digits = match["integer"].rstrip("uU")
    # Longer ones are out of range anyway; int() would take its time, and refuses more than 4,300 digits by itself.
    telling = digits.lstrip("0xX")
    value = int(telling or "0", 16 if digits[:2] in ("0x", "0X") else 10) if len(telling) <= 20 else 2**70
    if match["unsigned"]:
        if value > limits.UINT_MAX:
            raise SyntaxProblem(f"`{digits[:40]}` is too large for a number.", match.start() + 1, text)
        return Token("uint", Uint(value), match.start(), match.end())
    if value > limits.INT_MAX + 1:  # one more than the largest, for the parser: -9223372036854775808
        raise SyntaxProblem(f"`{digits[:40]}` is too large for a whole number.", match.start() + 1, text)
    return Token("int", value, match.start(), match.end())


def _string(text: str, opening: re.Match[str]) -> tuple[Token, int]:
    prefix = (opening["prefix"] or "").lower()
    raw, as_bytes = "r" in prefix, "b" in prefix
    closing = _CLOSING[opening["quote"], raw].match(text, opening.end())
    if closing is None:
        raise SyntaxProblem("This text is not closed: its closing quote is missing.", opening.start() + 1, text)
    content = closing[1]
    token_end = closing.end()
    if as_bytes:
        value: str | bytes = _decode_bytes(text, content, opening, raw)
        return Token("bytes", value, opening.start(), token_end), token_end
    _utf8(content, opening, text)
    value = content if raw or "\\" not in content else _decode(text, content, opening.end())
    return Token("string", value, opening.start(), token_end), token_end


def _decode(text: str, content: str, offset: int) -> str:
    def replacement(match: re.Match[str]) -> str:
        code = _code(text, match, offset)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise SyntaxProblem(f"`{match[0]}` is not a character.", offset + match.start() + 1, text)
        return chr(code)

    return _ESCAPE.sub(replacement, content)


def _decode_bytes(text: str, content: str, opening: re.Match[str], raw: bool) -> bytes:
    pieces, last = [], 0
    for match in () if raw else _ESCAPE.finditer(content):
        if match["u"] or match["U"]:
            raise SyntaxProblem("Bytes cannot hold a \\u escape.", opening.end() + match.start() + 1, text)
        pieces += [_utf8(content[last : match.start()], opening, text), bytes([_code(text, match, opening.end())])]
        last = match.end()
    return b"".join([*pieces, _utf8(content[last:], opening, text)])


def _utf8(content: str, opening: re.Match[str], text: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise SyntaxProblem("This text holds half a character (a lone surrogate).", opening.start() + 1, text) from None


def _code(text: str, match: re.Match[str], offset: int) -> int:
    if match["plain"]:
        return ord(_PLAIN.get(match["plain"], match["plain"]))
    if match["octal"]:
        return int(match["octal"], 8)
    digits = match["x"] or match["u"] or match["U"]
    if digits:
        return int(digits, 16)
    raise SyntaxProblem(
        f"`\\{match['bad']}` means nothing in a text. Write \\\\ for a backslash.", offset + match.start() + 1, text
    )
