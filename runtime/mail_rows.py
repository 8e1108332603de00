"""Outbox rows that a step commits with its result: mails, and the question of an approval."""

from __future__ import annotations

import hashlib
from email.utils import parseaddr

from django.conf import settings

from . import approvals
from .execution import Execution
from .journal import Row
from .step_context import StepContext
from .steps.base import Mail, Question


def mail_row(execution: Execution, ctx: StepContext, mail: Mail) -> Row:
    """One message. Raises Unstorable."""
    return "mail", (
        execution.run.id, ctx.path, ctx.take, mail.kind, mail.recipient, mail.occurrence,
        message_id(execution, ctx, mail), execution.dump(mail.payload),
    )


def message_id(execution: Execution, ctx: StepContext, mail: Mail) -> str:
    """An RFC 5322 Message-ID made of the row's key, so that readers can tell a mail that was sent twice."""
    domain = parseaddr(settings.HOLDFAST_MAIL_FROM)[1].rpartition("@")[2] or "holdfast"
    run = execution.run
    key = f"{run.id}|{run.created_at.isoformat()}|{ctx.path}|{ctx.take}|{mail.kind}|{mail.recipient}|{mail.occurrence}"
    return f"<hf.{run.id}.{hashlib.sha256(key.encode()).hexdigest()[:24]}@{domain}>"


def question_rows(execution: Execution, ctx: StepContext, question: Question, n: int) -> list[Row]:
    """An approval beside its wait: the question, those who may answer, and a mail to each."""
    place = (*ctx.key, n)
    dump = execution.dump
    rows: list[Row] = [("approval", (
        *place, execution.masker.mask(question.subject), execution.masker.mask(question.message), dump(list(question.details)),
        dump(list(question.form)), dump(question.effects), question.policy, approvals.needed(question), question.on_expired,
    ))]
    for recipient in approvals.rows_for(question, execution.run.id, ctx.path, ctx.take):
        rows.append(("recipient", (*place, *recipient)))
    rows += [mail_row(execution, ctx, mail) for mail in approvals.mails_for(question)]
    rows.append(execution.log(ctx.path, f"Asked {', '.join(question.approvers)}: {question.subject}"))
    return rows
