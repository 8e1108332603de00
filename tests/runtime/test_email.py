"""The e-mail step: who gets what, and what is refused before it reaches the outbox."""

from __future__ import annotations

import pytest

from runtime.definition import check
from runtime.mail_addresses import BadAddress, check_address
from runtime.steps.base import StepError
from tests.runtime.support import context, run_in, run_step

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


OFFER = {"filename": "../offer\u202e.pdf", "type": "application/pdf", "size": 3, "file": "key"}


def attached(value, files=None):
    ctx = context("email", HELLO | {"attachments": ["{{ trigger.files }}"]}, trigger={"files": value})
    ctx.files.update({"key": b"%PDF", "other": b"x"} if files is None else files)
    return run_in("email", ctx).mails[0].payload.get("attachments")


def test_files_are_attached_by_their_keys_and_nothing_is_none():
    assert attached(OFFER) == [OFFER | {"filename": "offer.pdf"}]
    assert [one["file"] for one in attached([OFFER, {"file": "other"}])] == ["key", "other"]
    assert attached(None) is None and attached([]) is None and attached("") is None


@pytest.mark.parametrize("value", ["offer.pdf", {"filename": "offer.pdf"}, 5, {"file": 3}])
def test_what_is_no_file_of_the_run_is_not_attached(value):
    with pytest.raises(StepError, match="An attachment is a file") as caught:
        attached(value)
    assert caught.value.field == "attachments"


def test_attachments_have_a_limit_together():
    with pytest.raises(StepError, match="16.0 MiB together; a mail takes 15"):
        attached([OFFER, OFFER], {"key": b"x" * (8 << 20)})


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
