"""The Safety & retries tab: what happens when a call is interrupted, how often it is tried, and what a failure
causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

from django.http import QueryDict

from runtime.backoff import RetryPolicy
from runtime.definition import Problem
from runtime.durations import parse_duration
from runtime.plan import DEFAULT_TIMEOUT
from runtime.shape import Retry
from runtime.steps import step_types
from runtime.steps.base import StepType
from runtime.steps.http import CHANGING

from ..fields import ConfigField
from ..templatetags.formats import duration
from .base import FieldError, Offer, Shown
from .setup import setup_fields, show, spec_for, with_problems
from .widgets import widget_for
from .widgets.numbers import read_duration

REPEAT, CHECK, ASK = "repeat", "check", "ask"
ON_ERROR = {"fail": "Fail the run", "continue": "Go on without its output", "lane": "Run an error lane"}
LONGEST_ATTEMPTS = 100

HAPPENED = ConfigField(
    "happened", "condition", "It happened when", "`response` is the answer: its status, headers and body."
)
OUTPUT = ConfigField(
    "output", "expression", "Output, if it happened", "When empty, the check's whole answer.", ("response.body",), nullable=True
)
AFTER = ConfigField("after", "duration", "Ask no sooner than", default="30s")
CHECK_SPECS = {"happened": HAPPENED, "output": OUTPUT, "after": AFTER}
CHECK_REQUEST = ("connection", "method", "url")


@dataclass(frozen=True, slots=True)
class Dot:
    """One attempt on the strip of retry times: where it is drawn, and its label if there is room for one."""

    x: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Safety:
    """What the tab shows. `rule` is the chosen one, `usual` the one that holds when nothing is chosen."""

    outside: bool
    rule: str = ""
    usual: str = ""
    has_key: bool = False
    header: Shown | None = None
    check: tuple[Shown, ...] = ()
    retry: Mapping[str, Any] = field(default_factory=dict)
    dots: tuple[Dot, ...] = ()
    told: str = ""
    timeout: str = ""
    on_error: str = "fail"
    on_error_words: Mapping[str, str] = field(default_factory=lambda: ON_ERROR)
    worst: str = ""

    @property
    def fields(self) -> tuple[Shown, ...]:
        return (*self.check, *((self.header,) if self.header and self.rule == REPEAT else ()))

    @property
    def shape(self) -> str:
        return f"{self.rule}{'+key' if self.has_key else ''}"


def safety_of(step: Mapping[str, Any], kind: StepType, problems: list[Problem], offer: Offer = Offer()) -> Safety:  # noqa: B008
    on_error = "lane" if isinstance(step.get("on_error"), dict) else step.get("on_error") or "fail"
    if not kind.outside:
        return Safety(outside=False, on_error=on_error)
    rule, usual = step.get("on_interrupted"), kind.interrupted(step.get("config") or {})
    policy, timeout = RetryPolicy.of(step.get("retry")), _seconds(step.get("timeout"))
    header = _header(step, kind)
    retry = {**Retry().model_dump(), **(step.get("retry") or {})}
    return Safety(
        outside=True,
        rule=CHECK if isinstance(rule, dict) else rule or usual,
        usual=usual,
        has_key=header is not None,
        header=header,
        check=tuple(with_problems(_check_fields(rule["check"], offer), problems)) if isinstance(rule, dict) else (),
        retry=retry,
        dots=strip(policy),
        told=told(policy),
        timeout=step.get("timeout") or f"{DEFAULT_TIMEOUT:g}s",
        on_error=on_error,
        worst=in_words(worst_case(policy, timeout)),
    )


def read_safety(step: Mapping[str, Any], name: str, post: QueryDict) -> dict[str, Any]:
    """What a field of the tab sets: dotted field -> value. Raises FieldError."""
    match name:
        case "retry":
            return {"retry": _read_retry(post)}
        case "timeout":
            return {"timeout": _read_timeout(post)}
        case "on_error":
            return {"on_error": _read_on_error(step, post.get("value", ""))}
        case "on_interrupted":
            return {"on_interrupted": _read_rule(step, post.get("value", ""))}
    if name.startswith("on_interrupted.check."):
        return {name: _read_check(name.removeprefix("on_interrupted.check."), post)}
    raise FieldError(f"There is no field “{name}” here any more.")


def strip(policy: RetryPolicy, width: float = 280, left: float = 6) -> tuple[Dot, ...]:
    """The attempts at their latest possible times, on a scale that gives the early ones room."""
    times = latest_times(policy)
    longest = times[-1] or 1.0
    dots, last_label = [], -100.0
    for index, time in enumerate(times[:24]):
        x = round(left + width * sqrt(time / longest), 1)
        anchor = "start" if index == 0 else "middle"
        shown = x - last_label >= 48 if index else True
        dots.append(Dot(x, in_words(time) if shown else "", anchor))
        last_label = x if shown else last_label
    return tuple(dots)


def latest_times(policy: RetryPolicy) -> list[float]:
    """Seconds from the first attempt at which each attempt begins at the latest, if every answer comes at once."""
    times, time = [0.0], 0.0
    for failures in range(1, policy.max_attempts):
        time += policy.ceiling(failures)
        if time > policy.total:
            break
        times.append(time)
    return times


def told(policy: RetryPolicy) -> str:
    return (
        "Attempts at the latest after "
        + ", ".join(in_words(time) for time in latest_times(policy)[:8])
        + ", then it gives up"
    )


def in_words(seconds: float) -> str:
    """`0 s`, `1.5 s`, `1 m 10 s`: whole seconds without a point."""
    return f"{seconds:g} s" if seconds < 60 else duration(seconds)


def worst_case(policy: RetryPolicy, timeout: float) -> float:
    """Seconds until the step has failed when every attempt runs into its time-out."""
    elapsed = timeout
    for failures in range(1, policy.max_attempts):
        pause = policy.ceiling(failures)
        if elapsed + pause > policy.total:
            break
        elapsed += pause + timeout
    return elapsed


def _seconds(text: Any) -> float:
    try:
        return parse_duration(str(text)).total_seconds() if text else DEFAULT_TIMEOUT
    except ValueError:
        return DEFAULT_TIMEOUT


def _header(step: Mapping[str, Any], kind: StepType) -> Shown | None:
    """The idempotency header of an API call that changes something."""
    config = step.get("config") or {}
    if step["type"] != "http" or config.get("method", "GET") not in CHANGING:
        return None
    spec = spec_for(kind.Config, "config.idempotency_header")
    value = config.get("idempotency_header", spec.default)
    return replace(show("config.idempotency_header", spec, value), title="Header", help="")


def _check_fields(check: Mapping[str, Any], offer: Offer) -> list[Shown]:
    prefix = "on_interrupted.check"
    http = step_types()["http"]
    given = check.get("request")
    request = setup_fields("http", http.Config, given if isinstance(given, dict) else {}, offer)
    asked = {one.name.removeprefix("config."): one for one in request}
    found = [replace(asked[name], name=f"{prefix}.request.{name}", more=False) for name in CHECK_REQUEST]
    return found + [show(f"{prefix}.{name}", spec, check.get(name)) for name, spec in CHECK_SPECS.items()]


def _read_retry(post: QueryDict) -> dict[str, Any]:
    text = post.get("max_attempts", "").strip()
    if not (text.isdecimal() and len(text) < 10) or not 1 <= int(text) <= LONGEST_ATTEMPTS:
        raise FieldError(f"Attempts: a whole number from 1 to {LONGEST_ATTEMPTS}.")
    found: dict[str, Any] = {"max_attempts": int(text)}
    for name in ("first", "longest", "total"):
        found[name] = read_duration(post.get(name, ""), "s", templates=False) or getattr(Retry(), name)
    if parse_duration(found["longest"]) < parse_duration(found["first"]):
        raise FieldError("The longest pause is shorter than the first one.")
    return found


def _read_timeout(post: QueryDict) -> str | None:
    text = read_duration(post.get("value", ""), "s", templates=False)
    if text is not None and parse_duration(text).total_seconds() < 1:
        raise FieldError("At least 1 second.")
    return text


def _read_on_error(step: Mapping[str, Any], value: str) -> Any:
    """A lane that is there already keeps its steps."""
    if value not in ON_ERROR:
        raise FieldError("Choose what happens after the last attempt.")
    if value == "lane":
        return step["on_error"] if isinstance(step.get("on_error"), dict) else {"steps": []}
    return None if value == "fail" else value


def _read_rule(step: Mapping[str, Any], value: str) -> Any:
    if value in (REPEAT, ASK):
        return value
    if value != CHECK:
        raise FieldError("Choose one of the three.")
    if isinstance(step.get("on_interrupted"), dict):
        return step["on_interrupted"]
    config = step.get("config") or {}
    request = {"method": "GET", "url": config.get("url", "")}
    if config.get("connection"):
        request["connection"] = config["connection"]
    return {"check": {"request": request, "happened": "response.status == 200"}}


def _read_check(name: str, post: QueryDict) -> Any:
    if name.startswith("request."):
        spec = spec_for(step_types()["http"].Config, f"config.{name.removeprefix('request.')}")
        return widget_for(spec.kind).read(spec, post)
    if name not in CHECK_SPECS:
        raise FieldError("There is no such field here any more.")
    value = widget_for(CHECK_SPECS[name].kind).read(CHECK_SPECS[name], post)
    if name == "happened" and value is None:
        raise FieldError("Say by what the answer tells that it happened.")
    return value
