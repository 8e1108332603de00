"""A server that does what it should not, by the path that it is asked for. Raw sockets: no library corrects it.

`/plain` behaves. `/drip` sends a byte a second, `/endless` never stops, `/bomb` packs 200 MB into 200 KB, `/short` says
100 bytes and sends 10, `/headers` sends 2,000 of them, `/silent` never answers, `/reset` cuts the line after reading,
`/close` hangs up without a word, `/garbage` speaks no HTTP, `/redirect?to=URL` (and `&status=307`) sends elsewhere,
`/circle` to itself,
`/packed?as=br` names a packing that it does not do, `/members` is two gzip members, `/raw-deflate` and `/zlib-deflate`
are deflate in its two forms, `/cut-gzip` is gzip that ends early, `/cookie` sets one, `/status?code=500` is it,
`/error-drip` begins a 422 and drips, `/retry-after?value=…` is a 429 with it, `/text?type=…` has that Content-Type.
"""

from __future__ import annotations

import argparse
import gzip
import os
import socket
import socketserver
import struct
import sys
import threading
import time
import zlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .process import ServerProcess

BOMB = None
SEEN: list[str] = []


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        try:
            while self.one_request():
                pass
        except OSError:
            pass

    def one_request(self) -> bool:
        line = self.rfile.readline().decode("latin-1")
        if not line:
            return False
        self.headers = {}
        while (header := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.method, target, _ = line.split(" ", 2)
        parts = urlsplit(target)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        SEEN.append(f"{self.method} {target} {self.headers!r}")
        behave = getattr(self, "do_" + parts.path.strip("/").replace("-", "_"), self.do_plain)
        return behave() is not False

    def send(
        self, status: int = 200, headers: dict[str, str] | None = None, body: bytes = b"", length: int | None = None
    ) -> None:
        given = {"Content-Type": "text/plain", **(headers or {})}
        given["Content-Length"] = str(len(body) if length is None else length)
        head = f"HTTP/1.1 {status} Whatever\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.wfile.write(head.encode("latin-1") + b"\r\n" + body)

    def do_plain(self) -> None:
        self.send(body=b"plain")

    def do_seen(self) -> None:
        self.send(body="\n".join(SEEN).encode())

    def do_echo(self) -> None:
        self.send(body=repr(self.headers).encode())

    def do_drip(self) -> bool:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        return self.drip()

    def do_error_drip(self) -> bool:
        self.wfile.write(b"HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\n")
        return self.drip()

    def drip(self) -> bool:
        for _ in range(100):
            self.wfile.write(b".")
            time.sleep(1)
        return False

    def do_endless(self) -> bool:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            self.wfile.write(b"x" * 65536)

    def do_bomb(self) -> None:
        self.send(headers={"Content-Encoding": "gzip"}, body=bomb())

    def do_members(self) -> None:
        self.send(headers={"Content-Encoding": "gzip"}, body=gzip.compress(b"one ") + gzip.compress(b"two"))

    def do_cut_gzip(self) -> None:
        self.send(headers={"Content-Encoding": "gzip"}, body=gzip.compress(os.urandom(1000))[:500])

    def do_zlib_deflate(self) -> None:
        self.send(headers={"Content-Encoding": "deflate"}, body=zlib.compress(b"deflated"))

    def do_raw_deflate(self) -> None:
        packer = zlib.compressobj(wbits=-15)
        self.send(headers={"Content-Encoding": "deflate"}, body=packer.compress(b"deflated") + packer.flush())

    def do_packed(self) -> None:
        self.send(headers={"Content-Encoding": self.query["as"]}, body=b"whatever")

    def do_short(self) -> bool:
        self.send(body=b"only these", length=100)
        return False

    def do_headers(self) -> None:
        self.send(headers={f"X-{number}": "v" for number in range(2000)})

    def do_silent(self) -> bool:
        while self.rfile.read(1):
            pass
        return False

    def do_reset(self) -> bool:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        return False

    def do_close(self) -> bool:
        return False

    def do_garbage(self) -> bool:
        self.wfile.write(b"220 mail.example ESMTP\r\n\r\n")
        return False

    def do_redirect(self) -> None:
        self.send(int(self.query.get("status", 302)), {"Location": self.query["to"]})

    def do_circle(self) -> None:
        self.send(302, {"Location": "/circle"})

    def do_status(self) -> None:
        self.send(int(self.query["code"]), body=b"because")

    def do_retry_after(self) -> None:
        self.send(429, {"Retry-After": self.query["value"], "Date": "Wed, 21 Oct 2026 07:28:00 GMT"})

    def do_cookie(self) -> None:
        self.send(headers={"Set-Cookie": "session=secret; Path=/"}, body=b"set")

    def do_text(self) -> None:
        self.send(
            headers={"Content-Type": self.query["type"]},
            body=self.query.get("body", "").encode(self.query.get("charset", "utf-8")),
        )

    def do_json(self) -> None:
        self.send(
            headers={"Content-Type": "application/json"}, body=self.query["body"].encode("utf-8", "surrogatepass")
        )

    def do_binary(self) -> None:
        self.send(headers={"Content-Type": "image/png"}, body=b"\x89PNG\r\n\x1a\n\0\0\xff")

    def do_kept(self) -> bool:
        """Answers the first request of a connection, and hangs up when the second comes."""
        if getattr(self, "served", False):
            return False
        self.served = True
        self.send(body=b"first")
        return True


def bomb() -> bytes:
    """200 MB of zeros in about 200 KB of gzip."""
    global BOMB
    if BOMB is None:
        packer, parts = zlib.compressobj(9, wbits=31), []
        for _ in range(200):
            parts.append(packer.compress(bytes(1_000_000)))
        BOMB = b"".join(parts) + packer.flush()
    return BOMB


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address = True, True

    def handle_error(self, *args: Any) -> None:
        pass


class Misbehaving(ServerProcess):
    module = "tests.servers.misbehaving"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    server = Server(("127.0.0.1", parser.parse_args().port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("port", server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
