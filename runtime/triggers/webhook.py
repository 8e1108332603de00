"""Webhook: another system posts to an address of this workflow's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ..steps.base import Config
from ..steps.fields import Expression, Widget
from .base import TriggerKind

SENDER_MAKES_SECRET = {"stripe": "Stripe", "slack": "Slack"}


class SignatureConfig(Config):
    kind: Literal["none", "standard", "github", "stripe", "slack"] = Field(
        "none", title="Signature", description="How the sender signs its requests."
    )
    connection: Annotated[str, Widget("connection", ("signing",))] = Field(
        "",
        title="Secret",
        description="The connection that holds the signing secret. Without one, Holdfast makes a secret for you.",
    )

    @model_validator(mode="after")
    def secret_known(self) -> SignatureConfig:
        if self.kind in SENDER_MAKES_SECRET and not self.connection:
            sender = SENDER_MAKES_SECRET[self.kind]
            raise ValueError(
                f"{sender} makes the signing secret itself. Store it as a connection and choose that here."
            )
        return self


class WebhookConfig(Config):
    dedupe: Expression | None = Field(
        None,
        title="Same event",
        description="Requests for which this gives the same value start one run. It sees headers, body and query.",
        examples=["headers['x-event-id']", "body.id"],
    )
    signature: SignatureConfig = Field(default_factory=SignatureConfig, title="Signature")
    format: Literal["json", "form"] = Field("json", title="Body", description="JSON, or a form (URL-encoded).")
    sample: Annotated[Any, Widget("json")] = Field(
        None, title="Sample body", description="An example of what is sent, for suggestions and checks while you build."
    )


class Webhook(TriggerKind):
    type = "webhook"
    label = "Webhook"
    icon = "webhook"
    summary = "Start when another system calls an address"
    Config = WebhookConfig

    def line(self, config: Mapping[str, Any]) -> str:
        kind = (config.get("signature") or {}).get("kind", "none")
        return "Webhook" if kind == "none" else f"Webhook · signed ({SIGNED[kind]})" if kind in SIGNED else "Webhook"

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        if config.get("sample") is None:
            return None
        return {"body": config["sample"], "headers": {}, "query": {}, "method": "POST"}


SIGNED = {"standard": "Standard Webhooks", "github": "GitHub", "stripe": "Stripe", "slack": "Slack"}

KIND = Webhook()
