"""Settings come from the environment; what is wrong there is told in one line."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from builder import environment as env
from builder.logs import JsonFormatter, ScrubbedFormatter, WithoutTraceback, scrub

ROOT = Path(__file__).resolve().parents[2]
KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
PRODUCTION = {
    "DATABASE_URL": "postgresql://holdfast@localhost/holdfast",
    "SECRET_KEY": "a-secret-of-the-test-that-is-long-enough-and-has-many-different-characters-0123456789",
    "HOLDFAST_CREDENTIAL_KEYS": KEY,
    "HOLDFAST_PUBLIC_URL": "https://flows.example.com",
    "HOLDFAST_TRUSTED_PROXIES": "10.0.0.0/8",
    "EMAIL_URL": "smtp+tls://user:password@mail.example.com:587",
}


def settings_of(folder: Path, **variables: str) -> dict[str, str]:
    """What a fresh process reads from this environment, as text; or `{"": the line it ends with}`."""
    names = ["DEBUG", "SECRET_KEY", "HOLDFAST_PUBLIC_URL", "SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "ALLOWED_HOSTS",
             "SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_PATH", "SESSION_COOKIE_DOMAIN"]  # fmt: skip
    code = f"from django.conf import settings\nfor n in {names}: print(n, getattr(settings, n), sep='=')"
    clean = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "builder.settings", "HOLDFAST_DATA": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean | variables, capture_output=True, text=True, check=True
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_without_any_variable_it_is_a_safe_local_start(tmp_path):
    found = settings_of(tmp_path)
    assert found["DEBUG"] == "False"
    assert found["HOLDFAST_PUBLIC_URL"] == "http://127.0.0.1:8000"
    assert found["SESSION_COOKIE_SECURE"] == "False"


def test_https_in_the_public_address_turns_on_redirects_and_secure_cookies(tmp_path):
    found = settings_of(tmp_path, HOLDFAST_PUBLIC_URL="https://flows.example.com/")
    assert found["HOLDFAST_PUBLIC_URL"] == "https://flows.example.com"
    assert found["SECURE_SSL_REDIRECT"] == found["SESSION_COOKIE_SECURE"] == "True"
    assert "'flows.example.com'" in found["ALLOWED_HOSTS"]
    assert found["SESSION_COOKIE_NAME"].startswith("__Host-") and found["CSRF_COOKIE_NAME"].startswith("__Host-")
    assert (found["SESSION_COOKIE_PATH"], found["SESSION_COOKIE_DOMAIN"]) == ("/", "None"), "else browsers refuse such names"


def test_a_path_of_a_shared_host_keeps_its_cookies_to_itself(tmp_path):
    found = settings_of(tmp_path, HOLDFAST_PUBLIC_URL="https://example.com/holdfast/")
    assert found["HOLDFAST_PUBLIC_URL"] == "https://example.com/holdfast" and found["SESSION_COOKIE_PATH"] == "/holdfast/"
    assert found["SESSION_COOKIE_NAME"] == "__Secure-holdfast-sessionid" and found["CSRF_COOKIE_NAME"] == "__Secure-holdfast-csrftoken"


def test_the_documented_production_set_passes_the_deployment_check(tmp_path, database_url):
    clean = {"PATH": os.environ["PATH"], "HOLDFAST_DATA": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env=clean | PRODUCTION | {"DATABASE_URL": database_url},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    first, second = settings_of(tmp_path), settings_of(tmp_path)
    assert first["SECRET_KEY"] == second["SECRET_KEY"]
    for name in ("secret_key", "credential_keys"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_an_empty_key_file_is_refused_rather_than_replaced(tmp_path, monkeypatch):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    (tmp_path / "secret_key").write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="is empty"):
        env.kept_secret("SECRET_KEY", tmp_path / "secret_key", lambda: "new")
    assert (tmp_path / "secret_key").read_text() == "\n"


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("HOLDFAST_DEBUG", "perhaps", "HOLDFAST_DEBUG must be 1 or 0"),
        ("HOLDFAST_LOG_FORMAT", "xml", "HOLDFAST_LOG_FORMAT must be text or json"),
        ("PORT", "eighty", "PORT must be a number"),
        ("PORT", "80000", "PORT must be between 1 and 65535"),
        ("HOLDFAST_WORKERS", "1.5", "HOLDFAST_WORKERS must be a whole number"),
        ("HOLDFAST_LEASE_SECONDS", "nan", "HOLDFAST_LEASE_SECONDS must be between"),
        ("HOLDFAST_PUBLIC_URL", "flows.example.com", "HOLDFAST_PUBLIC_URL must look like https://"),
        ("HOLDFAST_PUBLIC_URL", "https://flows.example.com/a b", "HOLDFAST_PUBLIC_URL must look like https://"),
        ("HOLDFAST_PUBLIC_URL", "https://flows.example.com/../x", "HOLDFAST_PUBLIC_URL must look like https://"),
        ("HOLDFAST_CREDENTIAL_KEYS", "short", "HOLDFAST_CREDENTIAL_KEYS must hold Fernet keys"),
        ("HOLDFAST_TRUSTED_PROXIES", "10.0.0.1/8", "HOLDFAST_TRUSTED_PROXIES must hold addresses or networks"),
        ("HOLDFAST_TIME_ZONE", "Mars/Olympus", "HOLDFAST_TIME_ZONE must be a time zone"),
        ("HOLDFAST_OIDC_ISSUER", "http://login.example.com", "HOLDFAST_OIDC_ISSUER must look like https://"),
        ("HOLDFAST_OIDC_ISSUER", "https://login.example.com", "HOLDFAST_OIDC_CLIENT_ID is missing"),
        ("EMAIL_URL", "mail.example.com", "EMAIL_URL must look like smtp"),
        ("EMAIL_URL", "smtp://mail.example.com:port", "EMAIL_URL has a port or a timeout that is no number"),
        ("DATABASE_URL", "mysql://user:hush@host/db", "DATABASE_URL must look like postgresql://"),
        ("DATABASE_URL", "postgresql://host", "DATABASE_URL must look like postgresql://"),
        ("HOLDFAST_DATA", "/dev/null/data", "The data folder /dev/null/data cannot be made"),
    ],
)
def test_a_wrong_variable_is_one_line_without_a_traceback(tmp_path, name, value, line):
    clean = {"PATH": os.environ["PATH"], "HOLDFAST_DATA": str(tmp_path), name: value}
    done = subprocess.run([sys.executable, "manage.py", "up"], cwd=ROOT, env=clean, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Holdfast: {line}"), done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert "hush" not in done.stderr


@pytest.mark.parametrize(
    ("address", "host", "port", "use_tls", "use_ssl"),
    [
        ("smtp://mail.example.com", "mail.example.com", 25, False, False),
        ("smtp+tls://user:p%40ss@mail.example.com", "mail.example.com", 587, True, False),
        ("smtps://mail.example.com:4650/", "mail.example.com", 4650, False, True),
    ],
)
def test_a_mail_servers_address_becomes_what_djangos_client_takes(monkeypatch, address, host, port, use_tls, use_ssl):
    from django.core.mail.backends.smtp import EmailBackend

    monkeypatch.setenv("EMAIL_URL", address)
    client = EmailBackend(**env.mail_server("EMAIL_URL"))
    assert (client.host, client.port, client.use_tls, client.use_ssl) == (host, port, use_tls, use_ssl)
    assert client.password == ("p@ss" if "p%40ss" in address else "")


def test_no_mail_server_means_mails_stay_in_the_product(monkeypatch):
    monkeypatch.delenv("EMAIL_URL", raising=False)
    assert env.mail_server("EMAIL_URL") is None


def test_a_database_address_means_what_it_means_to_psql(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:p%2Fw@%2FRun%2FSockets/flows?sslmode=require")
    found = env.database("DATABASE_URL", "")
    assert (found["HOST"], found["NAME"], found["USER"], found["PASSWORD"]) == ("/Run/Sockets", "flows", "me", "p/w")
    assert found["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize(
    "address",
    ["/hooks/abc/", "/hooks/abc?x=1", "/callbacks/48213/short/each[3]/call/", f"/a/{'Zz0-_' * 9}/", f"https://flows.example.com/a/{'x' * 43}"],
)
def test_tokens_in_addresses_do_not_reach_the_log(address):
    line = scrub(f"Not Found: {address}")
    assert "***" in line
    assert not any(secret in line for secret in ("abc", "short", "Zz0-_", "xxxx"))


def test_ordinary_addresses_stay_readable_in_the_log():
    line = "Not Found: /runs/48213/steps/hot/yes/call?page=2"
    assert scrub(line) == line


def test_what_others_wrote_is_no_line_of_its_own_in_the_log():
    record = logging.LogRecord("x", logging.INFO, "", 0, "run %s failed", ("1\n2026-01-01 INFO forged\x1b[2J\x9b\u2028",), None)
    line = ScrubbedFormatter().format(record)
    assert "forged" in line and all(letter.isprintable() for letter in line)


def test_a_wrong_host_is_a_line_in_the_log_and_no_traceback(settings):
    record = logging.LogRecord("django.security.DisallowedHost", logging.ERROR, "", 1, "Invalid HTTP_HOST", (), None)
    try:
        raise ValueError("not our fault")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert settings.LOGGING["loggers"][record.name]["filters"] == ["without_traceback"]
    assert WithoutTraceback().filter(record)
    assert "Traceback" not in ScrubbedFormatter().format(record)


def test_as_json_each_line_names_its_run_and_step_and_hides_tokens_as_well():
    record = logging.LogRecord("runtime.calls", logging.ERROR, "", 1, "run %s broke at /hooks/%s/\n\u2028", (7, "hush-token"), None)
    record.run, record.step = 7, "each[2]/deal"
    try:
        raise ValueError("https://flows.example.com/a/another-hush")
    except ValueError:
        record.exc_info = sys.exc_info()
    line = JsonFormatter().format(record)
    told = json.loads(line)
    assert (told["run"], told["step"], told["level"], told["logger"]) == (7, "each[2]/deal", "ERROR", "runtime.calls")
    assert told["message"] == "run 7 broke at /hooks/***/\n\u2028" and "ValueError" in told["traceback"]
    assert "hush" not in line and line.isprintable() and line.isascii()
    assert datetime.fromisoformat(told["at"]).tzinfo is not None
