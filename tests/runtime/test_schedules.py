"""Schedules: each occurrence starts one run, whoever dies and whoever comes twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import psycopg
import pytest

from runtime import schedules
from runtime.models import Dispatch, Run, Team, Trigger, Version, Workflow
from runtime.publish import publish
from runtime.schedules import fire_due, latest_missed, occurrence
from runtime.triggers import trigger_kinds

pytestmark = pytest.mark.django_db(transaction=True)

FIRE = """
import asyncio, os, sys, django
django.setup()
import psycopg
from runtime.schedules import fire_due
async def main():
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        print(await fire_due(connection))
asyncio.run(main())
"""


def scheduled(cron: str = "0 * * * *", zone: str = "UTC", triggers: int = 1) -> Workflow:
    workflow = Workflow.objects.create(team=Team.objects.get_or_create(name="Sales")[0], name="Nightly")
    declared = [
        {"id": f"clock{n}", "type": "schedule", "config": {"cron": cron, "zone": zone}} for n in range(triggers)
    ]
    step = {"id": "note", "type": "set", "config": {"values": {"at": "{{ trigger.scheduled_at }}"}}}
    publish(workflow, {"format": 1, "name": "Nightly", "triggers": declared, "steps": [step]})
    return workflow


def fire(url: str, times: int = 1) -> list[int]:
    """`times` workers at once, each over a connection of its own."""

    async def one() -> int:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            return await fire_due(connection)

    async def all_of_them() -> list[int]:
        return list(await asyncio.gather(*(one() for _ in range(times))))

    return asyncio.run(all_of_them())


def due_time(workflow: Workflow) -> datetime:
    return Trigger.objects.get(workflow=workflow, key="clock0").next_at


def test_nothing_fires_before_its_time_and_once_at_its_time(database_url, clock):
    workflow = scheduled()
    assert fire(database_url) == [0]
    due = due_time(workflow)
    clock.advance(seconds=(due - clock.now()).total_seconds() + 1)
    assert fire(database_url) == [1]
    assert fire(database_url) == [0]
    run = Run.objects.get(workflow=workflow)
    trigger = Trigger.objects.get(workflow=workflow)
    assert run.input == {"scheduled_at": due.isoformat(), "occurrence": occurrence(trigger.pk, due)}
    assert run.version == Version.objects.get(workflow=workflow)
    assert run.trigger_key == "clock0"
    assert Dispatch.objects.get(run=run).state == "ready"
    assert (trigger.next_at, trigger.last_at) == (due + timedelta(hours=1), due)


@pytest.mark.fault(26)
def test_many_workers_at_once_start_one_run_per_occurrence(database_url, clock):
    workflow = scheduled(triggers=3)
    clock.advance(hours=1, minutes=1)
    assert sum(fire(database_url, times=8)) == 3
    assert Run.objects.filter(workflow=workflow).count() == 3


@pytest.mark.parametrize(("place", "left"), [("inside", 0), ("after", 1)])
def test_a_worker_killed_while_it_fires_started_the_run_with_its_commit_and_not_before(database_url, clock, place, left):
    workflow = scheduled()
    clock.advance(hours=1)
    killed = subprocess.run(
        [sys.executable, "-c", FIRE], env={**os.environ, "HOLDFAST_FAILPOINT": f"schedule.{place}"}, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    assert Run.objects.filter(workflow=workflow).count() == left
    assert fire(database_url) == [1 - left]
    assert Run.objects.filter(workflow=workflow).count() == 1


def test_an_occurrence_that_was_started_before_is_not_started_again(database_url, clock):
    """As if the clock's hand had been put back: by a restored backup, or by hand."""
    workflow = scheduled()
    due = due_time(workflow)
    clock.advance(hours=1)
    assert fire(database_url) == [1]
    Trigger.objects.filter(workflow=workflow).update(next_at=due)
    assert fire(database_url) == [0]
    assert Run.objects.filter(workflow=workflow).count() == 1


