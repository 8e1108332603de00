"""The search over everything: what a person may see, by name, number, title or key; and no more."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from builder import runfilter
from builder.searching import found
from runtime.models import RunSearch
from tests.builder import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme():
    """A flow of the team Sales with one run."""
    version = factories.version()
    version.workflow.name = "Lead qualification"
    version.workflow.save()
    return factories.run(version, title="Acme Ltd", idempotency_key="lead-7")


def names(user, query):
    return [(hit.kind, hit.name) for hit in found(user, query)]


def test_flows_runs_and_pages_are_found_by_what_they_are_called(acme):
    person = factories.user("operator", of=acme.workflow.team)
    assert names(person, " lead  QUAL") == [("flow", "Lead qualification")]
    assert names(person, "acme") == names(person, "lead-7") == names(person, f"run {acme.pk}") == [("run", "Acme Ltd")]
    assert ("page", "Sent mail") in names(person, "mail")
    assert names(person, "nothing is called so") == names(person, "\x00 nor so") == []


def test_without_a_query_it_offers_the_latest_flows_and_the_pages(acme):
    person = factories.user("viewer", of=acme.workflow.team)
    offered = names(person, " ")
    assert offered[0] == ("flow", "Lead qualification") and ("page", "Runs") in offered
    assert not [one for one in offered if one[0] == "run"]


def test_nobody_finds_what_they_may_not_open(acme):
    stranger = factories.user("viewer", of=factories.team("Support"))
    assert names(stranger, "acme") == names(stranger, "lead") == names(stranger, str(acme.pk)) == []
    assert ("page", "Audit trail") not in names(stranger, "") and ("page", "Operations") not in names(stranger, "")
    assert Client().get(reverse("search"), {"q": "acme"})["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("query", ["same@example.com", "same@"])
def test_runs_of_other_teams_do_not_crowd_out_ones_own(acme, monkeypatch, query):
    """Whatever a stranger's webhook is sent."""
    monkeypatch.setattr(runfilter, "MOST_DECLARING", 2)
    theirs = factories.version(of=factories.team("Support"))
    for run in (*(factories.run(theirs) for _ in range(5)), acme):
        RunSearch.objects.create(run_id=run.pk, value="same@example.com")
    person = factories.user("viewer", of=acme.workflow.team)
    assert [hit for hit in names(person, query) if hit[0] == "run"] == [("run", "Acme Ltd")]


def test_one_thing_that_is_found_is_opened_and_several_are_listed(acme):
    browser = Client()
    browser.force_login(factories.user("operator", of=acme.workflow.team))
    assert browser.get(reverse("search"), {"q": "acme"})["Location"] == reverse("run", args=[acme.pk])
    page = browser.get(reverse("search"), {"q": "a"}).content.decode()
    assert "Lead qualification" in page and "Acme Ltd" in page and "Operations" in page
    assert "is called “&lt;b&gt;”" in browser.get(reverse("search"), {"q": "<b>"}).content.decode()
