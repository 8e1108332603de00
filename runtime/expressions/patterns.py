"""Regular expressions on RE2, which takes time in proportion to the text whatever the pattern is."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import re2

from . import limits
from .errors import EvaluationError
from .fuel import Evaluation

PLAIN, UNICODE_CLASS, TOO_LARGE = 50, 40, 1_300
"""Steps, by the time that each takes: of any pattern, of a class such as \\pL, of one that is refused for its size."""
LEFT_OUT = 3
"""Instructions that a repeat is worth which may be left out: RE2 compares each with all that may follow."""
TOKEN = re.compile(r"\\Q.*?(?:\\E|$)|\\(?:[pPx]\{[^}]*\}|.)|\[\^?\]?(?:\\.|\[:\^?\w*:\]|[^\]\\])*+(?:\]|\\?$)|"
                   r"\((?:\?(?:P?<\w*>|[imsU-]*:?))?|\{(?P<least>\d+)(?P<range>,(?P<most>\d*))?\}|.", re.DOTALL)  # fmt: skip
"""A piece of a pattern in RE2's syntax: quoted text, an escape, a class, the opening of a group, a repeat, any other character."""


@lru_cache(maxsize=limits.CACHED_PATTERNS)
def pattern_search(pattern: str) -> Callable[[Evaluation, str], bool]:
    """A closure that tells whether the pattern is found in a text.

    Raises EvaluationError of kind "value" for a pattern that is no RE2 pattern or compiles to too much.
    """
    if len(pattern) > limits.PATTERN_LENGTH:
        raise EvaluationError("value", f"The pattern is longer than {limits.PATTERN_LENGTH:,} characters.")
    if _weight(pattern) > limits.PATTERN_PROGRAM or (compiled := _compiled(pattern)).programsize > limits.PATTERN_PROGRAM:
        raise EvaluationError("value", "The regular expression is too large. Use smaller repeat counts.")
    program = compiled.programsize

    def search(run: Evaluation, text: str) -> bool:
        run.charge(len(text) // 64 + len(text) * program // 1024)
        try:
            return compiled.search(text) is not None
        except UnicodeEncodeError:
            raise EvaluationError("value", "The text holds half a character and cannot be searched.") from None

    search.made_for = program // 16 + program * program // 2_500  # steps that compiling is worth
    return search


def pattern_charged(run: Evaluation, pattern: str) -> Callable[[Evaluation, str], bool]:
    """As `pattern_search`, for a pattern that was not there when the expression was compiled: each may be another one, so its
    compiling is work of the evaluation. A class of Unicode brings hundreds of ranges, and one that is too large is found to be so
    late; neither is ever kept."""
    run.charge(PLAIN + UNICODE_CLASS * pattern[: limits.PATTERN_LENGTH].lower().count("\\p"))
    try:
        search = pattern_search(pattern)
    except EvaluationError:
        run.charge(TOO_LARGE)
        raise
    run.charge(search.made_for)
    return search


def _weight(pattern: str) -> int:
    """How many instructions a pattern is worth, with its repeats written out: RE2 knows it only after up to a second."""
    before: list[int] = []  # of the groups around
    size = last = 0
    for token in TOKEN.finditer(pattern):
        text = token[0]
        if text[0] == "(":
            before += [size]
            size = last = 0
        elif text == ")":
            last, size = size, size + (before.pop() if before else 0)
        elif token["least"]:
            least = int(token["least"])
            most = int(token["most"] or least + 1) if token["range"] else least
            times = least * last + max(0, most - least) * (last + LEFT_OUT)
            last, size = times, size - last + times
        elif text in "*+?|":
            last, size = last + 1, size + 1
        else:
            last, size = 1, size + 1
    return size


def _compiled(pattern: str):
    options = re2.Options()
    options.max_mem = limits.PATTERN_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError("value", f"The pattern is not a regular expression: {reason[:120]}.") from None
    except UnicodeEncodeError:
        raise EvaluationError("value", "The pattern holds half a character.") from None
