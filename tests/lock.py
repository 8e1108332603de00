"""`make lock`: the requirement files, pinned with the hashes of every platform's files, from pyproject.toml.

One file serves Python 3.11 to 3.14 on Linux and macOS: what differs carries a marker. No index address is written.
The application's pins bind the tests' file, which adds to them and repeats none. The measurements' peers live apart.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# True wherever we resolve for (`tool.uv.environments`); elsewhere a missing package shall fail, not be passed over.
EVERYWHERE = {
    "python_full_version < '3.15'",
    "implementation_name == 'cpython'",
    "platform_python_implementation == 'CPython'",
    "(sys_platform == 'darwin' or sys_platform == 'linux')",
}
HEADER = "# Written by `make lock` from pyproject.toml. Install with --no-deps --require-hashes.\n"


def main(options: list[str]) -> None:
    project = ["pyproject.toml", "--extra", "model"]
    application = compiled(ROOT / "requirements.txt", [*project, *options])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.write("\n".join(application))
        pins.flush()
        everything = compiled(
            ROOT / "tests" / "requirements.txt", [*project, "--group", "test", "-c", pins.name, *options]
        )
    peers = compiled(ROOT / "tests" / "bench" / "requirements.txt", ["--group", "pyproject.toml:bench", *options])
    added = {name: entry for name, entry in everything.items() if name not in application}
    write(ROOT / "requirements.txt", application)
    write(ROOT / "tests" / "requirements.txt", added)
    write(ROOT / "tests" / "bench" / "requirements.txt", peers)


def compiled(current: Path, options: list[str]) -> dict[str, str]:
    """What uv resolves, as `{"name==version ; marker": entry with its hashes}`; `current` gives the preferred versions."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        output.write_text(current.read_text() if current.exists() else "")
        command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet"]
        command += ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate"]
        subprocess.run([*command, *options, "--output-file", str(output)], cwd=ROOT, check=True)
        entries = re.findall(r"^([a-zA-Z0-9].*?) \\\n((?:[ ]+--hash.*\n?)+)", output.read_text(), re.MULTILINE)
    return {(name := with_marker_shortened(pin)): f"{name} \\\n{hashes.rstrip()}\n" for pin, hashes in entries}


def with_marker_shortened(pin: str) -> str:
    name, _, marker = pin.partition(" ; ")
    clauses = [clause for clause in marker.split(" and ") if clause and clause not in EVERYWHERE]
    return f"{name} ; {' and '.join(clauses)}" if clauses else name


def write(path: Path, entries: dict[str, str]) -> None:
    path.write_text(HEADER + "".join(entries.values()))
    print(f"{path.relative_to(ROOT)}: {len(entries)} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
