"""Approvals beyond the first mail, on real workers: turns, how many, reminders, others to ask, and who may not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from builder.questions import status_of
from runtime import acts, approvals, waits
from runtime.clock import business_now
from runtime.definition import check
from runtime.mail_addresses import BadAddress
from runtime.models import Approval, LogLine, Membership, OutboxMessage, Run, Team
from runtime.steps.base import Person, StepError
from tests.runtime.engine import eventually
from tests.runtime.support import context, run_in

ASK = {"subject": "Go?", "expires": "3d"}
DANA, LEE, KIM = "dana@example.com", "lee@example.com", "kim@example.com"


def step(**config):
    return {"id": "ok", "type": "approval", "config": ASK | config}


def asked(engine, **config) -> Approval:
    """A run that a real worker has parked on the question."""
    run = engine.start(engine.publish([step(**config)]))
    engine.parked(run)
    return Approval.objects.select_related("wait").get(run_id=run)


def answer(approval: Approval, address: str, word: str = "approve", **more) -> str:
    return approvals.decide(approval, word, recipient=approval.recipients.get(address=address), **more).state


def mails(approval: Approval) -> list[tuple[str, int]]:
    found = OutboxMessage.objects.filter(run_id=approval.run_id).order_by("pk")
    return list(found.values_list("recipient", "occurrence"))


def lee_and_kim_are_finance() -> None:
    """Approvers `team:finance`, whom flows of other teams may ask."""
    finance = Team.objects.create(name="Finance", asked_by_others=True)
    for name in ("lee", "kim"):
        user = get_user_model().objects.create_user(name, f"{name}@example.com", "x")
        Membership.objects.create(team=finance, user=user, role="operator")


def member(name: str, role: str = "viewer"):
    """Somebody in the team that the engine's flows belong to."""
    user = get_user_model().objects.create_user(name, f"{name}@example.com", "x")
    Membership.objects.create(team=Team.objects.get_or_create(name="Engine")[0], user=user, role=role)
    return user


def test_as_many_as_it_says(engine):
    engine.worker()
    approval = asked(engine, approvers=[DANA, LEE, KIM], policy="count", needed=2)
    assert answer(approval, KIM) == "recorded" and answer(approval, KIM) == "already"
    assert answer(approval, DANA) == "decided"
    engine.ends(approval.run_id)
    assert [one["by"] for one in engine.output(approval.run_id, "ok")["decisions"]] == [KIM, DANA]


def test_one_line_after_the_other_and_of_each_anybody(engine):
    lee_and_kim_are_finance()
    engine.worker()
    approval = asked(engine, approvers=[DANA, "team:finance", "boss@example.com"], policy="ordered")
    assert mails(approval) == [(DANA, 1)]
    assert answer(approval, "boss@example.com") == "early"
    assert answer(approval, DANA) == "recorded"
    assert mails(approval)[1:] == [(LEE, 1), (KIM, 1)] or mails(approval)[1:] == [(KIM, 1), (LEE, 1)]
    assert answer(approval, KIM) == "recorded" and answer(approval, LEE) == "closed"
    assert mails(approval)[3:] == [("boss@example.com", 1)]
    assert answer(approval, "boss@example.com") == "decided"
    engine.ends(approval.run_id)
    assert [one["by"] for one in engine.output(approval.run_id, "ok")["decisions"]] == [DANA, KIM, "boss@example.com"]
    log = engine.log(approval.run_id)
    assert [line for line in log if line.startswith("Approved by boss")] == ["Approved by boss@example.com."]


def test_a_rejection_can_count_only_when_too_few_are_left(engine):
    engine.worker()
    of_three = asked(engine, approvers=[DANA, LEE, KIM], policy="count", needed=2, rejection="outvoted")
    assert answer(of_three, DANA, "reject") == "recorded" and answer(of_three, DANA) == "already"
    assert answer(of_three, LEE) == "recorded" and answer(of_three, KIM) == "decided"
    engine.ends(of_three.run_id)
    assert [one["decision"] for one in engine.output(of_three.run_id, "ok")["decisions"]] == ["rejected", "approved", "approved"]

    of_two = asked(engine, approvers=[DANA, LEE], rejection="outvoted", on_rejected="go_on")
    assert OutboxMessage.objects.get(run_id=of_two.run_id, recipient=DANA).payload["policy"] == "one"
    assert answer(of_two, DANA, "reject", comment="no") == "recorded" and answer(of_two, LEE, "reject") == "decided"
    engine.ends(of_two.run_id)
    output = engine.output(of_two.run_id, "ok")
    assert output["decision"] == "rejected" and output["by"] == LEE and [one["comment"] for one in output["decisions"]] == ["no", ""]


