"""`manage.py up`: Holdfast with one command. A database, the web server and the workers, until Ctrl-C.

This process only starts, watches and stops the others, and never opens the database through Django: its children get the
database's address by their environment.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from builder.listening import listening_socket
from builder.postgres import MAJOR, EmbeddedPostgres
from builder.postgres_account import PostgresError
from builder.progress import stage
from builder.supervisor import Child, GaveUp, Interrupted, Interrupts, Refused, how, keep_alive, stop

READY_SECONDS = 60
ORPHANS_SECONDS = 30
STOP_MARGIN_SECONDS = 10  # beyond the grace that running steps get


class Command(BaseCommand):
    help = "Starts Holdfast: database, tables, web server and workers. Ctrl-C stops all of it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        interrupts = Interrupts()
        try:
            with ExitStack() as held:
                run(held, interrupts, started)
        except Interrupted:
            say("Stopped. `make up` goes on where it was.")
        except (Refused, GaveUp, PostgresError) as reason:
            sys.stdout.flush()
            sys.exit(f"Holdfast: {reason}")


def run(held: ExitStack, interrupts: Interrupts, started: float) -> None:
    """Starts everything in order and keeps it alive; `held` undoes it in the opposite order."""
    say("Starting Holdfast")
    held.enter_context(only_one())
    listener = held.enter_context(listening_socket())
    env = os.environ | {"PORT": str(settings.PORT), "PYTHONUNBUFFERED": "1"}
    kept: list[Any] = []
    if database_address := os.environ.get("DATABASE_URL", "").strip():
        with stage("Database") as told:
            told(reach(database_address))
    else:
        postgres = held.enter_context(embedded_database())
        env["DATABASE_URL"] = postgres.url()
        kept.append(postgres)
    prepare(env)

    web, cluster = web_servers(env, listener), workers(env)
    grace = settings.HOLDFAST_GRACE_SECONDS + STOP_MARGIN_SECONDS
    held.callback(lambda: stop([*web, cluster], grace, lambda: interrupts.hurried))
    with stage("Workers") as told:
        cluster.start()
        told(f"{settings.HOLDFAST_WORKERS} process{'es' if settings.HOLDFAST_WORKERS > 1 else ''}")
    with stage("Web server") as told:
        for child in web:
            child.start()
        told(wait_until_it_answers(web[0]))
    say(f"Started in {time.monotonic() - started:.1f} s. Open {settings.HOLDFAST_PUBLIC_URL}/   (Ctrl-C stops)")
    held.callback(lambda: say("\nStopping: running steps get a moment to finish."))
    keep_alive([*kept, *web, cluster], say)


@contextmanager
def only_one() -> Iterator[None]:
    """Held by a lock that ends with this process, however it ends; the file's text tells the second one about the first."""
    path = settings.HOLDFAST_DATA / "up.lock"
    try:
        file = path.open("a+")
    except OSError as error:
        raise Refused(f"The data folder {path.parent} cannot be used: {error.strerror}.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Refused(f"Holdfast already runs on {path.parent}: {file.read().strip()}.") from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, {settings.HOLDFAST_PUBLIC_URL}/")
        file.flush()
        yield


@contextmanager
def embedded_database() -> Iterator[KeptPostgres]:
    """Its address is in a file while it runs, for `manage.py` commands beside this one."""
    postgres = KeptPostgres(settings.HOLDFAST_DATA / "postgres", settings.HOLDFAST_DATA / "postgres.log")
    address: Path = settings.HOLDFAST_DATABASE_ADDRESS
    try:
        with stage("Database") as told:
            postgres.start()
            told(f"Postgres {MAJOR} in {postgres.data}")
        address.touch(mode=0o600)
        address.write_text(postgres.url())
        yield postgres
    finally:
        address.unlink(missing_ok=True)
        postgres.stop()


class KeptPostgres(EmbeddedPostgres):
    """The embedded server as the supervisor sees it: after a crash only the process is started again."""

    name, vital = "Database", True

    def start(self) -> None:
        if self.process is None:
            return super().start()
        deadline = time.monotonic() + ORPHANS_SECONDS
        while True:
            try:
                return self.launch()
            except PostgresError:  # sessions of the dead server may still hold its shared memory
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def exit_status(self) -> int | None:
        assert self.process is not None, "it was never started"
        return self.process.poll()


def reach(address: str) -> str:
    try:
        with psycopg.connect(address, connect_timeout=10) as connection:
            version = connection.info.server_version
            return f"Postgres {version // 10000} at {connection.info.host or 'DATABASE_URL'}"
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise Refused(f"DATABASE_URL: the database cannot be reached. {reason}") from None


def prepare(env: dict[str, str]) -> None:
    """In a process of its own, whose connections and memory end with it."""
    command = [sys.executable, "manage.py", "prepare"]
    done = subprocess.Popen(command, env=env, cwd=settings.BASE_DIR, start_new_session=True)
    try:
        status = done.wait()
    except BaseException:
        print()
        done.terminate()
        done.wait()
        raise
    if status:
        raise Refused("it could not be prepared; the reason stands above.")


def web_servers(env: dict[str, str], listener: socket.socket) -> list[Child]:
    """Processes that share one listening socket: whoever is free takes the next connection."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "serve", "--fd", str(listener.fileno())]
    numbers = range(1, settings.HOLDFAST_WEB_PROCESSES + 1)
    return [Child(f"Web server {number}", command, env, pass_fds=[listener.fileno()]) for number in numbers]


def workers(env: dict[str, str]) -> Child:
    """Not vital: while they crash, webhooks are still taken, and what they start waits in the database."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "qcluster"]
    return Child("Workers", command, env, vital=False)


def wait_until_it_answers(web: Child) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.HOLDFAST_BIND, settings.HOLDFAST_BIND)
    public_host = urlsplit(settings.HOLDFAST_PUBLIC_URL).netloc
    with socket.create_connection((host, settings.PORT)) as asking:  # taken by the system, until the server takes it
        asking.sendall(f"GET /readyz HTTP/1.1\r\nHost: {public_host}\r\nConnection: close\r\n\r\n".encode())
        for _ in range(READY_SECONDS * 5):
            answered, _, _ = select.select([asking], [], [], 0.2)
            if answered:
                break
            if (status := web.exit_status()) is not None:
                raise Refused(f"The web server did not start ({how(status)}); the reason stands above.")
        else:
            raise Refused(f"The web server did not answer within {READY_SECONDS} s.")
        status_line = asking.recv(200).decode(errors="replace").split("\r\n")[0]
    where = f"{settings.HOLDFAST_BIND}, port {settings.PORT}"
    return where if " 200 " in status_line else f"{where}, but /readyz answers {status_line or 'nothing'}"


def say(line: str) -> None:
    print(line, flush=True)
