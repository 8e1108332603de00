"""`make sbom`: what is installed to run Holdfast, as a CycloneDX 1.6 document (https://cyclonedx.org) on standard output.

The requirement file is the truth: it names every package with its version and the hashes of its files.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)", re.MULTILINE)


def bill(requirements: str, project: dict[str, Any]) -> dict[str, Any]:
    """The document. `project` is the table of that name in pyproject.toml."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "name": project["name"], "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [_component(found) for found in PACKAGE.finditer(requirements)],
    }  # fmt: skip


def _component(found: re.Match[str]) -> dict[str, Any]:
    name, version = re.sub(r"[-_.]+", "-", found["name"]).lower(), found["version"]
    hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", found["rest"])
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "hashes": [{"alg": "SHA-256", "content": content} for content in hashes],
    }


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    json.dump(bill((ROOT / "requirements.txt").read_text(), project), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
