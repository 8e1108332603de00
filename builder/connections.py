"""Connections: reading their forms, changing them, and where they are used. Secrets go in and never come out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, connection, transaction

from runtime import credentials
from runtime.audit import record
from runtime.credentials import KINDS, CannotOpen, Kind
from runtime.models import Credential, Team, Workflow

LONGEST_VALUE = 8_000
NAME = re.compile(r"[^\s\x00-\x1f][^\x00-\x1f]{0,63}")
LABEL = r"[a-z0-9](?:[a-z0-9-]{0,62})"
HOST = re.compile(rf"(?=.{{1,260}}$)(?:(?:\*\.)?{LABEL}(?:\.{LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?::\d{{1,5}})?")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")

# Workflows of a team that name the connection, in a step or a trigger: in their draft, their live version, or a version
# that a run still needs.
USED_BY = """
with named as (
    select '$.**.connection ? (@ == $name)'::jsonpath as path, jsonb_build_object('name', %(name)s::text) as vars
)
select w.id from workflow w cross join named n where w.team_id = %(team)s and w.deleted_at is null and (
    exists (select from draft d where d.workflow_id = w.id and jsonb_path_exists(d.definition::jsonb, n.path, n.vars))
    or exists (select from version v where v.id = w.live_version_id and jsonb_path_exists(v.definition::jsonb, n.path, n.vars)))