@pytest.mark.fault(27)
def test_occurrences_that_nobody_was_there_for_are_made_up_for_once(database_url, clock):
    workflow = scheduled("0 * * * *")
    due = due_time(workflow)
    clock.advance(seconds=(due - clock.now()).total_seconds() + 1, hours=30)
    assert fire(database_url) == [1]
    assert fire(database_url) == [0]
    assert Run.objects.get(workflow=workflow).input["scheduled_at"] == (due + timedelta(hours=30)).isoformat()
    assert due_time(workflow) == due + timedelta(hours=31)


def test_a_paused_workflow_lets_its_occurrences_pass(database_url, clock):
    workflow = scheduled()
    Workflow.objects.filter(pk=workflow.pk).update(paused=True)
    clock.advance(hours=3)
    assert fire(database_url) == [0]
    Workflow.objects.filter(pk=workflow.pk).update(paused=False)
    assert fire(database_url) == [0]
    assert due_time(workflow) > clock.now()


def test_a_deleted_workflow_stops(database_url, clock):
    workflow = scheduled()
    Workflow.objects.filter(pk=workflow.pk).update(deleted_at=datetime.now(UTC))
    clock.advance(hours=1)
    assert fire(database_url) == [0]
    assert due_time(workflow) is None


def test_one_schedule_that_cannot_be_read_does_not_keep_the_others(database_url, clock):
    broken, sound = scheduled(), scheduled()
    Trigger.objects.filter(workflow=broken).update(config={"cron": "0 * * * *", "zone": "Gone/Away"})
    clock.advance(hours=1)
    assert fire(database_url) == [1]
    assert Run.objects.get().workflow == sound
    assert due_time(broken) is None


def test_a_fault_of_one_kind_does_not_keep_the_others(database_url, clock, monkeypatch):
    """Whoever adds a kind may have made a mistake. It is tried again, for it may be put right."""
    scheduled(triggers=2)
    usual = trigger_kinds()
    Trigger.objects.filter(key="clock0").update(type="broken")
    monkeypatch.setattr(schedules, "trigger_kinds", lambda: usual | {"broken": SimpleNamespace(next_after=lambda config, moment: moment.nothing)})  # fmt: skip
    clock.advance(hours=1)
    assert fire(database_url) == [1] and Run.objects.get().trigger_key == "clock1"
    monkeypatch.setattr(schedules, "trigger_kinds", lambda: usual | {"broken": usual["schedule"]})
    assert fire(database_url) == [1]


def test_publishing_does_not_wait_for_firing_nor_the_other_way(database_url, clock):
    """Publishing locks the workflow and then its triggers. Firing passes over what is locked, so they never meet."""
    workflow = scheduled()
    clock.advance(hours=1)
    with psycopg.connect(database_url) as publishing:
        publishing.execute("select 1 from workflow where id = %s for update", [workflow.pk])
        assert fire(database_url) == [0]
        publishing.rollback()
    assert fire(database_url) == [1]


def test_a_new_version_keeps_the_time_of_an_unchanged_schedule(database_url, clock):
    workflow = scheduled()
    due = due_time(workflow)
    version = Version.objects.get(workflow=workflow)
    publish(workflow, version.definition | {"description": "changed"})
    assert due_time(workflow) == due
    changed = {
        **version.definition,
        "triggers": [{**version.definition["triggers"][0], "config": {"cron": "30 3 * * *"}}],
    }
    publish(workflow, changed)
    assert due_time(workflow).strftime("%H:%M") == "03:30"


