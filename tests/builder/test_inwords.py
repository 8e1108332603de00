"""Schedules in plain words: what is written is the cron line that is kept, and what is kept is told in words."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from builder.fieldedits import field_operation
from builder.forms.base import FieldError
from runtime.triggers.inwords import NotWords, from_words, to_words
from runtime.triggers.schedule import KIND


@pytest.mark.parametrize(("words", "cron", "back"), [
    ("every weekday at 8:00", "0 8 * * 1-5", "every weekday at 8:00"),
    ("Every weekday at 8", "0 8 * * 1-5", "every weekday at 8:00"),
    ("daily at 6:30 pm.", "30 18 * * *", "every day at 18:30"),
    ("every day at noon and midnight", "0 0,12 * * *", "every day at 0:00 and 12:00"),
    ("every Monday and Friday at 17:30", "30 17 * * 1,5", "every Monday and Friday at 17:30"),
    ("mondays, tue at 9am", "0 9 * * 1,2", "every Monday and Tuesday at 9:00"),
    ("every weekend at 10", "0 10 * * 0,6", "every weekend at 10:00"),
    ("every 15 minutes", "*/15 * * * *", "every 15 minutes"),
    ("every minute", "* * * * *", "every minute"),
    ("hourly", "0 * * * *", "every hour"),
    ("every 6 hours at :05", "5 */6 * * *", "every 6 hours at :05"),
    ("every hour at :10", "10 * * * *", "every hour at :10"),
    ("on the 1st and 15th of every month at 6:00", "0 6 1,15 * *", "on the 1st and 15th of every month at 6:00"),
    ("monthly on the 3rd at 7", "0 7 3 * *", "on the 3rd of every month at 7:00"),
])
def test_words_and_cron_say_the_same(words, cron, back):
    assert from_words(words) == cron and to_words(cron) == back
    assert from_words(back) == cron


@pytest.mark.parametrize("text", [
    "", "every weekday", "every blue moon at 8", "every 7 minutes", "at 25:00", "every day at 8:61", "every day at 13 pm",
    "every day at 8:00 and 9:30", "on the 32nd of every month at 6", "every 0 minutes", "every monday and mo at 8", "soon",
])
def test_what_says_no_schedule_is_refused_with_how_to_write_one(text):
    with pytest.raises(NotWords) as told:
        from_words(text)
    assert str(told.value)


@pytest.mark.parametrize("cron", ["0 8 1 1 *", "*/7 3 * * *", "0 8 1 * 1", "0-5 8 * * *", "not cron"])
def test_what_words_do_not_say_stays_cron(cron):
    assert to_words(cron) == ""


@pytest.mark.parametrize("cron", ["*/45 * * * *", "*/7 * * * *", "0 */5 * * *", "0 */23 * * *", "*/60 * * * *", "*/0 * * * *"])
def test_what_is_no_even_interval_is_not_called_one(cron):
    """`*/45` comes at :00 and :45, `0 */5` at 20:00 and at 0:00."""
    assert to_words(cron) == ""


@pytest.mark.parametrize("cron", ["1² 8 * * *", "٣ 8 * * *", "61 8 * * *", "0 24 * * *", "0 8 0,32 * *", f"{'9' * 5000} 8 * * *"])
def test_what_is_no_time_is_not_told_as_one(cron):
    assert to_words(cron) == ""


def test_words_typed_into_the_form_become_cron_and_are_shown_beside_it():
    definition = {"format": 1, "name": "F", "steps": [], "triggers": [{"id": "clock", "type": "schedule", "config": {}}]}

    def typed(text):
        post = QueryDict(mutable=True)
        post.update({"owner": "clock", "field": "config.cron", "value": text})
        return field_operation(definition, None, post)["set"]

    assert typed("every weekday at 8:00") == {"config.cron": "0 8 * * 1-5"}
    assert typed("*/5 * * * *") == {"config.cron": "*/5 * * * *"}
    with pytest.raises(FieldError, match="Write it in words"):
        typed("every blue moon at 8")
    assert KIND.line({"cron": "0 8 * * 1-5", "zone": "Europe/Berlin"}) == "Every weekday at 8:00 · Europe/Berlin"
    assert KIND.line({"cron": "0 8 1 1 *"}) == "Schedule · 0 8 1 1 * · UTC"
