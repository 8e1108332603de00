"""Connections: sealed, opened for their own row only, and rotated."""

from __future__ import annotations

import asyncio
from io import StringIO

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from runtime import credentials
from runtime.credentials import CannotOpen
from runtime.models import Credential, Team
from runtime.steps.base import StepError

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return Team.objects.create(name="Sales")


def sealed(team, name="crm", **secret):
    credential = Credential(
        team=team, name=name, kind="bearer", hosts=["CRM.example"], config={"base_url": "https://api.crm.example/v1"}
    )
    return credentials.seal(credential, secret or {"token": "s3cret"})


def test_what_was_sealed_opens_and_is_not_readable_at_rest(team):
    row = Credential.objects.get(pk=sealed(team).pk)
    assert b"s3cret" not in bytes(row.secret)
    connection = credentials.open_row(row)
    assert connection.secret == {"token": "s3cret"}
    assert connection.hosts == ("crm.example", "api.crm.example"), "bound to its base address too"
    assert "s3cret" not in repr(connection)


def test_a_ciphertext_moved_to_another_row_is_refused(team):
    one, other = sealed(team), sealed(team, "other", token="else")
    Credential.objects.filter(pk=other.pk).update(secret=bytes(one.secret))
    with pytest.raises(CannotOpen, match="another"):
        credentials.open_row(Credential.objects.get(pk=other.pk))


def test_rotation_opens_with_old_keys_and_seals_with_the_new(team, settings):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.HOLDFAST_CREDENTIAL_KEYS = [old]
    row = sealed(team)
    settings.HOLDFAST_CREDENTIAL_KEYS = [new, old]
    assert credentials.open_row(row).secret == {"token": "s3cret"}
    assert credentials.rotate() == 1
    settings.HOLDFAST_CREDENTIAL_KEYS = [new]
    assert credentials.open_row(Credential.objects.get()).secret == {"token": "s3cret"}
    settings.HOLDFAST_CREDENTIAL_KEYS = [old]
    with pytest.raises(CannotOpen):
        credentials.open_row(Credential.objects.get())


def test_a_failed_rotation_changes_nothing(team, settings):
    good, before = sealed(team), sealed(team, "broken")
    Credential.objects.filter(pk=before.pk).update(secret=b"not a token")
    with pytest.raises(CannotOpen):
        credentials.rotate()
    assert bytes(Credential.objects.get(pk=good.pk).secret) == bytes(good.secret)


@pytest.mark.django_db(transaction=True)
def test_a_worker_loads_by_team_and_name_and_notes_the_use(team, database_url):
    sealed(team)
    loaded = load(database_url, team.pk, "crm")
    assert loaded.secret == {"token": "s3cret"} and loaded.kind == "bearer"
    assert Credential.objects.get().last_used_at is not None


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_loaded_is_said_plainly(team, database_url, settings):
    sealed(team)
    other = Team.objects.create(name="Support")
    with pytest.raises(StepError, match="no connection “crm”"):
        load(database_url, other.pk, "crm")
    settings.HOLDFAST_CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(StepError, match="Enter its secret again") as caught:
        load(database_url, team.pk, "crm")
    assert caught.value.field == "connection"


def load(database_url: str, team_id: int, name: str):
    async def work():
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
            return await credentials.load(conn, team_id, name)

    return asyncio.run(work())


def test_every_kind_can_be_asked_for_in_a_form():
    for kind in credentials.KINDS.values():
        assert kind.label and kind.summary and any(field.secret for field in kind.fields)


def test_rotation_is_a_command(team, settings):
    sealed(team)
    settings.HOLDFAST_CREDENTIAL_KEYS = [Fernet.generate_key().decode(), *settings.HOLDFAST_CREDENTIAL_KEYS]
    output = StringIO()
    call_command("rotate_keys", stdout=output)
    assert output.getvalue() == "1 connection encrypted with the first key.\n"
    settings.HOLDFAST_CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("rotate_keys")
