"""Between a worker and Postgres, on a socket of its own: cuts the line where it hurts.

    with PostgresProxy(folder, "/tmp/holdfast-x") as proxy:
        proxy.cut_after_commit(3)

The third COMMIT from now on reaches the server, which obeys; the client's line is cut before the reply.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Self

NAME = ".s.PGSQL.5432"
COMMIT = b"COMMIT\x00"


class Gate:
    """Listens on a socket in `folder`, before the one in the folder `server`; whoever comes is served by a thread of his own."""

    def __init__(self, folder: Path, server: str):
        self.folder, self._server = folder, f"{server}/{NAME}"
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        self._listener.bind(str(self.folder / NAME))
        self._listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        raise NotImplementedError


class PostgresProxy(Gate):
    def __init__(self, folder: Path, server: str):
        super().__init__(folder, server)
        self._lock = threading.Lock()
        self._left: int | None = None
        self.cuts = 0

    def cut_after_commit(self, nth: int = 1) -> None:
        with self._lock:
            self._left = nth

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._server)
        except OSError:  # Postgres is away
            client.close()
            return
        threading.Thread(target=self._up, args=(client, server), daemon=True).start()
        self._down(client, server)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 16):
                if COMMIT in data and self._is_time():
                    client.shutdown(socket.SHUT_RDWR)  # before the server hears it: no reply can slip through
                    server.sendall(data)
                    self.cuts += 1
                    break
                server.sendall(data)
        except OSError:
            pass
        try:
            server.shutdown(socket.SHUT_WR)  # or the server would keep the session, and its locks, for nobody
        except OSError:
            pass

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        open = True
        try:
            while data := server.recv(1 << 16):
                try:
                    if open:
                        client.sendall(data)
                except OSError:
                    open = False  # the server goes on talking to nobody, and ends its work
        except OSError:
            pass
        for line in (client, server):
            _hang_up(line)

    def _is_time(self) -> bool:
        with self._lock:
            if self._left is None:
                return False
            self._left -= 1
            if self._left:
                return False
            self._left = None
            return True


def _hang_up(line: socket.socket) -> None:
    """Closing alone tells the other end nothing for as long as another thread reads from the line."""
    try:
        line.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has been told
    line.close()
