"""Approval: asks people, and goes on with their answer. Each gets a mail with a link of their own, which needs no account.

Approvers stand one a line: an address, `@dana` for a member of the flow's team, or `team:Sales` for the operators and administrators
of that team, or of another one that lets other teams ask it (*Settings*). Whose answer counts:

- Any one of them: the first answer.
- Everybody: all have to approve.
- As many as I say: so many have to approve.
- One line after the other: each line is asked when the one before has approved; of a line anybody.

One rejection ends it at once, or, if the step says so, only when too few are left who could approve. What follows in the flow is
what was approved, so after a rejection the run ends, unless the step says that it fails or goes on. Later steps read `decision`
(`approved`, `rejected`, `expired` or `withdrawn`), `by`, `comment`, `form`, `at`, and `decisions`, which lists all answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ..durations import parse_duration
from ..mail_addresses import BadAddress, check_address, check_line
from ..people import check_name, is_name
from ..states import RunState, WaitKind
from ..triggers.manual import FormField, without_files
from .base import Config, Context, Done, Outcome, Park, Person, Question, StepError, StepType, Stop
from .email import LONGEST_SUBJECT
from .fields import Addresses, Duration, LongText, Pairs, Text, Widget, Words

MOST_APPROVERS = 50


def _people(entries: list[str]) -> list[str]:
    for entry in entries:
        if is_name(entry):
            check_name(entry)
        elif "{{" not in entry:
            check_address(entry)
    return entries


Approvers = Annotated[Addresses, AfterValidator(_people)]


class Effects(Config):
    approve: Text = Field("", title="If approved", examples=["A deal is made in the CRM."])
    reject: Text = Field("", title="If rejected", examples=["The run ends; nobody is told."])


class ApprovalConfig(Config):
    approvers: Annotated[Approvers, Field(min_length=1)] = Field(
        title="Approvers",
        description="One a line: an address, @account of a member, or team:name. Each gets a link of their own.",
        examples=[["dana@example.com"]],
    )
    policy: Annotated[
        Literal["any", "all", "count", "ordered"],
        Words({"any": "Any one of them", "all": "Everybody", "count": "As many as I say", "ordered": "One line after the other"}),
    ] = Field("any", title="Who has to answer")
    needed: Annotated[int, Field(ge=1, le=MOST_APPROVERS)] = Field(2, title="How many have to approve")
    rejection: Annotated[
        Literal["at_once", "outvoted"],
        Words({"at_once": "Ends it at once", "outvoted": "Only if too few are left"}),
    ] = Field(
        "at_once", title="One rejection", description="Ends it at once, or only when too few are left who could approve."
    )
    expires: Duration = Field("7d", title="Answer within")
    subject: Text = Field(title="Question", examples=["VIP outreach to {{ trigger.body.email }}?"])
    message: LongText = Field("", title="Message")
    details: Pairs = Field(default_factory=dict, title="Details", description="What the approver has to know.")
    form: Annotated[list[FormField], Field(max_length=30), Widget("form_fields"), AfterValidator(without_files)] = Field(
        default_factory=list, title="Ask for", description="Fields to fill in when approving."
    )
    effects: Effects = Field(default_factory=Effects, title="What each answer causes")
    on_rejected: Annotated[
        Literal["stop", "fail", "go_on"],
        Words({"stop": "End the run", "fail": "Fail the step"}),
    ] = Field(
        "stop", title="When rejected", description="To go on is for a condition that asks for the decision."
    )
    on_expired: Annotated[
        Literal["reject", "fail", "go_on"],
        Words({"reject": "Count as rejected", "fail": "Fail the step"}),
    ] = Field("reject", title="When nobody answers in time")
    remind: Duration | None = Field(
        None, title="Remind every", description="A mail to those who have not answered, again and again.", examples=["1d"]
    )
    escalate_after: Duration | None = Field(
        None, title="Ask others after", description="If nobody has settled it by then.", examples=["2d"]
    )
    escalate_to: Approvers = Field(
        default_factory=list, title="Others to ask", description="One answer of theirs settles it."
    )
    comment_required: bool = Field(False, title="Rejecting needs a reason")
    sign_in: bool = Field(
        False, title="Answer only when signed in", description="Otherwise the link in the mail is enough."
    )
    no_self: bool = Field(
        False, title="Nobody approves what they started",
        description="Whoever started the run, or one that it was started after, is not asked.",
    )

    @model_validator(mode="after")
    def fits_together(self) -> ApprovalConfig:
        ids = [field.id for field in self.form]
        if twice := next((name for name in ids if ids.count(name) > 1), None):
            raise ValueError(f"The field id “{twice}” is used twice.")
        if (self.escalate_after is None) != (not self.escalate_to):
            raise ValueError("To ask others, say both after which time and whom.")
        return self


class Approval(StepType):
    type = "approval"
    label = "Approval"
    icon = "approve"
    category = "People and waits"
    summary = "Ask people to approve"
    also = "human in the loop review sign off confirm manager ask suspend"
    Config = ApprovalConfig
    example = {"approvers": ["dana@example.com"], "subject": "Go ahead?", "expires": "3d"}

    def line(self, config: Mapping[str, Any]) -> str:
        lines = config.get("approvers") or []
        if not lines:
            return self.summary
        return f"Asks {_who(lines, config.get('policy'), config.get('needed', 2))} · {config.get('expires', '7d')}"

    def doubts(self, step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        config = step.get("config") or {}
        lines, needed = config["approvers"], config.get("needed", 2)
        if config.get("policy") == "count" and needed > len(lines) and not any("{{" in line or is_name(line) for line in lines):
            yield "needed", f"{needed} have to approve, but only {len(lines)} {'is' if len(lines) == 1 else 'are'} asked."
        ends = _seconds(config.get("expires", "7d"))
        for name in ("remind", "escalate_after"):
            if ends is not None and (after := _seconds(config.get(name))) is not None and after >= ends:
                yield name, f"The time to answer ends after {config.get('expires', '7d')}, before that."

    async def run(self, ctx: Context) -> Outcome:
        question = await _question(ctx)
        keep = {"on_rejected": ctx.config["on_rejected"], "on_expired": ctx.config["on_expired"]}
        return Park(WaitKind.APPROVAL, after=_time(ctx.config, "expires"), data=keep, question=question)

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        if outcome["by"] == "due":
            return _expired(outcome, data)
        output = {name: outcome.get(name) for name in ("decision", "by", "comment", "form", "at", "decisions")}
        output["by"] = outcome["who"]
        if output["decision"] == "approved":
            return Done(output)
        word = str(output["decision"]).capitalize()
        return _rejected(output, data, f"{word} by {output['by']}{_said(output['comment'])}")


def _who(lines: list[str], policy: Any, needed: Any) -> str:
    one = lines[0] if isinstance(lines[0], str) else ""
    if len(lines) == 1 and is_name(one):
        return one
    if len(lines) == 1 and policy != "count":
        return "1 person"
    first = {"all": "all", "count": str(needed)}.get(str(policy), "any")
    return f"{len(lines)} in turn" if policy == "ordered" else f"{first} of {len(lines)} people"


def _seconds(text: Any) -> float | None:
    """Of a length that is told; None where there is none, or a run works it out."""
    return None if not text or "{{" in str(text) else parse_duration(str(text)).total_seconds()


def _time(config: Mapping[str, Any], name: str):
    try:
        return parse_duration(str(config[name]))
    except ValueError as wrong:
        raise StepError(str(wrong), field=name) from None


async def _question(ctx: Context) -> Question:
    config = ctx.config
    starters = await ctx.starters() if config["no_self"] else []
    asked = await _asked(ctx, "approvers", starters, {})
    if not 0 < len(asked) <= MOST_APPROVERS:
        words = f"An approval asks 1 to {MOST_APPROVERS} people; here are {len(asked)}."
        if starters and not asked:
            words = "Nobody is left to ask: the only approver started the run."
        raise StepError(words, field="approvers")
    needed = config["needed"]
    if config["policy"] == "count" and needed > len(asked):
        raise StepError(f"{needed} have to approve, but only {len(asked)} are asked.", field="needed")
    more = await _asked(ctx, "escalate_to", starters, asked) if config["escalate_to"] else {}
    try:
        subject = check_line(str(config["subject"]).strip(), "question")[:LONGEST_SUBJECT]
    except ValueError as wrong:
        raise StepError(str(wrong), field="subject") from None
    people = [person for person, _ in (*asked.values(), *more.values())]
    return Question(
        subject=subject or "Your answer is needed",
        approvers=tuple(person.address for person, _ in asked.values()),
        message=str(config["message"]),
        details=tuple({"label": label, "value": value} for label, value in config["details"].items()),
        form=tuple(config["form"]),
        effects={answer: text for answer, text in config["effects"].items() if text},
        policy=config["policy"],
        on_expired=config["on_expired"],
        needed=needed,
        accounts={person.address: person.user_id for person in people if person.user_id is not None},
        stages=_stages(asked) if config["policy"] == "ordered" else {},
        standby=tuple(person.address for person, _ in more.values()),
        rules=_rules(config, starters, more, people),
    )


async def _asked(
    ctx: Context, field: str, starters: list[Person], without: Mapping[str, Any]
) -> dict[str, tuple[Person, int]]:
    """Address in lower case -> (who, the number of the line that named them first)."""
    found: dict[str, tuple[Person, int]] = {}
    for number, line in enumerate(ctx.config[field], 1):
        for entry in line if isinstance(line, list) else [line]:
            for person in await _meant(ctx, entry, field):
                key = person.address.lower()
                own = any(person.user_id == one.user_id or key == one.address.lower() for one in starters)
                if not own and key not in without:
                    found.setdefault(key, (person, number))
    return found


async def _meant(ctx: Context, entry: Any, field: str) -> list[Person]:
    if isinstance(entry, str) and is_name(entry.strip()):
        return await ctx.people(entry.strip())
    try:
        return [Person(check_address(entry))]
    except BadAddress as wrong:
        raise StepError(str(wrong), field=field) from None


def _stages(asked: Mapping[str, tuple[Person, int]]) -> dict[str, int]:
    """Address -> its turn, counted without gaps: a line may have named nobody who was not named before."""
    lines = sorted({number for _, number in asked.values()})
    return {person.address: lines.index(number) + 1 for person, number in asked.values()}


def _rules(config: Mapping[str, Any], starters: list[Person], standby: Mapping[str, Any], people: list[Person]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if members := {person.address: person.member_of for person in people if person.member_of}:
        rules["members"] = members
    if config["remind"]:
        rules["remind"] = max(60.0, _time(config, "remind").total_seconds())
    if standby:
        rules["escalate"] = _time(config, "escalate_after").total_seconds()
    for name, key in (("comment_required", "comment"), ("sign_in", "sign_in")):
        if config[name]:
            rules[key] = True
    if config["rejection"] == "outvoted":
        rules["outvoted"] = True
    if starters:
        rules["starters"] = [one.user_id for one in starters]
    return rules


def _expired(outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
    output = {"decision": "expired", "by": None, "comment": "", "form": {}, "at": outcome.get("at"), "decisions": []}
    if data["on_expired"] == "reject":
        return _rejected(output, data, "Nobody answered in time, which counts as rejected.", ("Nobody answered in time.",))
    if data["on_expired"] == "fail":
        raise StepError("Nobody answered in time.", field="expires")
    return Done(output, log=("Nobody answered in time.",))


def _rejected(output: dict[str, Any], data: dict[str, Any], words: str, log: tuple[str, ...] = ()) -> Outcome:
    """The decision itself is in the log already: it was written there when it was made."""
    if data["on_rejected"] == "stop":
        return Stop(RunState.SUCCEEDED, words, output)
    if data["on_rejected"] == "fail":
        raise StepError(words, field="approvers")
    return Done(output, log=log)


def _said(comment: str | None) -> str:
    return f": {comment.strip()}" if comment and comment.strip() else "."


STEP = Approval()
