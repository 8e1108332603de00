"""Rates that hold across all processes: so many a minute per key, counted in Postgres.

The generic cell rate algorithm (ITU-T I.371, annex A), in one statement: a key's row holds the moment at which everything
admitted so far would have been sent at the even rate. Nothing is held in a process, and a refusal writes nothing.
"""

from __future__ import annotations

import random
from ipaddress import IPv6Address, ip_address

from django.db import connection

COUNT = """
insert into rate_limit as r (key, until) select %(key)s, clock_timestamp() + %(each)s::interval from {}
on conflict (key) do update set until = greatest(r.until, clock_timestamp()) + %(each)s::interval
    where greatest(r.until, clock_timestamp()) + %(each)s::interval <= clock_timestamp() + interval '1 minute'
returning 0
"""
# A count that is lost with the server's power is no loss: as a transaction of its own it waits for no disk.
ADMIT = COUNT.format("set_config('synchronous_commit', 'off', true)")
ADMIT_WITHIN = COUNT.format("(select 1) one")
LEFT = "select extract(epoch from until + %s::interval - clock_timestamp() - interval '1 minute') from rate_limit where key = %s"
FORGET = "delete from rate_limit where until < clock_timestamp()"
FORGET_ONCE_IN = 1000


def admitted(key: str, per_minute: int) -> float:
    """0 when this is within the rate, which then counts it; else the seconds after which the next one is. A minute's
    worth may come at once. A rate of 0 admits everything."""
    if not per_minute:
        return 0.0
    each = f"{60 / per_minute:.9f} seconds"
    with connection.cursor() as cursor:
        if not random.randrange(FORGET_ONCE_IN):
            cursor.execute(FORGET)
        cursor.execute(ADMIT_WITHIN if connection.in_atomic_block else ADMIT, {"key": key, "each": each})
        if cursor.fetchone():
            return 0.0
        cursor.execute(LEFT, [each, key])
        left = cursor.fetchone()
    return max(0.001, float(left[0])) if left else 0.001


def caller(address: str) -> str:
    """Whom an address stands for: one of IPv4 for itself, one of IPv6 for its /64, which a single caller has whole."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "unknown"
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
