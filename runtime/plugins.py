"""What others add to the palette: installed packages by an entry point, and, while one is being written, named modules."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any


def added(group: str, name: str) -> list[Any]:
    """What installed packages have under the entry point `group`, then what the modules of `HOLDFAST_STEP_MODULES` call
    `name`, or several of them in a list whose name is the plural."""
    found = [point.load() for point in entry_points(group=group)]
    for module in filter(None, os.environ.get("HOLDFAST_STEP_MODULES", "").replace(" ", "").split(",")):
        given = vars(import_module(module))
        found += given.get(f"{name}S") or ([given[name]] if name in given else [])
    return found
