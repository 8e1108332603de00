"""Files that people send with a form: what the run's input tells of each, and their bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from runtime.models import Run, StepFile, Trigger
from runtime.net import MIB
from runtime.starts import FIELD
from runtime.steps.base import File
from runtime.steps.http_bodies import file_name
from runtime.tokens import URLSAFE
from runtime.triggers.form import FormConfig
from runtime.triggers.manual import fields_of, read_form

from .templatetags.formats import size

MOST_TOGETHER = 13 * MIB
"""With the fields beside them this is less than what the server takes of a request."""
_PAGE = re.compile(r"/forms/([^/]+)/")
_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,80}")


@dataclass(slots=True)
class Answers:
    """`body` is what `trigger.body` will be; `wrong` says of fields what is wrong with them; `files` are by field."""

    body: dict[str, Any]
    wrong: dict[str, str]
    files: dict[str, File] = field(default_factory=dict)


def answers(request: HttpRequest, config: Mapping[str, Any], *, prefix: str = "", past: Run | None = None) -> Answers:
    """What was typed and sent into the fields of a form. A file that is not sent again is the one of the `past` run."""
    fields, found = fields_of(config), Answers({}, {})
    posted: dict[str, Any] = {one["id"]: request.POST.get(prefix + one["id"], "") for one in fields}
    refused = {}
    for name in files_of(fields):
        sent = request.FILES.get(prefix + name)
        if sent and (why := _refused(sent, config)):
            refused[name] = why
            continue
        file, posted[name] = _sent(sent) if sent else _kept(past, name)
        if file:
            found.files[name] = file
    found.body, wrong = read_form(fields, posted)
    found.wrong = wrong | refused
    return found


def files_of(fields: Sequence[Mapping[str, Any]]) -> list[str]:
    return [one["id"] for one in fields if one.get("type") == "file"]


def largest(config: Mapping[str, Any]) -> int:
    """Bytes of a file that the form takes."""
    own = int(config.get("largest_mib") or FormConfig.model_fields["largest_mib"].default)
    return int(min(own, settings.HOLDFAST_LARGEST_OUTPUT_MIB) * MIB)


def room_for(path: str) -> int:
    """Bytes that a body may have beyond what fields may hold: what the files of a form have there, elsewhere none."""
    asked = _PAGE.fullmatch(path)
    trigger = open_form(asked[1]) if asked else None
    if trigger is None:
        return 0
    return min(MOST_TOGETHER, len(files_of(fields_of(trigger.config))) * largest(trigger.config))


def open_form(token: str) -> Trigger | None:
    """The form that has its page there, of a flow that is published."""
    if not URLSAFE.fullmatch(token):
        return None
    found = Trigger.objects.select_related("workflow__live_version", "workflow__team").filter(token=token, type="form", enabled=True)
    return found.filter(workflow__deleted_at=None, workflow__live_version__isnull=False).first()


def _refused(sent: UploadedFile, config: Mapping[str, Any]) -> str:
    most, long = largest(config), sent.size or 0
    if long > most:
        return f"At most {size(most)}; this file has {size(long)}."
    return "" if long else "This file is empty."


def _sent(sent: UploadedFile) -> tuple[File, dict[str, Any]]:
    content = sent.read()
    file = File(token_urlsafe(16), content)
    type_ = (sent.content_type or "").lower()
    return file, {
        "filename": file_name(sent.name or ""),
        "type": type_ if _TYPE.fullmatch(type_) else "application/octet-stream",
        "size": len(content),
        "file": file.key,
    }


def _kept(past: Run | None, name: str) -> tuple[File | None, Any]:
    body = past.input.get("body") if past and isinstance(past.input, dict) else None
    about = body.get(name) if isinstance(body, dict) else None
    if past is None or not isinstance(about, dict):
        return None, ""
    row = StepFile.objects.filter(run_id=past.pk, path=FIELD + name, take=1).first()
    return (File(row.key, bytes(row.content)), about) if row else (None, "")
