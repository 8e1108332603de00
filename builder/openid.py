"""Signing in at an OpenID provider (OpenID Connect Core 1.0): authorization code, PKCE, and an id_token that is checked.

django-allauth has a provider for it, which neither checks the signature of a token that comes from the token endpoint nor
sends a nonce, calls without our guard, and needs three packages more. What comes after the proof is its: codes, sessions.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from builder.accountmail import LINKED, tell
from builder.models import Identity
from runtime import net
from runtime.audit import record
from runtime.jsonvalues import BadJson, loads_strict

SECONDS = 10.0
KEPT_SECONDS = 600
SLACK_SECONDS = 60
"""How far the provider's clock may be from ours."""
SMALLEST_RSA = 2048
_kept: dict[str, tuple[float, dict[str, Any]]] = {}


class Trouble(Exception):
    """The provider does not answer as it should; the message is for the log."""


class Refused(Exception):
    """The provider knows the person, and we do not let them in; the message is for them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one sign-in has sent to the provider, and what has to come back."""

    state: str
    nonce: str
    verifier: str


def address_of_sign_in(asked: Asked, back: str, again: bool = False) -> str:
    """The provider's page, which leads to `back`. `again`: also who is signed in there is to show who they are. Raises Trouble."""
    digest = hashlib.sha256(asked.verifier.encode()).digest()
    query = {
        "response_type": "code", "client_id": settings.HOLDFAST_OIDC_CLIENT_ID, "redirect_uri": back,
        "scope": "openid email profile", "state": asked.state, "nonce": asked.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(), "code_challenge_method": "S256",
        **({"prompt": "login", "max_age": "0"} if again else {}),
    }  # fmt: skip
    page = _endpoint("authorization_endpoint")
    return f"{page}{'&' if '?' in page else '?'}{urlencode(query)}"


