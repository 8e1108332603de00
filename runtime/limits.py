"""Rates that hold across all processes: so many a minute per key, counted in Postgres.

The generic cell rate algorithm (ITU-T I.371, annex A), in one statement: a key's row holds the moment at which everything
admitted so far would have been sent at the even rate. Nothing is held in a process, and a refusal writes nothing.
"""

from __future__ import annotations

import random
from datetime import timedelta
from functools import cache
from ipaddress import IPv6Address, ip_address

from django.db import connection

# A count that is lost with the server's power is no loss: as a transaction of its own it waits for no disk.
WAITING_FOR_NO_DISK = "set_config('synchronous_commit', 'off', true)"
ADMIT = f"select holdfast_rate(%s, %s) from {WAITING_FOR_NO_DISK}"
ADMIT_WITHIN = "select holdfast_rate(%s, %s)"
COUNT = """
insert into rate_limit as r (key, until) values (%(key)s, clock_timestamp() + %(each)s)
on conflict (key) do update set until = holdfast_spent(r.until, %(at_once)s) + %(each)s
    where holdfast_spent(r.until, %(at_once)s) + %(each)s <= clock_timestamp() + %(at_once)s
"""
FULL = """
select exists (select from rate_limit
               where key = %(key)s and holdfast_spent(until, %(at_once)s) + %(each)s > clock_timestamp() + %(at_once)s)
"""
FORGET = "delete from rate_limit where until < clock_timestamp()"
FORGET_ONCE_IN = 1000


def admitted(key: str, per_minute: int) -> float:
    """0 when this is within the rate, which then counts it; else the seconds after which the next one is. A minute's
    worth may come at once. A rate of 0 admits everything."""
    if not per_minute:
        return 0.0
    forget()
    with connection.cursor() as cursor:
        cursor.execute(ADMIT_WITHIN if connection.in_atomic_block else ADMIT, [key, each(per_minute)])
        return cursor.fetchone()[0]


def count(key: str, each: timedelta, at_once: timedelta) -> None:
    """Count what is limited afterwards, such as a failure: one in `each`, and as many at once as fit into `at_once`. More
    change nothing."""
    forget()
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"key": key, "each": each, "at_once": at_once})


def is_full(key: str, each: timedelta, at_once: timedelta) -> bool:
    """Whether `count` would count no more of it."""
    with connection.cursor() as cursor:
        cursor.execute(FULL, {"key": key, "each": each, "at_once": at_once})
        return cursor.fetchone()[0]


@cache
def each(per_minute: int) -> timedelta | None:
    """The even rate; None for 0, which admits everything."""
    return timedelta(minutes=1) / per_minute if per_minute else None


def forget() -> None:
    """Now and then, what counts no more."""
    if not random.randrange(FORGET_ONCE_IN):
        with connection.cursor() as cursor:
            cursor.execute(FORGET)


def caller(address: str) -> str:
    """Whom an address stands for: one of IPv4 for itself, one of IPv6 for its /64, which a single caller has whole."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "unknown"
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
