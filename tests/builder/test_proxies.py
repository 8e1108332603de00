"""The caller's address is the connection's, unless a proxy that we trust says otherwise."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from builder.proxies import TrustedProxies


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),  # a stranger's header says nothing
        ("10.0.0.2", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.2", "1.2.3.4, 198.51.100.7, 10.0.0.3", "198.51.100.7"),  # what stands left of it may be forged
        ("10.0.0.2", "", "10.0.0.2"),
        ("10.0.0.2", "198.51.100.7, nonsense", "10.0.0.2"),
        ("10.0.0.2", "2001:db8::1", "2001:db8::1"),
        ("", "198.51.100.7", ""),  # over a socket file
    ],
)
def test_the_nearest_hop_that_is_not_ours_is_the_caller(settings, peer, forwarded, caller):
    settings.HOLDFAST_TRUSTED_PROXIES = [ip_network("10.0.0.0/8")]
    request = RequestFactory().get("/", REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=forwarded)
    seen = []
    TrustedProxies(lambda request: seen.append(request.META["REMOTE_ADDR"]) or HttpResponse())(request)
    assert seen == [caller]


def test_only_a_trusted_proxy_can_say_that_the_request_came_by_https(settings):
    settings.HOLDFAST_TRUSTED_PROXIES = [ip_network("10.0.0.0/8")]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    secure = {}
    for peer in ("10.0.0.2", "203.0.113.9"):
        request = RequestFactory().get("/", REMOTE_ADDR=peer, HTTP_X_FORWARDED_PROTO="https")
        TrustedProxies(lambda request: HttpResponse())(request)
        secure[peer] = request.is_secure()
    assert secure == {"10.0.0.2": True, "203.0.113.9": False}
