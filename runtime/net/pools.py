"""One connection pool per event loop: connections belong to the loop that opened them."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from weakref import WeakKeyDictionary

import anyio._backends._asyncio  # noqa: F401  or the first call would load it, and stop the event loop meanwhile
import httpcore2
import httpx2

from .addresses import private_hosts
from .backend import GuardedBackend, Resolve

IDLE_SECONDS = 1.5
"""Shorter than any common server keeps an idle connection (gunicorn: 2 s): a request that crosses with the server's
close ends as unknown, and a person would be asked about it."""

_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, httpcore2.AsyncConnectionPool] = WeakKeyDictionary()


def loop_pool() -> httpcore2.AsyncConnectionPool:
    """The running loop's pool."""
    loop = asyncio.get_running_loop()
    if loop not in _POOLS:
        _POOLS[loop] = new_pool()
    return _POOLS[loop]


def new_pool(resolve: Resolve | None = None) -> httpcore2.AsyncConnectionPool:
    return httpcore2.AsyncConnectionPool(
        ssl_context=_tls(),
        max_connections=1000,
        max_keepalive_connections=100,
        keepalive_expiry=IDLE_SECONDS,
        network_backend=GuardedBackend(private_hosts, resolve),
    )


async def close() -> None:
    """Close the running loop's pool."""
    pool = _POOLS.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await pool.aclose()


@cache
def _tls() -> ssl.SSLContext:
    """Reading the system's certificates takes a quarter of a second; SSL_CERT_FILE may name others."""
    return httpx2.create_ssl_context()
