"""Whose address a request has. Behind a proxy that we trust it is the one that the proxy saw, else the connection's."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse


class TrustedProxies:
    """Puts the caller into REMOTE_ADDR, for log-in limits, decisions and audit; hides forged headers from Django."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        meta = request.META
        if trusted(meta.get("REMOTE_ADDR", "")):
            meta["REMOTE_ADDR"] = nearest_stranger(meta.get("HTTP_X_FORWARDED_FOR", ""), meta["REMOTE_ADDR"])
        else:
            meta.pop("HTTP_X_FORWARDED_FOR", None)
            meta.pop("HTTP_X_FORWARDED_PROTO", None)
        return self.get_response(request)


def nearest_stranger(forwarded: str, peer: str) -> str:
    """The last hop that is not a proxy of ours: what stands left of it, anybody may have written."""
    for hop in reversed([part.strip() for part in forwarded.split(",")]):
        if not valid(hop):
            break
        peer = hop
        if not trusted(hop):
            break
    return peer


def trusted(address: str) -> bool:
    networks = settings.HOLDFAST_TRUSTED_PROXIES
    return bool(networks) and valid(address) and any(ip_address(address) in network for network in networks)


def valid(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return True
