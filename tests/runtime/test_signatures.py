"""Webhook signatures: the published examples pass, and nothing else does."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from runtime.triggers.signatures import WINDOW, NotSigned, generated_secrets, verify

# github.com/docs: "Validating webhook deliveries"
GITHUB = (
    "It's a Secret to Everybody",
    b"Hello, World!",
    "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
)
# api.slack.com: "Verifying requests from Slack"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SLACK_TIME = 1531420618
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
    b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10"
    b"d2c447fce8b6703c"
)
SLACK_SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
# github.com/stripe/stripe-dotnet: the event and the signature that its own tests check
STRIPE_SECRET, STRIPE_TIME = "webhook_secret", 1533204620
STRIPE_CUSTOMER = {"id": "cus_123", "object": "customer", "created": 123456789, "email": "test@stripe.com", "livemode": False, "metadata": {}}
STRIPE_EVENT = {
    "id": "evt_123", "object": "event", "account": "acct_123", "api_version": "2017-05-25", "created": STRIPE_TIME,
    "data": {"object": STRIPE_CUSTOMER}, "livemode": False, "pending_webhooks": 1,
    "request": {"id": "req_123", "idempotency_key": "idempotency-key-123"}, "type": "customer.created",
}  # fmt: skip
STRIPE_SIGNATURE = (
    f"t={STRIPE_TIME},v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7"
    ",v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef"
)
# standardwebhooks.com: the example of the libraries
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
STANDARD_BODY = b'{"test": 2432232314}'


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


NOW = instant(1_800_000_000)


def stripe_headers(secret: str, body: bytes, at: int, *, more: str = "") -> dict[str, str]:
    """As stripe.com describes under "Verify webhook signatures manually"."""
    signature = hmac.new(secret.encode(), str(at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t={at},{more}v1={signature}"}


def test_githubs_published_example():
    secret, body, signature = GITHUB
    verify("github", [secret], {"x-hub-signature-256": f"sha256={signature}"}, body, NOW)


def test_slacks_published_example():
    headers = {"x-slack-signature": SLACK_SIGNATURE, "x-slack-request-timestamp": str(SLACK_TIME)}
    verify("slack", [SLACK_SECRET], headers, SLACK_BODY, instant(SLACK_TIME))


def test_the_published_example_of_standard_webhooks():
    verify("standard", [STANDARD_SECRET], STANDARD_HEADERS, STANDARD_BODY, instant(1614265330))


def test_stripes_published_example():
    body = json.dumps(STRIPE_EVENT, indent=2).encode() + b"\n"
    verify("stripe", [STRIPE_SECRET], {"stripe-signature": STRIPE_SIGNATURE}, body, instant(STRIPE_TIME + 100))
    with pytest.raises(NotSigned):
        verify("stripe", [STRIPE_SECRET], {"stripe-signature": STRIPE_SIGNATURE}, body.replace(b"cus_123", b"cus_124"), instant(STRIPE_TIME))


def test_stripes_scheme_passes_over_other_versions():
    headers = stripe_headers(
        "whsec_abc", b"{}", 1_800_000_000, more="v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39,"
    )
    verify("stripe", ["whsec_abc"], headers, b"{}", NOW)


def test_standard_webhooks_own_library_and_ours_agree():
    secret = generated_secrets("a-token")[0]
    now = datetime.now(UTC)
    signature = Webhook(secret).sign("msg_1", now, '{"a":1}')
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    verify("standard", [secret], headers, b'{"a":1}', now)
    assert Webhook(secret).verify('{"a":1}', headers) == {"a": 1}


def signed(kind: str, body: bytes, at: int, secret: str = "s3cret") -> dict[str, str]:
    """A good request of each kind, signed by the formula of its description and not by our code."""
    if kind == "standard":
        stamp = instant(at)
        return {
            "webhook-id": "m",
            "webhook-timestamp": str(at),
            "webhook-signature": Webhook(STANDARD_SECRET).sign("m", stamp, body.decode()),
        }
    if kind == "github":
        return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}
    if kind == "stripe":
        return stripe_headers(secret, body, at)
    text = b"v0:" + str(at).encode() + b":" + body
    return {
        "x-slack-request-timestamp": str(at),
        "x-slack-signature": "v0=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest(),
    }


SECRETS = {"standard": STANDARD_SECRET, "github": "s3cret", "stripe": "s3cret", "slack": "s3cret"}
KINDS = list(SECRETS)
TIMED = [kind for kind in KINDS if kind != "github"]
AT = int(NOW.timestamp())


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_request_passes_and_an_altered_body_does_not(kind):
    verify(kind, [SECRETS[kind]], signed(kind, b'{"a":1}', AT), b'{"a":1}', NOW)
    with pytest.raises(NotSigned):
        verify(kind, [SECRETS[kind]], signed(kind, b'{"a":1}', AT), b'{"a":2}', NOW)


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_without_its_signature_is_refused(kind):
    with pytest.raises(NotSigned, match="not signed"):
        verify(kind, [SECRETS[kind]], {}, b"{}", NOW)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "garbage",
    ["garbage", "", "=", ",,,", "t=,v1=", "v1,", "t=99999999999999999999999,v1=00", "é\xff", "v1," + "A" * 5000],
)
def test_garbage_in_any_header_is_refused_and_never_an_error(kind, garbage):
    good = signed(kind, b"{}", AT)
    for name in good:
        with pytest.raises(NotSigned):
            verify(kind, [SECRETS[kind]], {**good, name: garbage}, b"{}", NOW)


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("direction", [-1, 1])
def test_the_window_is_300_seconds_both_ways(kind, direction):
    inside, outside = AT + direction * WINDOW, AT + direction * (WINDOW + 1)
    verify(kind, [SECRETS[kind]], signed(kind, b"{}", inside), b"{}", NOW)
    with pytest.raises(NotSigned, match="300 seconds"):
        verify(kind, [SECRETS[kind]], signed(kind, b"{}", outside), b"{}", NOW)


@pytest.mark.parametrize("kind", KINDS)
def test_any_of_several_secrets_will_do(kind):
    verify(kind, ["another", SECRETS[kind]], signed(kind, b"{}", AT), b"{}", NOW)
    with pytest.raises(NotSigned):
        verify(kind, ["another", "third"], signed(kind, b"{}", AT), b"{}", NOW)


def test_the_second_of_two_signatures_will_do():
    standard = signed("standard", b"{}", AT)
    standard["webhook-signature"] = "v1,AAAA " + standard["webhook-signature"]
    verify("standard", [STANDARD_SECRET], standard, b"{}", NOW)
    stripe = signed("stripe", b"{}", AT)
    stripe["stripe-signature"] = stripe["stripe-signature"].replace("v1=", "v1=00,v1=")
    verify("stripe", ["s3cret"], stripe, b"{}", NOW)


def test_svix_names_its_headers_differently():
    headers = {name.replace("webhook-", "svix-"): value for name, value in signed("standard", b"{}", AT).items()}
    verify("standard", [STANDARD_SECRET], headers, b"{}", NOW)


def test_without_any_secret_everything_is_refused():
    with pytest.raises(NotSigned):
        verify("github", [], signed("github", b"{}", AT), b"{}", NOW)


def test_generated_secrets_differ_by_webhook_and_survive_a_new_key(settings):
    settings.HOLDFAST_LINK_KEYS = ["old"]
    before = generated_secrets("token-1")
    settings.HOLDFAST_LINK_KEYS = ["new", "old"]
    assert generated_secrets("token-1")[1:] == before
    assert len({*generated_secrets("token-1"), *generated_secrets("token-2")}) == 4


def test_a_request_replayed_within_the_window_is_the_same_bytes_and_passes():
    """The window bounds replays; what makes the second one harmless is the workflow's dedupe rule."""
    headers = signed("slack", b"{}", AT)
    for later in (0, WINDOW):
        verify("slack", ["s3cret"], headers, b"{}", NOW + timedelta(seconds=later))
