"""Who may do what: every address, as nobody and as everybody. The API's operations: `test_api_access.py`.

The walk takes the addresses from the resolver, so that a view that is added without a line in the table fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, path, reverse

from builder import access, gate, urls
from builder.access import ADMIN, BUILDER, OPERATOR, RANK, VIEWER
from builder.api import api
from builder.gate import PUBLIC, SIGNED_IN, SUPERUSER, VIEWS, rule_for
from builder.models import SavedFilter
from builder.tokens import make_token
from runtime.models import Alert, Credential, Job, Membership, OutboxMessage, Role, Team, Workflow
from tests.builder import factories

pytestmark = pytest.mark.django_db

LEAD_TO_SIGN_IN = ("admin_login", "admin:login", "mfa_authenticate")
"""Public, and of no use to somebody who has not typed a password yet."""
WHO = ("nobody", "outsider", "viewer", "builder", "operator", "admin", "foreign admin", "superuser")


@dataclass(frozen=True)
class Address:
    """One named URL pattern, and the names of its arguments."""

    name: str
    arguments: tuple[str, ...]

    @property
    def rules(self) -> dict[str, str | None]:
        return {method: rule_for(self.name, method) for method in ("GET", "POST")}


def addresses(patterns: list[Any] | None = None, namespace: str = "", outer: tuple[str, ...] = ()) -> Iterator[Address]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        arguments = outer + tuple(pattern.pattern.regex.groupindex)
        if isinstance(pattern, URLResolver):
            inner = ":".join(filter(None, (namespace, pattern.namespace)))
            yield from addresses(pattern.url_patterns, inner, arguments)
        elif isinstance(pattern, URLPattern):
            yield Address(f"{namespace}:{pattern.name}" if namespace else pattern.name or repr(pattern), arguments)


def operations() -> Iterator[Any]:
    for _, router in api._routers:
        for view in router.path_operations.values():
            yield from view.operations


PAGES = [address for address in addresses() if not address.name.startswith("api:")]
NAMED = [address for address in PAGES if not address.name.endswith(":None")]
"""Django's admin redirects old addresses without naming them; its namespace covers them."""


@pytest.fixture
def world() -> dict[str, Any]:
    """Two teams with one of everything each, and one person of each kind."""
    ours, theirs = Team.objects.create(name="Ours"), Team.objects.create(name="Theirs")
    people = {role: factories.user(role, of=ours) for role in Role}
    return {
        "ours": _belongings(ours),
        "theirs": _belongings(theirs),
        "people": {
            "nobody": None,
            "outsider": factories.user(None),
            **{str(role): person for role, person in people.items()},
            "foreign admin": factories.user(ADMIN, of=theirs),
            "superuser": get_user_model().objects.create_superuser("root", "", "pw"),
        },
    }


def _belongings(team: Team) -> dict[str, Any]:
    """Argument name -> value, for addresses that lead to this team's rows. Add the arguments of new addresses here."""
    member = factories.user(VIEWER, of=team)
    run = factories.run(factories.version(of=team))
    wait = factories.wait(run, "approve_vip", "approval", 1)
    approval = factories.approval(wait)
    credential = Credential.objects.create(team=team, name="crm", kind="bearer", secret=b"")
    mail: OutboxMessage = factories.mail(run)
    token, _ = make_token(member, "script")
    job = Job.objects.create(key=f"k{team.pk}", action="export", format="csv", user=member, runs=[run.pk], teams=[team.pk], total=1)
    kept = SavedFilter.objects.create(user=member, name="Failed", query="state=failed")
    alert = Alert.objects.create(kind="failed", threshold=1, team=team, address="a@example.com", quiet_minutes=60, created_by=member)
    return {
        "pk": run.workflow_id, "workflow_id": run.workflow_id, "version_id": run.version_id, "number": 7,
        "run_id": run.pk, "wait_id": wait.pk, "approval_id": approval.pk, "team_id": team.pk, "user_id": member.pk,
        "token_id": token.pk, "credential_id": credential.pk, "message_id": mail.pk, "mail_id": mail.pk,
        "job_id": job.pk, "filter_id": kept.pk, "alert_id": alert.pk, "step_id": "qualify", "path": "reply", "rest": "nothing", "token": "no-such-token-012345", "signature": "no",
        # Django's admin
        "object_id": run.pk, "id": member.pk, "app_label": "auth", "content_type_id": 1, "url": "nothing",
    }  # fmt: skip


def url_of(address: Address, belongings: dict[str, Any]) -> str:
    unknown = set(address.arguments) - set(belongings)
    assert not unknown, f"{address.name}: say in _belongings what {unknown} may be"
    return reverse(address.name, kwargs={name: belongings[name] for name in address.arguments})


