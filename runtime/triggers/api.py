"""API: a program starts runs through `/api/v1/`, with a token of yours as bearer token; what it sends is `trigger.body`.

A webhook needs no token and takes whatever a system sends. This is for programs that want to know what became of the run, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from ..steps.base import Config
from ..steps.fields import Widget
from .base import TriggerKind


class ApiConfig(Config):
    sample: Annotated[Any, Widget("json")] = Field(
        None,
        title="Sample input",
        description="An example of what is sent, for suggestions and checks while you build.",
    )


class Api(TriggerKind):
    type = "api"
    label = "API"
    icon = "plug"
    summary = "Start from a program"
    also = "program token rest"
    Config = ApiConfig

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        return None if config.get("sample") is None else {"body": config["sample"]}


KIND = Api()
