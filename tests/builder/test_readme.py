"""What the README says about settings, commands and files is true."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def read_from_the_environment() -> set[str]:
    """Names of variables in the product's own code; those of tests and failpoints are told where they belong."""
    names: set[str] = set()
    for package in ("builder", "runtime"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            names |= set(re.findall(r"""env(?:iron)?\.\w+\(\s*["']([A-Z][A-Z_]+)["']""", text))
            names |= set(re.findall(r"""os\.environ\[["']([A-Z][A-Z_]+)["']\]""", text))
    return names - {"HOLDFAST_FAILPOINT", "HOLDFAST_FAILPOINTS_PASSED", "HOLDFAST_CLUSTER", "HOLDFAST_CODE_VERSION", "DJANGO_SETTINGS_MODULE"}


def test_every_setting_is_in_the_readme():
    missing = {name for name in read_from_the_environment() if f"`{name}`" not in README}
    assert not missing


def test_every_setting_in_the_readme_exists():
    named = set(re.findall(r"`((?:HOLDFAST_)[A-Z_]+)`", README))
    code = "".join(path.read_text() for package in ("builder", "runtime") for path in (ROOT / package).rglob("*.py"))
    assert {name for name in named if name not in code} == set()


def test_files_and_commands_of_the_readme_exist():
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README):
        assert (ROOT / link).exists(), link
    for command in set(re.findall(r"manage\.py (\w+)", README)) - {"check"}:
        places = [ROOT / package / "management" / "commands" / f"{command}.py" for package in ("builder", "runtime")]
        assert any(place.exists() for place in places), command
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"up", "chaos"} <= set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= targets


def test_files_that_a_readme_names_exist():
    places = ("builder", "runtime", "static", "templates", "tests")
    files = {"/manage.py", *(f"/{path.relative_to(ROOT)}" for place in places for path in (ROOT / place).rglob("*.*"))}
    readmes = [ROOT / "README.md", *(path for place in places for path in (ROOT / place).rglob("README.md"))]
    named = {name for path in readmes for name in re.findall(r"`([\w/]+\.(?:py|js|sql|html))\b", path.read_text())}
    assert len(named) > 100
    assert {name for name in named if not any(file.endswith(f"/{name}") for file in files)} == set()


def test_every_module_is_told_of_in_its_readme():
    """What stands beside it in Django's own way needs no word."""
    for package, parts in (("builder", ("", "editing/", "dataflow/", "forms/")), ("runtime", ("",))):
        told = (ROOT / package / "README.md").read_text()
        modules = {path.name for part in parts for path in (ROOT / package / part).glob("*.py")} - {"__init__.py", "apps.py", "wsgi.py"}
        assert {name for name in modules if f"{name}`" not in told} == set(), package


def test_every_test_of_the_asvs_table_exists():
    """`b/test_x.py::test_y`, another of the same file as `::test_z`, and a whole file with (all) behind it."""
    table, folders, seen = (ROOT / "tests" / "ASVS.md").read_text(), {"b": "builder", "r": "runtime", "e": "e2e"}, 0
    for row in table.splitlines():
        path = None
        for folder, file, name in re.findall(r"`(?:([bre])/(test_\w+\.py))?(?:::(test_\w+))?`", row):
            path = ROOT / "tests" / folders[folder] / file if folder else path
            if path is None or not (file or name):
                continue
            seen += 1
            assert path.exists() and (not name or re.search(rf"\n *def {name}\(", path.read_text())), f"{path} {name}"
    assert seen > 80


def test_every_bad_input_of_the_tests_readme_has_its_test():
    table = (ROOT / "tests" / "README.md").read_text().partition("## Bad inputs")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith(("| **", "| input "))]
    assert len(rows) > 55
    for row in rows:
        path, name = re.search(r"`([^`]+)::(test_\w+)` \|$", row).groups()
        assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text(), row
