"""The operators' commands: what the pages do, as tables for people and as JSON for pipes."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from builder.commandline import cell, table
from runtime import jobs
from runtime.models import AuditEntry, Run, StepResult, Wait
from tests.builder import factories
from tests.builder.factories import DEAL

pytestmark = pytest.mark.django_db


def told(*words: Any, **options: Any) -> list[dict[str, Any]]:
    """What a pipe gets."""
    out = io.StringIO()
    call_command(*map(str, words), stdout=out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture
def version():
    return factories.version()


def failed(version, **more) -> Run:
    error = {"step": "deal", "name": "Create deal", "path": DEAL, "message": "503", "kind": "0123456789abcdef"}
    run = factories.run(version, state="failed", error=error, **more)
    factories.attempt(run, DEAL, 1, 4, 5, "refused", error="503")
    factories.result(run, DEAL, 4, 5, "failed", error=error)
    return run


def test_runs_are_listed_by_the_filters_of_the_page(version):
    bad, good = failed(version, title="bad"), factories.run(version, state="succeeded", title="good")
    assert [row["run"] for row in told("runs")] == [good.pk, bad.pk]
    row = told("runs", "--state", "failed", "--flow", version.workflow.name, "--error", "0123456789abcdef")[0]
    assert (row["run"], row["step"], row["where"], row["version"]) == (bad.pk, "Create deal in CRM", "", 7)
    assert (row["error"], row["error_kind"]) == ("503", "0123456789abcdef")
    assert told("runs", "--limit", "1", "--flow", version.workflow_id)[0]["run"] == good.pk
    for wrong in (("--flow", "nothing"), ("--error", "x"), ("--longer", "-1"), ("--dearer", "much")):
        with pytest.raises(CommandError):
            told("runs", *wrong)


def test_people_get_a_table(version, capsys):
    failed(version, title="Tallis\n& Co")
    call_command("runs", "--table")
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["run", "state", "flow", "version"] and "Tallis & Co" in line
    assert table([], 80) == ["Nothing found."] and all(len(line) <= 20 for line in table([{"a": "x" * 50}], 20))


@pytest.mark.parametrize("form", ["--table", "--json"])
def test_what_others_wrote_does_not_steer_the_terminal(version, capsys, form):
    failed(version, title="a\x1b[2Jb\x9bc\u202ed\x07")
    call_command("runs", form)
    told = capsys.readouterr().out
    assert "a" in told and all(letter == "\n" or letter.isprintable() for letter in told)


def test_a_run_with_its_steps_and_waits(version):
    run = factories.run(version)
    factories.result(run, "qualify", 0, 1)
    factories.attempt(run, "qualify", 1, 0, 1)
    factories.result(run, "hot", 1, 2)
    factories.result(run, "hot/no/nurture", 2, 3, "skipped")
    factories.wait(run, "hot/no/later", "timer", 2, due=100)
    found = told("run", run.pk)[0]
    assert [(step["path"], step["attempts"]) for step in found["steps"]] == [("qualify", 1), ("hot", 1), ("hot/no/nurture", 0)]
    assert found["waits"][0]["kind"] == "timer" and found["input"] == run.input
    with pytest.raises(CommandError):
        told("run", run.pk + 1)


@pytest.mark.parametrize(("cost", "shown"), [("0.00000000", "0"), ("1200.00000000", "1200"), ("0.00410000", "0.0041")])
def test_money_is_written_without_an_exponent(version, cost, shown):
    assert cell(Decimal(cost)) == shown == jobs.cell(Decimal(cost))


def test_one_run_or_a_whole_filter_is_requeued(version):
    person = factories.user("operator", name="ines")
    first, *more = (failed(version) for _ in range(3))
    assert told("requeue", first.pk, user="ines") == [{"run": first.pk, "changed": True, "state": "open", "why": ""}]
    assert told("requeue", first.pk)[0]["changed"] is False
    assert AuditEntry.objects.get(action="requeue").actor == person
    with pytest.raises(CommandError, match="--yes"):
        told("requeue", "--state", "failed")
    with pytest.raises(CommandError, match="Name runs"):
        told("requeue", "--yes")
    assert [row["run"] for row in told("requeue", "--state", "failed", "--yes")] == [run.pk for run in more]
    assert told("requeue", 10**9)[0]["state"] == "no such run"


def test_from_a_step(version):
    run = failed(version)
    factories.result(run, "qualify", 0, 1)
    assert "no step" in told("requeue", run.pk, "--from", "nowhere")[0]["why"]
    assert told("requeue", run.pk, "--from", "qualify")[0]["changed"]
    assert not StepResult.objects.filter(run_id=run.pk, superseded=False).exists()
    with pytest.raises(CommandError, match="one run"):
        told("requeue", "--state", "failed", "--from", "qualify")


def test_runs_start_again_on_their_own_version_or_on_the_live_one(version):
    run = failed(version, input={"body": {"n": 1}})
    live = factories.version_after(version)
    for row, own in ((told("rerun", run.pk), version), (told("rerun", "--state", "failed", "--live", "--yes"), live)):
        started = Run.objects.get(pk=row[0]["new_run"])
        assert (row[0]["changed"], started.version, started.rerun_of_id, started.input) == (True, own, run.pk, {"body": {"n": 1}})
    edited = Run.objects.get(pk=told("rerun", run.pk, "--input", '{"body": {"n": 2}}')[0]["new_run"])
    assert edited.input == {"body": {"n": 2}}
    for wrong in ("{", "[1]"):
        with pytest.raises(CommandError, match="input"):
            told("rerun", run.pk, "--input", wrong)
    with pytest.raises(CommandError, match="one run"):
        told("rerun", "--state", "failed", "--input", "{}")


def test_cancel_and_fail(version):
    runs = [factories.run(version) for _ in range(2)]
    assert told("cancel", runs[0].pk, "--why", "a test")[0]["state"] == "cancelled"
    assert told("cancel", runs[1].pk, "--as-failed")[0]["state"] == "failed"


def test_a_call_that_may_have_happened_is_resolved(version):
    run = factories.run(version, state="attention")
    wait = factories.wait(run, DEAL, "person", 3, data={"reason": "uncertain"})
    with pytest.raises(CommandError, match="Nothing is asked"):
        told("resolve", run.pk, "qualify", "again")
    with pytest.raises(CommandError):
        told("resolve", run.pk, DEAL, "happened", "--output", "{")
    assert told("resolve", run.pk, DEAL, "happened", "--output", '{"id": 7}')[0]["changed"]
    assert Wait.objects.get(pk=wait.pk).outcome["output"] == {"id": 7}
    assert told("resolve", run.pk, "qualify", "skip", "--output", "1")[0]["changed"]


def test_an_export_is_as_long_as_it_is(version, monkeypatch):
    monkeypatch.setattr("builder.management.commands.export.ROWS_AT_ONCE", {"csv": 2, "jsonl": 2})
    for n in range(5):
        factories.run(version, state="succeeded", output={"n": n})
    factories.run(version)
    assert [row["output"]["n"] for row in told("export", "--state", "succeeded")] == [0, 1, 2, 3, 4]
    out = io.StringIO()
    call_command("export", "--format", "csv", stdout=out)
    assert len(list(csv.DictReader(io.StringIO(out.getvalue())))) == 6
