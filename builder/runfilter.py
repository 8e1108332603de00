"""What the run list can be narrowed to: the filter as an address tells it, and the runs that it finds.

Nothing here looks at all runs: what no index finds is looked for among the last hundred thousand, or the last of the span of
time that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import F, Max, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.http import QueryDict
from django.utils import timezone

from builder import access, timespan
from builder.numbers import number_of
from runtime.clock import business_now
from runtime.models import Run, RunSearch, Version
from runtime.states import DispatchState, RunState

SEARCHED = 100_000
STATES = ("running", "waiting", "attention", "failed", "succeeded", "cancelled")
MORE = ("version", "error", "trigger", "key", "since", "from", "until", "longer", "dearer")
NAMES = {"from": "begin"}
"""Where a field of `Filter` has another name than in an address."""
MOST_DECLARING, MOST_READ = 1_000, 20_000
LEAST_BEGINNING = 3
"""Fewer letters than these are looked for as a whole value."""
LAST_LETTER = "\U0010ffff"
SINCE = {
    "1h": ("The last hour", timedelta(hours=1)),
    "24h": ("The last 24 hours", timedelta(hours=24)),
    "7d": ("The last 7 days", timedelta(days=7)),
    "30d": ("The last 30 days", timedelta(days=30)),
}
LONGEST = 10 * 365 * 86_400
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", re.ASCII)
_KIND = re.compile(r"[0-9a-f]{16}")
_NUMBER = re.compile(r"(?:run\s*)?#?\s*(\d[\d,. ]{0,24})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Filter:
    """What the list is narrowed to. `before` and `after` are run ids: the page of older runs, the page of newer ones."""

    state: str = ""
    flow: int | None = None
    search: str = ""
    tests: bool = False
    version: int | None = None
    error: str = ""
    """The key of an error's kind, see `runtime.faults`."""
    trigger: str = ""
    key: str = ""
    since: str = ""
    begin: str = ""
    until: str = ""
    """The span of time in which it began, without `until` itself: as `2026-05-11T17:48` in the installation's time zone, or a
    day, which begins at midnight."""
    longer: int | None = None
    """Seconds that an ended run took at least."""
    dearer: Decimal | None = None
    before: int | None = None
    after: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        state = query.get("state", "")
        return cls(
            state=state if state in STATES else "",
            flow=number_of(query.get("flow", "")),
            search=query.get("q", "").strip()[:200].replace("\x00", ""),
            tests=query.get("tests") == "1",
            version=number_of(query.get("version", "")),
            error=found[0] if (found := _KIND.fullmatch(query.get("error", ""))) else "",
            trigger=_text(query.get("trigger", ""), 64),
            key=_text(query.get("key", ""), 300),
            since=query.get("since", "") if query.get("since", "") in SINCE else "",
            begin=_moment(query.get("from", "")),
            until=_moment(query.get("until", "")),
            longer=number_of(query.get("longer", "")),
            dearer=_amount(query.get("dearer", "")),
            before=number_of(query.get("before", "")),
            after=number_of(query.get("after", "")),
        )

    def query(self, **changed: Any) -> str:
        """The query string of this filter with some things changed; a changed filter begins at the first page."""
        values = {"state": self.state, "flow": self.flow, "q": self.search, "tests": "1" if self.tests else ""}
        values |= {name: getattr(self, NAMES.get(name, name)) for name in MORE} | changed
        query = QueryDict(mutable=True)
        query.update({name: str(value) for name, value in values.items() if value not in ("", None)})
        return query.urlencode()

    @property
    def narrowed(self) -> bool:
        return bool(self.state or self.search or self.flow or self.more)

    @property
    def more(self) -> int:
        """How many of the less usual filters are set."""
        return sum(getattr(self, NAMES.get(name, name)) not in ("", None) for name in MORE)

    @property
    def bounded(self) -> bool:
        """Whether it looks for what no index finds: then it looks among the latest runs of its span of time."""
        return bool(self.search or self.trigger or self.key or self.longer or self.dearer is not None)

    @property
    def span(self) -> tuple[datetime | None, datetime | None]:
        """The later of the two beginnings that it may have, and its end."""
        begins = [at(self.begin)] if self.begin else []
        begins += [business_now() - SINCE[self.since][1]] if self.since else []
        return max(begins, default=None), at(self.until) if self.until else None


