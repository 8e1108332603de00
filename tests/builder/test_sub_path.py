"""On a path of a host that is shared with others, behind a proxy that passes the path on or takes it off; and links that were
made before a change of keys, host and path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from urllib.parse import urlencode

import pytest
from django.conf import settings

from runtime.models import Decision, Trigger
from runtime.publish import publish
from runtime.tokens import approval_url
from tests.builder import factories
from tests.builder.test_approvals import APPROVE, FAR
from tests.builder.test_hooks_over_http import ROOT, exchange, web_server

pytestmark = pytest.mark.django_db(transaction=True)
PREFIX = "/holdfast"


def ask(port: int, path: str, *headers: str, body: str | None = None) -> tuple[int, dict[str, str], str]:
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    if body is not None:
        lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
    status, told, data = exchange(port, "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or "").encode())
    return status, told, data.decode()


@pytest.fixture
def links() -> list[str]:
    """Of two approvers, made with the key and the address of before."""
    approval = factories.approval(factories.wait(factories.run(), APPROVE, "approval", 5, due=FAR), policy="all", needed=2)
    tokens = [factories.token_of(one) for one in approval.recipients.order_by("pk")]
    assert all(approval_url(token).startswith(settings.HOLDFAST_PUBLIC_URL) for token in tokens)
    return [f"/a/{token}/" for token in tokens]


def test_links_of_before_work_under_another_address_and_newer_keys(links, tmp_path):
    trigger = Trigger.objects.get(workflow=publish_webhook())
    keys = ",".join(["a-newer-key-that-makes-the-links-of-now", *settings.HOLDFAST_LINK_KEYS])
    now = {"HOLDFAST_PUBLIC_URL": f"http://localhost{PREFIX}", "HOLDFAST_LINK_KEYS": keys, "HOLDFAST_DATA": str(tmp_path)}
    collect = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
    subprocess.run(collect, cwd=ROOT, env=os.environ | now, check=True)
    with web_server(**now) as port:
        for link, taken_off in zip(links, (False, True), strict=True):
            asked = link if taken_off else PREFIX + link
            status, headers, page = ask(port, asked)
            assert status == 200 and f'action="{PREFIX}{link}"' in page
            assert re.search(r'<link[^>]+href="/holdfast/static/css/', page) and "Path=/holdfast/" in headers["set-cookie"]
            cookie, token = headers["set-cookie"].partition(";")[0], re.search(r'name="csrfmiddlewaretoken" value="([^"]+)', page)[1]
            form = urlencode({"csrfmiddlewaretoken": token, "answer": "approve"})
            status, headers, _ = ask(port, asked, f"Cookie: {cookie}", "Origin: null", body=form)
            assert (status, headers["location"]) == (302, PREFIX + link)
        assert Decision.objects.count() == 2
        style = re.search(r'href="(/holdfast/static/css/[^"]+)', page)[1]
        assert ask(port, style)[0] == ask(port, style.removeprefix(PREFIX))[0] == 200
        status, headers, _ = ask(port, PREFIX + "/")
        assert (status, headers["location"]) == (302, "/holdfast/login/?next=/holdfast/")
        assert 'href="/holdfast/"' in ask(port, PREFIX + "/nothing-here/")[2]
        status, _, told = ask(port, f"{PREFIX}/hooks/{trigger.token}/", body="a=1")
        assert status == 202 and f'"url": "http://localhost{PREFIX}/runs/' in told
        assert ask(port, "/readyz")[0] == 200


def publish_webhook():
    workflow = factories.version().workflow
    declared = [{"id": "hook", "type": "webhook", "config": {"format": "form"}}]
    publish(workflow, {"format": 1, "name": "Hooked", "triggers": declared, "steps": []})
    return workflow


def test_a_path_that_pages_have_is_refused(tmp_path):
    command = [sys.executable, "manage.py", "serve"]
    env = {"HOLDFAST_PUBLIC_URL": "http://localhost/runs", "HOLDFAST_DATA": str(tmp_path), "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "/runs in HOLDFAST_PUBLIC_URL is called as pages of Holdfast are" in done.stderr
