"""Signatures and secrets of webhooks: what is let in, and that nothing else is."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from runtime.clock import business_now
from runtime.credentials import seal
from runtime.models import Credential, Run, Team
from runtime.triggers.signatures import generated_secrets
from tests.builder.posting import hook, no_run_was_started, post, team  # noqa: F401 - two are fixtures

pytestmark = pytest.mark.django_db


def github(secret: str, body: str) -> dict[str, str]:
    return {"x_hub_signature_256": "sha256=" + hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()}


def slack(secret: str, body: str, at: int) -> dict[str, str]:
    signature = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"x_slack_request_timestamp": str(at), "x_slack_signature": f"v0={signature}"}


def test_where_holdfast_makes_the_secret_only_signed_requests_start_runs(hook):
    trigger = hook(signature={"kind": "github"})
    (secret,) = generated_secrets(trigger.token)
    assert post(trigger, '{"a":1}').status_code == 401
    assert post(trigger, '{"a":2}', **github(secret, '{"a":1}')).status_code == 401
    assert post(trigger, '{"a":1}', x_hub_signature_256="garbage").status_code == 401
    assert no_run_was_started()
    assert post(trigger, '{"a":1}', **github(secret, '{"a":1}')).status_code == 202


def test_a_signature_covers_the_bytes_as_they_came(hook):
    trigger = hook(signature={"kind": "github"})
    spaced = '{ "a" :  1 }'
    assert post(trigger, spaced, **github(generated_secrets(trigger.token)[0], spaced)).status_code == 202


def test_the_window_follows_the_clock(hook, team, clock):
    seal(Credential(team=team, name="slack", kind="signing"), {"secret": "s3cret"})
    trigger = hook(signature={"kind": "slack", "connection": "slack"})
    now = int(clock.now().timestamp())
    assert post(trigger, **slack("s3cret", "{}", now - 290)).status_code == 202
    assert post(trigger, **slack("s3cret", "{}", now - 301)).status_code == 401
    assert post(trigger, **slack("s3cret", "{}", now + 320)).status_code == 401
    signed_now = slack("s3cret", "{}", now)
    clock.advance(seconds=310)
    assert post(trigger, **signed_now).status_code == 401


def test_the_earlier_secret_of_a_connection_still_works(hook, team):
    seal(Credential(team=team, name="gh", kind="signing"), {"secret": "new", "previous": "old"})
    trigger = hook(signature={"kind": "github", "connection": "gh"})
    assert [post(trigger, **github(secret, "{}")).status_code for secret in ("new", "old", "other", "")] == [
        202,
        202,
        401,
        401,
    ]


def test_a_connection_of_another_team_is_none_and_lets_nothing_in(hook):
    seal(Credential(team=Team.objects.create(name="Other"), name="gh", kind="signing"), {"secret": "s"})
    trigger = hook(signature={"kind": "github", "connection": "gh"})
    response = post(trigger, **github("s", "{}"))
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert no_run_was_started()


def test_the_second_of_two_signatures_counts(hook):
    trigger, body = hook(signature={"kind": "standard"}), '{"a":1}'
    (secret,) = generated_secrets(trigger.token)
    at = str(int(business_now().timestamp()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    good = base64.b64encode(hmac.digest(key, f"m1.{at}.{body}".encode(), hashlib.sha256)).decode()
    told = {"webhook_id": "m1", "webhook_timestamp": at}
    assert post(trigger, body, **told, webhook_signature="v1,AAAA").status_code == 401
    assert post(trigger, body, **told, webhook_signature=f"v1,AAAA v1,{good}").status_code == 202


@pytest.mark.parametrize("garbage", ["garbage", "", "=", "v1,", "t=,v1=", "t=99999999999999999999999,v1=00", "\u00e9", "A" * 5000])
@pytest.mark.parametrize("kind", ["standard", "github", "stripe", "slack"])
def test_a_signature_that_is_garbage_is_refused_whatever_its_kind(hook, team, kind, garbage):
    seal(Credential(team=team, name="any", kind="signing"), {"secret": "s3cret"})
    trigger = hook(signature={"kind": kind, "connection": "any"})
    names = ("webhook_signature", "x_hub_signature_256", "stripe_signature", "x_slack_signature",
             "webhook_timestamp", "x_slack_request_timestamp", "webhook_id")  # fmt: skip
    assert post(trigger, **dict.fromkeys(names, garbage)).status_code == 401
    assert no_run_was_started()


def test_a_refused_signature_says_nothing_of_the_secret(hook):
    trigger = hook(signature={"kind": "standard"})
    response = post(trigger, webhook_signature="v1,AAAA", webhook_id="m", webhook_timestamp="1")
    assert generated_secrets(trigger.token)[0] not in response.content.decode()


@pytest.mark.parametrize(
    ("kind", "config", "secret", "header", "right", "wrong"),
    [("basic", {"username": "ann"}, {"password": "p:w"}, "AUTHORIZATION", "basic YW5uOnA6dw==", "Basic YW5uOnA="),
     ("header", {"header": "X-Token"}, {"value": "s3cret"}, "X_TOKEN", "s3cret", "S3cret")],
)  # fmt: skip
def test_a_secret_that_is_sent_along(hook, team, kind, config, secret, header, right, wrong):
    seal(Credential(team=team, name="crm", kind=kind, config=config), secret)
    trigger = hook(signature={"kind": kind, "connection": "crm"})
    assert post(trigger).status_code == 401 and post(trigger, **{header: wrong}).status_code == 401
    assert no_run_was_started()
    assert post(trigger, **{header: right}).status_code == 202
    assert header.lower().replace("_", "-") not in Run.objects.get().input["headers"]
    Credential.objects.update(kind="bearer")
    assert post(trigger, **{header: right}).status_code == 503