def matching(user: Any, chosen: Filter) -> QuerySet[Run]:
    runs = access.runs_for(user)
    if not chosen.tests:
        runs = runs.filter(test=False)
    if chosen.flow is not None:
        runs = runs.filter(workflow_id=chosen.flow)
    if chosen.since or chosen.begin or chosen.until:
        runs = runs.filter(timespan.between(*chosen.span))
    if chosen.bounded:
        runs = _among_the_latest(user, runs, chosen)
    if chosen.version is not None:
        versions = Version.objects.filter(number=chosen.version, **({"workflow": chosen.flow} if chosen.flow is not None else {}))
        runs = runs.filter(version_id__in=list(versions.values_list("pk", flat=True)))
    if chosen.error:
        runs = runs.alias(kind=KeyTextTransform("kind", "error")).filter(state=RunState.FAILED, kind=chosen.error)
    return runs.filter(in_state(chosen.state)) if chosen.state else runs


def _among_the_latest(user: Any, runs: QuerySet[Run], chosen: Filter) -> QuerySet[Run]:
    """A search by number or key finds runs of any age, or of the span that was asked for."""
    end = at(chosen.until) if chosen.until else None
    last = timespan.first_since(end + timespan.SLACK) if end else Run.objects.aggregate(last=Max("pk"))["last"] or 0
    latest = Q(pk__gt=last - SEARCHED)
    if chosen.key:
        runs = runs.filter(pk__in=_keyed(user, chosen.key))
    if chosen.search:
        runs = runs.filter(_found_by(user, chosen.search, latest))
    elif not chosen.key:
        runs = runs.filter(latest)
    if chosen.trigger:
        runs = runs.filter(trigger_key=chosen.trigger)
    if chosen.longer:
        runs = runs.filter(ended_at__gt=F("created_at") + timedelta(seconds=min(chosen.longer, LONGEST)))
    return runs.filter(cost__gte=chosen.dearer) if chosen.dearer is not None else runs


def in_state(state: str) -> Q:
    """An open run is running or waiting as its dispatch row says."""
    if state == "running":
        return Q(state=RunState.OPEN, dispatch__state__in=[DispatchState.READY, DispatchState.CLAIMED])
    if state == "waiting":
        return Q(state=RunState.OPEN, dispatch__state=DispatchState.WAITING)
    return Q(state=state)


def _found_by(user: Any, text: str, latest: Q) -> Q:
    """The run of this number; those of this key; those with this value, or one that begins like this, in what their flows
    declare; and, among the latest runs, words of the title."""
    worded, known = latest & Q(title__icontains=text), _declaring(user, text.lower()) + _keyed(user, text)
    if number := _NUMBER.fullmatch(text):
        digits = re.sub(r"\D", "", number[1])
        known += [int(digits)] if len(digits) < 19 else []
    if not known:
        return worded
    # Not as two conditions of one query, for which all runs might be walked through.
    both = Run.objects.filter(worded).values("pk").union(Run.objects.filter(pk__in=known).values("pk"), all=True)
    return Q(pk__in=both)


def _declaring(user: Any, text: str) -> list[int]:
    """The numbers themselves: as part of the query they would have it read every run."""
    found = _own(user, RunSearch.objects.filter(value=text).order_by("-run_id").values_list("run_id", flat=True))
    if len(text) >= LEAST_BEGINNING:
        found += _own(user, RunSearch.objects.filter(value__gte=text, value__lt=text + LAST_LETTER).values_list("run_id", flat=True))
    return found


def _keyed(user: Any, key: str) -> list[int]:
    """Those that a sender, or a caller of the API, started with this key."""
    return _own(user, Run.objects.filter(idempotency_key__in=[key, f"key:{key}"]).values_list("pk", flat=True))


def _own(user: Any, numbers: QuerySet[Any, int]) -> list[int]:
    """Where there are too many, those that the person may see: other teams' must not crowd them out."""
    found = list(numbers[:MOST_READ])
    if len(found) > MOST_DECLARING:
        found = list(access.runs_for(user).filter(pk__in=found).order_by("-pk").values_list("pk", flat=True)[:MOST_DECLARING])
    return found


def _text(text: str, longest: int) -> str:
    return text.strip()[:longest].replace("\x00", "")


def _moment(text: str) -> str:
    """The text, if it is a time; a day as its midnight."""
    if at(text) is None:
        return ""
    return text if "T" in text else f"{text}T00:00"


def at(text: str) -> datetime | None:
    """`2026-05-11T17:48`, or a day, in the installation's time zone."""
    try:
        return timezone.make_aware(datetime.fromisoformat(text)) if _MOMENT.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _amount(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value < 1_000_000 else None
