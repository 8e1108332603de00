"""E-mail: sends a message to one or more people. It goes out soon after the step, also when the mail server is away just then.

Everybody in “To” gets a message of their own and sees no other recipient. Those in “Cc” get a copy of the first one, and
its recipient sees them. An address that is refused holds up nobody else. A file that an API call gave or that came with a form can
be attached: `{{ steps.fetch.output.body }}`, `{{ trigger.body.offer }}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ..mail_addresses import BadAddress, check_address, check_line
from ..net import MIB
from .base import Config, Context, Done, Mail, Outcome, StepError, StepType
from .fields import Addresses, LongText, Text, Widget
from .http_bodies import file_name

MOST_RECIPIENTS = 500
LONGEST_SUBJECT = 900
MOST_ATTACHED = 15
"""MiB of all attachments together: mail servers take 20 to 25, and a mail's encoding makes a third more of them."""


def _addresses(entries: list[str]) -> list[str]:
    for entry in entries:
        if "{{" not in entry:
            check_address(entry)
    return entries


Recipients = Annotated[Addresses, AfterValidator(_addresses)]


class EmailConfig(Config):
    to: Annotated[Recipients, Field(min_length=1)] = Field(
        title="To", description="Each gets a message of their own.", examples=[["{{ trigger.body.email }}"]]
    )
    cc: Recipients = Field(default_factory=list, title="Cc", description="Each gets a copy of the first message.")
    reply_to: Text = Field("", title="Reply to", description="Where answers go.")
    subject: Text = Field(title="Subject", examples=["Thank you, {{ trigger.body.name }}"])
    body: LongText = Field(
        "", title="Text", description="Plain text. An empty line begins a paragraph.", examples=["Thank you for your message."]
    )
    attachments: Annotated[list[Text], Field(max_length=20), Widget("attachments")] = Field(
        default_factory=list, title="Attachments", description="Files that an API call gave or that came with a form."
    )


class Email(StepType):
    type = "email"
    label = "E-mail"
    icon = "mail"
    category = "Actions"
    summary = "Send an e-mail"
    also = "mail gmail smtp message notify"
    Config = EmailConfig
    example = {"to": ["{{ trigger.body.email }}"], "subject": "Hello", "body": "Thank you for your message."}

    def line(self, config: Mapping[str, Any]) -> str:
        to = config.get("to") or []
        more = f" and {len(to) - 1} more" if len(to) > 1 else ""
        return f"To {to[0]}{more}" if to else self.summary

    async def run(self, ctx: Context) -> Outcome:
        to, cc = recipients(ctx.config, "to"), recipients(ctx.config, "cc")
        if not to:
            raise StepError("Nobody to send to: the list is empty.", field="to")
        if len(to) + len(cc) > MOST_RECIPIENTS:
            raise StepError(f"At most {MOST_RECIPIENTS} recipients a step; there are {len(to) + len(cc)}.", field="to")
        content: dict[str, Any] = {"subject": _subject(ctx.config), "text": str(ctx.config["body"]), "reply_to": _reply_to(ctx.config)}
        if attached := await _attached(ctx):
            content["attachments"] = attached
        mails = [Mail("email", to[0], {**content, "to": [to[0]], "cc": cc})]
        mails += [Mail("email", address, {**content, "to": [address], "cc": []}) for address in to[1:]]
        mails += [Mail("email", address, {**content, "to": [to[0]], "cc": cc}) for address in cc if address not in to]
        return Done({"to": to, "cc": cc, "subject": content["subject"]}, mails=tuple(mails))


async def _attached(ctx: Context) -> list[dict[str, Any]]:
    """What the mail says of each file; its bytes are read when it goes out. An entry may have become a list, or null: none."""
    found, size = [], 0
    for entry in ctx.config["attachments"]:
        for one in entry if isinstance(entry, list) else [entry]:
            if one is None or one == "":
                continue
            if not (isinstance(one, Mapping) and isinstance(one.get("file"), str)):
                raise StepError("An attachment is a file that an API call gave, as its body, or that came with a form.", field="attachments")
            size += len(await ctx.file(one["file"]))
            name = str(one.get("filename") or "file")
            found.append({"filename": file_name(name), "type": str(one.get("type") or ""), "size": one.get("size"), "file": one["file"]})
    if size > MOST_ATTACHED * MIB:
        raise StepError(f"The attachments have {size / MIB:.1f} MiB together; a mail takes {MOST_ATTACHED}.", field="attachments")
    return found


def recipients(config: Mapping[str, Any], field: str) -> list[str]:
    """Checked and each once. An entry that is only `{{ … }}` may have become a list."""
    entries: list[Any] = []
    for entry in config[field]:
        entries += entry if isinstance(entry, list) else [entry]
    found: dict[str, str] = {}
    for entry in entries:
        try:
            address = check_address(entry)
        except BadAddress as wrong:
            raise StepError(str(wrong), field=field) from None
        found.setdefault(address.lower(), address)
    return list(found.values())


def _subject(config: Mapping[str, Any]) -> str:
    subject = str(config["subject"]).strip()
    try:
        check_line(subject, "subject")
    except ValueError as wrong:
        raise StepError(str(wrong), field="subject") from None
    if len(subject) > LONGEST_SUBJECT:
        raise StepError(f"The subject has {len(subject):,} characters; at most {LONGEST_SUBJECT}.", field="subject")
    return subject


def _reply_to(config: Mapping[str, Any]) -> list[str]:
    if not config["reply_to"]:
        return []
    try:
        return [check_address(config["reply_to"])]
    except BadAddress as wrong:
        raise StepError(str(wrong), field="reply_to") from None


STEP = Email()
