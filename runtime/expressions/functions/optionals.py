"""Values that may be absent: a.?b, optional.of(x), .orValue(default)."""

from __future__ import annotations

from typing import Any

from ..errors import EvaluationError
from ..fuel import Evaluation
from ..values import ABSENT, Optional
from .registry import ANY, function


@function("optional.of", ANY)
def of(run: Evaluation, value: Any) -> Optional:
    return Optional(True, value)


@function("optional.none")
def none(run: Evaluation) -> Optional:
    return ABSENT


@function("optional.ofNonZeroValue", ANY)
def of_non_zero(run: Evaluation, value: Any) -> Optional:
    """Absent for null, false, 0, "", [] and {}."""
    return Optional(True, value) if value else ABSENT


@function("value.hasValue", Optional)
def has_value(run: Evaluation, value: Optional) -> bool:
    return value.present


@function("value.value", Optional)
def value_of(run: Evaluation, value: Optional) -> Any:
    if not value.present:
        raise EvaluationError("missing", "The value is absent. Give a default: .orValue(...).")
    return value.value


@function("value.orValue", Optional, ANY)
def or_value(run: Evaluation, value: Optional, default: Any) -> Any:
    return value.value if value.present else default


@function("value.or", Optional, Optional)
def either(run: Evaluation, value: Optional, other: Optional) -> Optional:
    return value if value.present else other
