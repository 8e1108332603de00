"""A pooler in transaction mode between clients and Postgres, on a socket of its own: each transaction gets the session that has
rested longest, as by a pooler that knows nothing of prepared statements. What a client leaves in a session, another one finds.

    with TransactionPooler(folder, "/tmp/holdfast-x", sessions=3) as pooler: ...

By the PostgreSQL manual, "Frontend/Backend Protocol", version 3.0. Whoever asks for TLS is told that there is none.
"""

from __future__ import annotations

import queue
import select
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.servers.pgproxy import Gate

NO_TLS = (80877103, 80877104)
"""The codes of a client that asks for TLS or GSSAPI first."""
SYNCED = b"SQ"
"""Messages that the server answers with ReadyForQuery (Z), which says whether it is idle (I) or in a transaction."""


class Line:
    """One end of a connection, by whole messages."""

    def __init__(self, end: socket.socket):
        self.end = end
        self._left = b""

    def hear(self) -> None:
        """Take what has come, or wait for it. Raises OSError at the end."""
        data = self.end.recv(1 << 16)
        if not data:
            raise OSError("the line has ended")
        self._left += data

    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """The type of each message that is here, and all of it."""
        while len(self._left) >= 5 and len(self._left) > (length := struct.unpack("!i", self._left[1:5])[0]):
            message, self._left = self._left[: length + 1], self._left[length + 1 :]
            yield message[:1], message

    def start(self) -> bytes:
        """The first message, which has no type."""
        while len(self._left) < 8 or len(self._left) < struct.unpack("!i", self._left[:4])[0]:
            self.hear()
        length = struct.unpack("!i", self._left[:4])[0]
        message, self._left = self._left[:length], self._left[length:]
        return message


class TransactionPooler(Gate):
    """`moved` counts transactions that got another session than their client's last."""

    def __init__(self, folder: Path, server: str, sessions: int):
        super().__init__(folder, server)
        self._sessions = sessions
        self._resting: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self._start, self._greeting = b"", b""
        self._opening = threading.Lock()
        self.moved = 0

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        for _ in range(self._sessions if self._greeting else 0):
            self._resting.get(timeout=60).end.close()

    def _serve(self, end: socket.socket) -> None:
        client = Line(end)
        try:
            while struct.unpack("!i", (start := client.start())[4:8])[0] in NO_TLS:
                end.sendall(b"N")
            with self._opening:
                if not self._greeting:
                    self._start = start
                    for _ in range(self._sessions):
                        self._resting.put(self._session())
            end.sendall(self._greeting)
            last = None
            while True:
                client.hear()
                server = self._resting.get()
                self.moved += last not in (None, server)
                last = server
                try:
                    self._transaction(client, server)
                except OSError:  # in the middle of it: nobody may go on there
                    server.end.close()
                    server = self._session()
                    raise
                finally:
                    self._resting.put(server)
        except OSError:
            end.close()

    def _session(self) -> Line:
        """With what the first client said of itself; what the server answers to that greets every client."""
        server, greeting, kind = Line(socket.socket(socket.AF_UNIX)), b"", b""
        server.end.connect(self._server)
        server.end.sendall(self._start)
        while kind != b"Z":
            server.hear()
            for kind, message in server.messages():
                greeting += message
        self._greeting = greeting
        return server

    def _transaction(self, client: Line, server: Line) -> None:
        """Pass on what both say until the server is idle, owes no answer, and has heard all that it was to be told."""
        owed, heard_all, idle = 0, True, True
        while True:
            for kind, message in client.messages():
                if kind == b"X":
                    raise OSError("the client says farewell")
                server.end.sendall(message)
                heard_all = kind in SYNCED
                owed += heard_all
                idle = False
            if idle and heard_all and not owed:
                return
            for line in select.select([client.end, server.end], [], [])[0]:
                (client if line is client.end else server).hear()
            for kind, message in server.messages():
                client.end.sendall(message)
                if kind == b"Z":
                    owed, idle = owed - 1, message[5:6] == b"I"
