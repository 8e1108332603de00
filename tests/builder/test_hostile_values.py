"""Every address, asked with values that no form of ours sends: it answers, and never breaks."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.builder.test_access import NAMED, Visitor, _belongings, url_of, world  # noqa: F401 - the last is a fixture

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
READ = re.compile(r"""(?:(?:GET|POST|query|values|data|given|asked)(?:\.(?:get|getlist|pop)\(|\[)|request(?:\.\w+)?, )\s*f?["']([\w.\-]+)["']""")
NAMES = sorted({name for path in (ROOT / "builder").rglob("*.py") for name in READ.findall(path.read_text())})
"""What views read of a request, by the source."""
FORMS = ("operation", "name", "username", "role", "kind", "threshold", "address", "url", "quiet_minutes", "scope", "days", "hosts", "base_url", "token")
"""What Django's forms and those of connections read."""
VALUES = (
    "a\x00b",
    "9" * 400,
    "0" * 5_000,
    "9223372036854775808",
    "-1",
    "\u0663\u00b2",
    "<img src=x>'\"{{ 7*7 }}{% x %}",
    '{"a": [1, null, {"b": "\\u0000"}]}',
    "[" * 3000,
    "",
    "../../etc/passwd\r\nX: y",
    "x" * 100_000,
)


def test_the_names_are_found():
    assert {"next", "step", "revision", "start", "answer"} <= set(NAMES) and len(NAMES) > 60


def test_no_value_breaks_a_page(world):  # noqa: F811
    """Each name gets another of them at each address."""
    visitor, broken, values = Visitor(world["people"]["superuser"]), [], VALUES
    for n, address in enumerate(NAMED):
        url = url_of(address, world["ours"])
        for method, shift in (("GET", n), ("POST", n + 5)):
            given = urlencode({name: values[(shift + place) % len(values)] for place, name in enumerate((*NAMES, *FORMS))})
            status = visitor.ask(method, url, given).status_code
            if status >= 500 and not (address.name == "healthz" and status == 503):
                broken.append(f"{method} {address.name}: {status}")
    assert not broken, "\n".join(broken)
