"""Outbox rows that a step commits with its result: mails, and the question of an approval."""

from __future__ import annotations

from typing import Any

from . import asking
from .execution import Execution
from .journal import Row
from .step_context import StepContext
from .steps.base import Mail, Question, StepError
from .storing import Unstorable


def mail_row(execution: Execution, ctx: StepContext, mail: Mail, field: str) -> Row:
    """One message; the field of the config is where its text comes from. Raises StepError."""
    return "mail", (
        execution.run.id, ctx.path, ctx.take, mail.kind, mail.recipient, mail.occurrence,
        asking.message_id(execution.run.id, execution.run.created_at, ctx.path, ctx.take, mail),
        _text(execution, mail.payload, "The mail", field),
    )


def question_rows(execution: Execution, ctx: StepContext, question: Question, n: int) -> list[Row]:
    """An approval beside its wait: the question, those who may answer, and a mail to each. Raises StepError."""
    place = (*ctx.key, n)
    rows: list[Row] = [("approval", (
        *place, execution.masker.mask(question.subject), execution.masker.mask(question.message),
        _text(execution, list(question.details), "What the approvers are told", "details"),
        _text(execution, list(question.form), "What the approvers are asked for", "form"),
        _text(execution, question.effects, "What is said of the answers", "effects"),
        question.policy, asking.needed(question), question.on_expired,
        execution.dump(question.rules), asking.first_after(question.rules),
    ))]
    for address, *link in asking.rows_for(question, execution.run.id, ctx.path, ctx.take):
        rows.append(("recipient", (*place, address, *link, *asking.turn(question, address))))
    mails = asking.mails_for(question)
    rows += [mail_row(execution, ctx, mail, "message") for mail in mails]
    rows.append(execution.log(ctx.path, f"Asked {', '.join(mail.recipient for mail in mails)}: {question.subject}"))
    return rows


def _text(execution: Execution, value: Any, what: str, field: str) -> str:
    try:
        return execution.dump(value, what)
    except Unstorable as wrong:
        raise StepError(str(wrong), field=field) from None
