"""What every page's frame shows: the theme, the main navigation, who is signed in and how many answers they owe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DatabaseError, transaction
from django.http import HttpRequest
from django.urls import reverse

from builder.access import roles_of
from builder.gate import admitted, rule_for
from builder.proof import proven
from builder.questions import waiting_for
from builder.templatetags.formats import display_name, initials
from runtime.models import Pause
from runtime.pausing import paused

THEME_COOKIE = "hf-theme"
THEMES = ("light", "dark")

MOST_COUNTED = 100
"""The badge says 99+ beyond."""


class RailLink(NamedTuple):
    name: str
    label: str
    icon: str
    url: str
    current: bool


RAIL = (
    ("flows", "Flows", "flows"),
    ("runs", "Runs", "runs"),
    ("approvals", "Approvals", "approve"),
    ("operations", "Operations", "ops"),
    ("connections", "Connections", "plug"),
)


def shell(request: HttpRequest) -> dict[str, Any]:
    """`csp_nonce`, `mails_are_sent` (or stay in the product), and `shell` with: theme rail user_name user_initials
    pending_approvals paused proven."""
    user = getattr(request, "user", None)
    return {
        "csp_nonce": getattr(request, "csp_nonce", ""),
        "mails_are_sent": settings.HOLDFAST_EMAIL is not None,
        "shell": {
            "theme": theme(request),
            "rail": lambda: rail(request.path, user),
            "user_name": display_name(user),
            "user_initials": initials(user),
            "pending_approvals": _pending_approvals(user),
            "paused": lambda: _paused(user),
            "proven": lambda: proven(request),
        },
    }


def theme(request: HttpRequest) -> str:
    """ "light", "dark", or "" to follow the system. Only known values reach the page."""
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


def rail(path: str, user: Any) -> list[RailLink]:
    """The pages that this person may open; the one with the longest address that begins `path` is the current one."""
    roles = {} if user.is_superuser else roles_of(user)
    known = [(name, label, icon, reverse(name)) for name, label, icon in RAIL if admitted(user, rule_for(name), roles)]
    begins = [url for name, _, _, url in known if path == url or (name != RAIL[0][0] and path.startswith(url))]
    current = max(begins, key=len, default=None)
    return [RailLink(name, label, icon, url, url == current) for name, label, icon, url in known]


def _pending_approvals(user: Any) -> Callable[[], int]:
    """A callable, so that only pages with the rail pay for the query, and once each."""
    counted: list[int] = []

    def count() -> int:
        if not counted:
            counted.append(_count_pending(user))
        return counted[0]

    return count


def _count_pending(user: Any) -> int:
    """The open questions that ask this person; those of their teams, which they may decide too, wait for others. The frame
    must stand without its badge."""
    if user is None or not user.is_authenticated:
        return 0
    try:
        with transaction.atomic():
            return waiting_for(user).order_by()[:MOST_COUNTED].count()
    except DatabaseError:
        return 0


def _paused(user: Any) -> Pause | None:
    """That all work is paused, for those who are signed in. The frame must stand without it."""
    if user is None or not user.is_authenticated:
        return None
    try:
        with transaction.atomic():
            return paused()
    except DatabaseError:
        return None
