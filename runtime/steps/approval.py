"""Approval: ask people, and go on with their answer.

Each approver gets a link of their own. `any`: the first answer counts. `all`: everybody has to approve; one rejection
counts at once. The output is `{"decision", "by", "comment", "form", "at", "decisions"}`, with `decision` one of
`approved`, `rejected`, `expired`.

What follows an approval is what was approved, so a rejection does not reach it by itself: `on_rejected` ends the run
(`stop`, as a success that says who rejected), fails the step (`fail`), or goes on and leaves it to a condition
(`go_on`). Not answered in time is treated as a rejection (`reject`), a failure (`fail`), or an output (`go_on`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ..durations import parse_duration
from ..mail_addresses import check_line
from ..states import RunState, WaitKind
from ..triggers.manual import FormField
from .base import Config, Context, Done, Outcome, Park, Question, StepError, StepType, Stop
from .email import LONGEST_SUBJECT, Recipients, recipients
from .fields import Duration, LongText, Pairs, Text, Widget

MOST_APPROVERS = 50


class Effects(Config):
    approve: Text = Field("", title="If approved", examples=["A deal is made in the CRM."])
    reject: Text = Field("", title="If rejected", examples=["The run ends; nobody is told."])


class ApprovalConfig(Config):
    approvers: Annotated[Recipients, Field(min_length=1)] = Field(
        title="Approvers", description="Each gets a link of their own.", examples=[["dana@example.com"]]
    )
    policy: Literal["any", "all"] = Field(
        "any", title="Who has to answer", description="A rejection by one of them counts at once, either way."
    )
    expires: Duration = Field("7d", title="Answer within")
    subject: Text = Field(title="Question", examples=["VIP outreach to {{ trigger.body.email }}?"])
    message: LongText = Field("", title="Message")
    details: Pairs = Field(default_factory=dict, title="Details", description="What the approver has to know.")
    form: Annotated[list[FormField], Field(max_length=30), Widget("form_fields")] = Field(
        default_factory=list, title="Ask for", description="Fields to fill in when approving."
    )
    effects: Effects = Field(default_factory=Effects, title="What each answer causes")
    on_rejected: Literal["stop", "fail", "go_on"] = Field(
        "stop", title="When rejected", description="To go on is for a condition that asks for the decision."
    )
    on_expired: Literal["reject", "fail", "go_on"] = Field("reject", title="When nobody answers in time")

    @model_validator(mode="after")
    def ids_once(self) -> ApprovalConfig:
        ids = [field.id for field in self.form]
        if twice := next((name for name in ids if ids.count(name) > 1), None):
            raise ValueError(f"The field id “{twice}” is used twice.")
        return self


class Approval(StepType):
    type = "approval"
    label = "Approval"
    icon = "approval"
    category = "People and waits"
    summary = "Ask people to approve"
    Config = ApprovalConfig
    example = {"approvers": ["dana@example.com"], "subject": "Go ahead?", "expires": "3d"}

    def line(self, config: Mapping[str, Any]) -> str:
        people = len(config.get("approvers") or [])
        if not people:
            return self.summary
        who = "1 person" if people == 1 else f"{'all' if config.get('policy') == 'all' else 'any'} of {people} people"
        return f"Asks {who} · {config.get('expires', '7d')}"

    async def run(self, ctx: Context) -> Outcome:
        question = _question(ctx.config)
        try:
            expires = parse_duration(str(ctx.config["expires"]))
        except ValueError as wrong:
            raise StepError(str(wrong), field="expires") from None
        keep = {"on_rejected": ctx.config["on_rejected"], "on_expired": ctx.config["on_expired"]}
        return Park(WaitKind.APPROVAL, after=expires, data=keep, question=question)

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        if outcome["by"] == "due":
            return _expired(outcome, data)
        output = {name: outcome.get(name) for name in ("decision", "by", "comment", "form", "at", "decisions")}
        output["by"] = outcome["who"]
        if output["decision"] == "approved":
            return Done(output, log=(f"Approved by {output['by']}.",))
        return _rejected(output, data, f"Rejected by {output['by']}{_said(output['comment'])}")


def _question(config: Mapping[str, Any]) -> Question:
    approvers = recipients(config, "approvers")
    if not 0 < len(approvers) <= MOST_APPROVERS:
        raise StepError(f"An approval asks 1 to {MOST_APPROVERS} people; here are {len(approvers)}.", field="approvers")
    try:
        subject = check_line(str(config["subject"]).strip(), "question")[:LONGEST_SUBJECT]
    except ValueError as wrong:
        raise StepError(str(wrong), field="subject") from None
    return Question(
        subject=subject or "Your answer is needed",
        approvers=tuple(approvers),
        message=str(config["message"]),
        details=tuple({"label": label, "value": value} for label, value in config["details"].items()),
        form=tuple(config["form"]),
        effects={answer: text for answer, text in config["effects"].items() if text},
        policy=config["policy"],
        on_expired=config["on_expired"],
    )


def _expired(outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
    output = {"decision": "expired", "by": None, "comment": "", "form": {}, "at": outcome.get("at"), "decisions": []}
    if data["on_expired"] == "reject":
        return _rejected(output, data, "Nobody answered in time, which counts as rejected.")
    if data["on_expired"] == "fail":
        raise StepError("Nobody answered in time.", field="expires")
    return Done(output, log=("Nobody answered in time.",))


def _rejected(output: dict[str, Any], data: dict[str, Any], words: str) -> Outcome:
    if data["on_rejected"] == "stop":
        return Stop(RunState.SUCCEEDED, words, output)
    if data["on_rejected"] == "fail":
        raise StepError(words, field="approvers")
    return Done(output, log=(words,))


def _said(comment: str | None) -> str:
    return f": {comment.strip()}" if comment and comment.strip() else "."


STEP = Approval()
