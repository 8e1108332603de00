"""Holdfast as it is deployed: behind a proxy that speaks TLS. What it tells browsers is graded, header by header."""

from __future__ import annotations

import http.client
import re
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

from tests.e2e.stack import ADMIN, PASSWORD, Holdfast

HOST = "flows.example.com"
YEAR = 365 * 24 * 3600
WHOLE = {  # header -> what has to be in it
    "Strict-Transport-Security": f"max-age={YEAR}; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Browser:
    """Asks as the proxy does. It keeps cookies, whatever they say of hosts and paths."""

    def __init__(self, holdfast: Holdfast) -> None:
        self.port = urlsplit(holdfast.url).port
        self.cookies: dict[str, str] = {}
        self.set: list[str] = []

    def ask(self, method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        sent = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7", "Referer": f"https://{HOST}{path}"}
        sent |= {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
        sent |= {"Content-Type": "application/x-www-form-urlencoded"} if form is not None else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, urlencode(form) if form is not None else None, sent | headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            self.set.append(line)
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        return answer.status, answer.headers, text

    def post(self, path: str, **form: str) -> tuple[int, http.client.HTTPMessage, str]:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.ask("GET", path)[2])[1]
        return self.ask("POST", path, form | {"csrfmiddlewaretoken": token})


def complaints(headers: http.client.HTTPMessage) -> list[str]:
    wrong = [f"{name}: {headers[name]}" for name, part in WHOLE.items() if part not in (headers[name] or "")]
    if headers["Referrer-Policy"] not in ("same-origin", "no-referrer"):
        wrong.append(f"Referrer-Policy: {headers['Referrer-Policy']}")
    policy = dict(part.strip().partition(" ")[::2] for part in (headers["Content-Security-Policy"] or "").split(";"))
    fine = policy.get("default-src") == policy.get("frame-ancestors") == "'none'"
    loose = [part for part in ("unsafe-inline", "unsafe-eval", "*", "http:", "https:") if part in str(policy)]
    if not fine or loose or headers["Server"] or headers["X-Powered-By"]:
        wrong.append(f"{policy} {loose} {headers['Server']}")
    if "no-store" not in (headers["Cache-Control"] or ""):
        wrong.append(f"Cache-Control: {headers['Cache-Control']}")
    return wrong


def test_what_browsers_are_told(starting):
    holdfast = starting(HOLDFAST_PUBLIC_URL=f"https://{HOST}", HOLDFAST_TRUSTED_PROXIES="127.0.0.1")
    browser = Browser(holdfast)
    # By plain HTTP everything but the questions of load balancers leads to TLS, whatever host is named.
    plain = {"X-Forwarded-Proto": "http"}
    status, headers, _ = browser.ask("GET", "/login/?next=/runs/", **plain)
    assert (status, headers["Location"]) == (301, f"https://{HOST}/login/?next=/runs/")
    assert browser.ask("GET", "/readyz", **plain)[0] == 200
    assert browser.ask("GET", "/login/", Host="evil.example")[0] == 400
    assert "evil" not in "".join(map(str, browser.ask("GET", "/login/", **{"X-Forwarded-Host": "evil.example"})))

    # A session that somebody has planted is not the one in which somebody signs in.
    browser.cookies["__Host-sessionid"] = planted = "planted0planted0planted0planted0"
    status, headers, _ = browser.post("/login/", username=ADMIN, password=PASSWORD)
    assert status == 302 and browser.cookies["__Host-sessionid"] != planted
    for line in browser.set:
        flags = line.lower()
        assert line.startswith("__Host-"), line
        assert all(flag in flags for flag in ("secure", "samesite=lax", "path=/")) and "domain" not in flags, line
        assert "httponly" in flags or '=""' in flags, line

    wrong = []
    pages = ["/", "/runs/", "/operations/", "/approvals/", "/connections/", "/account/", "/settings/", "/api/v1/docs", "/admin/", "/nothing/"]
    for path in (*pages, "/login/", "/a/no-such-token-0123456789/", "/forms/no-such-token-0123456789/"):
        status, headers, text = browser.ask("GET", path)
        assert status in (200, 302, 404), path
        wrong += [f"{path}: {one}" for one in complaints(headers)]
        if re.search(r"<[^>]+\son\w+\s*=|<[^>]+\sstyle\s*=|javascript:", text) and not path.startswith("/admin"):
            wrong.append(f"{path}: something inline")
    for path in ("/hooks/no-such-token-0123456789/", "/api/v1/me", "/metrics", "/healthz"):
        wrong += [f"{path}: {one}" for one in complaints(browser.ask("GET", path)[1])]
    assert not wrong, "\n".join(wrong)

    # Nothing of the installation itself is to be had: no folder, no file beside what is meant for browsers.
    for path in ("/static/", "/static/css/", "/.git/HEAD", "/.env", "/manage.py", "/static/../manage.py", "/static/%2e%2e/secret_key",
                 "/static/..%2f..%2fsecret_key", "/.holdfast/secret_key", "/static/.collected-from/../../secret_key"):  # fmt: skip
        status, _, text = browser.ask("GET", path)
        assert status == 404 and "SECRET" not in text and "Index of" not in text, path

    # Signed out is signed out, for whoever kept the cookie too.
    kept = dict(browser.cookies)
    browser.ask("POST", "/logout/", {"csrfmiddlewaretoken": re.search(r'value="(\w{64})"', browser.ask("GET", "/account/")[2])[1]})
    browser.cookies = kept
    assert browser.ask("GET", "/account/")[0] == 302
