"""What a field of the panel gives with the sample data, while it is being typed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime.expressions import ExpressionError, compile, compile_template, compile_value
from runtime.jsonvalues import BadJson, loads_strict

from .board import Board
from .dataflow import names_at
from .dataflow.problems import RULES_OF_REQUESTS
from .dataflow.shapes import MISSING, of_sample, sample_of
from .forms.widgets.expression import unbraced

STEPS = 50_000
LONGEST = 2_000
EXPRESSION, TEMPLATE, JSON = "expression", "template", "json"


@dataclass(frozen=True, slots=True)
class Tried:
    """`value` as text and `type` as a word, or `error` with the column to blame. All empty: nothing to say."""

    value: str = ""
    type: str = ""
    error: str = ""
    column: int | None = None
    short: bool = False


def tried(board: Board, owner: str, field: str, text: str, kind: str) -> Tried:
    """One field's text, not saved yet. A template without `{{ }}` says what it says: nothing is told of it."""
    if kind != EXPRESSION and "{{" not in text or not text.strip():
        return Tried()
    try:
        found = _evaluated(text, kind, _names(board, owner, field))
    except BadJson:
        return Tried()  # the field itself says so when it is left
    except ExpressionError as wrong:
        return Tried(error=_no_sample(wrong, board) or wrong.message, column=wrong.position)
    except ValueError as wrong:
        return Tried(error=str(wrong))
    shown = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return Tried(shown[:LONGEST], of_sample(found).type, short=len(shown) > LONGEST)


def _evaluated(text: str, kind: str, names: Mapping[str, Any]) -> Any:
    if kind == EXPRESSION:
        return compile(unbraced(text)).evaluate(names, steps=STEPS)
    if kind == JSON:
        return compile_value(loads_strict(text.encode(), root="")).render(names, steps=STEPS)
    return compile_template(text).render(names, steps=STEPS)


_MISSING = re.compile(r"(?:`steps` has no field `|There is no name `|`steps\.)(\w+)[`.]")


def _no_sample(wrong: ExpressionError, board: Board) -> str:
    """What has not run yet is no mistake of who writes the expression."""
    named = _MISSING.match(wrong.message)
    if named is None:
        return ""
    if named[1] == "trigger":
        return "There is no sample of what starts the flow yet. Start a test run, or paste one."
    if named[1] not in board.names or named[1] in board.samples.steps:
        return ""
    return f"There is no sample of “{board.name_of(named[1])}” yet. Start a test run, or pin an output."


def _names(board: Board, owner: str, field: str) -> dict[str, Any]:
    """The names of a place; a webhook's own rule sees the request and not the run that it begins."""
    if field not in RULES_OF_REQUESTS:
        return names_at(board.known, owner, field=field)
    request = sample_of(board.known.trigger)
    return {**request, "trigger": request} if request is not MISSING and isinstance(request, dict) else {}
