"""Teams and members: who changes what, and that a team is never left without an administrator."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from builder.teams import LastAdministrator, ensure_default_team, remove_member, set_role
from runtime.models import AuditEntry, Membership, Role, Team
from tests.builder import factories


def browser(person) -> Client:
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.django_db
def test_a_new_installation_has_a_team_and_keeps_it():
    person = get_user_model().objects.create_superuser("admin")
    team = ensure_default_team(person)
    assert (team.name, Membership.objects.get(team=team, user=person).role) == ("Team", Role.ADMIN)
    team.name = "Renamed"
    team.save()
    assert ensure_default_team(person) == team
    assert Team.objects.count() == 1


@pytest.mark.django_db
def test_administrators_add_change_and_remove_members():
    team = Team.objects.create(name="Ours")
    admin, dana = factories.user("admin", of=team), factories.user(None, name="dana")
    client = browser(admin)
    client.post(reverse("member_add", args=[team.pk]), {"username": "dana", "role": "builder"})
    assert Membership.objects.get(team=team, user=dana).role == "builder"
    client.post(reverse("member_role", args=[team.pk, dana.pk]), {"role": "operator"})
    assert Membership.objects.get(team=team, user=dana).role == "operator"
    client.post(reverse("member_remove", args=[team.pk, dana.pk]))
    assert not Membership.objects.filter(team=team, user=dana).exists()
    assert list(AuditEntry.objects.values_list("action", flat=True)) == ["set_role", "set_role", "remove_member"]


@pytest.mark.django_db
def test_wrong_entries_are_told_and_change_nothing():
    team = Team.objects.create(name="Ours")
    admin = factories.user("admin", of=team)
    client = browser(admin)
    unknown = client.post(reverse("member_add", args=[team.pk]), {"username": "ghost", "role": "viewer"})
    assert (unknown.status_code, "no such user" in unknown.content.decode()) == (422, True)
    assert client.post(reverse("member_role", args=[team.pk, admin.pk]), {"role": "emperor"}).status_code == 422
    Team.objects.create(name="Taken")
    client.post(reverse("team_rename", args=[team.pk]), {"name": "Taken"})
    team.refresh_from_db()
    assert team.name == "Ours"


@pytest.mark.django_db
def test_the_last_administrator_stays():
    team = Team.objects.create(name="Ours")
    admin, other = factories.user("admin", of=team), factories.user("operator", of=team)
    retired = factories.user("admin", of=team, is_active=False)
    for act in (
        lambda: set_role(team, admin, Role.VIEWER, actor=admin),
        lambda: remove_member(team, admin, actor=admin),
    ):
        with pytest.raises(LastAdministrator):
            act()
    set_role(team, other, Role.ADMIN, actor=admin)
    assert remove_member(team, admin, actor=other)
    assert Membership.objects.get(team=team, user=retired).role == Role.ADMIN


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_demote_each_other_at_once_do_not_both_succeed():
    team = Team.objects.create(name="Ours")
    one, other = factories.user("admin", of=team), factories.user("admin", of=team)
    ready, refused = threading.Barrier(2), []

    def demote(actor, victim) -> None:
        ready.wait()
        try:
            set_role(team, victim, Role.VIEWER, actor=actor)
        except LastAdministrator:
            refused.append(actor)
        finally:
            connection.close()

    threads = [threading.Thread(target=demote, args=pair) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert Membership.objects.filter(team=team, role=Role.ADMIN).count() == 1


@pytest.mark.django_db
def test_viewers_see_the_members_and_no_controls():
    team = Team.objects.create(name="Ours")
    admin = factories.user("admin", of=team, name="dana")
    page = browser(factories.user("viewer", of=team)).get(reverse("settings"), follow=True).content.decode()
    assert "dana" in page
    assert reverse("member_role", args=[team.pk, admin.pk]) not in page
    assert "Rename" not in page


@pytest.mark.django_db
def test_superusers_make_teams():
    client = browser(get_user_model().objects.create_superuser("root"))
    client.post(reverse("team_create"), {"name": "New"})
    assert Membership.objects.get(team__name="New").user.username == "root"
    assert client.post(reverse("team_create"), {"name": "New"}).status_code == 302
    assert Team.objects.count() == 1