def test_in_turns_a_rejection_can_leave_it_to_the_others_of_the_line(engine):
    lee_and_kim_are_finance()
    engine.worker()
    approval = asked(engine, approvers=["team:finance", DANA], policy="ordered", rejection="outvoted")
    assert answer(approval, LEE, "reject") == "recorded" and answer(approval, DANA) == "early"
    assert answer(approval, KIM) == "recorded" and answer(approval, DANA, "reject") == "decided"
    assert engine.ends(approval.run_id).output["decision"] == "rejected"


def test_an_operator_and_those_on_standby_settle_it_with_one_rejection(engine, clock):
    engine.worker()
    approval = asked(engine, approvers=[DANA, LEE], policy="all", rejection="outvoted", escalate_after="1d", escalate_to=[KIM])
    clock.advance(days=1, minutes=1)
    eventually(lambda: (KIM, 1) in mails(approval), what=lambda: str(mails(approval)))
    assert answer(approval, KIM, "reject") == "decided"


def test_reminders_come_in_time_and_others_are_asked(engine, clock):
    engine.worker()
    approval = asked(engine, approvers=[DANA, LEE], policy="all", remind="1d", escalate_after="36h", escalate_to=[KIM])
    assert mails(approval) == [(DANA, 1), (LEE, 1)] and answer(approval, KIM) == "early"
    answer(approval, LEE)
    clock.advance(hours=25)
    eventually(lambda: mails(approval)[2:] == [(DANA, 2)], what=lambda: str(mails(approval)))
    clock.advance(hours=12)
    eventually(lambda: mails(approval)[3:] == [(KIM, 1)], what=lambda: str(mails(approval)))
    assert OutboxMessage.objects.get(recipient=KIM).payload["why"].startswith("Nobody has settled this yet")
    assert answer(approval, KIM) == "decided"
    engine.ends(approval.run_id)
    clock.advance(days=2)
    eventually(lambda: Approval.objects.get(pk=approval.pk).next_at is None)
    assert len(mails(approval)) == 4
    assert LogLine.objects.filter(text="Not settled in time; asked kim@example.com too.").count() == 1


def test_a_question_whose_end_is_moved_is_still_reminded_of_and_escalated(engine, clock):
    engine.worker()
    approval = asked(engine, approvers=[DANA], remind="2d", escalate_after="4d", escalate_to=[KIM])
    clock.advance(days=2, minutes=1)
    eventually(lambda: mails(approval)[1:] == [(DANA, 2)], what=lambda: str(mails(approval)))
    assert waits.extend(approval.pk, clock.now() + timedelta(days=10))
    clock.advance(days=2)
    eventually(lambda: set(mails(approval)[2:]) == {(KIM, 1), (DANA, 3)}, what=lambda: str(mails(approval)))


@pytest.mark.parametrize("failpoint", ["", "journal.before:1"])
def test_a_withdrawn_question_ends_the_run_and_says_who(engine, failpoint):
    engine.worker()
    approval = asked(engine, approvers=[DANA])
    boss = get_user_model().objects.create_user("boss", "boss@example.com", "x")
    if failpoint:
        engine.kill_all()
        engine.leases_end()
    assert approvals.withdraw(approval, user=boss, why="Not needed") and not approvals.withdraw(approval, user=boss)
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
        engine.worker()
    run = engine.ends(approval.run_id)
    assert run.output["decision"] == "withdrawn" and "Stopped as succeeded: Withdrawn by boss@example.com: Not needed" in engine.log(run.pk)


