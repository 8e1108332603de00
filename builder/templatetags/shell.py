"""What the base template needs: the import map of our ES modules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

from django import template
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template import Context
from django.templatetags.static import static
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

PREFIX = "hf/"


@register.simple_tag
def home() -> str:
    """Where everything begins, also for pages that must not fail."""
    return settings.LOGIN_REDIRECT_URL


@register.simple_tag
def import_map() -> SafeString:
    """JSON for `<script type="importmap">`: `static/js/canvas/drag.js` is imported as `hf/canvas/drag`.

    Bare names, because the storage renames files by content and relative imports would miss that.
    """
    return mark_safe(_import_map() if settings.DEBUG else _cached_import_map())  # noqa: S308 - own file names


def _import_map() -> str:
    modules = {PREFIX + str(PurePosixPath(name).with_suffix("").relative_to("js")): url for name, url in _urls()}
    return json.dumps({"imports": modules}, separators=(",", ":")).replace("<", "\\u003c")


_cached_import_map = lru_cache(maxsize=1)(_import_map)


@register.simple_tag(takes_context=True)
def module_preloads(context: Context, entry: str) -> SafeString:
    """Links for all that a module such as `js/canvas/builder.js` imports, and for what that imports: the browser fetches them at once
    instead of finding them one after the other."""
    links = ((url, context.get("csp_nonce", "")) for url in (_preloads(entry) if settings.DEBUG else _cached_preloads(entry)))
    return format_html_join("\n", '<link rel="modulepreload" href="{}" nonce="{}">', links)


def _preloads(entry: str) -> tuple[str, ...]:
    urls, wanted, seen = dict(_urls()), [entry], {}
    while wanted:
        name = wanted.pop()
        if name in seen or name not in urls:
            continue
        seen[name] = urls[name]
        path = finders.find(name)
        wanted += [f"js/{found}.js" for found in _IMPORT.findall(Path(path).read_text(encoding="utf-8"))] if path else []
    return tuple(seen.values())


_cached_preloads = lru_cache(maxsize=None)(_preloads)
_IMPORT = re.compile(r'''^(?:import|export)\b[^"']*["']hf/([^"']+)["']''', re.MULTILINE)


def _urls() -> Iterator[tuple[str, str]]:
    """A file that appeared after the last `collectstatic` has no address yet: left out, since no page asks for it either,
    and every page would fail on it."""
    for name in _modules():
        with suppress(ValueError):
            yield name, static(name)


def _modules() -> list[str]:
    found = set()
    for finder in finders.get_finders():
        for name, _storage in finder.list([]):
            name = name.replace("\\", "/")
            if name.startswith("js/") and name.endswith(".js"):
                found.add(name)
    return sorted(found)
