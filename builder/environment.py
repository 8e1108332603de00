"""Reading the environment. Each function takes a variable's name and gives a checked value, or one clear line.

Whatever is wrong is an `ImproperlyConfigured` whose text is that line: `manage.py` prints it without a traceback.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}
# scheme of EMAIL_URL -> (port when none is given, options of the SMTP client)
MAIL_SCHEMES: dict[str, tuple[int, dict[str, bool]]] = {
    "smtp": (25, {"use_tls": False, "use_ssl": False}),
    "smtp+tls": (587, {"use_tls": True, "use_ssl": False}),
    "submission": (587, {"use_tls": True, "use_ssl": False}),
    "smtps": (465, {"use_tls": False, "use_ssl": True}),
}


def text(name: str, default: str = "") -> str:
    """The variable without surrounding blanks; an empty one counts as unset."""
    return os.environ.get(name, "").strip() or default


def words(name: str, default: list[str] | None = None) -> list[str]:
    """A comma-separated list; empty parts are dropped."""
    parts = [part.strip() for part in text(name).split(",")]
    return [part for part in parts if part] or list(default or [])


def flag(name: str, default: bool = False) -> bool:
    value = text(name).lower()
    if not value:
        return default
    if value not in TRUE | FALSE:
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")
    return value in TRUE


def choice(name: str, among: tuple[str, ...]) -> str:
    """One of these words; the first where there is none."""
    value = text(name, among[0]).lower()
    if value not in among:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(among)}, not {value!r}.")
    return value


def number(name: str, default: float, least: float, most: float = float("inf")) -> float:
    try:
        value = float(text(name) or default)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {text(name)!r}.") from None
    if not least <= value <= most:
        raise ImproperlyConfigured(f"{name} must be between {least:g} and {most:g}, not {value:g}.")
    return value


def whole(name: str, default: int, least: int, most: float = float("inf")) -> int:
    value = number(name, default, least, most)
    if value != int(value):
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value:g}.")
    return int(value)


def place(name: str, default: str) -> str:
    """An address of a host, or of a path on one that is shared with others, without a slash at its end."""
    value = text(name, default).rstrip("/")
    parts = urlsplit(value)
    odd = parts.query or parts.fragment or not re.fullmatch(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*", parts.path)
    if parts.scheme not in ("http", "https") or not parts.hostname or odd:
        raise ImproperlyConfigured(f"{name} must look like https://flows.example.com or https://example.com/flows, not {value!r}.")
    return value


def issuer(name: str) -> str:
    """The address of an OpenID provider, exactly as it calls itself; http is good enough on this machine only."""
    value = text(name)
    parts = urlsplit(value)
    here = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")
    if value and (parts.scheme != "https" and not here or not parts.hostname or parts.query or parts.fragment or "@" in value):
        raise ImproperlyConfigured(f"{name} must look like https://login.example.com/realm, not {value!r}.")
    return value


def needed_with(other: str, name: str) -> str:
    """A variable without which another one is of no use."""
    value = text(name)
    if other and not value:
        raise ImproperlyConfigured(f"{name} is missing; {name.rsplit('_', 2)[0]}_ISSUER needs it.")
    return value


def folder(name: str, default: Path) -> Path:
    """A folder that is made when it is missing, private to this user.

    Root's is traversable by others: the embedded Postgres, which refuses to be root, has its data inside."""
    path = Path(text(name, str(default))).absolute()
    try:
        path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"The data folder {path} cannot be made: {error.strerror}.") from None
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"The data folder {path} cannot be written to by this user.")
    return path


def kept_secret(name: str, path: Path, make: Callable[[], str]) -> str:
    """The variable, else what the file at `path` holds; a missing file is written once, readable by its owner only."""
    if value := text(name):
        return value
    try:
        if not path.exists():
            _write_once(path, make())
        value = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name} is not set and {path} cannot be used: {error.strerror}.") from None
    if not value:
        raise ImproperlyConfigured(f"{path} is empty. Put the key back, or set {name}.")
    return value


def _write_once(path: Path, value: str) -> None:
    """Two processes may start at once, in two containers with one number: each writes a file of its own, readable by its owner only,
    and the first link to the name wins."""
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    draft = Path(name)
    with os.fdopen(handle, "w") as file:
        file.write(value + "\n")
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def database(name: str, fallback: str) -> dict[str, Any]:
    """Django's settings of one Postgres database; `fallback` is used when the variable is unset.

    libpq reads the address, so that it means here what it means to psql: several hosts, a socket folder, sslmode."""
    try:
        found = conninfo_to_dict(text(name, fallback))
    except ProgrammingError:  # its text may quote the password
        found = {}
    if not found.get("dbname"):
        raise ImproperlyConfigured(f"{name} must look like postgresql://user:password@host:5432/database.")
    return {
        "ENGINE": "runtime.postgresql",
        "NAME": found.pop("dbname"),
        "USER": found.pop("user", ""),
        "PASSWORD": found.pop("password", ""),
        "HOST": found.pop("host", ""),
        "PORT": found.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 10, **found},
    }


def mail_server(name: str) -> dict[str, Any] | None:
    """Keyword arguments for Django's SMTP backend from `smtp+tls://user:password@host:587`, or None when unset."""
    if not text(name):
        return None
    parts = urlsplit(text(name))
    if parts.scheme not in MAIL_SCHEMES or not parts.hostname:
        raise ImproperlyConfigured(f"{name} must look like smtp+tls://user:password@mail.example.com:587.")
    default_port, security = MAIL_SCHEMES[parts.scheme]
    try:
        port = parts.port or default_port
        timeout = float(parse_qs(parts.query).get("timeout", ["30"])[0])
    except ValueError:
        raise ImproperlyConfigured(f"{name} has a port or a timeout that is no number.") from None
    return {
        "host": parts.hostname,
        "port": port,
        "username": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "timeout": timeout,
        **security,
    }


def mail_domain(public_url: str) -> str:
    """The host of the public address, where that is a name."""
    host = urlsplit(public_url).hostname or ""
    return host if any(letter.isalpha() for letter in host) and ":" not in host else "localhost"


def key_ring(name: str, path: Path, make: Callable[[], str]) -> list[str]:
    """Fernet keys, the first of which encrypts; from the variable, else kept in the file at `path`."""
    keys = [part.strip() for part in kept_secret(name, path, make).split(",") if part.strip()]
    try:
        for key in keys:
            Fernet(key)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must hold Fernet keys: 32 bytes in URL-safe base64 each.") from None
    return keys


def embedded_address(path: Path) -> str:
    """The address of the embedded Postgres while `manage.py up` runs it; else one whose failure says what is missing."""
    try:
        return path.read_text().strip()
    except OSError:
        nowhere = path.with_name("postgres-is-not-running-and-DATABASE_URL-is-not-set")
        return f"postgresql://holdfast@{quote(str(nowhere), safe='')}/holdfast"


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(word) for word in words(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must hold addresses or networks such as 10.0.0.0/8: {error}.") from None


def zone(name: str, default: str) -> str:
    value = text(name, default)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ImproperlyConfigured(f"{name} must be a time zone such as Europe/Berlin, not {value!r}.") from None
    return value