def test_a_minutely_schedule_that_slept_for_a_year_is_reckoned_at_once():
    now = datetime(2028, 1, 1, 0, 0, 30, tzinfo=UTC)
    found = latest_missed("schedule", {"cron": "* * * * *", "zone": "UTC"}, now - timedelta(days=365), now)
    assert found == datetime(2028, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("cron", ["*/7 * * * *", "0 3 * * *", "0 0 1 * *", "0 0 29 2 *", "15 9 * * 1"])
def test_the_latest_missed_occurrence_is_the_last_of_all(cron):
    from runtime.triggers import trigger_kinds

    config, first, now = (
        {"cron": cron, "zone": "Europe/Berlin"},
        datetime(2026, 12, 1, tzinfo=UTC),
        datetime(2028, 4, 1, tzinfo=UTC),
    )
    kind = trigger_kinds()["schedule"]
    first = at = kind.next_after(config, first)
    while at <= now:
        expected, at = at, kind.next_after(config, at)
    assert latest_missed("schedule", config, first, now) == expected


# What was missed, and what overlaps


def choosing(**config) -> Workflow:
    workflow = Workflow.objects.create(team=Team.objects.get_or_create(name="Sales")[0], name="Choosing")
    declared = [{"id": "clock0", "type": "schedule", "config": {"cron": "0 * * * *"} | config}]
    publish(workflow, {"format": 1, "name": "Choosing", "triggers": declared, "steps": []})
    return workflow


def hours(workflow: Workflow, due: datetime) -> list[int]:
    """Which occurrences started a run, in hours from the first that was due."""
    inputs = Run.objects.filter(workflow=workflow).order_by("pk").values_list("input", flat=True)
    return [(datetime.fromisoformat(one["scheduled_at"]) - due) // timedelta(hours=1) for one in inputs]


def end(workflow: Workflow) -> None:
    Dispatch.objects.filter(run__workflow=workflow).delete()
    Run.objects.filter(workflow=workflow).update(state="succeeded", ended_at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("config", "expected"),
    [({}, [5]), ({"missed": "skip"}, []), ({"missed": "all"}, [0, 1, 2, 3, 4, 5]), ({"missed": "all", "most": 2}, [4, 5]),
     ({"missed": "all", "overlap": "skip"}, [5]), ({"missed": "all", "most": 3, "overlap": "queue"}, [3])],
)  # fmt: skip
def test_times_that_nobody_was_there_for(database_url, clock, config, expected):
    workflow = choosing(**config)
    due = due_time(workflow)
    clock.advance(seconds=(due - clock.now()).total_seconds() + 5 * 3600 + 600)
    assert sum(fire(database_url, times=4)) == len(expected) and hours(workflow, due) == expected
    clock.advance(minutes=51)
    if config.get("overlap") not in ("queue", "skip"):
        assert fire(database_url) == [1] and hours(workflow, due)[-1] == 6  # what comes in time is always started


def test_while_the_last_run_goes_the_next_waits_for_its_end(database_url, clock):
    workflow = choosing(overlap="queue")
    due = due_time(workflow)
    clock.advance(seconds=(due - clock.now()).total_seconds() + 1)
    assert fire(database_url) == [1]
    clock.advance(hours=2)
    assert fire(database_url) == [0]
    end(workflow)
    assert fire(database_url) == [1] and fire(database_url) == [0]
    end(workflow)
    assert sum(fire(database_url, times=4)) == 1 and hours(workflow, due) == [0, 1, 2]


def test_while_the_last_run_goes_the_next_is_left_out_or_ends_it(database_url, clock):
    left_out, cancels, beside = choosing(overlap="skip"), choosing(overlap="cancel_old"), choosing()
    due = due_time(left_out)
    clock.advance(seconds=(due - clock.now()).total_seconds() + 1)
    assert fire(database_url) == [3]
    clock.advance(hours=1)
    assert fire(database_url) == [2]
    assert hours(left_out, due) == [0] and hours(cancels, due) == [0, 1] and hours(beside, due) == [0, 1]
    assert list(Run.objects.filter(workflow=cancels).order_by("pk").values_list("state", flat=True)) == ["cancelled", "open"]
    assert Dispatch.objects.filter(run__workflow=cancels).count() == 1
    end(left_out)
    clock.advance(hours=1)
    fire(database_url)
    assert hours(left_out, due) == [0, 2]