def test_nobody_approves_what_they_started(engine):
    dana = member("dana")
    engine.worker()
    version = engine.publish([step(approvers=["@dana", LEE], no_self=True)])
    run = engine.start(version, user=dana)
    engine.parked(run)
    approval = Approval.objects.get(run_id=run)
    assert [one.address for one in approval.recipients.all()] == [LEE]
    assert approvals.decide(approval, "approve", user=dana).state == "own"
    alone = engine.start(engine.publish([step(approvers=["@dana"], no_self=True)]), user=dana)
    assert "the only approver started the run" in engine.ends(alone, "failed").error["message"]


def test_who_started_it_finds_no_way_around_the_others(engine):
    """An operator: no other address of theirs, no time-out that goes on, no output by hand, no flow in between."""
    dana = get_user_model().objects.create_user("dana", DANA, "x")
    kim = get_user_model().objects.create_user("kim", KIM, "x")
    engine.worker()
    version = engine.publish([step(approvers=[LEE], no_self=True, on_expired="go_on")])
    outer = engine.publish([{"id": "sub", "type": "workflow", "config": {"flow": version.workflow.name}}])
    direct = engine.start(version, user=dana)
    engine.parked(direct)
    engine.start(outer, user=dana)
    inner = eventually(lambda: Approval.objects.exclude(run_id=direct).values_list("run_id", flat=True).first())
    around = engine.publish([{"id": "sub", "type": "workflow", "config": {"flow": outer.workflow.name}}])
    for run in (Run.objects.get(pk=inner).parent_id, engine.start(around, user=dana)):
        with pytest.raises(acts.NotPossible, match="somebody else has to answer"):
            acts.skip(run, "sub", {"state": "succeeded"}, user=dana)
    for run in (direct, inner):
        approval = Approval.objects.select_related("wait").get(run_id=run)
        lee = approval.recipients.get()
        for address, user in (("dana@elsewhere.example", dana), (DANA, kim)):
            with pytest.raises(BadAddress, match="neither approve it nor choose"):
                approvals.reassign(approval, lee, address, user=user)
        lee.user = dana  # an address that became theirs after they were asked
        lee.save()
        assert approvals.decide(approval, "approve", recipient=lee).state == "own"
        assert not waits.fire(approval.pk, user=dana) and not waits.extend(approval.pk, business_now(), user=dana)
        with pytest.raises(acts.NotPossible, match="somebody else has to answer"):
            acts.skip(run, "ok", {"decision": "approved"}, user=dana)
        assert approvals.decide(approval, "approve", user=kim).state == "decided"


