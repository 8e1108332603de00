"""Outbox rows that a step commits with its result: mails, and the question of an approval."""

from __future__ import annotations

from . import asking
from .execution import Execution
from .journal import Row
from .step_context import StepContext
from .steps.base import Mail, Question


def mail_row(execution: Execution, ctx: StepContext, mail: Mail) -> Row:
    """One message. Raises Unstorable."""
    return "mail", (
        execution.run.id, ctx.path, ctx.take, mail.kind, mail.recipient, mail.occurrence,
        asking.message_id(execution.run.id, execution.run.created_at, ctx.path, ctx.take, mail), execution.dump(mail.payload),
    )


def question_rows(execution: Execution, ctx: StepContext, question: Question, n: int) -> list[Row]:
    """An approval beside its wait: the question, those who may answer, and a mail to each."""
    place = (*ctx.key, n)
    dump = execution.dump
    rows: list[Row] = [("approval", (
        *place, execution.masker.mask(question.subject), execution.masker.mask(question.message), dump(list(question.details)),
        dump(list(question.form)), dump(question.effects), question.policy, asking.needed(question), question.on_expired,
        dump(question.rules), asking.first_after(question.rules),
    ))]
    for address, *link in asking.rows_for(question, execution.run.id, ctx.path, ctx.take):
        rows.append(("recipient", (*place, address, *link, *asking.turn(question, address))))
    mails = asking.mails_for(question)
    rows += [mail_row(execution, ctx, mail) for mail in mails]
    rows.append(execution.log(ctx.path, f"Asked {', '.join(mail.recipient for mail in mails)}: {question.subject}"))
    return rows
