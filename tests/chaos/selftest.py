"""`make chaos-selftest`: every build that is broken on purpose, and whether the harness finds it out.

Exit status 1 when one of them is not found out, or not for what is wrong with it.
"""

from __future__ import annotations

import subprocess
import sys

from tests.chaos.__main__ import BREACHED
from tests.chaos.broken import BROKEN, Broken

MINUTES, KILLS = "0.8", "16"
SEEDS = ("7", "8", "9")
"""One after the other until it is found out: some builds do wrong only where a worker is stopped at the right moment, which a run
as short as this meets once or twice, or not at all."""


def main() -> None:
    names = sys.argv[1:] or list(BROKEN)
    missed = [name for name in names if not found_out(name, BROKEN[name])]
    print(f"{len(names) - len(missed)} of {len(names)} broken builds were found out.")
    sys.exit(f"Not found out: {', '.join(missed)}" if missed else 0)


def found_out(name: str, broken: Broken) -> bool:
    print(f"{name}: {broken.what}", flush=True)
    return any(found_with(seed, name, broken) for seed in SEEDS)


def found_with(seed: str, name: str, broken: Broken) -> bool:
    command = ["-m", "tests.chaos", "--broken", name, "--seed", seed, "--minutes", MINUTES, "--kills", KILLS]
    ended = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    told = [line for line in ended.stdout.splitlines() if any(words in line for words in broken.caught)]
    found = ended.returncode == BREACHED and bool(told)
    if found:
        print(f"  found out: {told[0][:200]}" + (f" (and {len(told) - 1} like it)" if told[1:] else ""), flush=True)
    else:
        print(f"  NOT FOUND OUT (exit status {ended.returncode}):\n{ended.stdout}", flush=True)
    return found


if __name__ == "__main__":
    main()
