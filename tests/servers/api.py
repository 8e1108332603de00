"""An API as others have: lists in pages of each kind, tokens that end, answers that are large, and refusals, all by the path."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, parse_qsl, urlsplit


class Server:
    """Answers by path; `seen` holds (method, path with query, headers, body), `busy` how often a query is refused at first."""

    def __init__(self):
        self.seen, self.tokens, self.refuse, self.lives, self.in_form = [], 0, set(), 3600, False
        self.busy: dict[str, int] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append((self.command, self.path, dict(self.headers), body))
                status, given, headers = outer.answer(self.command, urlsplit(self.path), self.headers, body)
                data = given if isinstance(given, bytes) else json.dumps(given).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_OPTIONS = answer

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, method, parts, headers, body):
        query = dict(parse_qsl(parts.query))
        if self.busy.get(parts.query, 0):
            self.busy[parts.query] -= 1
            return 503, {}, {"Retry-After": "0"}
        if parts.path == "/token":
            self.tokens += 1
            wrong = headers.get("Authorization") != "Basic aG9sZGZhc3Q6czNjcmV0JTJGeA=="
            if self.in_form:
                wrong = parse_qs(body.decode()).get("client_secret") != ["s3cret/x"]
            return (401 if wrong else 200), {"access_token": f"token-{self.tokens}", "expires_in": self.lives}, {}
        if parts.path == "/secret":
            good = headers.get("Authorization", "") not in self.refuse and headers.get("Authorization", "").startswith("Bearer token-")
            return (200 if good else 401), {"ok": good}, {}
        if parts.path == "/big":
            return 201, b"x" * (2 << 20), {"Content-Type": "text/plain"}
        if parts.path in ("/list", "/linked"):
            first = 0 if "from_zero" in query else 1
            start = int(query.get("offset", 2 * (int(query.get("page", first)) - first) or query.get("cursor", 0)))
            items = list(range(5))[start : start + 2]
            onward = start + 2 if start + 2 < 5 else None
            link = {"Link": f'</linked?offset={onward}>; rel="next", </>; rel="first"'} if onward else {}
            cursor = {} if onward is None and "sparing" in query else {"next_cursor": onward}
            return 200, {"items": items, **cursor, "foreign": "https://elsewhere.example/"}, link
        return 200, {"ok": query.get("ok") != "no"}, {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()
