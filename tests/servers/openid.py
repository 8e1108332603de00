"""An OpenID provider: discovery, sign-in page, token endpoint, userinfo and keys. It keeps to its part of the protocol, and
signs whatever it is told to.

    with OpenId() as provider:
        provider.control(claims={"email_verified": False})

Settings: `claims` (over what an id_token holds by itself; null takes one away), `sign` (`RS256`; `ES256`; `stranger`: a key
that is not published, by the name of one that is; `none`; `HS256`: with the public key as the secret), `kid` (another name is
another key), `userinfo`, `document` (over what discovery tells), `answer` (instead of the token endpoint's answer).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from .app import App, Reply, Request, run
from .process import ServerProcess

CLIENT, SECRET = "holdfast", "s3cret:with/odd %letters"
EMAIL = "dana@example.com"


def packed(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def number(value: int) -> str:
    return packed(value.to_bytes((value.bit_length() + 7) // 8))


class OpenIdApp(App):
    settings = {"claims": {}, "sign": "RS256", "kid": "one", "userinfo": {"sub": "person-1"}, "document": {}, "answer": None}

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.stranger = rsa.generate_private_key(65537, 2048)
        self.curve = ec.generate_private_key(ec.SECP256R1())

    @property
    def key(self) -> rsa.RSAPrivateKey:
        name = self.state["kid"]
        if name not in self.keys:
            self.keys[name] = rsa.generate_private_key(65537, 2048)
        return self.keys[name]

    def handle(self, request: Request) -> Reply:
        self.url = f"http://{request.headers['host']}"
        parts = urlsplit(request.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path:
            case "/.well-known/openid-configuration":
                return Reply(body=self.document())
            case "/keys":
                return Reply(body={"keys": self.published()})
            case "/authorize":
                return self.authorize(asked)
            case "/token":
                return self.token(request)
            case "/userinfo":
                return Reply(body=self.state["userinfo"])
        return Reply(404, {"error": "not_found"})

    def document(self) -> dict[str, Any]:
        names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        found = {f"{name}_endpoint": f"{self.url}/{path}" for name, path in names.items()}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **found, **self.state["document"]}

    def published(self) -> list[dict[str, str]]:
        public, point = self.key.public_key().public_numbers(), self.curve.public_key().public_numbers()
        return [
            {"kty": "EC", "crv": "P-256", "kid": "curve", "x": packed(point.x.to_bytes(32)), "y": packed(point.y.to_bytes(32))},
            {"kty": "RSA", "kid": self.state["kid"], "use": "sig", "n": number(public.n), "e": number(public.e)},
        ]

    def authorize(self, asked: dict[str, str]) -> Reply:
        """Whoever comes is signed in."""
        if asked["response_type"] != "code" or asked["client_id"] != CLIENT or "openid" not in asked["scope"].split():
            return Reply(400, {"error": "invalid_request"})
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        onward = urlencode({"code": code, "state": asked["state"], "iss": self.url})
        return Reply(302, {}, {"Location": f"{asked['redirect_uri']}?{onward}"})

    def token(self, request: Request) -> Reply:
        form = {name: values[0] for name, values in parse_qs(str(request.body)).items()}
        user, _, password = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode().partition(":")
        if (user, password) != (CLIENT, urlencode({"": SECRET})[1:].replace("+", "%20")):
            return Reply(401, {"error": "invalid_client"})
        asked = self.codes.pop(form.get("code", ""), None)
        digest = packed(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if asked is None or asked["code_challenge"] != digest or asked["redirect_uri"] != form.get("redirect_uri"):
            return Reply(400, {"error": "invalid_grant"})
        if self.state["answer"] is not None:
            return Reply(body=self.state["answer"])
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT, "sub": "person-1", "nonce": asked["nonce"], "iat": now, "exp": now + 300,
            "email": EMAIL, "email_verified": True, **({"auth_time": now} if asked.get("max_age") == "0" else {}),
            **self.state["claims"],
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        return Reply(body={"access_token": "access", "token_type": "Bearer", "id_token": self.signed(claims)})

    def signed(self, claims: dict[str, Any]) -> str:
        how = self.state["sign"]
        alg, kid = ("ES256", "curve") if how == "ES256" else ("RS256" if how == "stranger" else how, self.state["kid"])
        text = f"{packed({'alg': alg, 'kid': kid})}.{packed(claims)}"
        return f"{text}.{packed(self.proof(how, text.encode()))}"

    def proof(self, how: str, text: bytes) -> bytes:
        match how:
            case "ES256":
                r, s = utils.decode_dss_signature(self.curve.sign(text, ec.ECDSA(SHA256())))
                return r.to_bytes(32) + s.to_bytes(32)
            case "HS256":
                kind = serialization.PublicFormat.SubjectPublicKeyInfo
                return hmac.digest(self.key.public_key().public_bytes(serialization.Encoding.PEM, kind), text, "sha256")
            case "none":
                return b""
        return (self.stranger if how == "stranger" else self.key).sign(text, padding.PKCS1v15(), SHA256())


class OpenId(ServerProcess):
    module = "tests.servers.openid"


if __name__ == "__main__":
    run(lambda options: OpenIdApp(), lambda parser: None)
