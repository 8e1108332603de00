"""`make fuzz MINUTES=60`: the property tests of expressions, definitions and JSON, with many more examples, round after
round until the time is over or something is found. Every round has a seed of its own, which repeats it.

Options: minutes, and optionally a seed: `tests/fuzz.py 60 1234`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROPERTIES = ("tests/runtime/test_expressions_properties.py", "tests/runtime/test_jsonvalues.py", "tests/runtime/test_masking.py")
FACTOR = 20
"""How many times the examples of an ordinary test run (`tests.examples`) a round has."""


def main(minutes: float, seed: int | None) -> int:
    ends, rounds = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < ends:
        chosen = seed if seed is not None else random.randrange(2**32)
        print(f"round {rounds + 1}, seed {chosen}, {max(0, ends - time.monotonic()) / 60:.0f} minutes left", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--hypothesis-seed={chosen}", *PROPERTIES]
        if code := subprocess.run(command, cwd=ROOT, env=os.environ | {"HOLDFAST_FUZZ": str(FACTOR)}).returncode:
            print(f"Found something: make fuzz SEED={chosen} finds it again.")
            return code
        rounds += 1
    print(f"{rounds} rounds, nothing found.")
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
