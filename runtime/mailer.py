"""From an outbox row to a message, and from a message to the mail server."""

from __future__ import annotations

import json
import re
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from types import MappingProxyType
from typing import Any, NamedTuple

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone

from . import tokens
from .mail_addresses import check_address, check_line

AFTER = {
    "reject": "After that it counts as rejected.",
    "fail": "After that the run fails.",
    "go_on": "After that the run goes on without an answer.",
}


RULES = {"one": "one of you has to approve.", "all": "everybody has to approve.", "count": "several have to approve.", "ordered": "others come after you."}


TYPE = re.compile(r"([a-z0-9.+-]{1,60})/([a-z0-9.+-]{1,80})")


class Rejected(Exception):
    """The mail server will not take this message for this recipient, now or later."""


class Deferred(Exception):
    """Not now. `everything` where it is the server and not this message."""

    def __init__(self, message: str, *, everything: bool = False):
        super().__init__(message)
        self.everything = everything


@dataclass(frozen=True, slots=True)
class Letter:
    """An outbox row and what its message says besides: the flow, and an approval's expiry and link."""

    id: int
    run_id: int | None
    path: str
    take: int
    kind: str
    recipient: str
    message_id: str
    payload: Mapping[str, Any]
    flow: str = ""
    expires_at: datetime | None = None
    nonce: str | None = None
    key_id: str | None = None


class Rendered(NamedTuple):
    subject: str
    text: str
    html: str
    link: str


def render(letter: Letter) -> Rendered:
    """The message as its reader sees it. Raises KeyGone when the link's key was taken off the ring."""
    payload, link = letter.payload, _link(letter)
    context = {
        **payload,
        "recipient": letter.recipient,
        "flow": letter.flow,
        "link": link,
        "expires_at": letter.expires_at,
    }
    details = [(str(detail["label"]), _plain(detail["value"])) for detail in payload.get("details") or ()]
    context["details"] = _table(details)
    context["after"] = AFTER.get(payload.get("on_expired", ""), "")
    context["asked"] = _asked(payload)
    template = "approval" if letter.kind == "approval" else "email"
    with timezone.override(settings.TIME_ZONE):
        text = render_to_string(f"mail/{template}.txt", context).strip() + "\n"
        html = render_to_string(f"mail/{template}.html", context)
    return Rendered(str(payload["subject"]), text, html, link)


def compose(letter: Letter, files: Mapping[str, bytes] = MappingProxyType({})) -> EmailMessage:
    """The message with its headers; `files` are its attachments by their keys. ValueError where a header would break the message."""
    rendered, payload = render(letter), letter.payload
    message = EmailMessage(policy=SMTP)
    message["From"] = settings.HOLDFAST_MAIL_FROM
    message["To"] = ", ".join(map(_wire_address, payload["to"]))
    for name, field in (("Cc", "cc"), ("Reply-To", "reply_to")):
        if payload.get(field):
            message[name] = ", ".join(map(_wire_address, payload[field]))
    message["Subject"] = check_line(rendered.subject, "subject")
    message["Message-ID"] = letter.message_id
    message["Date"] = format_datetime(timezone.now())
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(rendered.text)
    message.add_alternative(rendered.html, subtype="html")
    for one in payload.get("attachments") or ():
        main, sub = _media_type(one["type"])
        message.add_attachment(files[one["file"]], maintype=main, subtype=sub, filename=one["filename"])
    return message


def _media_type(told: str) -> tuple[str, str]:
    """As somebody else told it; what a reader of mails would take apart, or what is no type, is only bytes."""
    main, sub = found.groups() if (found := TYPE.fullmatch(told.lower())) else ("application", "octet-stream")
    return ("application", "octet-stream") if main in ("message", "multipart") else (main, sub)


class MailServer:
    """A connection to the server that EMAIL_URL names, opened when first needed. Blocking: use it in a thread."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._smtp: smtplib.SMTP | None = None

    def send(self, message: EmailMessage, recipient: str) -> None:
        """Hand one message over for one recipient. Raises Rejected or Deferred."""
        sender = parseaddr(settings.HOLDFAST_MAIL_FROM)[1]
        try:
            self._open().sendmail(sender, [_wire_address(recipient)], message.as_bytes())
        except smtplib.SMTPRecipientsRefused as refused:
            raise _judged(*next(iter(refused.recipients.values()))) from None
        except smtplib.SMTPDataError as refused:
            raise _judged(refused.smtp_code, refused.smtp_error) from None
        except smtplib.SMTPResponseException as refused:
            self.close()
            raise Deferred(
                f"The mail server says: {_said(refused.smtp_code, refused.smtp_error)}", everything=True
            ) from None
        except (smtplib.SMTPException, OSError) as away:
            self.close()
            raise Deferred(f"The mail server cannot be reached: {away}", everything=True) from None

    def close(self) -> None:
        if self._smtp is not None:
            self._smtp.close()
            self._smtp = None

    def quit(self) -> None:
        """Say goodbye; a server that is gone already is no news."""
        if self._smtp is not None:
            try:
                self._smtp.quit()
            except (smtplib.SMTPException, OSError):
                pass
            self.close()

    def _open(self) -> smtplib.SMTP:
        if self._smtp is None:
            options = self._options
            secure = ssl.create_default_context()
            if options["use_ssl"]:
                smtp = smtplib.SMTP_SSL(options["host"], options["port"], timeout=options["timeout"], context=secure)
            else:
                smtp = smtplib.SMTP(options["host"], options["port"], timeout=options["timeout"])
            self._smtp = smtp
            if options["use_tls"]:
                smtp.starttls(context=secure)
            if options["username"]:
                smtp.login(options["username"], options["password"])
        return self._smtp


def _judged(code: int, said: bytes) -> Rejected | Deferred:
    """RFC 5321, section 4.2.1: 5yz is for good, 4yz is for now, and 421 closes the connection."""
    if 500 <= code < 600:
        return Rejected(_said(code, said))
    return Deferred(_said(code, said), everything=code == 421)


def _said(code: int, said: bytes) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return f"{code} {' '.join(text.split())}"[:500].replace("\x00", "")


def _link(letter: Letter) -> str:
    if letter.kind != "approval" or letter.nonce is None or letter.key_id is None:
        return ""
    token = tokens.token_for(letter.run_id, letter.path, letter.take, letter.recipient, letter.nonce, letter.key_id)
    return tokens.approval_url(token)


def _asked(payload: Mapping[str, Any]) -> str:
    others = payload.get("others") or []
    if not others:
        return ""
    who = others[0] if len(others) == 1 else f"{', '.join(others[:3])}{' and others' if len(others) > 3 else ''}"
    rule = RULES.get(payload.get("policy", ""), "the first answer counts.")
    return f"{who} {'was' if len(others) == 1 else 'were'} asked too; {rule}"


def _table(details: list[tuple[str, str]]) -> list[dict[str, str]]:
    """Label and value, and as a line of a text table: the values below each other, also those of several lines."""
    width = min(max((len(label) for label, _ in details), default=0), 24) + 2
    rows = []
    for label, value in details:
        first = label.ljust(width) if len(label) < width - 1 else f"{label}\n{' ' * width}"
        rows.append({"label": label, "value": value, "row": first + f"\n{' ' * width}".join(value.splitlines() or [""])})
    return rows


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _wire_address(address: str) -> str:
    """As it travels: the domain in ASCII. Checked again, since this is where a second recipient would slip in."""
    local, _, domain = check_address(address).rpartition("@")
    return f"{local}@{domain.encode('idna').decode()}"
