"""curl commands as people copy them -> an API call, and back."""

from __future__ import annotations

import shlex

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from builder import drafts
from builder.curl import as_curl, read_curl, sign_in_of
from builder.forms.base import FieldError
from runtime.definition import check


def told(command: str) -> dict:
    found = {name: value for name, value in read_curl(command).items() if value is not None}
    assert not check({"format": 1, "name": "x", "steps": [{"id": "call", "type": "http", "config": found}]})
    return found


@pytest.mark.parametrize(
    ("command", "config"),
    [("curl https://a.example/x", {"method": "GET", "url": "https://a.example/x"}),
     ("curl -sSL 'https://a.example/x?a=1&b=c%20d'", {"method": "GET", "url": "https://a.example/x", "query": {"a": "1", "b": "c d"}}),
     ("curl 'https://a.example/?t=1&t=2'", {"method": "GET", "url": "https://a.example/?t=1&t=2"}),
     ("curl -X PUT https://a.example/x -H 'X-Id: 7' -H 'Content-Length: 3' \\\n  --data-raw '{\"n\": 1}'",
      {"method": "PUT", "url": "https://a.example/x", "headers": {"X-Id": "7"}, "json": {"n": 1}}),
     ("curl a.example -d name=Ann -d b=2", {"method": "POST", "url": "https://a.example/", "form": {"name": "Ann", "b": "2"}, "form_as": "urlencoded"}),
     ("curl -F note=hi -F n=2 https://a.example/", {"method": "POST", "url": "https://a.example/", "form": {"note": "hi", "n": "2"}, "form_as": "multipart"}),
     ("curl --json '{\"a\": [1]}' https://a.example/", {"method": "POST", "url": "https://a.example/", "json": {"a": [1]}}),
     ("curl -H 'Content-Type: text/xml' -d '<a/>' https://a.example/",
      {"method": "POST", "url": "https://a.example/", "headers": {"Content-Type": "text/xml"}, "body": "<a/>"}),
     ("curl -XDELETE https://a.example/x", {"method": "DELETE", "url": "https://a.example/x"}),
     ("curl -X POST \\  -H 'A: b' \\  https://a.example/", {"method": "POST", "url": "https://a.example/", "headers": {"A": "b"}}),
     ("curl -G https://a.example/ -d q=x", {"method": "GET", "url": "https://a.example/", "query": {"q": "x"}}),
     ("curl -G 'https://a.example/?a=1' --data-urlencode 'q=b c&d'", {"method": "GET", "url": "https://a.example/", "query": {"a": "1", "q": "b c&d"}}),
     ("curl a.example -d a=1 --data-urlencode 'b=x y'",
      {"method": "POST", "url": "https://a.example/", "form": {"a": "1", "b": "x y"}, "form_as": "urlencoded"}),
     ("curl a.example -d 'note=For a@b.example' -d n=2",
      {"method": "POST", "url": "https://a.example/", "form": {"note": "For a@b.example", "n": "2"}, "form_as": "urlencoded"}),
     ("curl a.example -d 'just words'", {"method": "POST", "url": "https://a.example/", "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": "just words"}),
     ("curl a.example -d 'a=1&a=2'", {"method": "POST", "url": "https://a.example/", "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": "a=1&a=2"}),
     ("$ curl -sSfXPATCH https://a.example/x --json '{\"a\": 1}' | jq '.id' > out.json", {"method": "PATCH", "url": "https://a.example/x", "json": {"a": 1}}),
     ("curl 'https://a.example/x' --data-raw $'{\"t\":\"it\\'s \\u0021 \\ud83d\\ude00\\n\"}'",
      {"method": "POST", "url": "https://a.example/x", "body": '{"t":"it\'s ! 😀\n"}'}),
     ('curl "https://a.example/x" -H "X-A: say \\"hi\\" for $5" -d "{\\"n\\": 1}"',
      {"method": "POST", "url": "https://a.example/x", "headers": {"X-A": 'say "hi" for $5'}, "json": {"n": 1}}),
     ('curl ^"https://a.example/x^" ^\r\n  -H ^"accept: */*^" ^\r\n  --data-raw ^"^{^\\^"a^\\^":^\\^"b^\\^"^}^"',
      {"method": "POST", "url": "https://a.example/x", "headers": {"accept": "*/*"}, "json": {"a": "b"}}),
     ("curl -F 'note=hi;type=text/plain' --form-string 'at=@me' https://a.example/",
      {"method": "POST", "url": "https://a.example/", "form": {"note": "hi", "at": "@me"}, "form_as": "multipart"}),
     ("curl -X OPTIONS https://a.example/ \\", {"method": "OPTIONS", "url": "https://a.example/"}),
     ("curl \\ -H 'A: b' \\-H 'C: d' https://a.example/", {"method": "GET", "url": "https://a.example/", "headers": {"A": "b", "C": "d"}})],
)  # fmt: skip
def test_a_command_becomes_a_call(command, config):
    assert told(command) == config


def test_braces_of_a_command_are_no_expressions():
    assert told("curl -d '{\"t\": \"{{ x }}\"}' https://a.example/")["json"]["t"] == '{{ "{{" }} x }}'


