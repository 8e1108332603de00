"""The guarded way out: every HTTP call that a definition causes goes through `exchange`.

It connects only to addresses that it checked, bounds time and size, follows redirects with the same checks at every
hop, and says of each failure how far the call had got.
"""

from .addresses import Blocked, Private, private_hosts
from .bodies import MIB
from .client import Answer, Call, exchange
from .failures import AnswerTooLarge, CallFailed
from .headers import BadHeader
from .locations import BadLocation, check_location
from .pools import close

__all__ = [
    "MIB",
    "Answer",
    "AnswerTooLarge",
    "BadHeader",
    "BadLocation",
    "Blocked",
    "Call",
    "CallFailed",
    "Private",
    "check_location",
    "close",
    "exchange",
    "private_hosts",
]