class Visitor:
    """Somebody with a browser. Nothing of what a request did stays, nor a cookie that it set or took away."""

    def __init__(self, person: Any):
        self.client = Client(raise_request_exception=False)
        if person is not None:
            self.client.force_login(person, "django.contrib.auth.backends.ModelBackend")
        self.cookies = self.client.cookies.output(header="", sep=";")

    def ask(self, method: str, url: str, given: str = "") -> HttpResponse:
        """`given`: URL-encoded values, in the query of a GET and in the body of everything else."""
        self.client.cookies.clear()
        self.client.cookies.load(self.cookies)
        query, body = (f"?{given}", b"") if method == "GET" and given else ("", given.encode())
        with transaction.atomic():
            response = self.client.generic(method, f"{url}{query}", body, "application/x-www-form-urlencoded")
            transaction.set_rollback(True)
        return response


def sent_to_sign_in(response: HttpResponse) -> bool:
    return response.status_code == 302 and response["Location"].startswith(reverse("login"))


def suffices(rule: str | None, who: str) -> bool:
    """Whether somebody who is signed in may enter."""
    held = RANK[Role(who)] if who in Role.values else -1
    return who == "superuser" or rule == SIGNED_IN or rule in RANK and held >= RANK[Role(rule)]


def test_every_address_is_in_the_table():
    missing = [address.name for address in PAGES if None in address.rules.values()]
    assert missing == [], "Add these to builder/gate.py."


def test_the_table_names_nothing_that_is_not_there():
    """An entry without a view is a misspelt name, or a view that somebody took away."""
    named = {address.name for address in addresses()} | {f"api:{operation.operation_id}" for operation in operations()}
    spaces = {name.split(":")[0] + ":*" for name in named if ":" in name}
    assert sorted(set(VIEWS) - named - spaces) == []


OWN_RULES = ("admin:", "approval")
"""Stricter than the table: Django's admin is mostly read-only, and approvals are for those who are asked."""


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_page_opens_for_those_in_the_table_and_for_nobody_else(world, method):
    wrong = []
    visitors = {who: Visitor(person) for who, person in world["people"].items()}
    for address in NAMED:
        url, rule = url_of(address, world["ours"]), address.rules[method]
        for who in WHO if not address.name.startswith("admin:") else ("nobody", "admin", "superuser"):
            if who == "foreign admin" and rule in RANK:
                continue  # see below
            response = visitors[who].ask(method, url)
            if response.status_code == 403 and suffices(rule, who) and address.name.startswith(OWN_RULES):
                continue
            if address.name in LEAD_TO_SIGN_IN and sent_to_sign_in(response):
                continue
            if complaint := _complaint(rule, who, response):
                wrong.append(f"{method} {url} ({address.name}, {rule}) as {who}: {complaint}")
    assert not wrong, "\n".join(wrong)


SAME_FOR_EVERYBODY = "/api/v1/openapi.json"


def _complaint(rule: str | None, who: str, response: HttpResponse) -> str:
    status = response.status_code
    if status >= 500 and status != 503:
        return f"broke with {status}"
    if "no-store" not in response["Cache-Control"] and response.request["PATH_INFO"] != SAME_FOR_EVERYBODY:
        return "may be kept by a cache"
    if rule == PUBLIC:
        return "asked to sign in" if sent_to_sign_in(response) else ""
    if who == "nobody":
        return "" if sent_to_sign_in(response) else f"got {status} without signing in"
    if suffices(rule, who):
        return f"refused with {status}" if status == 403 or sent_to_sign_in(response) else ""
    return "" if status in (403, 404) else f"got {status}"


