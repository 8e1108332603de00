"""Names that change their mind, asked of a real name server by the system's own resolver, in a process whose /etc/resolv.conf names
that server. That takes the right to mount and to bind port 53; `test_net.py` shows the same without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.engine import ROOT
from tests.servers.dns import ADDRESS, Dns, can_bind
from tests.servers.misbehaving import Misbehaving

UNSHARED = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"']
CALLS = """
import asyncio, json, sys
import django
django.setup()
from runtime import net

async def one(url):
    try:
        answer = await net.exchange(net.Call("GET", net.check_location(url), secret_headers={"Authorization": "Bearer s"}), 20.0)
        return answer.status, answer.body.decode()
    except (net.CallFailed, net.BadLocation) as wrong:
        return str(getattr(wrong, "outcome", "")), str(getattr(wrong, "message", wrong))

async def all_of(urls):
    try:
        return [await one(url) for url in urls]
    finally:
        await net.close()

print(json.dumps(asyncio.run(all_of(sys.argv[1:]))))
"""


def may_mount() -> bool:
    try:
        return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(
    not (can_bind() and may_mount()), reason="needs the right to mount over /etc/resolv.conf and to bind port 53, as root has it"
)


@pytest.fixture
def inside() -> Iterator[Misbehaving]:
    """On 127.0.0.1 alone."""
    with Misbehaving() as server:
        yield server


def calls(folder: Path, *urls: str, allowed: str) -> list[list[Any]]:
    """(status and body, or outcome and message) of calls that a process with that name server makes one after the other."""
    resolv = folder / "resolv.conf"
    resolv.write_text(f"nameserver {ADDRESS}\noptions timeout:1 attempts:2\n")
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "builder.settings", "HOLDFAST_ALLOWED_PRIVATE_HOSTS": allowed, "PYTHONPATH": str(ROOT),
        "HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9",
    }  # fmt: skip
    done = subprocess.run([*UNSHARED, str(resolv), sys.executable, "-c", CALLS, *urls], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_address_that_was_checked_is_connected_and_a_later_one_is_checked_anew(inside, tmp_path):
    """127.0.0.2 stands for the outside: it is allowed, and 127.0.0.1 is not. Nobody listens there, so that whoever asked again at
    connecting would reach the inside."""
    url = f"http://rebind.example:{inside.port}"
    with Dns({"rebind.example": [["127.0.0.2"], ["127.0.0.1"]]}) as dns:
        first, second = calls(tmp_path, f"{url}/plain", f"{url}/plain", allowed="127.0.0.2")
        assert dns.asked.count("rebind.example A") == 2, "once for each call"
    assert first[0] == "not_sent" and "refused" in first[1]
    assert second[0] == "not_sent" and "127.0.0.1 (rebind.example) is not a public address" in second[1]


@pytest.mark.parametrize("addresses", [["192.88.98.1", "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], ["169.254.169.254"], ["0.0.0.0"], ["fd00::1"]])
def test_a_name_that_leads_inside_is_not_called(inside, tmp_path, addresses):
    with Dns({"inside.example": [addresses]}) as dns:
        [(outcome, words)] = calls(tmp_path, f"http://inside.example:{inside.port}/plain", allowed="10.0.0.1")
        assert dns.asked
    assert outcome == "not_sent" and "is not a public address" in words


def test_a_redirect_to_a_name_that_leads_inside_is_not_followed(inside, tmp_path):
    start = f"http://127.0.0.1:{inside.port}/redirect?to=http://inside.example:{inside.port}/plain"
    with Dns({"inside.example": [["127.0.0.3"]]}):
        [(outcome, words)] = calls(tmp_path, start, allowed="127.0.0.1")
    assert "Redirected to http://inside.example" in words and "127.0.0.3 (inside.example) is not a public address" in words
