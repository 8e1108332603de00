"""The network under the HTTP client: resolve once, check every address, connect to exactly what was checked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Any

import httpcore2

from .addresses import Blocked, Private, check

Resolve = Callable[[str, int], Awaitable[list[str]]]

RESOLVED: ContextVar[Callable[[], None]] = ContextVar("resolved")
"""Called when the name of a call is resolved: the transport knows of connecting only, which begins with that."""

# getaddrinfo cannot be interrupted: a slow name server must not hold up the threads that everything else shares.
_RESOLVERS = ThreadPoolExecutor(16, thread_name_prefix="resolve")


class NotFound(OSError):
    """The name does not resolve."""


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to public addresses only, but for those that `private` allows.

    TLS still checks the certificate against the name: only the address is ours, the name stays the request's.
    """

    def __init__(self, private: Callable[[], Private], resolve: Resolve | None = None) -> None:
        self._private, self._resolve = private, resolve or resolve_name
        self._plain = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = check(host, port, await self._addresses(host, port), self._private())
        if resolved := RESOLVED.get(None):
            resolved()
        for address in addresses[:-1]:
            try:
                return await self._plain.connect_tcp(address, port, _share(timeout), local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._plain.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        raise Blocked("Unix sockets are not called.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            return await self._resolve(host, port)


async def resolve_name(host: str, port: int) -> list[str]:
    """The system's answer, in its order of preference. Also reads spellings such as `127.1`. Raises NotFound."""

    def ask() -> list[str]:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    try:
        return await asyncio.get_running_loop().run_in_executor(_RESOLVERS, ask)
    except (socket.gaierror, UnicodeError):
        raise NotFound(f"The name {host} was not found.") from None


def _share(timeout: float | None) -> float:
    """An address that does not answer leaves time for the next one."""
    return 5.0 if timeout is None else min(5.0, timeout / 2)
