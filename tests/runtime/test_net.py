"""The guarded client against real sockets: where it does not go, what it does not swallow, how it says what failed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
from ipaddress import ip_address

import pytest

from runtime import net
from runtime.net.addresses import Private, is_denied
from runtime.net.bodies import MIB
from runtime.net.pools import loop_pool
from runtime.states import AttemptOutcome
from tests.runtime.support import on_loop
from tests.servers.misbehaving import Misbehaving

NOT_SENT, ANSWERED, UNKNOWN = AttemptOutcome.NOT_SENT, AttemptOutcome.ANSWERED, AttemptOutcome.UNKNOWN


@pytest.fixture(scope="module")
def server():
    with Misbehaving() as running:
        yield running


@pytest.fixture
def allowed(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]


def get(url: str, *, method: str = "GET", timeout: float = 60, resolve=None, **more) -> net.Answer:
    return on_loop(net.exchange(net.Call(method, net.check_location(url), **more), timeout, resolve=resolve))


def failure(url: str, **more) -> net.CallFailed:
    with pytest.raises(net.CallFailed) as caught:
        get(url, **more)
    return caught.value


# Where it goes


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1", "168.63.129.16", "192.0.0.192", "198.18.0.1",
        "192.0.2.1", "::1", "::", "::ffff:8.8.8.8", "::ffff:169.254.169.254", "64:ff9b::808:808", "64:ff9b:1::1",
        "2002:7f00:1::", "2001::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1", "fe80::1%1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_denied(address):
    assert is_denied(ip_address(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_a_public_address_is_not(address):
    assert not is_denied(ip_address(address))


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f000001", "127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0"]
)
def test_no_spelling_of_loopback_is_called(server, host):
    before = len(seen(server))
    failed = failure(f"http://{host}:{server.port}/plain")
    assert failed.outcome == NOT_SENT and not failed.retry
    assert "HOLDFAST_ALLOWED_PRIVATE_HOSTS" in failed.message
    assert len(seen(server)) == before + 1, "only our own look at what it saw"


def seen(server) -> list[str]:
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(b"GET /seen HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        line.settimeout(5)
        head, _, body = line.recv(1 << 20).partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += line.recv(1 << 20)
    return body.decode().splitlines()


def test_the_metadata_address_in_ipv6_clothes_is_refused():
    failed = failure("http://[::ffff:169.254.169.254]/latest/meta-data/")
    assert failed.outcome == NOT_SENT and "169.254.169.254" in failed.message or "a9fe:a9fe" in failed.message


@pytest.mark.parametrize("entry", ["127.0.0.1", "127.0.0.0/8", "127.0.0.1:{port}", "localhost", "localhost:{port}"])
def test_an_operator_can_name_private_places(server, settings, entry):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = [entry.format(port=server.port)]
    host = "localhost" if "localhost" in entry else "127.0.0.1"
    assert get(f"http://{host}:{server.port}/plain").body == b"plain"


@pytest.mark.parametrize("entry", ["127.0.0.1:1", "127.0.0.2", "10.0.0.0/8", "crm.internal", "localhost"])
def test_naming_one_place_allows_no_other(server, settings, entry):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = [entry]
    assert failure(f"http://127.0.0.1:{server.port}/plain").outcome == NOT_SENT


def test_entries_with_ports_and_ipv6():
    private = Private(["[::1]:8000", "10.1.0.0/16", "crm.internal:8080"])
    assert private.allows("x", 8000, ip_address("::1")) and not private.allows("x", 8001, ip_address("::1"))
    assert private.allows("x", 1, ip_address("10.1.2.3")) and not private.allows("x", 1, ip_address("10.2.0.1"))
    assert private.allows("CRM.internal.", 8080, ip_address("10.9.9.9"))
    assert private.names("crm.internal", 8080) and not private.names("crm.internal", 80)


def test_the_address_that_was_checked_is_the_address_that_is_connected(server, settings):
    """The name answers with an allowed address first and a forbidden one afterwards: it is not asked a second time."""
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.2"]
    answers = iter([["127.0.0.2"], ["127.0.0.1"]])
    asked = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    before = len(seen(server))
    failed = failure(f"http://rebind.example:{server.port}/plain", resolve=rebinding)
    assert failed.outcome == NOT_SENT and "refused" in failed.message and asked == ["rebind.example"]
    assert len(seen(server)) == before + 1


def test_one_private_answer_among_public_ones_condemns_the_name(server):
    async def mixed(host: str, port: int) -> list[str]:
        return ["192.88.98.1", "127.0.0.1"]

    failed = failure(f"http://mixed.example:{server.port}/plain", resolve=mixed)
    assert failed.outcome == NOT_SENT and not failed.retry and "127.0.0.1 (mixed.example)" in failed.message


def test_a_second_address_is_tried_when_the_first_refuses(server, settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.0/8", "::1"]

    async def two(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]

    assert get(f"http://two.example:{server.port}/plain", resolve=two).body == b"plain"


# Redirects


def test_a_redirect_is_followed_and_the_last_address_told(server, allowed):
    answer = get(f"{server.url}/redirect?to=/plain")
    assert answer.body == b"plain" and answer.url.path == "/plain"


def test_a_redirect_to_a_private_place_is_refused_and_named(server, settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = [f"127.0.0.1:{server.port}"]
    failed = failure(f"{server.url}/redirect?to=http://127.0.0.1:9/admin")
    assert "http://127.0.0.1:9/admin" in failed.message and failed.outcome == NOT_SENT and not failed.retry


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://x/", "http://user:pw@127.0.0.1/"])
def test_a_redirect_to_what_may_not_be_called_is_refused(server, allowed, target):
    failed = failure(f"{server.url}/redirect?to={target}")
    assert not failed.retry and "pw" not in failed.message


def test_a_circle_of_redirects_ends(server, allowed):
    failed = failure(f"{server.url}/circle")
    assert (
        failed.outcome == ANSWERED
        and not failed.retry
        and "5 redirects" in failed.message
        and "/circle" in failed.message
    )


def test_the_credential_does_not_cross_origins(server, allowed):
    with Misbehaving() as other:
        headers = {"X-Note": "kept", "X-Auth-Token": "typed by hand"}
        answer = get(
            f"{server.url}/redirect?to={other.url}/echo",
            headers=headers,
            secret_headers={"Authorization": "Bearer s3cret"},
        )
        assert b"s3cret" not in answer.body and b"typed by hand" not in answer.body and b"kept" in answer.body
    answer = get(f"{server.url}/redirect?to=/echo", secret_headers={"Authorization": "Bearer s3cret"})
    assert b"s3cret" in answer.body, "within one origin it stays"


def test_a_post_follows_only_where_nothing_was_done_yet(server, allowed):
    assert get(f"{server.url}/redirect?to=/plain", method="POST", body=b"x").status == 302
    answer = get(f"{server.url}/redirect?to=/plain&status=307", method="POST", body=b"x")
    assert answer.body == b"plain" and seen(server)[-2].startswith("POST /plain")


# Time and size


def test_a_drip_ends_at_the_deadline(server, allowed):
    began = time.monotonic()
    failed = failure(f"{server.url}/drip", timeout=1.5)
    assert time.monotonic() - began > 1.4
    assert failed.outcome == UNKNOWN and failed.retry and "1.5 s" in failed.message


def test_a_silent_server_leaves_it_unknown(server, allowed):
    assert failure(f"{server.url}/silent", timeout=0.5).outcome == UNKNOWN


def test_a_bomb_is_too_large_and_memory_stays_flat(server, allowed):
    tracemalloc.start()
    try:
        failed = failure(f"{server.url}/bomb")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "larger than 1 MiB" in failed.message and failed.outcome == ANSWERED and not failed.retry
    assert peak < 12 * MIB


def test_an_endless_body_is_too_large(server, allowed):
    assert "larger than 1 MiB" in failure(f"{server.url}/endless").message


@pytest.mark.parametrize(
    ("path", "body"), [("members", b"one two"), ("zlib-deflate", b"deflated"), ("raw-deflate", b"deflated")]
)
def test_packed_bodies_are_unpacked(server, allowed, path, body):
    assert get(f"{server.url}/{path}").body == body


@pytest.mark.parametrize("path", ["cut-gzip", "packed?as=br", "packed?as=gzip"])
def test_a_body_that_cannot_be_unpacked_is_named(server, allowed, path):
    failed = failure(f"{server.url}/{path}")
    assert "pack" in failed.message and failed.outcome == ANSWERED and not failed.retry


def test_a_body_shorter_than_announced_may_be_retried(server, allowed):
    failed = failure(f"{server.url}/short")
    assert failed.retry and failed.outcome == UNKNOWN and failed.status == 200


def test_too_many_headers_are_refused(server, allowed):
    failed = failure(f"{server.url}/headers")
    assert "2,002 headers" in failed.message and not failed.retry


def test_an_error_whose_body_drips_is_still_that_error(server, allowed):
    failed = failure(f"{server.url}/error-drip", timeout=0.5)
    assert failed.status == 422


# How far it got


def test_nobody_there_is_not_sent(allowed):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        failed = failure(f"http://127.0.0.1:{unused.getsockname()[1]}/")
    assert failed.outcome == NOT_SENT and failed.retry and "refused" in failed.message


def test_a_name_that_does_not_exist_is_not_sent():
    failed = failure("http://nowhere.invalid/")
    assert failed.outcome == NOT_SENT and failed.retry and "nowhere.invalid" in failed.message


@pytest.mark.parametrize("path", ["reset", "close", "garbage"])
def test_a_line_that_breaks_after_the_request_leaves_it_unknown(server, allowed, path):
    failed = failure(f"{server.url}/{path}", method="POST", body=b"x")
    assert failed.outcome == UNKNOWN and failed.retry


def test_a_certificate_of_nobody_is_not_sent(allowed, tmp_path):
    with tls_server(tmp_path) as port:
        failed = failure(f"https://127.0.0.1:{port}/")
    assert failed.outcome == NOT_SENT and "certificate" in failed.message


class tls_server:
    """Speaks TLS with a certificate that nobody vouches for."""

    def __init__(self, folder):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
            check=True, capture_output=True,
        )  # fmt: skip
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.socket = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> int:
        threading.Thread(target=self.shake_hands, daemon=True).start()
        return self.socket.getsockname()[1]

    def shake_hands(self) -> None:
        try:
            line, _ = self.socket.accept()
            self.context.wrap_socket(line, server_side=True)
        except OSError:
            pass

    def __exit__(self, *exc_info) -> None:
        self.socket.close()


# What it sends


def test_a_line_break_in_a_header_is_refused_by_name(server, allowed):
    with pytest.raises(net.BadHeader, match="X-Note.*line break") as caught:
        get(f"{server.url}/plain", headers={"X-Note": "a\r\nX-Evil: b"})
    assert "Evil" not in str(caught.value)


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection", "Bad Name", "Ä"])
def test_headers_that_speak_for_the_connection_are_refused(name):
    with pytest.raises(net.BadHeader, match=name):
        get("http://never.invalid/", headers={name: "x"})


def test_nothing_is_kept_between_calls_but_the_connection(server, allowed):
    async def twice() -> bytes:
        await net.exchange(net.Call("GET", net.check_location(f"{server.url}/cookie")), 5)
        return (await net.exchange(net.Call("GET", net.check_location(f"{server.url}/echo")), 5)).body

    assert b"cookie" not in on_loop(twice())


def test_each_phase_is_timed_and_a_connection_that_was_kept_has_two(server, allowed):
    async def twice() -> list[set[str]]:
        call = net.Call("GET", net.check_location(f"{server.url}/redirect?to={server.url}/plain"))
        return [set((await net.exchange(call, 10)).timings) for _ in range(2)]

    assert on_loop(twice()) == [{"resolve", "connect", "first_byte", "body"}, {"first_byte", "body"}]


def test_a_failure_tells_how_long_the_phases_took_that_it_came_to(server, allowed, tmp_path):
    assert set(failure("http://never.invalid/").timings) == {"resolve"}
    assert set(failure(f"{server.url}/silent", timeout=0.5).timings) == {"resolve", "connect", "first_byte"}
    assert set(failure(f"{server.url}/short").timings) == {"resolve", "connect", "first_byte", "body"}
    with tls_server(tmp_path) as port:
        assert set(failure(f"https://127.0.0.1:{port}/").timings) == {"resolve", "connect", "tls"}


def test_the_environment_has_no_say(server, allowed, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert get(f"{server.url}/plain").body == b"plain"


def test_many_calls_share_connections(server, allowed):
    async def many() -> set[int]:
        call = net.Call("GET", net.check_location(f"{server.url}/plain"))
        for _ in range(3):
            await asyncio.gather(*(net.exchange(call, 10) for _ in range(20)))
        return {len(loop_pool().connections)}

    assert on_loop(many()) == {20}


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "gopher://x/", "https://user:pw@host/", "https://user@host/", "//host/", "", "https://",
                "http://host:99999/", "https://ho\tst/", " https://host/", "https://host/\r\nX: y", "https://evil\\@host/",
                "javascript:alert(1)", "http://host:0/"],
)  # fmt: skip
def test_what_is_no_address_is_refused_without_repeating_secrets(address):
    with pytest.raises(net.BadLocation) as caught:
        net.check_location(address)
    assert "pw" not in str(caught.value)


def test_the_first_call_loads_no_module_of_the_event_loop_while_others_wait(server):
    """A library that is loaded by the first call stops everything else in its process, on a busy machine for seconds."""
    call = f"""
import asyncio, sys
from django.conf import settings
from runtime import net
settings.configure(HOLDFAST_ALLOWED_PRIVATE_HOSTS=["127.0.0.1"])
before = set(sys.modules)
answer = asyncio.run(net.exchange(net.Call("GET", net.check_location({server.url + "/plain"!r})), 60))
print(*(name for name in set(sys.modules) - before if name.startswith(("anyio", "http", "ssl"))))
"""
    told = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []
