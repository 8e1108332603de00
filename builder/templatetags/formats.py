"""Filters that write numbers, times and names as people read them: "1 d 4 h", "14 m ago", "$0.0041", "48,213"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from builder import curl

register = template.Library()

MINUTE, HOUR, DAY = 60, 3_600, 86_400
WEEK, MONTH, YEAR = 7 * DAY, 30 * DAY, 365 * DAY
UNITS = ((YEAR, "y"), (MONTH, "mo"), (WEEK, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (1, "s"))


@register.filter
def duration(value: timedelta | float | int | None) -> str:
    """Two units at most: "0.04 s", "4.7 s", "3 m 2 s", "1 d 4 h". Nothing for None.

    `value` is a time span or a number of seconds; whole numbers stay whole.
    """
    if value is None or value == "":
        return ""
    seconds = abs(value.total_seconds() if isinstance(value, timedelta) else float(value))
    if isinstance(value, int) and value:
        return _two_units(int(seconds))
    if seconds < 0.095:
        return f"{seconds:.2f} s" if seconds >= 0.005 or seconds == 0 else "<0.01 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return _two_units(round(seconds))


@register.filter
def ago(moment: datetime | None, form: str = "") -> SafeString | str:
    """`<time>` with a relative text that the page keeps fresh: "14 m ago", "in 2 d 4 h".

    The past has one unit unless `form` is "long". The absolute time stands in the title.
    """
    if moment is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}" data-ago="{}">{}</time>',
        _iso(moment),
        _full(moment),
        form,
        relative((timezone.now() - moment).total_seconds(), long=form == "long"),
    )


def relative(seconds: float, *, long: bool = False) -> str:
    """`static/js/ago.js` repeats these rules in the browser."""
    if seconds <= -1:
        return f"in {_two_units(int(-seconds))}"
    if seconds < 1:
        return "now"
    return f"{_two_units(int(seconds)) if long else _one_unit(int(seconds))} ago"


@register.filter
def as_curl(request: object) -> str:
    """The request of an attempt as a command; empty where it was no API call."""
    return curl.as_curl(request)


@register.filter
def moment(value: datetime | None, zone: str = "") -> SafeString | str:
    """`<time>` with date and minute: "Mon 11 May, 17:48"; the year only when it is another one. `zone` is an IANA name."""
    if value is None:
        return ""
    local = timezone.localtime(value, ZoneInfo(zone) if zone else None)
    day = f"{local:%a} {local.day} {local:%b}" + ("" if local.year == timezone.localtime().year else f" {local.year}")
    return format_html('<time datetime="{}" title="{}">{}, {}</time>', _iso(value), _full(value), day, f"{local:%H:%M}")


@register.filter
def clock(value: datetime | None) -> SafeString | str:
    """`<time>` for logs: "17:48:09.114"."""
    if value is None:
        return ""
    local = timezone.localtime(value)
    text = f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}"
    return format_html('<time datetime="{}" title="{}">{}</time>', _iso(value), _full(value), text)


@register.filter
def money(value: Decimal | float | str | None, places: int | None = None) -> str:
    """US dollars: "$0.0041" below one dollar, "$3.67" above. An unknown cost is called so and never shown as zero."""
    if value is None or value == "":
        return "unknown"
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return "unknown"
    if not amount.is_finite():
        return "unknown"
    if places is None:
        places = 2 if amount == 0 or abs(amount) >= 1 else 4
    smallest = Decimal(1).scaleb(-int(places))
    if 0 < amount < smallest / 2:
        return f"<${smallest}"
    return f"{'-' if amount < 0 else ''}${abs(amount):,.{int(places)}f}"


@register.filter
def spent(cost: Decimal | float | str | None, unpriced: bool = False) -> str:
    """What calls cost, "unknown" or "over $0.0041" where the price of some is not known. Nothing where none was made."""
    if cost is None or cost == "":
        return "unknown" if unpriced else ""
    return f"over {money(cost)}" if unpriced else money(cost)


@register.filter
def count(value: Any) -> str:
    """ "48,213". Anything that is no number is returned as text."""
    try:
        return f"{int(value):,}"
    except (TypeError, ValueError):
        return "" if value is None else str(value)


@register.filter
def size(value: int | None) -> str:
    """Bytes: "612 bytes", "4.1 KB", "1.0 MB"."""
    if value is None:
        return ""
    if value < 1024:
        return f"{value} byte{'' if value == 1 else 's'}"
    return f"{value / 1024:.1f} KB" if value < 1024**2 else f"{value / 1024**2:.1f} MB"


@register.filter
def initials(person: Any) -> str:
    """ "Ines Carvalho" and "ines.carvalho@example.com" give "IC"; takes a user, a name or an address."""
    words = display_name(person).split("@")[0].replace(".", " ").replace("_", " ").replace("-", " ").split()
    if not words:
        return "?"
    return (words[0][0] + words[-1][0] if len(words) > 1 else words[0][:2]).upper()


@register.filter
def display_name(person: Any) -> str:
    """The full name of a user, else the user name; text stays as it is."""
    if hasattr(person, "get_username"):
        return (person.get_full_name() if person.is_authenticated else "") or person.get_username()
    return str(person or "")


def _two_units(seconds: int) -> str:
    for size_, name, smaller, smaller_name in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "m"), (MINUTE, "m", 1, "s")):
        if seconds >= size_:
            whole, rest = divmod(seconds, size_)
            rest //= smaller
            return f"{whole} {name} {rest} {smaller_name}" if rest else f"{whole} {name}"
    return f"{seconds} s"


def _one_unit(seconds: int) -> str:
    return next((f"{seconds // size_} {name}" for size_, name in UNITS if seconds >= size_), "0 s")


def _iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _full(value: datetime) -> str:
    local = timezone.localtime(value)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M:%S %Z}"
