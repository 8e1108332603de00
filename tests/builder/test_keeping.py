"""Continuing a run on a repaired version: what the pages, the command and the API say and do, and that they say it first."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
from django.urls import reverse

from runtime import acts
from runtime.definition import find
from runtime.models import AuditEntry, FrameChunk, Run, StepResult, Version, Workflow
from tests.builder import factories
from tests.builder.test_again import section
from tests.builder.test_api import Program
from tests.builder.test_commandline import told
from tests.builder.test_jobs import worked  # noqa: F401

pytestmark = pytest.mark.django_db

STEPS = [
    {"id": "qualify", "type": "http", "name": "Qualify lead", "config": {"method": "GET", "url": "https://crm.example/leads"}},
    {"id": "gone", "type": "set", "name": "Old note", "config": {"values": {}}},
    {"id": "tell", "type": "email", "name": "Send intro", "config": {"to": ["priya@example.com"], "subject": "Hello", "body": "Hello"}},
    {"id": "deal", "type": "http", "name": "Create deal", "config": {"method": "POST", "url": "https://crm.example/dael"}},
    {"id": "study", "type": "email", "name": "Send study", "config": {"to": ["priya@example.com"], "subject": "Study", "body": "Read"}},
]
ERROR = {"step": "deal", "name": "Create deal", "path": "deal", "message": "404 Not Found"}


def failed(version: Version | None = None, **more: Any) -> Run:
    """At the deal, after an answered call and a mail."""
    run = factories.run(version or factories.version(factories.LEAD | {"steps": STEPS}), state="failed", error=ERROR, **more)
    factories.attempt(run, "qualify", 1, 0, 3)
    factories.result(run, "qualify", 0, 3, output={"score": 82}, cost="0.5")
    factories.result(run, "gone", 3, 3, output={})
    factories.result(run, "tell", 3, 4, output={})
    factories.mail(run, "priya@example.com", path="tell", state="sent")
    factories.attempt(run, "deal", 1, 4, 5, error="404 Not Found")
    factories.result(run, "deal", 4, 5, "failed", error=ERROR)
    return run


def repaired(run: Run, *changed: str) -> Version:
    """A newer live version, without the step called Old note, in which these steps are other ones."""
    definition = deepcopy(run.version.definition)
    definition["steps"] = [step for step in definition["steps"] if step["id"] != "gone"]
    for id in changed:
        step = find(definition, id)
        step["config"] |= {"url": "https://crm.example/deals"} if step["type"] == "http" else {"subject": "Other"}
    return factories.version_after(Workflow.objects.get(pk=run.workflow_id).live_version, definition)


def first_button(html: str) -> set[str]:
    return {re.search(r'href="([^"]+)"', link)[1] for link in re.findall(r'<a class="btn[^"]*btn--primary"[^>]*>', html)}


def page(client, run: Run) -> str:
    return client.get(reverse("run", args=[run.pk])).content.decode()


def test_it_is_proposed_first_where_the_step_that_failed_was_changed(client, operator):
    run = failed()
    url = reverse("run_continue", args=[run.pk])
    assert url not in page(client, run), "a requeue goes on with the version that it has"
    repaired(run)
    assert url in page(client, run) and url not in first_button(page(client, run)), "the step that failed only fails again"
    run = failed()
    repaired(run, "deal")
    assert first_button(page(client, run)) == {reverse("run_continue", args=[run.pk])} and "Continue on v8" in page(client, run)
    factories.run(run.version, rerun_of=run)
    assert "Continue on" not in page(client, run), "a later run has it in hand"


def test_a_cancelled_run_can_be_continued_and_one_that_went_well_cannot(client, operator):
    version = factories.version(factories.LEAD | {"steps": STEPS})
    cancelled, well = (factories.run(version, state=state) for state in ("cancelled", "succeeded"))
    assert "Continue on v7" in page(client, cancelled) and "Continue on" not in page(client, well)
    assert "Only a run that failed or was cancelled" in client.get(reverse("run_continue", args=[well.pk])).content.decode()


def test_what_is_kept_what_runs_and_what_is_called_once_more_is_said_first(client, operator):
    run = failed()
    repaired(run, "deal")
    html = client.get(reverse("run_continue", args=[run.pk]), headers={"HX-Request": "true"}).content.decode()
    assert "Continue run" in html and "on v8?" in html and "It goes on at <b>Create deal</b>, which failed, and was changed since." in html
    kept, again, outside = (section(html, name) for name in ("Keeps its result", "Runs again", "Outside, once more"))
    assert "Qualify lead" in kept and "Send intro" in kept and "Old note" not in kept and "Create deal" not in kept
    assert "Create deal" in again and "Qualify lead" not in again
    assert "Create deal" in outside and "was answered" in outside and "Mail to" not in outside
    assert not Run.objects.filter(rerun_of=run).exists(), "looking is not doing"


def test_what_comes_before_the_failure_and_was_changed_runs_again_with_its_mail(client, operator):
    run = failed()
    repaired(run, "tell", "deal")
    html = client.get(reverse("run_continue", args=[run.pk])).content.decode()
    assert "It goes on at <b>Send intro</b>, which was changed since." in html
    assert "Mail to priya@example.com" in section(html, "Outside, once more") and "Send intro" not in section(html, "Keeps its result")


def test_a_call_that_may_have_happened_is_said_to_be_asked_about(client, operator):
    run = failed()
    StepResult.objects.filter(run_id=run.pk, path="deal").delete()
    run.version.workflow.runs.filter(pk=run.pk).update(error={"message": "Failed by hand."})
    factories.attempt(run, "deal", 2, 5, 6, "unknown", error="The worker was lost during the call.")
    repaired(run)
    html = client.get(reverse("run_continue", args=[run.pk])).content.decode()
    assert "the new run asks before it is made again" in section(html, "Outside, once more")
    assert "which had not ended" in html


def test_a_press_counts_once_keeps_the_version_that_was_shown_and_the_new_run_says_what_it_kept(client, operator):
    run = failed()
    shown = repaired(run, "deal")
    html = client.get(reverse("run_continue", args=[run.pk])).content.decode()
    form = {name: re.search(f'name="{name}" value="([^"]+)"', html)[1] for name in ("key", "version")}
    repaired(run, "deal", "tell")
    first, second = (client.post(reverse("run_continue", args=[run.pk]), form) for _ in range(2))
    new = Run.objects.get(rerun_of=run)
    assert first.url == second.url == reverse("run", args=[new.pk]) and new.version == shown
    assert dict(StepResult.objects.filter(run_id=new.pk).values_list("path", "kept_from")) == {"qualify": run.pk, "tell": run.pk}
    entry = AuditEntry.objects.get(action="rerun")
    assert (entry.actor, entry.detail) == (operator, {"new_run": new.pk, "kept": 2})
    html = page(client, new)
    assert html.count(f"kept from run {run.pk:,}") == 2 and "$0.5" not in html
    panel = client.get(reverse("run", args=[new.pk]), {"step": "qualify", "tab": "attempts"}).content.decode()
    assert f'Kept from <a href="{reverse("run", args=[run.pk])}">' in panel and "Not called here" in panel and "Attempt 1" not in panel
    Run.objects.filter(pk=new.pk).update(rerun_of=None)
    Run.objects.filter(pk=run.pk).delete()
    assert f"Kept from run {run.pk:,}, which is gone" in client.get(reverse("run", args=[new.pk]), {"step": "qualify"}).content.decode()


def test_the_dialogs_say_which_call_has_its_key_again_and_which_run_goes_on(client, operator):
    run = factories.run(factories.version(factories.LEAD | {"steps": STEPS}), state="failed", error={"message": "Failed by hand"})
    factories.attempt(run, "qualify", 1, 0, 3, outcome="unknown", error="No answer within 60 s.")
    repaired(run, "deal")
    asked = client.get(reverse("run_continue", args=[run.pk])).content.decode()
    assert "may have happened: it is made again with the key that it had" in asked and "unless it says otherwise" in asked
    other = failed()
    repaired(other, "deal")
    new = acts.rerun(other, version=other.workflow.live_version, keep=True)
    for dialog in (reverse("run_requeue", args=[other.pk]), reverse("run_retry", args=[other.pk]) + "?step=deal"):
        html = client.get(dialog).content.decode()
        assert f"Run {new:,} was begun with the results of this one" in html and 'method="post"' not in html.split("again-title")[1]


def test_a_refusal_is_said_and_changes_nothing(client, operator):
    run = failed()
    repaired(run, "deal")
    later = factories.run(run.version, rerun_of=run)
    answer = client.post(reverse("run_continue", args=[run.pk]), {"key": "k"}, follow=True).content.decode()
    assert f"Run {later.pk:,} was started after this one" in answer and "Nothing was changed." in answer
    assert Run.objects.filter(rerun_of=run).count() == 1
    assert client.post(reverse("run_continue", args=[run.pk]), {"key": "k", "version": "x"}).status_code == 302


def test_a_loop_that_was_kept_is_told_with_its_iterations_and_without_their_time(client, operator):
    steps = [{"id": "each", "type": "loop", "name": "Each", "config": {"items": "[1, 2]"}, "steps": [STEPS[0]]}, *STEPS[3:]]
    run = factories.run(factories.version(factories.LEAD | {"steps": steps}), state="failed", error=ERROR)
    FrameChunk.objects.create(run_id=run.pk, path="each", take=1, n=0, items=[1, 2])
    for n in range(2):
        factories.result(run, f"each[{n}]/qualify", n, n + 1, output={})
    factories.result(run, "each", 0, 3, output={"count": 2, "succeeded": 2, "failed": 0})
    factories.result(run, "deal", 4, 5, "failed", error=ERROR)
    new = Run.objects.get(pk=acts.rerun(run, version=repaired(run, "deal"), keep=True))
    lines = {row["node"].path: row["node"] for row in client.get(reverse("run", args=[new.pk])).context["lines"]}
    assert lines["each"].note.before == f"kept from run {run.pk:,}" and lines["each"].aside == "2 of 2"
    assert not any(node.spans or node.time for path, node in lines.items() if path.startswith("each"))
    assert {path for path in lines if path.startswith("each[")} == {"each[0]", "each[1]"}


def test_many_are_continued_on_the_live_version(client, operator, worked):
    version = factories.version(factories.LEAD | {"steps": STEPS})
    runs = [failed(version) for _ in range(3)]
    well = factories.run(version, state="succeeded")
    repaired(runs[0], "deal")
    over = factories.run(version, state="failed", rerun_of=runs[2])
    form = {"act": "rerun", "run": [run.pk for run in (*runs, well)], "once": "f"}
    asked = client.post(reverse("runs_told"), form).content.decode()
    assert 'value="rerun_live" data-instead checked' in asked and "(3 of them can)" in asked.split("keeping the results")[1]
    answer = client.post(reverse("runs_act"), form | {"act": "rerun_keep"}, follow=True).content.decode()
    assert "Continue on the live version" in answer
    worked()
    made = Run.objects.filter(rerun_of__in=runs[:2])
    assert made.count() == 2 and not Run.objects.filter(rerun_of=well).exists()
    assert list(Run.objects.filter(rerun_of=runs[2])) == [over], "what a later run has taken over is left out"
    assert StepResult.objects.filter(run_id__in=made, kept_from__in=[run.pk for run in runs]).count() == 4


def test_the_command_keeps_results(operator):
    run = failed()
    version = repaired(run, "deal")
    row = told("rerun", run.pk, "--live", "--keep", user=operator.username)[0]
    new = Run.objects.get(pk=row["new_run"])
    assert row["changed"] and new.version == version and StepResult.objects.filter(run_id=new.pk).count() == 2
    row = told("rerun", run.pk, "--live", "--keep")[0]
    assert not row["changed"] and "was started after this one" in row["why"]


def test_the_api_starts_a_run_again_and_keeps_results():
    program, run = Program("operator"), failed()
    url = f"/runs/{run.pk}/rerun"
    refused = program("POST", url, {"keep": True, "version": "pinned", "idempotency_key": "k"})
    assert refused.status_code == 201, refused.content
    acts.cancel(refused.json()["run"])
    repaired(run, "deal")
    answers = [program("POST", url, {"keep": True, "version": "live", "idempotency_key": "m"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json() | {"created": False} == answers[1].json()
    new = answers[0].json()["run"]
    steps = program("GET", f"/runs/{new}/steps").json()["items"]
    assert {step["path"]: step["kept_from"] for step in steps} == {"qualify": run.pk, "tell": run.pk}
    again = program("POST", url, {"keep": True, "version": "live"})
    assert again.status_code == 409 and "was started after this one" in again.json()["error"]["message"]
    requeued = program("POST", f"/runs/{run.pk}/requeue", {})
    assert requeued.status_code == 409 and f"Run {new:,} was begun with the results of this one" in requeued.json()["error"]["message"]
    assert acts.cancel(new) and program("POST", f"/runs/{run.pk}/requeue", {}).json() == {"changed": True, "state": "open"}
    assert program("POST", url, {"version": "v8"}).status_code == 422
    assert Program("viewer")("POST", url, {}).status_code == 403
    assert program("POST", url, {}).status_code == 201, "from the top"
