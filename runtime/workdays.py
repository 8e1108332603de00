"""Days on which people work: the weekdays of a country, without its public holidays and without days of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache

import holidays
from holidays.registry import COUNTRIES

WEEKEND = frozenset((5, 6))
LONGEST_SEARCH = 3660
"""Days after which no work day is looked for any more."""


class NoWorkday(ValueError):
    """The calendar has none within ten years."""


def check_calendar(name: str) -> str:
    """`DE`, or with a part of the country `DE-BY`. Raises ValueError that says what would be right."""
    if name:
        _of_country(name)
    return name


@lru_cache(maxsize=1)
def calendars() -> dict[str, str]:
    """Country code -> its name, by name."""
    return dict(sorted(((code, _spaced(name)) for name, code, *_ in COUNTRIES.values()), key=lambda pair: pair[1]))


@lru_cache(maxsize=64)
def parts(country: str) -> dict[str, str]:
    """Code -> name of the parts of a country that have holidays of their own; none of a country that there is not."""
    if country not in calendars():
        return {}
    known = _of_country(country)
    names = {code: name for name, code in reversed(known.subdivisions_aliases.items())}
    return {code: names.get(code, code) for code in known.subdivisions if code == code.upper()}


def _spaced(name: str) -> str:
    """`BosniaAndHerzegovina` -> `Bosnia and Herzegovina`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return words.replace(" And ", " and ").replace(" Of ", " of ").replace(" The ", " the ")


def is_workday(day: date, calendar: str = "", closed: Iterable[date] = ()) -> bool:
    if day in closed:
        return False
    if not calendar:
        return day.weekday() not in WEEKEND
    known = _of_country(calendar)
    return day.weekday() not in known.weekend and day not in known


def after_workdays(day: date, count: int, calendar: str = "", closed: Iterable[date] = ()) -> date:
    """The `count`-th work day after `day`. Raises NoWorkday."""
    shut = frozenset(closed)
    for _ in range(LONGEST_SEARCH):
        if count <= 0:
            return day
        day += timedelta(days=1)
        count -= is_workday(day, calendar, shut)
    raise NoWorkday("There are not so many work days within ten years.")


@lru_cache(maxsize=64)
def _of_country(name: str) -> holidays.HolidayBase:
    """Years are filled in when they are asked for."""
    country, _, part = name.upper().partition("-")
    try:
        return holidays.country_holidays(country, subdiv=part or None)
    except NotImplementedError:
        known = country in holidays.list_supported_countries()
        where = f"The calendar of {country} has no part “{part}”." if known else f"There is no calendar “{name[:20]}”."
        raise ValueError(f"{where} Write a country such as DE or US, or a part of one such as DE-BY.") from None
