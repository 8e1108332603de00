"""A mail server that keeps what it takes.

    with SmtpServer() as smtp:
        settings.HOLDFAST_EMAIL = smtp.options
        smtp.wait(1)[0]["message"]["Subject"]

By the recipient's local part: `refused@` is refused for good (550), `later@` for now (451); the rest is taken. Whoever
is in `drops` gets the line cut after the message was taken: the sender cannot know that it was. With an event in `held`
messages are taken and the word for it is held back until the event is set.
Alone: `python -m tests.servers.smtp --port 0` prints the port, then one line of JSON per message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import socket
import threading
import time
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, Self, TypedDict

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

logging.getLogger("mail.log").setLevel(logging.ERROR)


class Taken(TypedDict):
    sender: str
    recipients: list[str]
    message: EmailMessage


class Handler:
    def __init__(self) -> None:
        self.taken: list[Taken] = []
        self.refusals: dict[str, str] = {"refused": "550 No such user here", "later": "451 Try again later"}
        self.drops: set[str] = set()
        self.held: threading.Event | None = None

    async def handle_RCPT(self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        refusal = self.refusals.get(address.partition("@")[0])
        if refusal:
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        message = message_from_bytes(envelope.content, policy=default)
        self.taken.append({"sender": envelope.mail_from, "recipients": envelope.rcpt_tos, "message": message})
        while self.held is not None and not self.held.is_set():
            await asyncio.sleep(0.01)
        if self.drops.intersection(envelope.rcpt_tos):
            server.transport.abort()
        return "250 Taken"


class SmtpServer:
    """In a thread of this process."""

    def __init__(self, port: int = 0):
        self.handler = Handler()
        self._controller = Controller(self.handler, hostname="127.0.0.1", port=port or _free_port())

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._controller.stop()

    @property
    def port(self) -> int:
        return self._controller.port

    @property
    def url(self) -> str:
        """For EMAIL_URL."""
        return f"smtp://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """For settings.HOLDFAST_EMAIL."""
        return {
            "host": "127.0.0.1", "port": self.port, "username": "", "password": "", "timeout": 5.0,
            "use_tls": False, "use_ssl": False,
        }  # fmt: skip

    @property
    def taken(self) -> list[Taken]:
        return self.handler.taken

    def wait(self, count: int, seconds: float = 20) -> list[Taken]:
        """What was taken, once it is so many."""
        ends = time.monotonic() + seconds
        while len(self.taken) < count:
            if time.monotonic() > ends:
                raise TimeoutError(f"{len(self.taken)} of {count} mails came within {seconds} s.")
            time.sleep(0.02)
        return self.taken


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    with SmtpServer(parser.parse_args().port) as server:
        print("port", server.port, flush=True)
        told = 0
        while True:
            for one in server.taken[told:]:
                print(json.dumps({**one, "message": one["message"].as_string()}), flush=True)
                told += 1
            time.sleep(0.1)


if __name__ == "__main__":
    main()
