"""Signals by name and key: for callbacks that wait for "order_paid" of order 17, wherever in the team's runs they stand.

Both sides publish what is theirs in one transaction and look for the other in the next, so at least one of them sees
the other: the sender stores the signal and then looks for a wait, the run registers its wait and then looks for a
signal (the journal's `named`). A signal is taken by at most one wait, the oldest; one that comes early is kept.

Test runs have signals of their own: a draft that is tried with a real order must not take the word that its run waits for, and
what was sent to try it must tell no run that the order is paid.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from django.db import connection, transaction

from . import waits

KEPT_DAYS = 30
MOST_UNTAKEN = 100

FORGET = """
delete from named_signal where team_id = %(team)s and name = %(name)s and key = %(key)s
  and received_at < holdfast_now() - make_interval(days => %(days)s)
"""
KEEP = """
insert into named_signal (team_id, name, key, test, dedupe, payload, received_at)
values (%(team)s, %(name)s, %(key)s, %(test)s, %(dedupe)s, %(payload)s::json, holdfast_now())
on conflict (team_id, name, key, dedupe) do nothing returning id
"""
OURS = "team_id = %(team)s and name = %(name)s and key = %(key)s and test = %(test)s and wait_id is null"
UNTAKEN = f"select count(*) from named_signal where {OURS}"
# Waits for this name and key, the oldest first.
WAITING = """
select w.id, w.run_id from wait w join run on run.id = w.run_id join workflow f on f.id = run.workflow_id
where w.kind = 'callback' and w.state = 'open' and w.data ->> 'signal' = %(name)s and w.data ->> 'key' = %(key)s
  and f.team_id = %(team)s and run.test = %(test)s order by w.id limit 20
"""
NEXT = f"select id, payload::text from named_signal where {OURS} order by id limit 1 for no key update skip locked"


def send(team_id: int, name: str, key: str, payload: Any, dedupe: str, *, test: bool = False) -> Literal["taken", "kept", "before"]:
    """Give a signal to the run that waits for it, or keep it until one does; with `test` a test run, else none of these.
    `before`: this one came before. Raises waits.TooManySignals."""
    place = {"team": team_id, "name": name, "key": key, "test": test}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(FORGET, {**place, "days": KEPT_DAYS})
        own = f"test:{dedupe}" if test else dedupe
        cursor.execute(KEEP, {**place, "dedupe": own, "payload": json.dumps(payload, allow_nan=False)})
        fresh = cursor.fetchone()
        cursor.execute(UNTAKEN, place)
        if cursor.fetchone()[0] > MOST_UNTAKEN:
            raise waits.TooManySignals
    # Also for one that came before: its sender may have died between the two transactions.
    taken = _hand_over(place)
    return "before" if fresh is None else "taken" if fresh[0] in taken else "kept"


def _hand_over(place: dict[str, Any]) -> set[int]:
    """Bring the kept signals and the waits together. Returns the signals that were taken."""
    taken: set[int] = set()
    with connection.cursor() as cursor:
        cursor.execute(WAITING, place)
        waiting = cursor.fetchall()
    for wait_id, run_id in waiting:
        signal_id = _give(wait_id, run_id, place)
        if signal_id is not None:
            taken.add(signal_id)
    return taken


@transaction.atomic
def _give(wait_id: int, run_id: int, place: dict[str, Any]) -> int | None:
    if waits.lock(run_id) is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(NEXT, place)
        row = cursor.fetchone()
        if row is None or not waits.resolve_locked(wait_id, {"by": "signal", "payload": json.loads(row[1])}):
            return None
        cursor.execute("update named_signal set wait_id = %s where id = %s", [wait_id, row[0]])
    return row[0]
