"""Approvals: the step that asks, and decisions that count once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.utils import timezone

from runtime import approvals, asking, tokens
from runtime.definition import check
from runtime.models import (
    Approval,
    AuditEntry,
    Decision,
    Dispatch,
    LogLine,
    Recipient,
    Run,
    Team,
    Version,
    Wait,
    Workflow,
)
from runtime.states import RunState, WaitKind
from runtime.steps import step_types
from runtime.steps.base import Done, Question, StepError, Stop
from tests.runtime.support import context, on_loop, run_in

ASK = {
    "approvers": ["dana@example.com", "lee@example.com"],
    "subject": "VIP outreach to {{ trigger.email }}?",
    "expires": "3d",
}
FORM = [{"id": "budget", "label": "Budget", "type": "number", "required": True}, {"id": "note", "type": "text"}]


# The step


def parked(**config):
    ctx = context("approval", ASK | config, trigger={"email": "ann@example.com", "n": 5})
    return run_in("approval", ctx)


def resumed(outcome, **config):
    ctx = context("approval", ASK | config, trigger={"email": "ann@example.com"})
    data = run_in("approval", ctx).data
    return on_loop(step_types()["approval"].resume(ctx, outcome, data))


def decision(word, comment=""):
    return {
        "by": "decision",
        "decision": word,
        "who": "dana@example.com",
        "comment": comment,
        "form": {},
        "at": "now",
        "decisions": [],
    }


def test_it_parks_with_its_question_filled_in():
    park = parked(
        details={"Lead": "{{ trigger.email }}", "Number": "{{ trigger.n }}"},
        message="Hi {{ trigger.email }}",
        form=FORM,
    )
    assert park.kind == WaitKind.APPROVAL and park.after == timedelta(days=3)
    question = park.question
    assert question.subject == "VIP outreach to ann@example.com?" and question.message == "Hi ann@example.com"
    assert question.approvers == ("dana@example.com", "lee@example.com")
    assert question.details == ({"label": "Lead", "value": "ann@example.com"}, {"label": "Number", "value": 5})
    assert question.form[0]["id"] == "budget" and asking.needed(question) == 1
    assert asking.needed(parked(policy="all").question) == 2


def test_an_approval_goes_on_with_who_and_what():
    done = resumed(decision("approved", "Fine"))
    assert isinstance(done, Done)
    assert done.output == {
        "decision": "approved",
        "by": "dana@example.com",
        "comment": "Fine",
        "form": {},
        "at": "now",
        "decisions": [],
    }


def test_a_rejection_does_not_reach_what_was_to_be_approved():
    stop = resumed(decision("rejected", "Too early"))
    assert isinstance(stop, Stop) and stop.state == RunState.SUCCEEDED
    assert stop.message == "Rejected by dana@example.com: Too early" and stop.output["decision"] == "rejected"
    with pytest.raises(StepError, match="Rejected by dana@example.com."):
        resumed(decision("rejected"), on_rejected="fail")
    assert resumed(decision("rejected"), on_rejected="go_on").output["decision"] == "rejected"


def test_no_answer_in_time_is_what_the_step_says_it_is():
    due = {"by": "due", "at": "then"}
    assert isinstance(resumed(due), Stop)
    assert resumed(due, on_rejected="go_on").output["decision"] == "expired"
    assert resumed(due, on_expired="go_on").output["decision"] == "expired"
    with pytest.raises(StepError, match="in time") as caught:
        resumed(due, on_expired="fail")
    assert caught.value.field == "expires"


@pytest.mark.parametrize(
    ("config", "field"),
    [({"approvers": ["a@b, evil@x"]}, "config.approvers"), ({"approvers": []}, "config.approvers"),
     ({"expires": "soon"}, "config.expires"), ({"form": FORM[:1] * 2}, "config"),
     ({"form": [{"id": "x", "type": "choice"}]}, "config.form.0"),
     ({"effects": {"maybe": "x"}}, "config.effects.maybe"), ({"on_expired": "shrug"}, "config.on_expired")],
)  # fmt: skip
def test_config_problems_name_their_field(config, field):
    problems = check({"format": 1, "name": "x", "steps": [{"id": "ok", "type": "approval", "config": ASK | config}]})
    assert [problem.field for problem in problems] == [field]


@pytest.mark.parametrize(
    ("field", "value"), [("approvers", "b@x, evil@x"), ("subject", "a\r\nBcc: x@y.example"), ("expires", "soon")]
)
def test_what_turns_out_badly_fails_by_name(field, value):
    config = {field: ["{{ trigger.v }}"] if field == "approvers" else "{{ trigger.v }}"}
    ctx = context("approval", ASK | config, trigger={"v": value, "email": "a@b.example"})
    with pytest.raises(StepError) as caught:
        run_in("approval", ctx)
    assert caught.value.field == field


# Decisions


@pytest.fixture
def run():
    team = Team.objects.create(name="Sales")
    workflow = Workflow.objects.create(team=team, name="Leads")
    version = Version.objects.create(workflow=workflow, number=1, definition={}, hash="x")
    return Run.objects.create(workflow=workflow, version=version, trigger_key="t")


def asked(run, policy="any", people=("dana@example.com", "lee@example.com"), form=(), path="ok") -> Approval:
    """As the journal writes it when the step parks."""
    Dispatch.objects.get_or_create(run=run, defaults={"version_id": run.version_id, "state": "waiting"})
    question = Question("VIP outreach?", people, form=tuple(form), policy=policy)
    wait = Wait.objects.create(run_id=run.pk, path=path, kind="approval", due_at=timezone.now() + timedelta(days=3))
    approval = Approval.objects.create(
        wait=wait,
        run_id=run.pk,
        subject=question.subject,
        policy=policy,
        needed=asking.needed(question),
        form=list(form),
    )
    for address, nonce, key_id, token_hash in asking.rows_for(question, run.pk, path, 1):
        Recipient.objects.create(approval=approval, address=address, nonce=nonce, key_id=key_id, token_hash=token_hash)
    return approval


def by(approval: Approval, name: str) -> Recipient:
    return approval.recipients.get(address=f"{name}@example.com")


def outcome_of(approval: Approval):
    wait = Wait.objects.get(pk=approval.pk)
    return wait.state, wait.outcome


@pytest.mark.django_db
def test_a_link_finds_its_approver_and_nothing_else(run):
    approval = asked(run)
    dana = by(approval, "dana")
    token = tokens.token_for(run.pk, "ok", 1, dana.address, dana.nonce, dana.key_id)
    assert approvals.find(token) == dana
    forged = token[:-1] + ("B" if token.endswith("A") else "A")
    assert approvals.find(forged) is None and approvals.find("") is None and approvals.find("\ud800") is None


@pytest.mark.django_db
def test_the_first_answer_counts_wakes_the_run_and_leaves_its_traces(run):
    approval = asked(run)
    result = approvals.decide(approval, "approve", recipient=by(approval, "dana"), comment="Fine", address="192.0.2.7")
    assert result.state == "decided" and result.accepted and result.by == "dana@example.com"
    state, outcome = outcome_of(approval)
    assert state == "resolved" and outcome["by"] == "decision" and outcome["decision"] == "approved"
    assert outcome["who"] == "dana@example.com" and outcome["comment"] == "Fine" and len(outcome["decisions"]) == 1
    dispatch = Dispatch.objects.get(run=run)
    assert dispatch.state == "ready" and dispatch.wakes == 1
    line, audit = LogLine.objects.get(), AuditEntry.objects.get()
    assert line.text == "Approved by dana@example.com." and line.data["address"] == "192.0.2.7" and line.path == "ok"
    assert (audit.action, audit.subject, audit.address) == ("approve", f"run:{run.pk}", "192.0.2.7")


@pytest.mark.django_db
def test_the_decision_sent_again_changes_nothing_and_says_what_stands(run):
    approval = asked(run)
    dana, lee = by(approval, "dana"), by(approval, "lee")
    first = approvals.decide(approval, "approve", recipient=dana, comment="Fine")
    again = approvals.decide(approval, "reject", recipient=dana)
    other = approvals.decide(approval, "reject", recipient=lee, address="192.0.2.9")
    assert (again.state, other.state) == ("already", "closed")
    approvals.decide(approval, "reject", recipient=lee), approvals.decide(approval, "approve", recipient=lee)
    late = LogLine.objects.filter(level="warning").order_by("pk")
    assert [line.text for line in late] == [
        f"{name}@example.com rejected after dana@example.com had approved; nothing was changed." for name in ("dana", "lee")
    ]  # who says the same again, or presses twice, is no news
    assert late[1].data == {"address": "192.0.2.9"}
    for told in (again, other):
        assert (told.by, told.answer, told.at, told.comment) == ("dana@example.com", "approve", first.at, "Fine")
    assert Decision.objects.count() == 1 and Dispatch.objects.get(run=run).wakes == 1


@pytest.mark.django_db
def test_all_means_all_and_one_rejection_is_enough(run):
    approval = asked(run, policy="all")
    assert approvals.decide(approval, "approve", recipient=by(approval, "dana")).state == "recorded"
    assert outcome_of(approval)[0] == "open" and Dispatch.objects.get(run=run).wakes == 0
    assert approvals.decide(approval, "approve", recipient=by(approval, "dana")).state == "already"
    assert approvals.decide(approval, "approve", recipient=by(approval, "lee")).state == "decided"
    assert [one["by"] for one in outcome_of(approval)[1]["decisions"]] == ["dana@example.com", "lee@example.com"]
    second = asked(run, policy="all", path="ok2")
    assert approvals.decide(second, "reject", recipient=by(second, "lee")).state == "decided"
    assert outcome_of(second)[1]["decision"] == "rejected"


@pytest.mark.django_db
def test_a_late_answer_is_told_that_it_is_late(run, clock):
    approval = asked(run)
    clock.advance(days=3, seconds=1)
    result = approvals.decide(approval, "approve", recipient=by(approval, "dana"))
    assert (
        result.state == "expired"
        and not result.accepted
        and outcome_of(approval)[0] == "open"
        and not Decision.objects.exists()
    )


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["cancelled", "suspended"])
def test_an_answer_to_what_is_no_longer_asked(run, state):
    approval = asked(run)
    Wait.objects.update(state=state)
    Dispatch.objects.all().delete()
    assert approvals.decide(approval, "approve", recipient=by(approval, "dana")).state == "ended"
    assert not Decision.objects.exists()


@pytest.mark.django_db
def test_the_form_is_read_when_approving_and_not_when_rejecting(run):
    approval = asked(run, form=FORM)
    dana = by(approval, "dana")
    wrong = approvals.decide(approval, "approve", recipient=dana, form={"budget": "a lot"})
    assert wrong.state == "invalid" and set(wrong.wrong) == {"budget"}
    assert approvals.decide(approval, "approve", recipient=dana, form={}).wrong == {"budget": "Fill this in."}
    assert approvals.decide(
        approval, "approve", recipient=dana, form={"budget": 1200, "note": "ok", "trigger.body": "x"}
    ).accepted
    assert outcome_of(approval)[1]["form"] == {"budget": 1200, "note": "ok"}
    second = asked(run, form=FORM, path="ok2")
    assert approvals.decide(second, "reject", recipient=by(second, "dana")).accepted


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "comment", "field"),
    [
        ("maybe", "", "answer"),
        ("reject", "x" * 5001, "comment"),
        ("reject", "a\x00", "comment"),
        ("reject", "\ud800", "comment"),
    ],
)
def test_what_is_no_answer_is_refused(run, answer, comment, field):
    approval = asked(run)
    assert set(approvals.decide(approval, answer, recipient=by(approval, "dana"), comment=comment).wrong) == {field}


@pytest.mark.django_db
def test_a_logged_in_approver_answers_as_such_and_an_operator_in_everybodys_place(run):
    users = get_user_model().objects
    dana = users.create_user("dana", "Dana@Example.com", "x")
    operator = users.create_user("op", "op@example.com", "x")
    approval = asked(run, policy="all")
    assert approvals.decide(approval, "approve", user=dana).state == "recorded"
    assert Decision.objects.get().recipient == by(approval, "dana")
    assert approvals.decide(approval, "approve", recipient=by(approval, "dana")).state == "already"
    assert approvals.decide(approval, "approve", user=operator).state == "decided"
    assert outcome_of(approval)[1]["who"] == "op@example.com" and AuditEntry.objects.last().actor == operator


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", ["any", "all"])
def test_answers_at_the_same_instant_have_one_winner(run, policy):
    """Real connections, released together. For `all` neither overlooks the other; for `any` one is told it was late."""
    for number in range(8):
        approval = asked(run, policy=policy, path=f"ok{number}")
        answers = [("dana", "approve"), ("lee", "approve" if policy == "all" else "reject")]
        together = threading.Barrier(len(answers))

        def answer(name: str, word: str, approval=approval, together=together) -> str:
            try:
                recipient = by(approval, name)
                together.wait()
                return approvals.decide(approval, word, recipient=recipient).state
            finally:
                connections["default"].close()

        with ThreadPoolExecutor(2) as threads:
            states = sorted(threads.map(lambda one: answer(*one), answers))
        assert states == (["closed", "decided"] if policy == "any" else ["decided", "recorded"])
        assert outcome_of(approval)[0] == "resolved"
    assert Dispatch.objects.get(run=run).wakes == 8


@pytest.mark.django_db(transaction=True)
def test_one_answer_sent_many_times_at_once_counts_once(run):
    approval = asked(run)
    dana = by(approval, "dana")

    def answer(_: int) -> str:
        try:
            return approvals.decide(approval, "approve", recipient=dana).state
        finally:
            connections["default"].close()

    with ThreadPoolExecutor(8) as threads:
        states = list(threads.map(answer, range(8)))
    assert sorted(states) == ["already"] * 7 + ["decided"] and Decision.objects.count() == 1
    assert Dispatch.objects.get(run=run).wakes == 1


def test_one_mail_per_approver_names_the_others():
    question = Question("VIP?", ("dana@example.com", "lee@example.com", "kim@example.com"))
    sent = asking.mails_for(question)
    assert [mail.recipient for mail in sent] == list(question.approvers)
    assert sent[0].kind == "approval" and sent[0].payload["others"] == ["lee@example.com", "kim@example.com"]
