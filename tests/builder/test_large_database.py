"""What pages and workers ask costs the same beside many runs: no statement reads a table that grows with them as a whole."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from builder import flowlist, operations, runfilter, runlist
from builder.views import inbox
from runtime.models import RunSearch, Wait
from tests.bench import patterns, plans, runs, seed
from tests.builder import factories
from tests.plans import plan_of, statements

pytestmark = pytest.mark.django_db

RUNS = 20_000
MOST_ROWS = RUNS // 2
"""More than the bounds below allow a statement to look at, and than the largest flow has runs."""
APPROVE, DEAL = "hot/yes/meanwhile/outreach/approve_vip", "hot/yes/meanwhile/outreach/deal"


@pytest.fixture
def made(monkeypatch) -> patterns.Made:
    """Three flows of two teams with twenty thousand runs, and one of a team of its own with twenty old ones."""
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))
    versions = [factories.version(factories.LEAD | {"name": f"Leads {n}"}, of=factories.team(("Sales", "Finance")[n % 2])) for n in range(3)]
    rare = factories.version(factories.LEAD | {"name": "Old leads"}, of=factories.team("Museum"))
    copied = [seed.Pattern(run.pk, share) for run, share in _patterns(versions[0])]
    first, last = seed.seed(copied, versions, rare, RUNS)
    with connection.cursor() as cursor:
        cursor.execute("analyze")
    operator, newcomer = factories.user("operator"), factories.user("operator", of=rare.workflow.team)
    people = {"administrator": factories.user(None, is_superuser=True, is_staff=True), "operator": operator, "newcomer": newcomer}
    seen = [run.run for run in copied]
    return patterns.Made(
        first, last, [one.workflow_id for one in versions], rare.workflow_id, [key for _, key in seed.messages()][::8], people,
        seen, {name: seen[0] for name in ("ended", "failed", "going on")},
    )  # fmt: skip


def _patterns(version):
    done, failed, cancelled = (factories.run(version, state=state) for state in ("succeeded", "failed", "cancelled"))
    failed.error = {"path": DEAL, "step": "deal", "name": "Create deal in CRM", "message": "503"}
    failed.save()
    asking, waiting, uncertain = factories.run(version), factories.run(version), factories.run(version, state="attention")
    for run in (done, failed, cancelled, asking, waiting, uncertain):
        factories.result(run, "qualify", 0, 4, output={"score": 82})
        factories.result(run, "hot", 4, 5, output={"branch": "yes"})
        factories.attempt(run, "qualify", 1, 0, 4, tokens_in=10)
        factories.attempt(run, DEAL, 1, 5, 6)
        factories.log(run, "Asked dana")
        RunSearch.objects.create(run_id=run.pk, value="priya@example.com")
    for path in (DEAL, "each"):
        factories.result(done, path, 5, 6, output={})
    factories.mail(done, state="sent")
    factories.approval(factories.wait(asking, APPROVE, "approval", 5, due=10**6))
    factories.wait(waiting, "hot/yes/meanwhile/warm/two_days", "timer", 5, due=10**6)
    factories.wait(uncertain, DEAL, "person", 6, data={"reason": "uncertain"})
    factories.Dispatch.objects.filter(pk__in=[asking.pk, waiting.pk]).update(due_at=factories.at(10**6))
    return [(done, 1), (failed, 0.05), (cancelled, 0.02), (asking, 0.02), (waiting, 0.02), (uncertain, 0.005)]


def test_no_page_reads_a_large_table_as_a_whole(made, monkeypatch):
    for module, name, value in (
        (runfilter, "SEARCHED", 1000), (runlist, "DAY_READ", 1000), (runlist, "COUNT_TO", 100),
        (operations, "COUNT_TO", 1000), (operations, "RUNS_READ", 500), (operations, "FAILED_READ", 500),
        (flowlist, "LOOKED_AT", 100),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    asked = [(figure.name, one) for figure in runs.figures_of(made) for one in plans.of_page(made, figure, most=2)]
    assert len(asked) > 1000, "the pages ask for what they show"
    wrong = [f"{name}: {one.reads} in {one.sql}" for name, one in asked if one.whole or one.rows > MOST_ROWS]
    assert not wrong, "\n".join(wrong)


def test_questions_waits_and_a_flows_counts_ask_for_few_runs_however_many_there_are(made, monkeypatch):
    monkeypatch.setattr(inbox, "COUNT_TO", 50)
    monkeypatch.setattr(inbox, "LOOKED_AT", 50)
    monkeypatch.setattr(runlist, "COUNT_TO", 100)
    monkeypatch.setattr(runlist, "DAY_READ", 1000)
    pages = {figure.name: figure for figure in runs.figures_of(made)}
    for name, most in (("approvals", 300), ("waits, operator", 300), ("runs: a flow", RUNS // 8)):
        asked = [(one, sum(rows for table, _, rows in one.reads if table == "run")) for one in plans.of_page(made, pages[name], most=1)]
        wrong = [f"{name}: {one.reads} in {one.sql}" for one, rows in asked if rows > most]
        assert not wrong, "\n".join(wrong)


def test_no_claim_wake_or_question_of_a_worker_reads_a_large_table_as_a_whole(made):
    wait = Wait.objects.filter(state="open", kind="timer").latest("pk")
    asked = statements(wait.run_id, wait.pk, made.flows[-1])
    for kind in ("cost", "rate"):
        del asked[f"alert {kind} of a flow"]  # it may look at as many runs as there are here
    wrong = [f"{name}: {one.reads}" for name, (sql, given) in asked.items() if (one := plan_of(sql, given)).whole]
    assert not wrong, "\n".join(wrong)
