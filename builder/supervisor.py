"""The processes that `manage.py up` keeps alive: started, watched, started again when they die, stopped in order."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Protocol

LOOK_EVERY_SECONDS = 0.2
DEATHS_ALLOWED, DEATHS_WINDOW_SECONDS = 5, 60
LONGEST_PAUSE_SECONDS = 8.0


class Interrupted(BaseException):
    """Somebody asked for the end: Ctrl-C, SIGTERM, or the terminal went away."""


class Refused(Exception):
    """Holdfast cannot start; the text is the one line that says why and what to do."""


class GaveUp(Exception):
    """A process cannot be kept alive; the text is one line that says which."""


class Kept(Protocol):
    """What the supervisor keeps alive. Without a vital one there is no point in going on; the others are started again and again."""

    name: str
    vital: bool

    def start(self) -> None: ...

    def exit_status(self) -> int | None:
        """None while it runs; else its exit code, negative for a signal."""


class Child:
    """A program in a session of its own, so that Ctrl-C in the terminal reaches the supervisor alone."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = (), vital: bool = True
    ) -> None:
        self.name, self.command, self.env, self.pass_fds, self.vital = name, command, env, pass_fds, vital
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            env=self.env,
            pass_fds=self.pass_fds,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=dies_with_parent(signal.SIGTERM),
        )

    def exit_status(self) -> int | None:
        assert self.process is not None, "it was never started"
        return self.process.poll()

    def ask_to_stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def kill_all(self) -> None:
        """Ends what is left of its session: children of a process that died outlive it."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()


class Deaths:
    """How often a process died lately, and so how long to wait before it is started again."""

    def __init__(self) -> None:
        self.times: deque[float] = deque()

    def count(self, now: float) -> int:
        """Counts one more; the result includes it."""
        self.times.append(now)
        while now - self.times[0] > DEATHS_WINDOW_SECONDS:
            self.times.popleft()
        return len(self.times)


def keep_alive(kept: Sequence[Kept], say: Callable[[str], None]) -> None:
    """Never returns: `Interrupted` or `GaveUp` ends it."""
    deaths = {one.name: Deaths() for one in kept}
    while True:
        for one in kept:
            status = one.exit_status()
            if status is not None:
                revive(one, status, deaths[one.name].count(time.monotonic()), say)
        time.sleep(LOOK_EVERY_SECONDS)


def revive(one: Kept, status: int, deaths: int, say: Callable[[str], None]) -> None:
    if deaths > DEATHS_ALLOWED and one.vital:
        raise GaveUp(f"{one.name} stopped {deaths} times within {DEATHS_WINDOW_SECONDS} s; the last time {how(status)}.")
    say(f"{one.name} stopped unexpectedly ({how(status)}); starting again.")
    if isinstance(one, Child):
        one.kill_all()
    time.sleep(pause(deaths))
    one.start()


def pause(deaths: int) -> float:
    """Seconds before the next start, by how often it died within the window."""
    return 0 if deaths == 1 else min(2.0 ** (deaths - 2), LONGEST_PAUSE_SECONDS)


def stop(children: Sequence[Child], seconds: float, hurry: Callable[[], bool]) -> None:
    """All at once: asked, waited for at most `seconds` (no longer when `hurry` says so), then killed."""
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + seconds
    while any(child.process and child.process.poll() is None for child in children):
        if time.monotonic() > deadline or hurry():
            break
        time.sleep(0.05)
    for child in children:
        child.kill_all()


class Interrupts:
    """The first signal raises `Interrupted` where the program stands; later ones, during the stop, only hurry it."""

    def __init__(self) -> None:
        self.stopping = self.hurried = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup keeps its word
                signal.signal(number, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:
            self.hurried = True
            return
        self.stopping = True
        raise Interrupted


def dies_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: on Linux the program gets this signal when its parent dies, of kill -9 too. Elsewhere it does not."""
    parent = os.getpid()

    def ask_kernel() -> None:
        if sys.platform == "linux":
            PR_SET_PDEATHSIG = 1
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
            if os.getppid() != parent:  # it died before the kernel was asked
                os.kill(os.getpid(), number)

    return ask_kernel


def how(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
