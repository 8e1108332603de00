"""Who may do what through the API: every operation, as nobody and as everybody."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client

from builder.access import ADMIN, BUILDER, OPERATOR, RANK, VIEWER
from builder.api.auth import Bearer
from builder.gate import rule_for
from builder.tokens import make_token
from runtime.models import Membership, Role, Run, Team, Workflow
from tests.builder import factories
from tests.builder.test_access import WHO, operations, suffices, world  # noqa: F401 - the last is a fixture

pytestmark = pytest.mark.django_db


def test_every_operation_is_guarded_by_its_own_line_in_the_table():
    for operation in operations():
        (guard,) = operation.auth_callbacks
        assert isinstance(guard, Bearer)
        assert guard.name == f"api:{operation.operation_id}"


def test_an_operation_without_a_line_in_the_table_cannot_be_made():
    with pytest.raises(LookupError, match="builder/gate.py"):
        Bearer("steal_secrets")


def call(person: Any, operation: Any, belongings: dict[str, Any]) -> HttpResponse:
    url = "/api/v1" + operation.path
    for name, value in belongings.items():
        url = url.replace(f"{{int:{name}}}", str(value))
    assert "{" not in url, f"{url}: say in _belongings what its arguments may be"
    headers = {"Authorization": f"Bearer {make_token(person, 'walk')[1]}"} if person else {}
    with transaction.atomic():
        response = Client(raise_request_exception=False).generic(
            operation.methods[0], url, b"{}", "application/json", headers=headers
        )
        transaction.set_rollback(True)
    return response


def test_every_operation_answers_those_in_the_table_and_nobody_else(world):
    wrong = []
    for operation in operations():
        rule = rule_for(f"api:{operation.operation_id}", operation.methods[0])
        for who in WHO:
            if who == "foreign admin":
                continue
            status = call(world["people"][who], operation, world["ours"]).status_code
            enough = who != "nobody" and suffices(rule, who)
            expected = (
                status not in (401, 403) and status < 500 if enough else status == (401 if who == "nobody" else 403)
            )
            if not expected and not (operation.operation_id == "decide_approval" and status in (403, 422)):
                wrong.append(f"{operation.operation_id} ({rule}) as {who}: {status}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("who", ["outsider", *Role.values])
def test_operations_on_rows_of_another_team_find_nothing(world, who):
    before = (Run.objects.count(), Workflow.objects.count())
    for operation in operations():
        if "{int:" in operation.path:
            status = call(world["people"][who], operation, world["theirs"]).status_code
            enough = suffices(rule_for(f"api:{operation.operation_id}", operation.methods[0]), who)
            assert status in ((404, 422) if enough else (403, 404, 422)), f"{operation.operation_id}: {status}"
    assert (Run.objects.count(), Workflow.objects.count()) == before


@pytest.mark.parametrize("held", [VIEWER, BUILDER, OPERATOR])
def test_operations_take_a_role_in_another_team_for_none_in_this_one(world, held):
    person = factories.user(held, of=Team.objects.get(name="Ours"))
    Membership.objects.create(user=person, team=Team.objects.get(name="Theirs"), role=ADMIN)
    wrong = []
    for operation in operations():
        rule = rule_for(f"api:{operation.operation_id}", operation.methods[0])
        if "{int:" in operation.path and rule in RANK and RANK[Role(rule)] > RANK[held]:
            status = call(person, operation, world["ours"]).status_code
            if status not in (403, 404, 422):
                wrong.append(f"{operation.operation_id} ({rule}): {status}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer x", "Basic YTpi", "Bearer " + "x" * 5000, "bearer é"]
)
def test_without_a_good_token_there_is_no_api(header):
    response = Client().get("/api/v1/me", headers={"Authorization": header})
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert response.json()["error"]["message"]


def test_a_session_is_no_token(world):
    client = Client()
    client.force_login(world["people"]["superuser"], "django.contrib.auth.backends.ModelBackend")
    assert client.get("/api/v1/me").status_code == 401
