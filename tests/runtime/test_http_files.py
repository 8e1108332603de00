"""Answers that are read as files: kept apart, sent on by later steps, downloaded by those who may read the run."""

from __future__ import annotations

import json
from email.parser import BytesParser
from email.policy import HTTP

import pytest
from django.urls import reverse

from builder.tokens import make_token
from runtime.credentials import seal
from runtime.masking import MASK
from runtime.models import Credential, Membership, Run, StepFile, Team
from runtime.starts import start_with_files
from runtime.steps.base import File
from tests.builder import factories
from tests.runtime.calling import failing
from tests.runtime.support import context, run_in
from tests.servers.api import Server

PDF = b"%PDF-1.7\x00\xff" + bytes(range(256)) * 2000
SECRET = "s3cret-of-the-shop"


class Shop(Server):
    named = 'attachment; filename="../../etc/re\\"port.pdf"'

    def answer(self, method, parts, headers, body):
        match parts.path:
            case "/report":
                return 200, PDF, {"Content-Type": "application/pdf", "Content-Disposition": self.named}
            case "/echo":
                return 200, b"\xfe\x00" + headers.get("Authorization", "").encode() + b"\x00 end", {"Content-Type": "image/x"}
            case "/big":
                return 200, b"\x00" * (3 << 20), {"Content-Type": "application/zip"}
        return 200, {"ok": True}, {}


@pytest.fixture
def shop(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    with Shop() as made:
        yield made


def fetch(shop, path="/report", **more):
    return {"id": "fetch", "type": "http", "config": {"url": shop.url + path, "response": "file", **more}}


@pytest.mark.parametrize(
    ("named", "name"),
    [('attachment; filename="../../etc/passwd"', "passwd"), ("attachment; filename*=UTF-8''Gr%C3%BC%C3%9Fe.pdf", "Grüße.pdf"),
     ('inline; filename=""', "report"), ("", "report"), ('x; filename="a\x01b\x7f"', "ab"), ("x; filename*=UTF-8''a%E2%80%AEb", "ab"), ('x; filename=".."', "file"),
     ("attachment; filename*=nonsense''%ff%fe.pdf", "ÿþ.pdf")],
)  # fmt: skip
def test_a_file_has_a_name_and_never_a_path(shop, named, name):
    shop.named = named
    ctx = context("http", fetch(shop)["config"])
    done = run_in("http", ctx)
    assert done.output["body"]["filename"] == name and done.output["body"]["size"] == len(PDF)
    assert done.output["body"]["type"] == "application/pdf" and done.file.content == PDF
    assert done.file.key == done.output["body"]["file"] and done.file.key not in json.dumps(done.response)


def test_a_file_has_a_limit_and_what_a_post_did_is_done(shop, settings):
    assert run_in("http", context("http", fetch(shop, "/big")["config"])).file.content == b"\x00" * (3 << 20)
    settings.HOLDFAST_LARGEST_OUTPUT_MIB = 2
    words = failing(fetch(shop, "/big")["config"]).message
    assert "larger than 2 MiB" in words and "HOLDFAST_LARGEST_OUTPUT_MIB" in words
    done = run_in("http", context("http", fetch(shop, "/big", method="POST")["config"]))
    assert done.output["cut"] is True and len(done.file.content) == done.output["body"]["size"] == 256 * 1024


@pytest.mark.parametrize("failpoint", ["", "journal.inside:2", "journal.after:2"])
def test_a_later_call_sends_it_as_its_body_and_in_a_form(engine, shop, failpoint):
    body = {"id": "raw", "type": "http", "config": {"method": "PUT", "url": shop.url + "/raw", "body": "{{ steps.fetch.output.body }}"}}
    form = {"id": "form", "type": "http", "on_interrupted": "repeat", "config": {
        "method": "POST", "url": shop.url + "/form", "form_as": "multipart",
        "form": {"note": "hi", "file": "{{ steps.fetch.output.body }}"}}}  # fmt: skip
    run = engine.start(engine.publish([fetch(shop), body, form]))
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.ends(run)
    sent = {path: (headers, content) for _, path, headers, content in shop.seen}
    assert sent["/raw"][1] == PDF and sent["/raw"][0]["Content-Type"] == "application/pdf"
    headers, content = sent["/form"]
    parsed = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + content)
    note, file = parsed.iter_parts()
    assert note.get_content() == "hi" and file.get_payload(decode=True) == PDF
    assert file.get_filename() == "re%22port.pdf" and file.get_content_type() == "application/pdf"
    kept = {one.path: one.request for one in engine.attempts(run)}
    about = {"filename": 're"port.pdf', "type": "application/pdf", "size": len(PDF)}
    assert kept["raw"]["body"] == about and kept["form"]["form"] == {"note": "hi", "file": about}


