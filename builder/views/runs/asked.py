"""What the address of a run page asks for, and addresses that differ from it in one thing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from django.http import QueryDict
from django.urls import reverse

from builder.runload import Wanted

MOST_OPENED = 20
TABS = ("input", "output", "attempts", "log")
LEVELS = ("warning", "error")
_SCOPE = re.compile(r"(.{1,600})\[(\d{0,8})\]")
_PAGE = re.compile(r"(.{1,600}):(\d{1,8})")


@dataclass(frozen=True, slots=True)
class Asked:
    """`step` is the path of the chosen line; `opened` and `pages` as in `Wanted`."""

    run_id: int
    step: str = ""
    opened: dict[str, int | None] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    tab: str = ""
    level: str = ""
    find: str = ""
    """What the log is narrowed to: lines of at least this level, with this text."""
    view: str = ""

    @classmethod
    def of(cls, run_id: int, query: QueryDict) -> Asked:
        """Parameters that make no sense are left out: the page shows what it would show without them."""
        step = query.get("step", "")[:1000].replace("\x00", "")
        opened = dict(filter(None, map(_scope, query.getlist("open")[:MOST_OPENED])))
        for loop, index in _around(step):
            opened.setdefault(loop, index)
        pages = {found[1]: int(found[2]) for text in query.getlist("from")[:MOST_OPENED] if (found := _PAGE.fullmatch(text))}
        tab, level, find = query.get("tab", ""), query.get("level", ""), query.get("find", "")
        return cls(
            run_id, step, opened, pages,
            tab=tab if tab in TABS else "",
            level=level if level in LEVELS else "",
            find=find.strip()[:100].replace("\x00", ""),
            view="canvas" if query.get("view") == "canvas" else "",
        )

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.opened, self.pages)

    @property
    def url(self) -> str:
        return self.at("run")

    def at(self, name: str) -> str:
        query = QueryDict(mutable=True)
        if self.step:
            query["step"] = self.step
        query.setlist("open", [f"{loop}[{'' if index is None else index}]" for loop, index in self.opened.items()])
        query.setlist("from", [f"{loop}:{index}" for loop, index in self.pages.items()])
        for part in ("tab", "level", "find", "view"):
            if value := getattr(self, part):
                query[part] = value
        address = reverse(name, args=[self.run_id])
        return f"{address}?{query.urlencode()}" if query else address

    def seeing(self, view: str) -> Asked:
        return replace(self, view=view)

    def choosing(self, step: str) -> Asked:
        return replace(self, step=step)

    def opening(self, loop: str, index: int | None) -> Asked:
        """Open an iteration, or none; its page stays. What was opened inside the loop before is dropped."""
        kept = {path: at for path, at in self.opened.items() if not path.startswith(f"{loop}[")}
        step = "" if self.step.startswith(f"{loop}[") else self.step
        return replace(self, step=step, opened=kept | {loop: index})

    def paging(self, loop: str, first: int) -> Asked:
        return replace(self.opening(loop, None), pages=self.pages | {loop: first})


def _scope(text: str) -> tuple[str, int | None] | None:
    found = _SCOPE.fullmatch(text)
    return (found[1], int(found[2]) if found[2] else None) if found and "\x00" not in text else None


def _around(path: str) -> list[tuple[str, int]]:
    """The iterations that a path lies in: `a[1]/b[2]/c` -> a: 1, a[1]/b: 2."""
    found = [(path[: match.start()], int(match[1])) for match in re.finditer(r"\[(\d{1,8})\](?=/)", path)]
    return found
