"""A name server on loopback that answers the same question differently each time, with nothing to be kept: what an attacker runs
who wants one address to be checked and another one to be connected.

    with Dns({"rebind.example": [["127.0.0.2"], ["127.0.0.1"]]}) as dns:
        dns.asked  # ["rebind.example A", ...]

The last answer of a name is given from then on; unknown names do not exist. It is on port 53 of an address of its own.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from ipaddress import ip_address
from typing import Self

ADDRESS = "127.0.0.53"
TYPES = {1: "A", 28: "AAAA"}


class Dns:
    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self.answers, self.asked = answers, []

    def __enter__(self) -> Self:
        self._server = socketserver.ThreadingUDPServer((ADDRESS, 53), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                data, sock = self.request
                sock.sendto(outer.answer(data), self.client_address)

        return Handler

    def answer(self, query: bytes) -> bytes:
        """RFC 1035: the question again, and the addresses that it is the turn of."""
        name, end = _name(query, 12)
        (kind,) = struct.unpack(">H", query[end : end + 2])
        known = self.answers.get(name.lower())
        self.asked.append(f"{name} {TYPES.get(kind, kind)}")
        found = [ip_address(one) for one in (known[0] if known else [])]
        records = [one.packed for one in found if {1: 4, 28: 6}.get(kind) == one.version]
        if known and kind == 1 and len(known) > 1:
            known.pop(0)
        head = query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, len(records), 0, 0)
        body = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed for packed in records)
        return head + query[12 : end + 4] + body


def _name(query: bytes, at: int) -> tuple[str, int]:
    labels: list[str] = []
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += length + 1
    return ".".join(labels), at + 1


def can_bind() -> bool:
    """Port 53 is for those who may."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((ADDRESS, 53))
        return True
    except OSError:
        return False


__all__ = ["ADDRESS", "Dns", "can_bind"]