union
select v.workflow_id from version v join workflow w on w.id = v.workflow_id cross join named n
where w.team_id = %(team)s and v.id in (select version_id from dispatch) and jsonb_path_exists(v.definition::jsonb, n.path, n.vars)
"""


class InUse(Exception):
    """The connection is named by flows; it cannot go."""


@dataclass(slots=True)
class Form:
    """What was typed. `values` are shown again, `secrets` never; `wrong` is field name -> why."""

    kind: Kind
    name: str = ""
    hosts: str = ""
    values: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def sent(self) -> bool:
        """Whether its secret goes anywhere at all: one that checks signatures does not."""
        return any(each.name == "base_url" for each in self.kind.fields)

    @property
    def host_list(self) -> list[str]:
        return list(dict.fromkeys(host.strip().lower() for host in re.split(r"[\s,]+", self.hosts) if host.strip()))


def empty_form(kind: Kind) -> Form:
    return Form(kind, values={each.name: each.default for each in kind.fields if not each.secret})


def form_of(existing: Credential) -> Form:
    kind = KINDS[existing.kind]
    values = {each.name: str(existing.config.get(each.name) or "") for each in kind.fields if not each.secret}
    return Form(kind, existing.name, "\n".join(existing.hosts), values)


def read_form(kind: Kind, posted: Mapping[str, str], existing: Credential | None = None) -> Form:
    """Read and check. A secret left empty stays as it is, unless the connection would be sent somewhere new."""
    form = Form(kind, existing.name if existing else posted.get("name", "").strip(), posted.get("hosts", "").strip())
    if not existing and not NAME.fullmatch(form.name):
        form.wrong["name"] = "Give it a name of at most 64 characters."
    for each in kind.fields:
        value = posted.get(each.name, "")
        value = value.strip() if not each.secret else value.strip("\r\n")
        (form.secrets if each.secret else form.values)[each.name] = value
        if len(value) > LONGEST_VALUE or CONTROL.search(value):
            form.wrong[each.name] = f"At most {LONGEST_VALUE:,} characters in one line."
        elif each.name == "header" and not HEADER.fullmatch(value):
            form.wrong[each.name] = "Write a header's name, such as X-API-Key."
        elif each.name == "per_minute" and value and not (value.isascii() and value.isdigit() and 0 < int(value) <= 100_000):
            form.wrong[each.name] = "Write a whole number of at most 100,000, or leave it empty."
        elif each.name == "token_url" and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s#]*)?", value):
            form.wrong[each.name] = "Write an address such as https://login.example.com/oauth/token."
        elif each.required and not value and not (each.secret and existing):
            form.wrong[each.name] = "Fill this in."
    _check_hosts(form)
    if existing and not form.wrong:
        _check_new_hosts(form, existing)
    return form


def _check_hosts(form: Form) -> None:
    base = form.values.get("base_url", "")
    if base and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", base):
        form.wrong["base_url"] = "Write an address such as https://api.example.com/v1."
    bad = next((host for host in form.host_list if not HOST.fullmatch(host)), None)
    if bad is not None:
        form.wrong["hosts"] = f"“{bad[:60]}” is no host. Write names such as api.example.com, one a line, without https://."
    elif form.sent and not credentials.bound_hosts(form.host_list, form.values):
        form.wrong["hosts"] = "Name the hosts that this secret may be sent to."


def _check_new_hosts(form: Form, existing: Credential) -> None:
    """Or whoever may edit a connection could have its secret sent to a host of their own, and read it there."""
    added = _goes_to(form.host_list, form.values) - _goes_to(existing.hosts, existing.config)
    secret = next((each for each in form.kind.fields if each.secret), None)
    if added and secret and not form.secrets.get(secret.name):
        form.wrong[secret.name] = f"Enter it again: it would be sent to {min(added)}, where it was not sent before."


def _goes_to(hosts: Iterable[str], config: Mapping[str, Any]) -> set[str]:
    """Everywhere that the secret is sent, also for a token."""
    tokens = urlsplit(str(config.get("token_url") or "")).netloc.lower()
    return {*credentials.bound_hosts(list(hosts), config), *([tokens] if tokens else [])}


@transaction.atomic
def create(team: Team, form: Form, *, actor: Any) -> Credential | None:
    """A new connection, sealed. None, and `form.wrong`, when the team has one of this name."""
    row = Credential(team=team, name=form.name, kind=form.kind.kind, hosts=form.host_list, config=_config(form))
    try:
        with transaction.atomic():
            credentials.seal(row, _secrets(form, {}))
    except IntegrityError:
        form.wrong["name"] = "This team has a connection of this name. Choose another name."
        return None
    record("create_connection", f"credential:{row.pk}", actor=actor, team_id=team.pk, detail=_told(row))
    return row


@transaction.atomic
def change(existing: Credential, form: Form, *, actor: Any) -> None:
    """Save the form over a connection; secrets left empty stay. Raises CannotOpen when they cannot be read any more."""
    row = Credential.objects.select_for_update().get(pk=existing.pk)
    row.hosts, row.config = form.host_list, _config(form)
    renewed = [name for name, value in form.secrets.items() if value]
    complete = all(form.secrets.get(each.name) for each in form.kind.fields if each.secret)
    credentials.seal(row, _secrets(form, {} if complete else credentials.open_row(row).secret))
    record(
        "change_connection", f"credential:{row.pk}", actor=actor, team_id=row.team_id, detail=_told(row) | {"renewed": renewed}
    )


@transaction.atomic
def delete(existing: Credential, *, actor: Any) -> None:
    """Remove one that nothing names. Raises InUse."""
    if uses(existing):
        raise InUse(existing.name)
    record("delete_connection", f"credential:{existing.pk}", actor=actor, team_id=existing.team_id, detail=_told(existing))
    existing.delete()


def uses(row: Credential) -> list[Workflow]:
    """The flows that name it."""
    with connection.cursor() as cursor:
        cursor.execute(USED_BY, {"name": row.name, "team": row.team_id})
        found = [pk for (pk,) in cursor.fetchall()]
    return list(Workflow.objects.filter(pk__in=found).order_by("name"))


def _config(form: Form) -> dict[str, str]:
    return {name: value for name, value in form.values.items() if value}


def _secrets(form: Form, before: Mapping[str, str]) -> dict[str, str]:
    return {name: value or before.get(name, "") for name, value in form.secrets.items()}


def _told(row: Credential) -> dict[str, Any]:
    """What the audit trail may say: everything but the secret."""
    return {"name": row.name, "kind": row.kind, "hosts": list(row.hosts), "config": row.config}


__all__ = ["CannotOpen", "Form", "InUse", "change", "create", "delete", "empty_form", "form_of", "read_form", "uses"]
