"""`manage.py up` with real processes: it starts from nothing, stops cleanly, starts again, and refuses in one line."""

from __future__ import annotations

import http.client
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"^Started in ([\d.]+) s\. Open (http://\S+)", re.MULTILINE)
PATIENCE_SECONDS = 120  # a fresh start on a busy machine; nothing waits that long when it works


class Up:
    """One `manage.py up` on a folder and port, its output read as it comes."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.env = {"PATH": os.environ["PATH"], "HOLDFAST_DATA": str(folder), "PORT": str(self.port), **variables}
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def wait_for(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        """Reads until the output shows it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(pattern, self.output)):
            assert time.monotonic() < deadline, f"never said {pattern!r}:\n{self.output}"
            assert self.read() or re.search(pattern, self.output), f"ended without {pattern!r}:\n{self.output}"
        return found

    def read(self) -> bool:
        """What is there now; False at the end."""
        readable, _, _ = select.select([self.process.stdout], [], [], 1)
        if not readable:
            return True
        piece = os.read(self.process.stdout.fileno(), 65536)
        self.output += piece.decode()
        return bool(piece)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.output += self.process.communicate(timeout=PATIENCE_SECONDS)[0].decode()
        return self.process.returncode

    def get(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command beside the running Holdfast, as an operator would type it."""
        return subprocess.run([sys.executable, "manage.py", *words], cwd=ROOT, env=self.env, capture_output=True, text=True)

    def processes(self, word: str = "") -> list[psutil.Process]:
        """All that belongs to this folder, found by what the processes themselves show."""
        return [found for found in psutil.process_iter() if belongs_to(found, self.folder) and word in command(found)]


def belongs_to(process: psutil.Process, folder: Path) -> bool:
    try:
        return str(folder) in command(process) or process.environ().get("HOLDFAST_DATA") == str(folder)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return ""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def first() -> Iterator[Up]:
    """The first start on an empty folder, kept running while the tests of it look at it."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-up-"))
    folder.chmod(0o711)
    up = Up(folder)
    try:
        up.wait_for(READY)
        yield up
    finally:
        if up.process.poll() is None:
            up.end(signal.SIGTERM)
        shutil.rmtree(folder)


@pytest.fixture
def again(first: Up) -> Iterator[type]:
    """Starts on the same folder, one at a time, ended at the latest with the test."""
    started: list[Up] = []

    def start(**variables: str) -> Up:
        started.append(Up(first.folder, **variables))
        return started[-1]

    yield start
    for up in started:
        if up.process.poll() is None:
            up.end(signal.SIGTERM)


