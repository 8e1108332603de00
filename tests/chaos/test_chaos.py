"""Two minutes of every fault at once. What it prints is the report, and the line that repeats it."""

from __future__ import annotations

import subprocess
import sys

from tests.e2e.stack import ROOT


def test_two_minutes_of_every_fault_lose_and_repeat_nothing(tmp_path):
    attack = [sys.executable, "-m", "tests.chaos", "--minutes", "2", "--kills", "20", "--folder", str(tmp_path / "chaos")]
    done = subprocess.run(attack, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-8000:]
