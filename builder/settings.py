"""The settings: all from the environment, with defaults that serve `make up`. README.md lists each with its default."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import warnings
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from csp.constants import NONCE, NONE, SELF

from builder import environment as env

BASE_DIR = Path(__file__).resolve().parent.parent

# Where things are kept: keys, the embedded Postgres, collected static files.
HOLDFAST_DATA = env.folder("HOLDFAST_DATA", BASE_DIR / ".holdfast")
HOLDFAST_DATABASE_ADDRESS = HOLDFAST_DATA / "database_url"  # there while the embedded Postgres runs

PORT = env.whole("PORT", 8000, least=1, most=65535)
HOLDFAST_BIND = env.text("HOLDFAST_BIND", "127.0.0.1")
HOLDFAST_PUBLIC_URL = env.place("HOLDFAST_PUBLIC_URL", f"http://127.0.0.1:{PORT}")
HOLDFAST_PREFIX = urlsplit(HOLDFAST_PUBLIC_URL).path  # on a host that is shared with others; else empty
HOLDFAST_ORIGIN = HOLDFAST_PUBLIC_URL.removesuffix(HOLDFAST_PREFIX)
FORCE_SCRIPT_NAME = HOLDFAST_PREFIX or None
HTTPS = HOLDFAST_PUBLIC_URL.startswith("https://")
DEBUG = env.flag("HOLDFAST_DEBUG")

# Keys. A ring is a comma-separated list: the first key makes, all of them are honoured.
SECRET_KEY = env.kept_secret("SECRET_KEY", HOLDFAST_DATA / "secret_key", lambda: secrets.token_urlsafe(64))
HOLDFAST_CREDENTIAL_KEYS = env.key_ring(
    "HOLDFAST_CREDENTIAL_KEYS", HOLDFAST_DATA / "credential_keys", lambda: Fernet.generate_key().decode()
)
HOLDFAST_LINK_KEYS = env.words("HOLDFAST_LINK_KEYS") or [
    base64.urlsafe_b64encode(hmac.digest(SECRET_KEY.encode(), b"holdfast approval links", hashlib.sha256)).decode()
]

# Database
DATABASES = {"default": env.database("DATABASE_URL", env.embedded_address(HOLDFAST_DATABASE_ADDRESS))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Runtime
HOLDFAST_WORKERS = env.whole("HOLDFAST_WORKERS", max(1, min(4, os.cpu_count() or 1)), least=1)
HOLDFAST_CONCURRENCY = env.whole("HOLDFAST_CONCURRENCY", 500, least=1)
HOLDFAST_LEASE_SECONDS = env.number("HOLDFAST_LEASE_SECONDS", 30, least=1)
HOLDFAST_GRACE_SECONDS = env.number("HOLDFAST_GRACE_SECONDS", 20, least=0)
HOLDFAST_POLL_SECONDS = env.number("HOLDFAST_POLL_SECONDS", 1, least=0.05, most=60)
HOLDFAST_LISTEN_URL = env.text("HOLDFAST_LISTEN_URL")
HOLDFAST_LARGEST_OUTPUT_MIB = env.number("HOLDFAST_LARGEST_OUTPUT_MIB", 10, least=1)
HOLDFAST_RETRY_AFTER_CAP = env.number("HOLDFAST_RETRY_AFTER_CAP", 3600, least=0)
HOLDFAST_METRICS_TOKEN = env.text("HOLDFAST_METRICS_TOKEN")
HOLDFAST_RETENTION_DAYS = env.whole("HOLDFAST_RETENTION_DAYS", 0, least=0, most=36_500)
HOLDFAST_ALLOWED_PRIVATE_HOSTS = env.words("HOLDFAST_ALLOWED_PRIVATE_HOSTS")

HOLDFAST_HOOKS_PER_MINUTE = env.whole("HOLDFAST_HOOKS_PER_MINUTE", 6000, least=0)
HOLDFAST_MISSES_PER_MINUTE = env.whole("HOLDFAST_MISSES_PER_MINUTE", 120, least=0)

# django-q2 supervises the worker processes. What it could queue, store or schedule, it does not.
Q_CLUSTER = {
    "name": "holdfast",
    "label": "Workers",
    "broker_class": "runtime.broker.Doorbell",
    "workers": HOLDFAST_WORKERS,
    "queue_limit": HOLDFAST_WORKERS,  # room for one stop word each: nobody takes them out (see runtime/cluster.py)
    "timeout": None,  # SIGALRM would go off inside the event loop
    "recycle": 1_000_000,
    "save_limit": -1,
    "scheduler": False,
    "catch_up": False,
    "log_level": "WARNING",
}
warnings.filterwarnings("ignore", message="Retry and timeout are misconfigured")  # asks for the time-out that is off

# Mail. Unset: mails stay on the product's Sent mail page.
HOLDFAST_EMAIL = env.mail_server("EMAIL_URL")
DEFAULT_FROM_EMAIL = env.text("HOLDFAST_MAIL_FROM", f"Holdfast <holdfast@{env.mail_domain(HOLDFAST_PUBLIC_URL)}>")
HOLDFAST_MAIL_FROM = SERVER_EMAIL = DEFAULT_FROM_EMAIL

# Web
ALLOWED_HOSTS = env.words(
    "HOLDFAST_HOSTS", [urlsplit(HOLDFAST_PUBLIC_URL).hostname or "", "localhost", "127.0.0.1", "[::1]"]
)
HOLDFAST_TRUSTED_PROXIES = env.networks("HOLDFAST_TRUSTED_PROXIES")
HOLDFAST_WEB_PROCESSES = env.whole("HOLDFAST_WEB_PROCESSES", min(2, os.cpu_count() or 1), least=1)
HOLDFAST_WEB_THREADS = env.whole("HOLDFAST_WEB_THREADS", 8, least=1)
ROOT_URLCONF = "builder.urls"
WSGI_APPLICATION = "builder.wsgi.application"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = f"{HOLDFAST_PREFIX}/"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024  # of a whole body, files and all, but where a form asks for them (builder.bodies.OneLimit)

INSTALLED_APPS = [
    "builder",
    "runtime",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_q",
    "ninja",
    "csp",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "lucide",
]

MIDDLEWARE = [
    "builder.proxies.TrustedProxies",
    "django.middleware.security.SecurityMiddleware",
    "builder.machines.Straight",  # past what follows
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "builder.sessions.Attended",
    "django.middleware.common.CommonMiddleware",
    "builder.bodies.OneLimit",  # before anybody asks for a field
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "builder.gate.DenyByDefault",
    "builder.api.errors.NotAllowedInJson",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "builder.context.shell",
            ],
        },
    }
]

STATIC_URL = f"{HOLDFAST_PREFIX}/static/"
STATIC_ROOT = HOLDFAST_DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "builder.stylesheet.OneStyleSheet"},
}

# Who is it
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "builder.guessing.FewFailures",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {}),
        ("MinimumLengthValidator", {"min_length": 12}),
        ("CommonPasswordValidator", {}),
        ("NumericPasswordValidator", {}),
    )
]
HOLDFAST_OIDC_ISSUER = env.issuer("HOLDFAST_OIDC_ISSUER")
HOLDFAST_OIDC_CLIENT_ID, HOLDFAST_OIDC_CLIENT_SECRET = (
    env.needed_with(HOLDFAST_OIDC_ISSUER, f"HOLDFAST_OIDC_CLIENT_{part}") for part in ("ID", "SECRET")
)
HOLDFAST_REQUIRE_SECOND_FACTOR = env.flag("HOLDFAST_REQUIRE_SECOND_FACTOR")
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
ACCOUNT_RATE_LIMITS = False  # counted per process; ours hold across them (runtime.limits, axes)
MFA_ADAPTER = "builder.signin.Adapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "authenticate": "builder.signin.CodeForm",
    "reauthenticate": "builder.signin.ConfirmForm",
    "activate_totp": "builder.signin.SetUpForm",
}
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]  # nobody can lock out somebody else's address
AXES_CLIENT_IP_CALLABLE = "builder.guessing.address_of"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

# How long somebody stays signed in (builder/sessions.py). README.md says why so long.
SESSION_ENGINE = "builder.sessions"
HOLDFAST_SESSION_HOURS = env.whole("HOLDFAST_SESSION_HOURS", 12, least=0, most=9600)
HOLDFAST_SESSION_IDLE_MINUTES = env.whole("HOLDFAST_SESSION_IDLE_MINUTES", 60, least=0, most=576_000)
SESSION_COOKIE_AGE = (HOLDFAST_SESSION_HOURS or 9600) * 3600  # browsers keep no cookie longer than these 400 days

# What the browser is told
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
if HTTPS:  # so named, a browser takes them from this host alone: another host of the domain cannot plant one
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
if HOLDFAST_PREFIX:  # what else there is on the host neither gets them nor has any of the same name
    SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = f"{HOLDFAST_PREFIX}/"
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = (f"{'__Secure-' * HTTPS}holdfast-{name}" for name in ("sessionid", "csrftoken"))
CSRF_TRUSTED_ORIGINS = [HOLDFAST_ORIGIN]
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [rf"^({re.escape(HOLDFAST_PREFIX[1:])}/)?(healthz|readyz)$"]  # load balancers ask in plain HTTP
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HOLDFAST_TRUSTED_PROXIES else None
SECURE_HSTS_SECONDS = env.whole("HOLDFAST_HSTS_SECONDS", 365 * 24 * 3600 if HTTPS else 0, least=0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],  # the nonce is for the import map
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
    }
}

# Language and time
LANGUAGE_CODE = "en-us"
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.zone("HOLDFAST_TIME_ZONE", "UTC")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"without_traceback": {"()": "builder.logs.WithoutTraceback"}},
    "formatters": {"text": {"()": "builder.logs.ScrubbedFormatter"}, "json": {"()": "builder.logs.JsonFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": env.choice("HOLDFAST_LOG_FORMAT", ("text", "json"))}},
    "root": {"handlers": ["console"], "level": env.text("HOLDFAST_LOG_LEVEL", "INFO").upper()},
    "loggers": {
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "django.security.DisallowedHost": {"filters": ["without_traceback"]},
        "django-q": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "axes": {"level": "WARNING"},
        "waitress.queue": {"level": "ERROR"},  # it tells of every moment in which all threads are taken
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
    },
}
