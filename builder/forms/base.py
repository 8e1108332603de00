"""What a widget is: it shows a value as form controls, and reads what was typed back into a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.http import QueryDict

from ..fields import ConfigField


class FieldError(ValueError):
    """What was typed is no value. `row` is the row to blame, of widgets that have rows; `unreadable` says that it is no
    expression."""

    def __init__(self, message: str, row: int | None = None, *, unreadable: bool = False):
        super().__init__(message)
        self.row, self.unreadable = row, unreadable


@dataclass(frozen=True, slots=True)
class Offer:
    """What the place offers to choose from: connections of the team as (name, kind, label), and its other flows, name -> number."""

    connections: tuple[tuple[str, str, str], ...] = ()
    flows: Mapping[str, int] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Former names of flows -> what they are called now."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A field as the panel shows it. `name` is dotted from the step; `data` is what the widget's template reads."""

    name: str
    kind: str
    title: str
    help: str
    required: bool
    value: Any
    data: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""
    more: bool = False
    width: str = ""
    error: str = ""
    warning: bool = False
    fix: Mapping[str, Any] | None = None
    at: str = ""
    """Where in the field the error lies: `deal.amount` of a group of values, the number of a rule or a line."""

    @property
    def id(self) -> str:
        return "f-" + self.name.replace(".", "-")

    @property
    def template(self) -> str:
        return f"canvas/fields/{self.kind}.html"


class Widget(ABC):
    """One way to edit a value. Instances are stateless and shared."""

    kind: ClassVar[str]
    grouped: ClassVar[bool] = False
    """Whether it has several controls, so that its title is a legend and no label."""

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        """What the template needs beside the value."""
        return {}

    @abstractmethod
    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        """The value that was typed; None takes the field out of the config. Raises FieldError."""