@pytest.mark.parametrize("who", ["outsider", *Role.values])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_rows_of_another_team_do_not_exist(world, method, who):
    """With each role of one team, at every address of another team's rows. Who may not even enter is told so before."""
    stranger, wrong = Visitor(world["people"][who]), []
    for address in NAMED:
        theirs, rule = set(address.arguments) & set(OWNED), address.rules[method]
        if not theirs or rule not in {*RANK, SIGNED_IN}:
            continue
        url = url_of(address, world["theirs"])
        status = stranger.ask(method, url).status_code
        if status not in (404, 405) and (status != 403 or suffices(rule, who)):
            wrong.append(f"{method} {url} ({address.name}): {status}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("held", [VIEWER, BUILDER, OPERATOR])
def test_a_role_in_another_team_is_worth_nothing_in_this_one(world, held):
    """The administrator of one team may enter everywhere, and has in another team the role that they have there."""
    person = factories.user(held, of=Team.objects.get(name="Ours"))
    Membership.objects.create(user=person, team=Team.objects.get(name="Theirs"), role=ADMIN)
    visitor, wrong = Visitor(person), []
    for method in ("GET", "POST"):
        for address in NAMED:
            rule = address.rules[method]
            if set(address.arguments) & set(OWNED) and rule in RANK and RANK[Role(rule)] > RANK[held]:
                status = visitor.ask(method, url := url_of(address, world["ours"])).status_code
                if status not in (403, 404, 405):
                    wrong.append(f"{method} {url} ({address.name}, {rule}): {status}")
    assert not wrong, "\n".join(wrong)


OWNED = (
    "pk",
    "workflow_id",
    "run_id",
    "wait_id",
    "approval_id",
    "team_id",
    "token_id",
    "credential_id",
    "message_id",
    "mail_id",
    "job_id",
    "alert_id",
)


FOR_MACHINES = {
    "hook", "hook_no_slash", "hook_test", "callback", "callback_no_slash", "healthz", "readyz", "metrics", "api_missing",
}  # fmt: skip
"""They know their callers by a token, a signature or a bearer, and never by a cookie."""


def test_no_page_takes_a_post_that_another_site_has_made(world):
    """As the one who may everything, in a browser that is signed in, without the token that only our pages hold."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(world["people"]["superuser"], "django.contrib.auth.backends.ModelBackend")
    taken = []
    for address in NAMED:
        if address.name not in FOR_MACHINES and client.post(url_of(address, world["ours"])).status_code != 403:
            taken.append(address.name)
    assert not taken


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "/\\evil.example/", "///evil.example", "http:evil.example",
               "javascript:alert(1)", "/\t/evil.example", "\x00//evil.example", "https:///evil.example"],
)  # fmt: skip
def test_no_form_leads_to_another_site(world, target):
    person, run = world["people"]["operator"], world["ours"]["run_id"]
    fresh, client = Client(), Client()
    signed = fresh.post(reverse("login"), {"username": person.username, "password": "pw", "next": target})
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    answers = [
        signed,
        client.post(reverse("account_reauthenticate"), {"password": "pw", "next": target}),
        client.post(reverse("approvals_decide"), {"answer": "approve", "next": target}),
        client.post(reverse("runs_act"), {"act": "cancel", "run": [], "next": target}),
        client.post(reverse("run_wait", args=[run, world["ours"]["wait_id"]]), {"act": "extend", "hours": "no", "next": target}),
    ]
    for answer in answers:
        assert answer.status_code == 302 and "evil" not in answer["Location"] and answer["Location"].startswith("/")


def test_fragments_send_the_whole_page_to_sign_in(world):
    response = Client().get(
        reverse("runs"), headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/runs/?state=failed"}
    )
    assert response.status_code == 200
    assert response["HX-Redirect"] == "/login/?next=/runs/%3Fstate%3Dfailed"


def unlisted(request):
    raise AssertionError("nobody gets here")


urlpatterns = [path("unlisted/", unlisted, name="unlisted"), path("unnamed/", unlisted), *urls.urlpatterns]


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("url", ["/unlisted/", "/unnamed/"])
def test_a_view_that_is_not_in_the_table_opens_for_nobody(url, caplog, settings):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"), "django.contrib.auth.backends.ModelBackend")
    assert client.get(url).status_code == 403
    assert "builder/gate.py" in caplog.text


def test_people_who_were_deactivated_may_nothing(world):
    person = world["people"]["admin"]
    person.is_active = False
    person.save()
    assert not gate.admitted(person, VIEWER)
    assert access.role_in(person, world["ours"]["team_id"]) is None
    assert not access.workflows_for(person).exists()


def test_roles_add_up_in_order(world):
    for who in Role.values:
        allowed = [role for role in Role if access.can(world["people"][who], role, world["ours"]["team_id"])]
        assert allowed == list(Role)[: RANK[Role(who)] + 1]
        assert not any(access.can(world["people"][who], role, world["theirs"]["team_id"]) for role in Role)
    assert access.can(world["people"]["superuser"], ADMIN, world["theirs"]["team_id"])
    assert not access.can(AnonymousUser(), VIEWER, world["ours"]["team_id"])


def test_a_role_holds_only_in_its_own_team(world):
    """Administrator of one team, viewer of another: enough to enter, not to act on the other's rows."""
    person = world["people"]["foreign admin"]
    Membership.objects.create(user=person, team_id=world["ours"]["team_id"], role=VIEWER)
    workflow = world["ours"]["workflow_id"]
    assert access.get_workflow(person, workflow).pk == workflow
    with pytest.raises(PermissionDenied, match="builder"):
        access.get_workflow(person, workflow, BUILDER)
    assert Visitor(person).ask("POST", reverse("run_cancel", args=[world["ours"]["run_id"]])).status_code == 403
    assert access.workflows_for(person).count() == 2
    assert [found.pk for found in access.workflows_for(person, BUILDER)] == [world["theirs"]["workflow_id"]]


def test_looking_up_what_is_not_there(world):
    for get in (access.get_workflow, access.get_run, access.get_credential, access.get_team):
        for missing in (0, 10**30):
            with pytest.raises(Http404):
                get(world["people"]["superuser"], missing)


def test_deleted_workflows_are_gone_and_their_runs_are_not(world):
    Workflow.objects.filter(pk=world["ours"]["workflow_id"]).update(deleted_at="2027-01-01T00:00Z")
    viewer = world["people"]["viewer"]
    with pytest.raises(Http404):
        access.get_workflow(viewer, world["ours"]["workflow_id"])
    assert access.get_run(viewer, world["ours"]["run_id"])


def test_demands_are_spelt_as_the_table_spells_them():
    known = {PUBLIC, SIGNED_IN, SUPERUSER, VIEWER, BUILDER, OPERATOR, ADMIN}
    for rule in VIEWS.values():
        assert set(rule if isinstance(rule, tuple) else [rule]) <= known