def test_a_file_that_the_run_began_with_is_sent_on(engine, shop):
    step = {"id": "raw", "type": "http", "config": {"method": "PUT", "url": shop.url + "/raw", "body": "{{ trigger.body.offer }}"}}
    about = {"filename": "offer.pdf", "type": "application/pdf", "size": len(PDF), "file": "its-key"}
    begun = start_with_files(engine.publish([step]), {"offer": File("its-key", PDF)}, trigger_key="form", input={"body": {"offer": about}})
    engine.worker()
    engine.ends(begun.run_id)
    [(_, path, headers, content)] = shop.seen
    assert (path, content, headers["Content-Type"]) == ("/raw", PDF, "application/pdf")


def test_what_no_step_of_the_run_gave_is_not_sent(engine, shop):
    first = engine.start(engine.publish([fetch(shop)]))
    step = {"id": "raw", "type": "http", "config": {"method": "PUT", "url": shop.url + "/raw", "body": "{{ trigger.body }}"}}
    engine.worker()
    engine.ends(first)
    other = engine.start(engine.publish([step]), engine.output(first, "fetch")["body"])
    assert "earlier step of the same run" in engine.ends(other, "failed").error["message"]
    assert [path for _, path, *_ in shop.seen] == ["/report"]


def test_those_who_may_read_the_run_download_it(engine, shop, client):
    run = engine.start(engine.publish([fetch(shop)]))
    engine.worker()
    engine.ends(run)
    person, stranger = factories.user("viewer"), factories.user("operator")
    Membership.objects.create(user=person, team=Run.objects.get(pk=run).workflow.team, role="viewer")
    address = reverse("run_file", args=[run])
    client.force_login(stranger)
    assert client.get(address, {"step": "fetch"}).status_code == 404
    client.force_login(person)
    page = client.get(reverse("run", args=[run]), {"step": "fetch", "tab": "output"}).content.decode()
    assert f'href="{address}?step=fetch&amp;take=1"' in page and "re&quot;port.pdf" in page
    tries = client.get(reverse("run", args=[run]), {"step": "fetch", "tab": "attempts"}).content.decode()
    assert ">first byte " in tries and "timings" not in tries
    answer = client.get(address, {"step": "fetch", "take": 1})
    assert b"".join(answer.streaming_content) == PDF and answer["Content-Length"] == str(len(PDF))
    assert answer["Content-Type"] == "application/octet-stream" and answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"] == 'attachment; filename="re\\"port.pdf"'
    assert [client.get(address, {"step": step, "take": take}).status_code for step, take in (("none", 1), ("fetch", 2))] == [404, 404]
    given = {"Authorization": f"Bearer {make_token(person, 'test')[1]}"}
    answer = client.get(f"/api/v1/runs/{run}/file", {"path": "fetch"}, headers=given)
    assert b"".join(answer.streaming_content) == PDF and answer["Content-Disposition"].startswith("attachment")
    assert client.get(f"/api/v1/runs/{run}/file", {"path": "none"}, headers=given).status_code == 404


def test_secrets_in_it_are_masked(engine, shop):
    team, _ = Team.objects.get_or_create(name="Engine")
    seal(Credential(team=team, name="shop", kind="bearer", hosts=["127.0.0.1"], config={}), {"token": SECRET})
    run = engine.start(engine.publish([fetch(shop, "/echo", connection="shop")]))
    engine.worker()
    engine.ends(run)
    assert bytes(StepFile.objects.get(run_id=run).content) == b"\xfe\x00Bearer " + MASK.encode() + b"\x00 end"