def test_nor_do_those_who_started_what_it_goes_back_to(engine):
    """Started again by somebody else, or gone on with: it is still what they had asked for."""
    dana, lee = member("dana", "operator"), member("lee", "operator")
    engine.worker()
    bad = {"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}
    version = engine.publish([bad, step(approvers=["@dana", "@lee", KIM], no_self=True)])
    first = engine.start(version, user=dana)
    engine.ends(first, "failed")
    engine.release("healed")
    for keep in (False, True):
        again = acts.rerun(Run.objects.get(pk=first), user=lee, keep=keep)
        engine.parked(again)
        approval = Approval.objects.select_related("wait").get(run_id=again)
        assert [one.address for one in approval.recipients.all()] == [KIM]
        assert [approvals.decide(approval, "approve", user=one).state for one in (dana, lee)] == ["own", "own"]
        assert not waits.fire(approval.pk, user=dana)
        acts.cancel(again, user=lee)


def test_who_has_left_the_team_that_was_asked_answers_no_more(engine):
    """By the link that is still in their mailbox, and signed in elsewhere; whatever the team is called by now."""
    lee_and_kim_are_finance()
    dana = member("dana")
    engine.worker()
    approval = asked(engine, approvers=["@dana", "team:finance", "outside@example.com"], policy="count", needed=4)
    Team.objects.filter(name="Finance").update(name="Money", asked_by_others=False)
    users = {one.username: one for one in get_user_model().objects.all()}
    gone = Membership.objects.filter(user__in=[dana, users["lee"]])
    roles = list(gone)
    gone.delete()
    Membership.objects.filter(user=users["kim"]).update(role="builder")
    for address, user in ((DANA, dana), (LEE, users["lee"]), (KIM, users["kim"])):
        assert answer(approval, address) == approvals.decide(approval, "approve", user=user).state == "left"
        assert status_of(approval, approval.recipients.get(address=address), timezone.now()).name == "left"
    assert approval.decisions.count() == 0 and answer(approval, "outside@example.com") == "recorded"
    Membership.objects.bulk_create(roles)
    Membership.objects.filter(user=users["kim"]).update(role="operator")
    assert [answer(approval, address) for address in (DANA, LEE, KIM)] == ["recorded", "recorded", "decided"]


def test_who_has_left_the_team_is_not_written_to_either(engine, clock):
    """When their turn comes, by a reminder, as one of the others, or by a press of the button."""
    lee_and_kim_are_finance()
    dana = member("dana")
    engine.worker()
    turns = asked(engine, approvers=["boss@example.com", "team:finance"], policy="ordered")
    again = asked(engine, approvers=["@dana", "boss@example.com"], policy="all", remind="1d", escalate_after="36h", escalate_to=["team:finance"])
    Membership.objects.filter(user__username__in=["dana", "lee"]).delete()
    answer(turns, "boss@example.com")
    assert mails(turns)[1:] == [(KIM, 1)]
    assert approvals.remind(again, user=dana) == 1 and mails(again)[2:] == [("boss@example.com", 2)]
    clock.advance(hours=25)
    eventually(lambda: mails(again)[3:] == [("boss@example.com", 3)], what=lambda: str(mails(again)))
    clock.advance(hours=12)
    eventually(lambda: mails(again)[4:] == [(KIM, 1)], what=lambda: str(mails(again)))


def test_accounts_and_teams_are_named_and_what_is_not_there_fails_by_name(engine):
    """A name that a run works out, too. Another team's people do not exist for it, and nor does their team."""
    member("ours", "operator"), get_user_model().objects.create_superuser("root", "root@example.com", "x")
    theirs = Team.objects.create(name="Theirs")
    Membership.objects.create(team=theirs, user=get_user_model().objects.create_user("spy", "spy@example.com", "x"), role="admin")
    engine.worker()
    told = {}
    for name in ("@nobody", "@spy", "team:Nowhere", "team:theirs"):
        for approver in (name, "{{ '" + name + "' }}"):
            run = engine.start(engine.publish([step(approvers=[approver])]))
            error = engine.ends(run, "failed").error
            assert error["field"] == "approvers" and name in error["message"]
            told.setdefault(name, set()).add(error["message"].replace(name, "…"))
    assert told["@nobody"] == told["@spy"] and told["team:Nowhere"] == told["team:theirs"]
    for name, addresses in (("@Ours", ["ours@example.com"]), ("@root", ["root@example.com"]), ("team:engine", ["ours@example.com"])):
        assert [one.address for one in asked(engine, approvers=[name]).recipients.all()] == addresses
    Team.objects.filter(pk=theirs.pk).update(asked_by_others=True)
    assert [one.address for one in asked(engine, approvers=["team:theirs"]).recipients.all()] == ["spy@example.com"]


@pytest.mark.parametrize(
    ("config", "field"),
    [({"approvers": ["@"]}, "config.approvers"), ({"approvers": ["team: "]}, "config.approvers"),
     ({"escalate_after": "1d"}, "config"), ({"escalate_to": [KIM]}, "config"), ({"needed": 0}, "config.needed")],
)  # fmt: skip
def test_what_does_not_fit_together_is_said_at_saving(config, field):
    problems = check({"format": 1, "name": "x", "steps": [step(**{"approvers": [DANA]} | config)]})
    assert [problem.field for problem in problems] == [field]


def test_more_answers_than_people_fail_by_name():
    ctx = context("approval", ASK | {"approvers": ["@dana"], "policy": "count", "needed": 2}, named={"@dana": [Person(DANA, 1)]})
    with pytest.raises(StepError, match="2 have to approve, but only 1 are asked") as caught:
        run_in("approval", ctx)
    assert caught.value.field == "needed"