def claims_for(code: str, asked: Asked, back: str) -> dict[str, Any]:
    """Who it is, as the provider has signed it. Raises Trouble."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": asked.verifier}
    pair = f"{quote(settings.HOLDFAST_OIDC_CLIENT_ID, safe='')}:{quote(settings.HOLDFAST_OIDC_CLIENT_SECRET, safe='')}"
    answer = _asked(net.Call(
        "POST", net.check_location(_endpoint("token_endpoint")), {"Content-Type": "application/x-www-form-urlencoded"},
        {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, urlencode(form).encode(),
    ))  # fmt: skip
    token, access = answer.get("id_token"), answer.get("access_token")
    if not isinstance(token, str):
        raise Trouble("The token endpoint gave no id_token.")
    claims = _signed(token)
    check_claims(claims, asked.nonce, time.time())
    if "email" not in claims and isinstance(access, str) and "userinfo_endpoint" in _discovered():
        place, bearer = net.check_location(_endpoint("userinfo_endpoint")), {"Authorization": f"Bearer {access}"}
        more = _asked(net.Call("GET", place, {}, bearer))
        if more.get("sub") != claims["sub"]:
            raise Trouble("The userinfo endpoint speaks of somebody else.")
        claims = more | claims
    return claims


def check_claims(claims: Mapping[str, Any], nonce: str, now: float) -> None:
    """That the token is this provider's, for us, of this sign-in, and of now. Raises Trouble."""
    meant = claims.get("aud")
    audience = meant if isinstance(meant, list) else [meant]
    client, expires, made = settings.HOLDFAST_OIDC_CLIENT_ID, claims.get("exp"), claims.get("iat")
    subject = claims.get("sub")
    if claims.get("iss") != settings.HOLDFAST_OIDC_ISSUER:
        raise Trouble("The id_token is of another issuer.")
    if client not in audience or claims.get("azp", client) != client or len(audience) > 1 and "azp" not in claims:
        raise Trouble("The id_token is for somebody else.")
    if not _is_time(expires) or not _is_time(made) or expires < now - SLACK_SECONDS or made > now + SLACK_SECONDS:
        raise Trouble("The id_token has expired, or is of another time.")
    if not isinstance(claims.get("nonce"), str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
        raise Trouble("The id_token belongs to another sign-in.")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise Trouble("The id_token names nobody.")


def asked_just_now(claims: Mapping[str, Any], now: float) -> bool:
    """Whether the provider says that the person has shown who they are, for this sign-in."""
    at = claims.get("auth_time")
    return _is_time(at) and now - KEPT_SECONDS - SLACK_SECONDS < at < now + SLACK_SECONDS


@transaction.atomic
def person_of(claims: Mapping[str, Any]) -> Any:
    """The account. At the first time the one with the address that the provider has verified; from then on the one that
    came then, whatever becomes of the address. Nobody gets an account by signing in. Raises Refused."""
    issuer, subject = claims["iss"], claims["sub"]
    known = Identity.objects.select_related("user").filter(issuer=issuer, subject=subject).first()
    if known is not None:
        if not known.user.is_active:
            raise Refused("This account is switched off.")
        return known.user
    email = claims.get("email")
    if not isinstance(email, str) or not email or claims.get("email_verified") is not True:
        raise Refused("Your sign-in there has no e-mail address that was verified, by which to find your account here.")
    found = [user for user in get_user_model().objects.filter(email__iexact=email, is_active=True)[:10] if _same(user.email, email)]
    if len(found) != 1:
        raise Refused("There is no account with your address here. Ask the person who runs this Holdfast for one.")
    if Identity.objects.filter(user=found[0], issuer=issuer).exists():
        raise Refused("The account with your address belongs to another sign-in there. Ask the person who runs this Holdfast.")
    Identity.objects.create(user=found[0], issuer=issuer, subject=subject)
    record("link_openid", f"user:{found[0].pk}", actor=found[0], detail={"issuer": issuer, "subject": subject})
    tell(found[0], LINKED.format(issuer))
    return found[0]


def _same(ours: str, theirs: str) -> bool:
    """Letters of other alphabets that a change of case turns into ours make no other person's address."""
    return ours == theirs or ours.isascii() and theirs.isascii() and ours.lower() == theirs.lower()


def _is_time(value: Any) -> bool:
    return type(value) in (int, float)


# The signature


def _signed(token: str) -> dict[str, Any]:
    """The claims, once one of the provider's keys fits. Keys that we do not know yet may have come since. Raises Trouble."""
    for fresh in (False, True):
        keys = _json(_endpoint("jwks_uri"), fresh=fresh).get("keys")
        if (claims := claims_of(token, keys if isinstance(keys, list) else [])) is not None:
            return claims
    raise Trouble("No key of the provider fits the id_token's signature.")


def claims_of(token: str, keys: list[Any]) -> dict[str, Any] | None:
    """The claims of a JWT (RFC 7519) that one of the keys (RFC 7517) has signed with RS256 or ES256; None otherwise."""
    head, _, rest = token.partition(".")
    body, _, signature = rest.partition(".")
    try:
        header, claims, proof = loads_strict(_unpacked(head)), loads_strict(_unpacked(body)), _unpacked(signature)
    except (BadJson, ValueError):
        return None
    if not isinstance(header, dict) or not isinstance(claims, dict) or "crit" in header:
        return None
    check = {"RS256": _rsa_fits, "ES256": _ec_fits}.get(str(header.get("alg")))
    for key in keys:
        if check is None or not isinstance(key, dict) or key.get("use", "sig") != "sig":
            continue
        if header.get("kid") not in (None, key.get("kid")) or key.get("alg") not in (None, header["alg"]):
            continue
        try:
            check(key, proof, f"{head}.{body}".encode())
        except (InvalidSignature, KeyError, TypeError, ValueError, AttributeError):
            continue
        return claims
    return None


def _rsa_fits(key: dict[str, Any], proof: bytes, signed: bytes) -> None:
    public = rsa.RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
    if key["kty"] != "RSA" or public.key_size < SMALLEST_RSA:
        raise ValueError("another kind of key")
    public.verify(proof, signed, padding.PKCS1v15(), SHA256())


def _ec_fits(key: dict[str, Any], proof: bytes, signed: bytes) -> None:
    if (key["kty"], key["crv"], len(proof)) != ("EC", "P-256", 64):
        raise ValueError("another kind of key")
    public = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1()).public_key()
    pair = utils.encode_dss_signature(int.from_bytes(proof[:32]), int.from_bytes(proof[32:]))
    public.verify(pair, signed, ec.ECDSA(SHA256()))


def _number(text: str) -> int:
    return int.from_bytes(_unpacked(text))


def _unpacked(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


# The provider


def _endpoint(name: str) -> str:
    """An address of the provider's, as safe as its own."""
    address = _discovered().get(name)
    if not isinstance(address, str) or settings.HOLDFAST_OIDC_ISSUER.startswith("https:") and not address.startswith("https:"):
        raise Trouble(f"The provider tells no {name}, or one without https.")
    return address


def _discovered() -> dict[str, Any]:
    issuer = settings.HOLDFAST_OIDC_ISSUER
    found = _json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != issuer:
        raise Trouble(f"The provider calls itself {found.get('issuer')!r}, and HOLDFAST_OIDC_ISSUER is {issuer!r}.")
    return found


def _json(address: str, *, fresh: bool = False) -> dict[str, Any]:
    """What stands there, kept for ten minutes. Raises Trouble."""
    now = time.monotonic()
    at, found = _kept.get(address, (-KEPT_SECONDS, {}))
    if fresh or now - at >= KEPT_SECONDS:
        found = _asked(net.Call("GET", net.check_location(address)))
        _kept[address] = now, found
    return found


def _asked(call: net.Call) -> dict[str, Any]:
    async def exchange() -> net.Answer:
        try:
            return await net.exchange(call, SECONDS)
        finally:
            await net.close()

    try:
        answer = asyncio.run(exchange())
        found = loads_strict(answer.body) if answer.status == 200 else None
    except (net.BadHeader, net.CallFailed, BadJson) as wrong:
        raise Trouble(f"{call.url.copy_with(query=None)}: {wrong}") from None
    if not isinstance(found, dict):
        raise Trouble(f"{call.url.copy_with(query=None)} answered {answer.status}, and not with what was asked for.")
    return found
