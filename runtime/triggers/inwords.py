"""Schedules in plain words: “every weekday at 8:00” is the cron line `0 8 * * 1-5`, and the other way round.

Words are only a way to write and to read a schedule: what is kept is the cron line.
"""

from __future__ import annotations

import re

DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
EXAMPLES = "every weekday at 8:00, every monday and friday at 17:30, every 15 minutes, on the 1st of every month at 6:00"
_EVERY = re.compile(r"every (?:(\d{1,2}) )?(minute|hour)s?(?: at (?:minute |:)(\d{1,2}))?")
_AT = re.compile(r"(.*?)(?:,? at | @ )(.+)")
_TIME = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?(?: ?(am|pm))?(?: ?o'?clock)?")
_DATES = re.compile(r"(?:every month |monthly )?on the (.+?)(?: of (?:every|each|the) month)?")
_DATE = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_MINUTE, _HOUR, _DAY_OF_MONTH = r"[0-5]?\d", r"(?:[01]?\d|2[0-3])", r"(?:0?[1-9]|[12]\d|3[01])"


class NotWords(ValueError):
    """The text says no schedule; the message says how to write one."""


def from_words(text: str) -> str:
    """The cron line that the words mean. Raises NotWords."""
    words = " ".join(text.lower().replace("’", "'").split()).rstrip(".")
    if words in ("hourly", "every hour"):
        return "0 * * * *"
    if found := _EVERY.fullmatch(words):
        return _interval(int(found[1] or 1), found[2], found[3])
    found = _AT.fullmatch(words)
    days, times = (found[1], found[2]) if found else (words, "")
    dates, weekdays = _days(days.removeprefix("on ") if not days.startswith("on the ") else days)
    minute, hours = _times(times)
    return f"{minute} {hours} {dates} * {weekdays}"


def to_words(cron: str) -> str:
    """The words for a cron line; empty for one that is more than words say."""
    fields = cron.split()
    if not cron.isascii() or len(fields) != 5 or fields[3] != "*":
        return ""
    minute, hour, dates, _, days = fields
    if dates == days == "*" and (words := _interval_words(minute, hour)):
        return words
    if not re.fullmatch(_MINUTE, minute) or not re.fullmatch(f"{_HOUR}(,{_HOUR})*", hour):
        return ""
    when = _day_words(dates, days)
    times = " and ".join(f"{int(one)}:{int(minute):02}" for one in hour.split(","))
    return f"{when} at {times}" if when else ""


def _even(number: int, unit: str) -> bool:
    """Whether every so many minutes or hours is the same from one hour or day to the next."""
    most = 60 if unit == "minute" else 24
    return 1 <= number < most and most % number == 0


def _interval(number: int, unit: str, minute: str | None) -> str:
    if not _even(number, unit):
        raise NotWords(f"Every {number} {unit}s does not divide {'an hour' if unit == 'minute' else 'a day'} evenly.")
    if unit == "minute":
        if minute is not None:
            raise NotWords(_how())
        return f"*/{number} * * * *" if number > 1 else "* * * * *"
    return f"{_minute(minute or '0')} {f'*/{number}' if number > 1 else '*'} * * *"


def _days(text: str) -> tuple[str, str]:
    """Days of the month, and of the week."""
    if text in ("", "every day", "daily", "each day"):
        return "*", "*"
    if text in ("every weekday", "weekdays", "every work day", "every workday"):
        return "*", "1-5"
    if text in ("every weekend", "weekends"):
        return "*", "0,6"
    if found := _DATES.fullmatch(text):
        dates = [_DATE.fullmatch(one) for one in _listed(found[1])]
        if not all(dates) or not all(1 <= int(one[1]) <= 31 for one in dates):
            raise NotWords(_how())
        return ",".join(str(one) for one in sorted({int(one[1]) for one in dates})), "*"
    named = [one.removeprefix("every ").rstrip("s") for one in _listed(text)]
    numbers = {number for one in named for number, day in enumerate(DAYS) if one and one in (day, day[:3])}
    if not named or len(numbers) != len(set(named)):
        raise NotWords(_how())
    return "*", ",".join(str(number) for number in sorted(numbers))


def _times(text: str) -> tuple[str, str]:
    """The minute, and the hours."""
    if not text:
        raise NotWords("Say at what time, such as “at 8:00”.")
    found = [_time(one) for one in _listed(text)]
    if len({minute for _, minute in found}) > 1:
        raise NotWords("All times of one schedule have the same minute. Add another trigger for the others.")
    return str(found[0][1]), ",".join(str(hour) for hour in sorted({hour for hour, _ in found}))


def _time(text: str) -> tuple[int, int]:
    if text in ("noon", "midnight"):
        return (12 if text == "noon" else 0), 0
    found = _TIME.fullmatch(text)
    if found is None:
        raise NotWords(_how())
    hour, minute = int(found[1]), int(_minute(found[2] or "0"))
    if found[3]:
        if not 1 <= hour <= 12:
            raise NotWords(_how())
        hour = hour % 12 + (12 if found[3] == "pm" else 0)
    if hour > 23:
        raise NotWords(_how())
    return hour, minute


def _minute(text: str) -> str:
    if int(text) > 59:
        raise NotWords(_how())
    return str(int(text))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",| and ", text) if part.strip()]


def _interval_words(minute: str, hour: str) -> str:
    if hour == "*" and minute.startswith("*"):
        return _every(minute, "minute")
    words = _every(hour, "hour") if re.fullmatch(_MINUTE, minute) else ""
    return f"{words} at :{int(minute):02}" if words and int(minute) else words


def _every(steps: str, unit: str) -> str:
    found = re.fullmatch(r"\*(?:/(\d{1,2}))?", steps)
    number = int(found[1] or 1) if found else 0
    if not _even(number, unit):
        return ""
    return f"every {number} {unit}s" if number > 1 else f"every {unit}"


def _day_words(dates: str, days: str) -> str:
    if dates == "*":
        if days in ("*", "1-5", "0,6", "6,0"):
            return {"*": "every day", "1-5": "every weekday"}.get(days, "every weekend")
        if re.fullmatch(r"[0-6](,[0-6])*", days):
            return "every " + " and ".join(DAYS[int(one)].capitalize() for one in days.split(","))
        return ""
    if days == "*" and re.fullmatch(f"{_DAY_OF_MONTH}(,{_DAY_OF_MONTH})*", dates):
        return "on the " + " and ".join(_ordinal(int(one)) for one in dates.split(",")) + " of every month"
    return ""


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _how() -> str:
    return f"Write it in words, such as {EXAMPLES}, or as the five fields of cron."
