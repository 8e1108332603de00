"""Forks worker processes that need not import anything any more: `python -m tests.runtime.zygote`.

One line of JSON in, one out. `{"do": "spawn", "env": {}, "settings": {}, "log": path}` -> `{"pid"}`;
`{"do": "status", "pid"}` -> `{"status"}`: null while it runs, else its exit code, negative for a signal.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys

import django

django.setup()

from django.conf import settings  # noqa: E402

from builder.supervisor import dies_with_parent  # noqa: E402
from runtime import failpoints  # noqa: E402
from runtime.worker import Worker  # noqa: E402


def main() -> None:
    ended: dict[int, int] = {}
    die_with_me = dies_with_parent(signal.SIGKILL)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "spawn":
            pid = os.fork()
            if pid == 0:
                die_with_me()
                work(order)
            answer = {"pid": pid}
        else:
            pid = order["pid"]
            if pid not in ended:
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    ended[pid] = os.waitstatus_to_exitcode(status)
            answer = {"status": ended.get(pid)}
        print(json.dumps(answer), flush=True)


def work(order: dict) -> None:
    code = 1
    try:
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, target)
        os.environ.update(order["env"])
        importlib.reload(failpoints)
        for name, value in order["settings"].items():
            setattr(settings, name, value)
        if order.get("sockets"):
            settings.DATABASES["default"]["HOST"] = order["sockets"]
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(True))
        asyncio.run(Worker(lambda: bool(told), cluster=order["cluster"]).run())
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
