"""The e-mail step: who gets what, and what is refused before it reaches the outbox."""

from __future__ import annotations

import pytest

from runtime.definition import check
from runtime.mail_addresses import BadAddress, check_address
from runtime.steps.base import StepError
from tests.runtime.support import run_step

HELLO = {"to": ["ann@example.com"], "subject": "Hello", "body": "Dear Ann,\n\nthank you."}


def mails(**config):
    trigger = config.pop("trigger", None)
    return run_step("email", HELLO | config, trigger=trigger).mails


def failing(**config) -> StepError:
    trigger = config.pop("trigger", None)
    with pytest.raises(StepError) as caught:
        run_step("email", HELLO | config, trigger=trigger)
    return caught.value


def test_everybody_in_to_gets_a_message_of_their_own():
    first, second = mails(to=["ann@example.com", "bob@example.com"], reply_to="sales@example.com")
    assert (first.recipient, first.payload["to"]) == ("ann@example.com", ["ann@example.com"])
    assert (second.recipient, second.payload["to"]) == ("bob@example.com", ["bob@example.com"])
    assert first.kind == "email" and first.payload["reply_to"] == ["sales@example.com"]
    assert first.payload["subject"] == "Hello" and first.payload["text"] == "Dear Ann,\n\nthank you."


def test_cc_gets_a_copy_of_the_first_message_in_an_envelope_of_its_own():
    sent = mails(to=["ann@example.com", "bob@example.com"], cc=["boss@example.com"])
    assert [(mail.recipient, mail.payload["to"], mail.payload["cc"]) for mail in sent] == [
        ("ann@example.com", ["ann@example.com"], ["boss@example.com"]),
        ("bob@example.com", ["bob@example.com"], []),
        ("boss@example.com", ["ann@example.com"], ["boss@example.com"]),
    ]


def test_a_list_from_an_expression_is_taken_and_everybody_once():
    sent = mails(to=["{{ trigger.to }}", "ann@example.com"], trigger={"to": ["ANN@example.com", "bob@example.com"]})
    assert [mail.recipient for mail in sent] == ["ANN@example.com", "bob@example.com"]


@pytest.mark.parametrize(
    "address",
    ["b@x, evil@x", "b@x.example, evil@x.example", "a@b.example;c@d.example", "a b@x.example", "Ann <ann@example.com>",
     "ann@example.com\r\nBcc: evil@x.example", "ann@example.com\n", "ann", "@example.com", "ann@", "ann@exa mple.com",
     "ann@example..com", "ann@-example.com", "ann@example", '"a,b"@example.com', "a..b@example.com", ".a@example.com",
     "ann@example.com\x00", "a@b@example.com", "x" * 65 + "@example.com", "ann@" + "x" * 64 + ".com",
     "ann@[127.0.0.1]", ""],
)  # fmt: skip
def test_what_is_not_exactly_one_address_is_refused(address):
    with pytest.raises(BadAddress):
        check_address(address)
    failed = failing(to=["{{ trigger.to }}"], trigger={"to": address})
    assert failed.field == "to"


@pytest.mark.parametrize("value", [None, 5, True, {"a": 1}, [["ann@example.com"]]])
def test_what_is_no_text_is_no_address(value):
    assert failing(to=["{{ trigger.to }}"], trigger={"to": value}).field == "to"


@pytest.mark.parametrize(
    "address",
    ["ann@example.com", "a.b+c@sub.example.co.uk", "o'neil@example.ie", "ann@bücher.example", "root@localhost"],
)
def test_ordinary_addresses_are_taken(address):
    assert check_address(f" {address} ") == address


@pytest.mark.parametrize("subject", ["a\r\nBcc: evil@x.example", "a\nb", "a\rb", "a\x00b", "a\u2028b", "a\x85b"])
def test_a_subject_with_a_line_break_fails_clearly(subject):
    failed = failing(subject="Re: {{ trigger.subject }}", trigger={"subject": subject})
    assert failed.field == "subject" and "line break" in failed.message


def test_nobody_to_send_to_is_said():
    assert "empty" in failing(to=["{{ trigger.to }}"], trigger={"to": []}).message


def test_a_bad_address_is_refused_at_save():
    step = {"id": "mail", "type": "email", "config": HELLO | {"cc": ["b@x, evil@x"]}}
    [problem] = check({"format": 1, "name": "x", "steps": [step]})
    assert (problem.step, problem.field) == ("mail", "config.cc") and "not one e-mail address" in problem.message
