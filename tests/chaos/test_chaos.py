"""A short attack, as `make chaos` makes a long one: nothing is lost, done twice, stuck, or moved where it must not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SECONDS = 800


def test_random_programs_survive_a_minute_of_every_fault():
    command = [sys.executable, "-m", "tests.chaos", "--seed", "7", "--minutes", "1.2", "--kills", "24"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-4000:]}"
