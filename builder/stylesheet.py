"""One style sheet instead of forty. While we work each component has its own file; who opens a page gets them in one."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, Storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

SHEET = "css/holdfast.css"
IMPORT = re.compile(r'@import url\("([^"]+)"\) layer\((\w+)\);')
ADDRESS = re.compile(r'url\("([^":]+)"\)')


class OneStyleSheet(CompressedManifestStaticFilesStorage):
    """Puts what `css/holdfast.css` imports in the place of the imports, before names and sizes are made."""

    def post_process(self, paths: dict[str, tuple[Storage, str]], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        if not dry_run and SHEET in paths:
            paths = paths | {SHEET: (_joined(paths), SHEET)}
        yield from super().post_process(paths, dry_run, **options)


def _joined(paths: dict[str, tuple[Storage, str]]) -> Storage:
    def text(name: str) -> str:
        storage, path = paths[name]
        with storage.open(path) as file:
            return file.read().decode()

    def layer(found: re.Match[str]) -> str:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(SHEET), found[1]))
        inside = ADDRESS.sub(lambda address: f'url("{_from_the_sheet(name, address[1])}")', text(name))
        return f"@layer {found[2]} {{\n{inside}}}\n"

    joined = InMemoryStorage()
    joined.save(SHEET, ContentFile(IMPORT.sub(layer, text(SHEET)).encode()))
    return joined


def _from_the_sheet(name: str, address: str) -> str:
    """An address in a file of its own, as it is called from the sheet."""
    return posixpath.relpath(posixpath.join(posixpath.dirname(name), address), posixpath.dirname(SHEET))
