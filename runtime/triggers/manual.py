"""Manual: a person starts it in the app with “Run now”, through a form made from the fields that are declared here.

What was filled in is `trigger.body`, by the id of each field, as in `trigger.body.customer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ..mail_addresses import BadAddress, check_address
from ..steps.base import Config
from ..steps.fields import Widget
from .base import TriggerKind

LONGEST_TEXT = 20_000
WRITTEN = ("text", "long_text")
"""Kept as it was typed; empty where nothing was."""


class FormField(Config):
    id: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    label: Annotated[str, Field(max_length=200)] = ""
    type: Literal["text", "long_text", "email", "number", "choice", "date", "checkbox", "file"] = "text"
    required: bool = False
    options: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=200)] = Field(default_factory=list)

    @model_validator(mode="after")
    def options_for_choices(self) -> FormField:
        if self.type == "choice" and not self.options:
            raise ValueError("Give the options to choose from.")
        if self.type != "choice" and self.options:
            raise ValueError("Only a choice has options.")
        return self


def without_files(fields: list[FormField]) -> list[FormField]:
    if any(field.type == "file" for field in fields):
        raise ValueError("Files are sent on the page of a form trigger, and nowhere else.")
    return fields


class ManualConfig(Config):
    fields: Annotated[list[FormField], Field(max_length=100), Widget("form_fields"), AfterValidator(without_files)] = Field(
        default_factory=list, title="Fields", description="What the person is asked when starting a run."
    )

    @model_validator(mode="after")
    def ids_once(self) -> ManualConfig:
        ids = [field.id for field in self.fields]
        if twice := next((name for name in ids if ids.count(name) > 1), None):
            raise ValueError(f"The field id “{twice}” is used twice.")
        return self


def fields_of(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields that a form declares. A draft may hold anything in their place; what is no field is left out."""
    fields = config.get("fields")
    return [one for one in fields if _is_field(one)] if isinstance(fields, list) else []


def _is_field(value: Any) -> bool:
    if not (isinstance(value, dict) and isinstance(value.get("id"), str) and value["id"]):
        return False
    return value.get("type", "text") in ("checkbox", "file", *_READERS)


def read_form(fields: list[Mapping[str, Any]], posted: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What a person typed -> (`trigger.body`, {field id: what is wrong}). Names that no field has are left out. Of a file comes
    what the body tells of it."""
    body: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in fields:
        try:
            body[field["id"]] = _read_field(field, posted.get(field["id"], ""))
        except ValueError as problem:
            wrong[field["id"]] = str(problem)
    return body, wrong


def _read_field(field: Mapping[str, Any], text: Any) -> Any:
    kind = field.get("type", "text")
    if kind == "file":
        if field.get("required") and not text:
            raise ValueError("Choose a file.")
        return text or None
    if kind == "checkbox":
        if field.get("required") and not text:
            raise ValueError("Tick this to go on.")
        return bool(text)
    if kind not in WRITTEN:
        text = text.strip()
    if not text.strip():
        if field.get("required"):
            raise ValueError("Fill this in.")
        return "" if kind in WRITTEN else None
    return _READERS[kind](field, text)


def _read_text(field: Mapping[str, Any], text: str) -> str:
    if "\x00" in text:
        raise ValueError("This holds a NUL character, which cannot be stored.")
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"At most {LONGEST_TEXT:,} characters.")
    return text


def _read_long_text(field: Mapping[str, Any], text: str) -> str:
    return _read_text(field, text.replace("\r\n", "\n"))


def _read_email(field: Mapping[str, Any], text: str) -> str:
    try:
        return check_address(text)
    except BadAddress:
        raise ValueError("Write an e-mail address, such as name@example.com.") from None


def _read_number(field: Mapping[str, Any], text: str) -> int | float:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("Write a number, such as 12 or 3.5.") from None
    if not number.is_finite() or number.copy_abs() >= 2**63:  # abs() reckons, which some numbers are too large for
        raise ValueError("That number is too large.")
    return int(number) if number == number.to_integral_value() else float(number)


def _read_choice(field: Mapping[str, Any], text: str) -> str:
    if text not in field.get("options", ()):
        raise ValueError("Choose one of the options.")
    return text


def _read_date(field: Mapping[str, Any], text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("Write a date as year-month-day, such as 2027-01-31.") from None


_READERS = {"text": _read_text, "long_text": _read_long_text, "email": _read_email, "number": _read_number, "choice": _read_choice, "date": _read_date}
_SAMPLES: dict[str, Any] = {
    "text": "text", "long_text": "text", "email": "name@example.com", "number": 1, "date": "2027-01-15", "checkbox": True,
    "file": {"filename": "offer.pdf", "type": "application/pdf", "size": 48213, "file": "the file's key"},
}  # fmt: skip


class Manual(TriggerKind):
    type = "manual"
    label = "Manual"
    icon = "play"
    summary = "Start by hand, with a form"
    also = "button run now start by hand"
    Config = ManualConfig

    def line(self, config: Mapping[str, Any]) -> str:
        count = len(fields_of(config))
        return "Manual · no fields" if not count else f"Manual · form with {count} field{'s' * (count > 1)}"

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"body": {field["id"]: self._example(field) for field in fields_of(config)}}

    def _example(self, field: Mapping[str, Any]) -> Any:
        if field.get("type") == "choice":
            return next(iter(field.get("options") or ()), "")
        return _SAMPLES.get(field.get("type", "text"))


KIND = Manual()
