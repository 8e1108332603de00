"""Whoever holds a callback's address cannot fill the database with it."""

from __future__ import annotations

import pytest

from runtime import waits
from runtime.models import Signal
from tests.builder import factories

pytestmark = pytest.mark.django_db


def test_a_place_keeps_a_bounded_number_of_signals_that_nobody_takes():
    run = factories.run()
    for number in range(waits.MOST_UNTAKEN):
        assert waits.signal(run.pk, "answer", {"n": number}, f"key:{number}")
    with pytest.raises(waits.TooManySignals):
        waits.signal(run.pk, "answer", {}, "key:one more")
    assert Signal.objects.filter(run_id=run.pk).count() == waits.MOST_UNTAKEN
    assert waits.signal(run.pk, "another", {}, "key:1")
