"""Named to a worker by HOLDFAST_STEP_MODULES: its own clock is wrong by HOLDFAST_TEST_HOURS_OFF hours. Its steps are those of
`engine_steps`."""

from __future__ import annotations

import datetime
import os
import sys
import time

from tests.runtime.engine_steps import STEPS  # noqa: F401 - what a module of steps has to have

OFF = datetime.timedelta(hours=float(os.environ.get("HOLDFAST_TEST_HOURS_OFF", "0")))


class Wrong(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(right(), tz) + OFF


right = time.time
if OFF:
    time.time = lambda: right() + OFF.total_seconds()
    for name, module in list(sys.modules.items()):
        if name.startswith(("runtime", "django.utils.timezone")) and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Wrong
