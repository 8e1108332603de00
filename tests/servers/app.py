"""The frame of a small JSON server: requests are recorded, behaviour is steered through `/_control`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """`then` comes after the effect and before the answer: `reply`, `hang` (until released), `die`, `reset`; and before
    that `slow` seconds."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    then: str = "reply"
    slow: float = 0


class App:
    """Subclasses answer in `handle` and name their settings in `settings`."""

    settings: dict[str, Any] = {}

    def __init__(self) -> None:
        self.state = dict(self.settings)
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.RLock()
        self.released = threading.Event()

    def handle(self, request: Request) -> Reply:
        raise NotImplementedError

    def answered(self, request: Request) -> None:
        """The whole answer is on its way."""

    def steer(self, request: Request) -> Reply:
        if request.path == "/_control":
            self.state.update(request.body)
        elif request.path == "/_release":
            self.released.set()
            self.released = threading.Event()
        elif request.path == "/_requests":
            return Reply(body=self.requests)
        return Reply(body=self.state)

    def take(self, name: str, default: Any) -> Any:
        """A setting for as many requests as `<name>_times` says; for ever when it says nothing."""
        value, times = self.state.get(name, default), self.state.get(f"{name}_times")
        if times is None or value == default:
            return value
        self.state[f"{name}_times"] = times - 1
        if times <= 1:
            self.state[name] = default
            self.state.pop(f"{name}_times")
        return value if times > 0 else default


def run(make: Callable[[argparse.Namespace], App], add_arguments: Callable[[argparse.ArgumentParser], None]) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    add_arguments(parser)
    options = parser.parse_args()
    app = make(options)
    server = _Server(("127.0.0.1", options.port), _handler(app))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("port", server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # that a line broke is nothing to tell


def _handler(app: App) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            request = self.read()
            steering = request.path.startswith("/_")
            with app.lock:
                if not steering:
                    app.requests.append(vars(request))
                reply = app.steer(request) if steering else app.handle(request)
                released = app.released
            time.sleep(reply.slow)
            if reply.then == "die":
                os._exit(1)
            if reply.then == "hang":
                released.wait()
            if reply.then == "reset":
                self.connection.setsockopt(1, 13, b"\x01\0\0\0\0\0\0\0")  # SO_LINGER of nothing: close sends RST
                self.close_connection = True
                self.connection.close()
                return
            if self.write(reply) and not steering:
                app.answered(request)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer

        def read(self) -> Request:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                body = json.loads(raw) if raw else None
            except ValueError:
                body = raw.decode("utf-8", "replace")
            headers = {name.lower(): value for name, value in self.headers.items()}
            return Request(self.command, self.path, headers, body)

        def write(self, reply: Reply) -> bool:
            content = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)
                return True
            except OSError:
                self.close_connection = True  # whoever asked is gone
                return False

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