class TestFirstStart:
    def test_every_stage_says_what_came_of_it(self, first):
        for told in ("Database .* Postgres 18", r"Tables .* \d+ migrations applied", "Static files .* collected"):
            assert re.search(told, first.output), first.output
        assert first.output.count("shown only now") == 1
        assert READY.search(first.output)[2] == f"http://127.0.0.1:{first.port}/"

    def test_pages_and_static_files_are_served_without_debug(self, first):
        assert first.get("/login/") == 200
        assert first.get("/static/nothing.css") == 404
        assert first.manage("shell", "-c", "from django.conf import settings; assert not settings.DEBUG").returncode == 0

    def test_an_answer_to_head_ends_with_its_headers(self, first):
        for path in ("/login/", "/hooks/nobody-listens-here/", "/static/nothing.css"):
            with socket.create_connection(("127.0.0.1", first.port), timeout=30) as client, client.makefile("rb") as answer:
                client.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                head, end, body = answer.read().partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 ") and b"Content-Length: " in head and end and not body

    def test_clients_that_send_a_byte_at_a_time_keep_nobody_waiting(self, first):
        heads = [b"GET /login/ HT", b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\na"]
        slow = [socket.create_connection(("127.0.0.1", first.port)) for _ in range(60)]
        try:
            for number, client in enumerate(slow):
                client.sendall(heads[number % 2])
            assert first.get("/login/") == 200
        finally:
            for client in slow:
                client.close()

    def test_a_command_beside_it_finds_the_database(self, first):
        done = first.manage("showmigrations", "builder")
        assert done.returncode == 0, done.stderr

    def test_keys_and_the_databases_address_are_for_their_owner_only(self, first):
        for name in ("secret_key", "credential_keys", "database_url"):
            assert (first.folder / name).stat().st_mode & 0o077 == 0

    def test_a_second_one_on_the_same_folder_is_told_where_the_first_is(self, first):
        second = Up(first.folder)
        assert second.process.wait(PATIENCE_SECONDS) == 1
        second.read()
        assert f"Holdfast already runs on {first.folder}: process {first.process.pid}" in second.output
        assert f"http://127.0.0.1:{first.port}/" in second.output
        assert first.process.poll() is None


class TestLaterStarts:
    def test_ctrl_c_stops_everything_and_the_next_start_makes_nothing_anew(self, first, again):
        if first.process.poll() is None:
            assert first.end(signal.SIGINT) == 0
        assert first.processes() == []
        assert not (first.folder / "database_url").exists()

        second = again()
        second.wait_for(READY)
        assert "up to date" in second.output and "shown only now" not in second.output
        assert second.get("/login/") == 200
        assert second.end(signal.SIGTERM) == 0
        assert second.processes() == []

    def test_a_dead_child_is_started_again(self, first, again):
        stop_first(first)
        up = again()
        up.wait_for(READY)
        for name, word in (("Web server .", "serve"), ("Workers", "qcluster"), ("Database", "postgres -D")):
            leader = next(one for one in up.processes(word) if one.ppid() == up.process.pid)
            leader.kill()
            up.wait_for(f"{name} stopped unexpectedly \\(signal SIGKILL\\); starting again")
        assert up.get("/login/") == 200
        assert up.end(signal.SIGINT) == 0
        assert up.processes() == []

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
    def test_killed_outright_it_leaves_nobody_behind_and_starts_again(self, first, again):
        stop_first(first)
        up = again()
        up.wait_for(READY)
        family = up.processes()
        up.process.kill()
        assert psutil.wait_procs(family, timeout=PATIENCE_SECONDS)[1] == []

        after = again()
        after.wait_for(READY)
        assert after.get("/login/") == 200


def stop_first(first: Up) -> None:
    if first.process.poll() is None:
        first.end(signal.SIGTERM)


@pytest.fixture
def empty_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-up-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def refused(folder: Path, **variables: str) -> str:
    """The one line with which a start ends; nothing of it may be left running."""
    up = Up(folder, **variables)
    assert up.process.wait(PATIENCE_SECONDS) == 1
    while up.read():
        pass
    assert "Traceback" not in up.output
    assert up.processes() == []
    return up.output.strip().splitlines()[-1]


def test_a_taken_port_is_told_before_anything_is_made(empty_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(empty_folder, PORT=str(port))
    assert line == f"Holdfast: Port {port} is taken. Choose another one: PORT={port + 1} make up"
    assert not (empty_folder / "postgres").exists()


def test_a_database_that_cannot_be_reached_is_one_line_without_the_password(empty_folder):
    line = refused(empty_folder, DATABASE_URL=f"postgresql://someone:hush@127.0.0.1:{free_port()}/flows")
    assert line.startswith("Holdfast: DATABASE_URL: the database cannot be reached.")
    assert "hush" not in line


def test_data_of_another_postgres_is_left_alone(empty_folder):
    (empty_folder / "postgres").mkdir()
    (empty_folder / "postgres" / "PG_VERSION").write_text("15\n")
    assert "is of Postgres 15; this is 18" in refused(empty_folder)


def test_a_folder_with_a_file_in_the_databases_place_is_refused(empty_folder):
    (empty_folder / "postgres").write_text("mine")
    assert refused(empty_folder).startswith(f"Holdfast: The database's folder {empty_folder}/postgres cannot be used")
    assert (empty_folder / "postgres").read_text() == "mine"


MAKE_AN_ACCOUNT = """
from builder import postgres_account
postgres_account.ACCOUNT = "holdfast_tested"
input("Ready\\n")
print(postgres_account.unprivileged_account().pw_uid)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the database as somebody else")
def test_starts_at_once_on_a_new_machine_make_one_account():
    starts = [
        subprocess.Popen([sys.executable, "-c", MAKE_AN_ACCOUNT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(6)
    ]
    try:
        assert [start.stdout.readline() for start in starts] == ["Ready\n"] * 6
        for start in starts:
            start.stdin.write("go\n")
            start.stdin.flush()
        numbers = {start.communicate()[0].strip() for start in starts}
        assert numbers == {str(pwd.getpwnam("holdfast_tested").pw_uid)}
    finally:
        subprocess.run(["userdel", "holdfast_tested"], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the database as somebody else")
def test_a_private_folder_of_root_stays_private_and_the_database_lives_elsewhere():
    from builder.postgres import EmbeddedPostgres

    folder = Path(tempfile.mkdtemp(prefix="holdfast-private-"))  # mode 700
    try:
        with EmbeddedPostgres(folder / "postgres", folder / "postgres.log") as server:
            assert (folder / "postgres").is_symlink()
            home = server.data.parent
        assert folder.stat().st_mode & 0o077 == 0
    finally:
        shutil.rmtree(home)
        shutil.rmtree(folder)


def test_the_workers_stop_while_the_database_is_away(empty_folder):
    nowhere = f"postgresql://someone@127.0.0.1:{free_port()}/flows"
    env = {"PATH": os.environ["PATH"], "HOLDFAST_DATA": str(empty_folder), "DATABASE_URL": nowhere}
    command = [sys.executable, "manage.py", "qcluster"]
    with subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True) as cluster:
        assert any("reader: " in line for line in cluster.stderr)  # a worker has looked for it
        cluster.terminate()
        assert "stopping took too long" not in cluster.communicate(timeout=PATIENCE_SECONDS)[1]
        assert cluster.returncode == 0