@pytest.mark.parametrize(
    ("command", "words"),
    [("curl", "no address"), ("curl https://a https://b", "several addresses"), ("curl -d @file https://a", "sends the file"),
     ("curl -F f=@x.pdf https://a", "sends the file"), ("curl --proxy x https://a", "--proxy"), ("curl 'https://a", "quote"),
     ("curl -sk https://a", "-k"), ("curl --data-urlencode q@file https://a", "sends the file"), ("curl -F a=1 -F a=2 https://a", "several times"),
     ("curl -X TRACE https://a", "TRACE")],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_by_name(command, words):
    with pytest.raises(FieldError, match=words):
        read_curl(f"{command} " if command == "curl" else command)


@pytest.mark.parametrize(
    ("command", "names"),
    [("curl -u ann:s3cret https://a.example/x", ["user and password"]), ("curl https://ann:s3cret@a.example/x", ["user and password"]),
     ("curl -H 'authorization: Bearer s3cret' -H 'X-Api-Key: s3cret' -b 'session=s3cret' -H 'A: b' https://a.example/x",
      ["authorization", "X-Api-Key", "Cookie"]),
     ("curl --oauth2-bearer s3cret https://a.example/x", ["Authorization"]), ("curl -H 'A: b' https://a.example/x", [])],
)  # fmt: skip
def test_what_signs_in_is_left_out_and_named(command, names):
    found = told(command)
    assert sign_in_of(command) == names and "s3cret" not in str(found) and found["url"] == "https://a.example/x"
    assert found.get("headers", {}) == ({"A": "b"} if "A: b" in command else {})


@given(st.text("curl -dXHF'\"$\\^|{}@=;& \n\x00é", max_size=60))
def test_no_text_breaks_it(text):
    try:
        read_curl(f"curl {text}")
    except FieldError:
        pass


def test_an_attempt_can_be_copied_as_a_command():
    request = {"method": "POST", "url": "https://a.example/x?y=1", "headers": {"X-A": "it's"}, "json": {"n": "ü"}, "connection": "crm"}
    assert shlex.split(as_curl(request)) == ["curl", "-X", "POST", "-H", "X-A: it's", "--data-raw", '{"n": "ü"}', "https://a.example/x?y=1"]
    form = {"method": "POST", "url": "https://a.example/", "form": {"tag": ["a b", 2], "none": None}, "form_as": "urlencoded"}
    assert shlex.split(as_curl(form))[3:-1] == ["--data-urlencode", "tag=a b", "--data-urlencode", "tag=2"]
    assert told(as_curl(form))["body"] == "tag=a+b&tag=2"
    assert as_curl({"model": "gpt", "prompt": "x"}) == "" and as_curl(None) == ""


def test_a_copied_command_reads_no_file_and_makes_one_call_whatever_the_data_holds():
    """Names of fields and parts of an address may be what somebody outside has sent, and the command runs at an operator's."""
    offer = {"filename": "offer.pdf", "size": 1}
    names = {"a@/etc/passwd": "x", "@/etc/passwd": "y", "b=@/etc/passwd;c": offer, "e=@/etc/passwd": "z", "ü n": "1"}
    for form_as in ("urlencoded", "multipart"):
        request = {"method": "POST", "url": "https://a.example/[1-9]/{a,b}", "form": names, "form_as": form_as}
        words = shlex.split(as_curl(request))
        fields = [word.partition("=") for option, word in zip(words, words[1:], strict=False) if option in ("--data-urlencode", "--form-string", "-F")]
        assert len(fields) == 5 and words[-2:] == ["--globoff", request["url"]]
        assert form_as == "multipart" or [name for name, _, value in fields if "@" in name and not value.startswith("@")] == []
        assert [value for _, _, value in fields if value.startswith("@")] == ["@offer.pdf"]
    assert told(as_curl({"method": "POST", "url": "https://a.example/{a}", "form": {"a@b": "x"}}))["form"] == {"a@b": "x"}


@pytest.mark.django_db
def test_a_command_that_is_pasted_as_the_address_fills_in_the_panel(client):
    from runtime.models import Workflow
    from tests.builder import factories

    workflow = Workflow.objects.create(team=factories.team(), name="Calls")
    steps = [{"id": "call", "type": "http", "config": {"url": "https://old.example/", "body": "old"}}]
    draft = drafts.begin(workflow, {"format": 1, "name": "Calls", "steps": steps})
    client.force_login(factories.user("builder"))
    posted = {"owner": "call", "field": "config.url", "open": "call", "tab": "setup", "revision": draft.revision, "key": "k1",
              "value": "curl -X POST https://a.example/deals -H 'X-Id: 7' -H 'Authorization: Bearer s3cret' -d '{\"n\": 1}'"}  # fmt: skip
    answer = client.post(reverse("flow_edit", args=[workflow.pk]), posted)
    assert answer.status_code == 200 and "X-Id" in answer.content.decode() and "s3cret" not in answer.content.decode()
    assert "without what signs in (Authorization)" in answer["HX-Trigger"]
    config = drafts.load(workflow).definition["steps"][0]["config"]
    assert config == {"method": "POST", "url": "https://a.example/deals", "headers": {"X-Id": "7"}, "json": {"n": 1}}
