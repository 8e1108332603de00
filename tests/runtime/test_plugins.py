"""The palette takes packages: what the README shows is a step type, found by its entry point, that works on a real worker."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from builder.dryrun import dry_run
from builder.palette import sections
from builder.templatetags.icons import icon, step_icon
from runtime import publish, schedules
from runtime.credentials import seal
from runtime.models import Credential, Run, Team, Trigger
from runtime.steps import step_types
from runtime.triggers import trigger_kinds
from tests.runtime.engine import Zygote
from tests.runtime.test_schedules import fire
from tests.servers.api import Server

README = (Path(__file__).parents[2] / "runtime" / "README.md").read_text().partition("## A step type of your own")[2]
MONTH_END = '''
"""Month end: on the last day of each month."""

from datetime import UTC, timedelta

from runtime.steps.base import Config
from runtime.triggers.base import TriggerKind


class MonthEnd(TriggerKind):
    type, label, icon, summary = "month_end", "Month end", "calendar-check", "Start on the last day of each month"
    Config = Config

    def next_after(self, config, moment):
        day = moment.astimezone(UTC).replace(hour=18, minute=0, second=0, microsecond=0)
        while day <= moment or (day + timedelta(days=1)).day != 1:
            day += timedelta(days=1)
        return day


KIND = MonthEnd()
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Makes an installed package of a module and its entry point; gives the folder that it lies in."""

    def forget() -> None:
        for found in (step_types, trigger_kinds, sections):
            found.cache_clear()

    def install(module: str, source: str, group: str, name: str) -> Path:
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\nplugged = {module}:{name}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        forget()
        return tmp_path

    yield install
    monkeypatch.undo()
    forget()


BROKEN = '''
"""Broken: what its author did not expect."""

from runtime.steps.base import Config, StepType


class Broken(StepType):
    type, label, icon, category, summary = "broken", "Broken", "bug", "Actions", "Break"
    Config = Config

    async def run(self, ctx):
        return {}["answer"]


STEP = Broken()
'''


@pytest.fixture
def gateway(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    with Server() as made:
        made.answer = lambda *request: (200, {"id": "m-1"}, {})
        yield made


def test_the_readmes_step_type_has_forty_lines_and_works_as_it_stands(engine, installed, gateway, monkeypatch, request):
    source = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(source.splitlines()) <= 42
    folder = installed("acme_sms", source, "holdfast.steps", "STEP")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    zygote = Zygote()
    request.addfinalizer(lambda: (engine.kill_all(), zygote.close()))
    engine.worker(zygote=zygote, allowed_private_hosts=["127.0.0.1"])
    step = {"id": "text", "type": "sms", "config": {"gateway": "gateway", "to": "{{ trigger.body.phone }}", "text": "Hello"}}
    version = engine.publish([step])
    row = Credential(team=version.workflow.team, name="gateway", kind="bearer", hosts=["127.0.0.1"], config={"base_url": gateway.url})
    seal(row, {"token": "t0ken"})
    run = engine.start(version, {"phone": "+49 30 1"})
    engine.ends(run)
    assert engine.output(run, "text") == {"id": "m-1"}
    [(method, path, headers, body)] = gateway.seen
    assert (method, path) == ("POST", "/messages") and b"+49 30 1" in body and headers["Authorization"] == "Bearer t0ken"


def test_it_stands_in_the_palette_with_its_words_and_its_icon(installed):
    installed("acme_sms", re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], "holdfast.steps", "STEP")
    [entry] = [entry for part in sections() for entry in part.entries if entry.type == "sms"]
    assert entry.label == "Text message" and [setting.title for setting in entry.settings] == ["Gateway", "To", "Message"]
    assert step_icon("sms") == icon("message-square")


@pytest.mark.django_db(transaction=True)
def test_a_trigger_kind_of_a_package_starts_runs_by_the_clock(installed, database_url, clock):
    installed("acme_month", MONTH_END, "holdfast.triggers", "KIND")
    workflow = Team.objects.create(name="Sales").workflows.create(name="Books")
    declared = {"format": 1, "name": "Books", "triggers": [{"id": "end", "type": "month_end"}], "steps": []}
    publish.publish(workflow, declared)
    due = Trigger.objects.get().next_at
    assert (due.hour, due > clock.now()) == (18, True)
    clock.advance(seconds=(due - clock.now()).total_seconds() + 1)
    assert fire(database_url) == [1]
    assert Run.objects.get().input["scheduled_at"] == due.isoformat() and Trigger.objects.get().next_at.month != due.month


@pytest.mark.django_db(transaction=True)
def test_a_worker_without_the_package_leaves_its_trigger_to_the_others(installed, database_url, clock, monkeypatch):
    installed("acme_month", MONTH_END, "holdfast.triggers", "KIND")
    workflow = Team.objects.create(name="Sales").workflows.create(name="Books")
    declared = {"format": 1, "name": "Books", "triggers": [{"id": "end", "type": "month_end"}], "steps": []}
    publish.publish(workflow, declared)
    clock.advance(days=32)
    known = trigger_kinds()
    monkeypatch.setattr(schedules, "trigger_kinds", lambda: {name: kind for name, kind in known.items() if name != "month_end"})
    assert fire(database_url) == [0] and Trigger.objects.get().next_at < clock.now()
    monkeypatch.setattr(schedules, "trigger_kinds", lambda: known)
    assert fire(database_url) == [1]


@pytest.mark.django_db
def test_a_step_that_breaks_while_it_is_tried_breaks_no_page(installed):
    installed("acme_broken", BROKEN, "holdfast.steps", "STEP")
    shown = dry_run({"steps": [{"id": "one", "type": "broken", "config": {}}]}, "one", {}, team_id=0)
    assert (shown.kind, shown.text) == ("failure", "The step broke: KeyError: 'answer'")
