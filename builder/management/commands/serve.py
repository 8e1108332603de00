"""`manage.py serve`: one process of the web server. SIGTERM lets the requests in hand finish.

waitress reads whole requests, heads and bodies, before a thread is spent on one: a client that sends a byte a second, on
purpose or on a train, costs a socket and not one of our few threads. gunicorn's and granian's threads, tried the same way,
were all taken by forty such clients. It also takes a socket that is open already, so that `up` holds the port while a
process is replaced.
"""

from __future__ import annotations

import gc
import signal
import socket
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver
from waitress import wasyncore
from waitress.server import TcpWSGIServer, create_server

from builder.listening import listening_socket
from builder.supervisor import Refused

LARGEST_REQUEST = 16 * 1024 * 1024  # above what the views take, so that their refusals can say what and why
CONNECTIONS = 1000
FINISH_SECONDS = 10


class Command(BaseCommand):
    help = "Serves the pages, the API and the webhooks on HOLDFAST_BIND and PORT, in one process."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--fd", type=int, help="serve on this open, listening socket instead of opening one")

    def handle(self, *, fd: int | None, **options: Any) -> None:
        refuse_a_name_of_ours(settings.HOLDFAST_PREFIX)
        try:
            listener = socket.socket(fileno=fd) if fd is not None else listening_socket()
        except Refused as reason:
            raise SystemExit(f"Holdfast: {reason}") from None
        serve(listener)


def refuse_a_name_of_ours(prefix: str) -> None:
    """Nobody could tell then whether a proxy has taken the prefix off."""
    own = {str(one.pattern).partition("/")[0] for one in get_resolver().url_patterns}
    if prefix and prefix.split("/")[1] in own:
        raise SystemExit(f"Holdfast: {prefix} in HOLDFAST_PUBLIC_URL is called as pages of Holdfast are. Take another path.")


def serve(listener: socket.socket) -> None:
    """Returns after SIGTERM or SIGINT, when no request is in hand any more or `FINISH_SECONDS` have passed."""
    channels: dict[int, Any] = {}
    application = get_wsgi_application()
    look_less_often()
    server = create_server(
        bodiless_head(application),
        map=channels,
        sockets=[listener],
        threads=settings.HOLDFAST_WEB_THREADS,
        connection_limit=CONNECTIONS,
        max_request_body_size=LARGEST_REQUEST,
        clear_untrusted_proxy_headers=False,  # builder.proxies does, by HOLDFAST_TRUSTED_PROXIES
        asyncore_use_poll=True,
        url_prefix=settings.HOLDFAST_PREFIX,  # a proxy may pass it on or take it off
        ident=None,
    )
    stop = StopAsked(server)
    while not stop.asked:
        wasyncore.loop(timeout=30, use_poll=True, map=channels, count=1)
    server.accepting = False
    deadline = time.monotonic() + FINISH_SECONDS
    while busy(server) and time.monotonic() < deadline:
        wasyncore.loop(timeout=0.1, use_poll=True, map=channels, count=1)
    server.task_dispatcher.shutdown(timeout=0.5)


def look_less_often() -> None:
    """A page of a large flow makes a hundred thousand objects: Python's search for cycles would go through them, and all that is
    loaded, many times. What is loaded by now stays, and is left out."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def bodiless_head(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Answers HEAD without the body that Django makes for it: waitress would send it, and whoever keeps the connection
    would read it as the beginning of the next answer."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = application(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return response
        if hasattr(response, "close"):
            response.close()
        return ()

    return answer


def busy(server: TcpWSGIServer) -> bool:
    """Whether a request is being worked on or its response is on its way."""
    return any(channel.requests or channel.total_outbufs_len for channel in list(server.active_channels.values()))


class StopAsked:
    """Becomes true with SIGTERM or SIGINT, and wakes the server to see it."""

    def __init__(self, server: TcpWSGIServer) -> None:
        self.asked = False
        self.server = server
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.server.pull_trigger()
