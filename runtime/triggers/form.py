"""Form: a page of its own that people fill in; each answer starts a run.

The page's address stands here once the flow is published. Whoever has it may fill the page in, or only people who are signed in.
Answers are `trigger.body`, by the id of each field, as in `trigger.body.email`; who was signed in is `trigger.by`. Of a file the
body tells `filename`, `type` and `size`; an API call sends it on as its text body or a field of its multipart form:
`{{ trigger.body.offer }}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ..steps.base import Config
from ..steps.fields import Widget, Words
from .base import TriggerKind
from .manual import FormField, Manual, fields_of


class FormConfig(Config):
    title: Annotated[str, Field(max_length=200)] = Field("", title="Heading", description="When empty, the flow's name.")
    intro: Annotated[str, Field(max_length=5000), Widget("prose")] = Field("", title="Text above the fields")
    fields: Annotated[list[FormField], Field(min_length=1, max_length=100), Widget("page_fields")] = Field(title="Fields")
    thanks: Annotated[str, Field(max_length=2000), Widget("prose")] = Field(
        "Thank you. We have your answers.", title="Text afterwards"
    )
    access: Annotated[
        Literal["public", "signed_in"],
        Words({"public": "Anybody with the address", "signed_in": "Who is signed in"}),
    ] = Field("public", title="Who may fill it in")
    largest_mib: Annotated[int, Field(ge=1, le=13)] = Field(5, title="Largest file, in MiB", description="All together at most 13.")
    per_minute: Annotated[int, Field(ge=1, le=10_000)] = Field(
        60, title="Answers a minute, at most", description="From everybody together; from one network address a tenth of it."
    )

    @model_validator(mode="after")
    def ids_once(self) -> FormConfig:
        ids = [field.id for field in self.fields]
        if twice := next((name for name in ids if ids.count(name) > 1), None):
            raise ValueError(f"The field id “{twice}” is used twice.")
        return self


class Form(TriggerKind):
    type = "form"
    label = "Form"
    icon = "text"
    summary = "Start when somebody fills in a page"
    also = "survey questions page"
    Config = FormConfig
    example = {"fields": [{"id": "email", "label": "Your e-mail address", "type": "email", "required": True}]}

    def line(self, config: Mapping[str, Any]) -> str:
        count = len(fields_of(config))
        who = "signed in" if config.get("access") == "signed_in" else "public"
        return f"Form · {count} field{'' if count == 1 else 's'} · {who}"

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        body = Manual().sample(config) or {}
        return {**body, "by": "", "at": "2027-01-15T09:00:00+00:00"}


KIND = Form()
