"""The page behind a mail link and the inbox: who sees what, and that only a POST decides, once."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from builder.teams import DEFAULT_TEAM
from runtime.models import Decision, LogLine, OutboxMessage, Run, Team, Wait
from tests.builder import factories
from tests.builder.factories import APPROVE

pytestmark = pytest.mark.django_db

FAR = 10**9
DISCOUNT = {"id": "discount", "label": "Discount in %", "type": "number", "required": True}


@pytest.fixture
def wait():
    return factories.wait(factories.run(), APPROVE, "approval", 5, due=FAR)


def link(approval, address: str = "dana@example.com") -> str:
    return reverse("approve", args=[factories.token_of(approval.recipients.get(address=address))])


def text(answer) -> str:
    return " ".join(answer.content.decode().split())


def test_the_link_shows_what_is_asked_and_what_each_answer_causes(client, wait):
    approval = factories.approval(wait, effects={"approve": "creates a deal", "reject": "no deal"}, form=[DISCOUNT])
    shown = text(client.get(link(approval)))
    for words in ("Approve VIP outreach to Halden Robotics?", "Asked by the flow Lead qualification.", "creates a deal",
                  "no deal", "Discount in %", "marcus@example.com was asked too. The first answer counts.",
                  "This link is only for dana@example.com."):  # fmt: skip
        assert words in shown
    assert "<script" not in shown


def test_the_link_is_headed_by_a_team_that_has_a_name_of_its_own(client, wait):
    approval = factories.approval(wait)
    for name, heading in (("Halden Sales", "Halden Sales"), (DEFAULT_TEAM, "Holdfast")):
        Team.objects.update(name=name)
        assert f'<span class="trunc">{heading}</span>' in text(client.get(link(approval)))


@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.fault(36)
def test_looking_decides_nothing(client, wait, method):
    approval = factories.approval(wait)
    for _ in range(3):
        assert getattr(client, method)(link(approval)).status_code == 200
    assert getattr(client, method)(link(approval) + "?answer=approve").status_code == 200
    wait.refresh_from_db()
    assert wait.state == "open" and not Decision.objects.exists()


def test_the_first_look_is_noted_once_and_a_head_is_no_look(client, wait):
    approval = factories.approval(wait)
    client.head(link(approval))
    assert approval.recipients.get(address="dana@example.com").viewed_at is None
    client.get(link(approval))
    seen = approval.recipients.get(address="dana@example.com").viewed_at
    client.get(link(approval))
    assert seen and approval.recipients.get(address="dana@example.com").viewed_at == seen
    assert LogLine.objects.filter(text="dana@example.com opened the page.").count() == 1


def test_an_answer_is_kept_with_comment_form_and_address(client, wait):
    approval = factories.approval(wait, form=[DISCOUNT])
    answer = client.post(link(approval), {"answer": "approve", "comment": "Good fit", "form.discount": "12.5"}, follow=True)
    assert "You approved this" in text(answer)
    decision = Decision.objects.get()
    assert (decision.answer, decision.comment, decision.form, decision.decided_by) == (
        "approve", "Good fit", {"discount": 12.5}, "dana@example.com",
    )  # fmt: skip
    assert decision.address == "127.0.0.1"
    wait.refresh_from_db()
    assert wait.outcome["decision"] == "approved"


def test_twice_is_once_and_the_others_are_told_who_was_first(client, wait):
    approval = factories.approval(wait)
    client.post(link(approval), {"answer": "approve", "comment": "Mention the plan"})
    client.post(link(approval), {"answer": "reject"})
    client.post(link(approval, "marcus@example.com"), {"answer": "reject"})
    assert Decision.objects.count() == 1
    told = text(client.get(link(approval, "marcus@example.com")))
    assert "Already approved by dana@example.com on" in told and "Mention the plan" in told
    assert "<form" not in told


def test_everybody_has_to_approve_where_the_step_says_so(client, wait):
    approval = factories.approval(wait, policy="all", needed=2)
    told = text(client.post(link(approval), {"answer": "approve"}, follow=True))
    assert "You approved this" in told and "1 more answer is needed" in told
    wait.refresh_from_db()
    assert wait.state == "open"
    client.post(link(approval, "marcus@example.com"), {"answer": "approve"})
    wait.refresh_from_db()
    assert wait.state == "resolved"


def test_what_is_missing_is_said_and_what_was_typed_stays(client, wait):
    approval = factories.approval(wait, form=[DISCOUNT])
    answer = client.post(link(approval), {"answer": "approve", "comment": "keep me", "form.discount": "much"})
    assert answer.status_code == 422
    shown = text(answer)
    assert "Write a number" in shown and "keep me" in shown and 'value="much"' in shown
    assert client.post(link(approval), {"comment": "no answer"}).status_code == 422
    assert not Decision.objects.exists()


def test_rejecting_needs_no_form(client, wait):
    approval = factories.approval(wait, form=[DISCOUNT])
    assert client.post(link(approval), {"answer": "reject"}).status_code == 302
    assert Decision.objects.get().answer == "reject"


def test_an_expired_link_says_so_and_decides_nothing(client, wait):
    approval = factories.approval(wait)
    Wait.objects.filter(pk=wait.pk).update(due_at=factories.at(-5))
    assert "The time to answer is over" in text(client.get(link(approval)))
    client.post(link(approval), {"answer": "approve"})
    assert not Decision.objects.exists()


@pytest.mark.parametrize(("state", "words"), [("suspended", "On hold"), ("cancelled", "No longer asked")])
def test_a_question_that_is_not_open_says_why(client, wait, state, words):
    approval = factories.approval(wait)
    Wait.objects.filter(pk=wait.pk).update(state=state)
    assert words in text(client.get(link(approval)))
    client.post(link(approval), {"answer": "approve"})
    assert not Decision.objects.exists()


def test_what_happened_since_is_told(client, wait):
    approval = factories.approval(wait)
    client.post(link(approval), {"answer": "approve"})
    decided = Decision.objects.get().decided_at
    later = (decided - factories.START).total_seconds() + 1
    run = wait.run_id
    factories.result(factories.Run.objects.get(pk=run), "hot/yes/meanwhile/outreach/deal", later, later + 1)
    factories.result(factories.Run.objects.get(pk=run), "each", later, later + 2)
    told = text(client.get(link(approval, "marcus@example.com")))
    assert "Create deal in CRM" in told and "For each attendee" not in told


@pytest.mark.parametrize("token", ["x", "%20", "A" * 43, "a" * 5000, "%F0%9F%8D%95"])
def test_unknown_links_all_look_the_same(client, token):
    answer = client.get(f"/a/{token}/")
    assert answer.status_code == 404 and "This link leads nowhere" in text(answer)


@pytest.mark.parametrize("known_by", ["account", "address"])
def test_the_link_of_somebody_who_was_switched_off_is_nobodys(client, wait, known_by):
    approval = factories.approval(wait)
    address, dana = link(approval), factories.user(None, name="dana")
    if known_by == "account":
        approval.recipients.filter(address=dana.email).update(user=dana)
    assert client.get(address).status_code == 200
    type(dana).objects.update(is_active=False)
    assert client.get(address).status_code == client.post(address, {"answer": "approve"}).status_code == 404
    assert not Decision.objects.exists() and client.get(link(approval, "marcus@example.com")).status_code == 200


def test_pages_of_links_are_private(client, wait):
    approval = factories.approval(wait)
    for answer in (client.get(link(approval)), client.get("/a/unknown/"), client.post(link(approval), {"answer": "approve"})):
        assert answer["Referrer-Policy"] == "no-referrer" and "no-store" in answer["Cache-Control"]


def test_a_post_without_the_pages_token_is_refused(wait):
    approval = factories.approval(wait)
    strict = Client(enforce_csrf_checks=True)
    strict.get(link(approval))
    assert strict.post(link(approval), {"answer": "approve"}).status_code == 403
    token = strict.cookies["csrftoken"].value
    given = {"answer": "approve", "csrfmiddlewaretoken": token}
    assert strict.post(link(approval), given, headers={"Origin": "https://evil.example"}).status_code == 403
    assert not Decision.objects.exists()
    assert strict.post(link(approval), given, headers={"Origin": "null"}).status_code == 302


# Signed in


def test_the_inbox_holds_what_waits_for_this_person(client, wait):
    factories.approval(wait)
    answered = factories.wait(factories.run(factories.version(number=2)), APPROVE, "approval", 5, due=FAR)
    other = factories.approval(answered, subject="Answered already")
    dana = factories.user(None, name="dana", email="dana@example.com")
    Decision.objects.create(approval=other, recipient=other.recipients.get(address="dana@example.com"), decided_by="dana", answer="approve")
    client.force_login(dana)
    shown = text(client.get(reverse("approvals")))
    assert "Approve VIP outreach to Halden Robotics?" in shown and "Answered already" not in shown


def test_one_who_is_asked_decides_without_any_role(client, wait):
    factories.approval(wait)
    client.force_login(factories.user(None, name="dana", email="Dana@Example.com"))
    page = reverse("approval", args=[wait.pk])
    asked = text(client.get(page))
    assert "Approve VIP outreach" in asked and '<span class="rail__badge"><span class="vh">, </span>1<' in asked
    answer = client.post(page, {"answer": "approve"}, follow=True)
    assert Decision.objects.get().recipient.address == "dana@example.com"
    assert "Approved. The run goes on." in text(answer)


def test_strangers_and_viewers_do_not_decide(client, wait):
    factories.approval(wait)
    page = reverse("approval", args=[wait.pk])
    client.force_login(factories.user("operator", of=factories.team("Finance")))
    assert client.post(page, {"answer": "approve"}).status_code == 404
    client.force_login(factories.user("viewer"))
    assert client.post(page, {"answer": "approve"}).status_code == 403
    assert not Decision.objects.exists()


def test_an_operator_sees_all_of_the_team_and_settles_in_their_place(client, wait):
    factories.approval(wait, policy="all", needed=2)
    client.force_login(factories.user("operator", name="ines"))
    shown = text(client.get(reverse("approvals")))  # it opens on what has something
    assert "Approve VIP outreach" in shown and "rail__badge" not in shown, "the badge counts what waits for this person"
    assert "Nothing waits for you" in text(client.get(reverse("approvals"), {"all": "0"}))
    asked = text(client.get(reverse("approval", args=[wait.pk])))
    assert "you answer as operator" in asked and "dana@example.com, marcus@example.com were asked. Everybody has to approve." in asked
    back = reverse("run", args=[wait.run_id])
    answer = client.post(reverse("approval", args=[wait.pk]), {"answer": "reject", "next": back})
    assert answer.url == back
    wait.refresh_from_db()
    assert wait.outcome["who"] == "ines@example.com" and wait.outcome["decision"] == "rejected"


def test_the_way_back_leads_nowhere_else(client, wait):
    factories.approval(wait)
    client.force_login(factories.user("operator"))
    answer = client.post(reverse("approval", args=[wait.pk]), {"answer": "reject", "next": "https://evil.example/"})
    assert answer.url == reverse("approvals")


def test_a_reminder_goes_to_those_who_have_not_answered(client, wait):
    approval = factories.approval(wait, policy="all", needed=2)
    run = factories.Run.objects.get(pk=wait.run_id)
    for address in ("dana@example.com", "marcus@example.com"):
        factories.mail(run, address, kind="approval", path=wait.path, state="sent")
    client.post(link(approval), {"answer": "approve"})
    client.force_login(factories.user("operator"))
    client.post(reverse("approval_remind", args=[wait.pk]))
    sent = OutboxMessage.objects.order_by("pk").values_list("recipient", "occurrence", "state")
    assert list(sent)[2:] == [("marcus@example.com", 2, "queued")]  # a message of its own, not the old one again
    assert OutboxMessage.objects.values("message_id").distinct().count() == 3


def test_nobody_is_written_to_at_every_press_of_the_button(client, wait, clock):
    approval = factories.approval(wait)
    for one in approval.recipients.all():
        factories.mail(factories.Run.objects.get(pk=wait.run_id), one.address, kind="approval", path=wait.path, state="sent")
    client.force_login(factories.user("operator"))
    for passed, sent in ((0, 4), (0, 4), (9, 4), (2, 6), (0, 6)):
        clock.advance(minutes=passed)
        answer = client.post(reverse("approval_remind", args=[wait.pk]), follow=True)
        assert OutboxMessage.objects.count() == sent
    assert "within ten minutes" in text(answer)


def test_who_must_sign_in_is_sent_to_sign_in_and_then_answers(client, wait):
    approval = factories.approval(wait, rules={"sign_in": True})
    page = link(approval)
    assert "Sign in to answer" in text(client.get(page)) and client.post(page, {"answer": "approve"}).status_code == 403
    assert not Decision.objects.exists()
    client.force_login(factories.user(None, name="lee", email="lee@example.com"))
    assert client.get(client.get(page).url).status_code == 404  # a forwarded link is nobody else's
    client.force_login(factories.user(None, name="dana", email="dana@example.com"))
    client.post(client.get(page).url, {"answer": "approve"})
    assert Decision.objects.get().recipient.address == "dana@example.com"


def test_a_rejection_needs_a_reason_where_the_step_says_so(client, wait):
    approval = factories.approval(wait, rules={"comment": True})
    refused = client.post(link(approval), {"answer": "reject"})
    assert refused.status_code == 422 and "Say why you reject it." in text(refused)
    client.post(link(approval), {"answer": "reject", "comment": "Too early"})
    assert Decision.objects.get().comment == "Too early"


def test_a_colleague_is_asked_instead_and_the_old_link_says_so(client, wait):
    approval = factories.approval(wait)
    dana = factories.user(None, name="dana", email="dana@example.com")
    client.force_login(dana)
    place = approval.recipients.get(address="dana@example.com")
    other = approval.recipients.get(address="marcus@example.com")
    address = reverse("approval_reassign", args=[wait.pk])
    client.post(address, {"recipient": other.pk, "address": "kim@example.com"})
    assert not approval.recipients.filter(address="kim@example.com").exists()  # one's own place only
    client.post(address, {"recipient": place.pk, "address": "kim@example.com"})
    assert "kim@example.com was asked in your place" in text(client.get(link(approval)))
    assert client.post(link(approval), {"answer": "approve"}).status_code == 302 and not Decision.objects.exists()
    assert OutboxMessage.objects.get().recipient == "kim@example.com"
    client.post(link(approval, "kim@example.com"), {"answer": "approve"})
    wait.refresh_from_db()
    assert wait.outcome["who"] == "kim@example.com"


def test_an_operator_withdraws_the_question(client, wait):
    approval = factories.approval(wait)
    client.force_login(factories.user("operator", name="ines"))
    client.post(reverse("approval_withdraw", args=[wait.pk]), {"why": "Ordered twice"})
    wait.refresh_from_db()
    assert (wait.state, wait.outcome["decision"], wait.outcome["comment"]) == ("resolved", "withdrawn", "Ordered twice")
    told = text(client.get(link(approval)))
    assert "The question was withdrawn" in told and "ines@example.com took it back" in told


def test_one_answer_to_several_questions_leaves_those_that_ask_for_more(client, wait):
    factories.approval(wait)
    second = factories.wait(factories.run(factories.version(number=2)), APPROVE, "approval", 5, due=FAR)
    factories.approval(second, form=[DISCOUNT], subject="How much discount?")
    hidden = factories.wait(factories.run(factories.version(number=3)), APPROVE, "approval", 5, due=FAR)
    factories.approval(hidden, ("someone@example.com",))
    client.force_login(factories.user(None, name="dana", email="dana@example.com"))
    chosen = {"approval": [wait.pk, second.pk, hidden.pk], "answer": "approve", "comment": "All fine"}
    answer = client.post(reverse("approvals_decide"), chosen, follow=True)
    assert "Approved 1 of 3. 1 ask for more than this" in text(answer)
    assert [one.approval_id for one in Decision.objects.all()] == [wait.pk]
    assert "How much discount?" in text(client.get(reverse("approvals"), {"q": "DISCOUNT"}))
    assert "No question fits" in text(client.get(reverse("approvals"), {"q": "holiday"}))


def test_an_operator_answers_several_of_the_teams_questions_and_none_of_others(client, wait):
    factories.approval(wait)
    theirs = factories.version(of=factories.team("Finance"))
    hidden = factories.wait(factories.run(theirs), APPROVE, "approval", 5, due=FAR)
    factories.approval(hidden)
    client.force_login(factories.user("operator", name="ines"))
    shown = client.get(reverse("approvals"), {"all": "1"})
    assert [row["approval"].pk for row in shown.context["rows"]] == [wait.pk] and [f.pk for f in shown.context["flows"]] == [Run.objects.get(pk=wait.run_id).workflow_id]
    answer = client.post(reverse("approvals_decide"), {"approval": [wait.pk, hidden.pk], "answer": "approve"}, follow=True)
    assert "Approved 1 of 2." in text(answer) and [one.approval_id for one in Decision.objects.all()] == [wait.pk]


def test_pages_of_answered_questions_say_the_zone(client, wait):
    approval = factories.approval(wait)
    told = text(client.post(link(approval), {"answer": "approve"}, follow=True))
    assert re.search(r"You approved this on \d+ \w+, \d\d:\d\d UTC", told)
