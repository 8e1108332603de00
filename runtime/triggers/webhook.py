"""Webhook: another system calls an address of this flow's own, and each call starts a run.

The address stands on this panel once the flow is published. It is a secret: give it to the sender and to nobody else. Runs know
what was sent as `trigger.body`, `trigger.headers`, `trigger.query` and `trigger.method`. While you build, a test address takes
one call as sample data and starts nothing.

- “Same event” keeps a call that is sent twice from starting two runs: say what tells events apart, such as `body.id`.
- “Signature” refuses callers that cannot prove who they are.
- “Only when” and “Only from” leave out what the flow is not for.
- “Answer: when the run ends” gives the caller what a Stop step of the flow gives as output.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ..steps.base import Config
from ..steps.fields import Expression, Widget, Words
from .base import TriggerKind

METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
SHOWN = {"basic": "user and password", "header": "header and its value"}
"""Not signed: the secret itself is sent along."""
SENDER_MAKES_SECRET = {"stripe": "Stripe", "slack": "Slack"}


def _methods(names: list[str]) -> list[str]:
    names = [name.strip().upper() for name in names]
    if bad := next((name for name in names if name not in METHODS), None):
        raise ValueError(f"“{bad[:20]}” is no method. Choose among {', '.join(METHODS)}.")
    return list(dict.fromkeys(names))


def _networks(lines: list[str]) -> list[str]:
    for line in lines:
        try:
            ip_network(line.strip(), strict=False)
        except ValueError:
            raise ValueError(f"“{line[:40]}” is no address or network. Write 192.0.2.7 or 192.0.2.0/24.") from None
    return lines


class SignatureConfig(Config):
    kind: Annotated[
        Literal["none", "standard", "github", "stripe", "slack", "basic", "header"],
        Words({"none": "Not signed", "standard": "Standard Webhooks", "github": "GitHub", "basic": "User and password", "header": "A secret header"}),
    ] = Field(
        "none", title="Signature", description="How the sender signs its requests, or shows that it may send them."
    )
    connection: Annotated[str, Widget("connection", ("signing", "basic", "header"))] = Field(
        "",
        title="Secret",
        description="The connection that holds the signing secret. Without one, Holdfast makes a secret for you.",
    )

    @model_validator(mode="after")
    def secret_known(self) -> SignatureConfig:
        if self.kind in SHOWN and not self.connection:
            raise ValueError(f"Store the {SHOWN[self.kind]} as a connection and choose that here.")
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
    only: Expression | None = Field(
        None,
        title="Only when",
        description="Requests for which this is not true are answered and start nothing. It sees headers, body and query.",
        examples=["body.type == 'invoice.paid'"],
    )
    methods: Annotated[list[str], Field(min_length=1), AfterValidator(_methods)] = Field(
        default_factory=lambda: ["POST"], title="Methods", description="Those that are taken, one a line: POST, PUT, PATCH, DELETE, GET. POST where none is named."
    )
    allowed: Annotated[list[str], Field(max_length=100), AfterValidator(_networks)] = Field(
        default_factory=list, title="Only from", description="Network addresses of the senders, one a line, such as 192.0.2.7 or 192.0.2.0/24; from anywhere when empty.",
        examples=[["192.0.2.0/24"]],
    )  # fmt: skip
    respond: Annotated[Literal["at_once", "at_end"], Words({"at_end": "When the run ends"})] = Field(
        "at_once", title="Answer", description="At once with the run's number, or when it ends, with what its Stop step gives."
    )
    respond_within: Annotated[int, Field(ge=1, le=60)] = Field(
        30, title="Seconds to wait", description="A run that takes longer is answered with its number."
    )
    format: Annotated[Literal["json", "form"], Words({"json": "JSON"})] = Field("json", title="Body", description="JSON, or a form (URL-encoded).")
    sample: Annotated[Any, Widget("json")] = Field(
        None, title="Sample body", description="An example of what is sent, for suggestions and checks while you build."
    )


class Webhook(TriggerKind):
    type = "webhook"
    label = "Webhook"
    icon = "bolt"
    summary = "Start when another system calls an address"
    also = "catch hook http request github stripe slack"
    Config = WebhookConfig

    def line(self, config: Mapping[str, Any]) -> str:
        kind = (config.get("signature") or {}).get("kind", "none")
        return "Webhook" if kind == "none" else f"Webhook · signed ({SIGNED[kind]})" if kind in SIGNED else "Webhook"

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        if config.get("sample") is None:
            return None
        return {"body": config["sample"], "headers": {}, "query": {}, "method": "POST"}


SIGNED = {"basic": "password", "header": "secret header", "standard": "Standard Webhooks", "github": "GitHub", "stripe": "Stripe", "slack": "Slack"}

KIND = Webhook()
