"""Acts of the outside while the database comes and goes: done again until it is told what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connection

T = TypeVar("T")
AWAY = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


class GivenUp(Exception):
    """The database did not come back."""


def until_it_is_told(act: Callable[[], T], seconds: float = 120) -> T:
    """What the act returns. It must do nothing the second time, for its first answer may have been lost."""
    ends = time.monotonic() + seconds
    while True:
        try:
            return act()
        except AWAY as error:
            connection.close()
            if time.monotonic() > ends:
                raise GivenUp(str(error)) from error
            time.sleep(0.2)
