"""Large outputs of steps, and files that they gave: read in parts, so that neither a page nor an answer ever holds one as a
whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Value
from django.db.models.functions import Length, Substr
from django.http import Http404, StreamingHttpResponse
from django.urls import reverse
from django.utils.http import content_disposition_header

from runtime.models import Blob, Run, StepFile, StepResult
from runtime.starts import FIELD
from runtime.steps.http_bodies import file_name
from runtime.tokens import with_signatures_blotted

SHOWN = 16_384
"""Characters of one part on a page."""
PIECE = 262_144
BEFORE = 200
"""Characters before a part that tell whether it begins in the middle of a callback's address."""


@dataclass(frozen=True, slots=True)
class LargeOutput:
    """The output of the step at `path`, `length` characters of JSON text; `whole` with the addresses of callbacks, which others
    than who may answer in their place must not read."""

    run_id: int
    path: str
    take: int
    length: int
    whole: bool = False

    def text(self, start: int, characters: int) -> str:
        found, begin = Blob.objects.filter(run_id=self.run_id, path=self.path, take=self.take), max(0, start - BEFORE)
        text = found.values_list(Substr("content", begin + 1, Value(characters + start - begin)), flat=True).get()
        return (text if self.whole else with_signatures_blotted(text))[start - begin :]

    def pieces(self) -> Iterator[str]:
        for start in range(0, self.length, PIECE):
            yield self.text(start, PIECE)

    def part(self, start: int) -> dict[str, Any]:
        """What the page shows of it from there, and the address of the next part."""
        end = start + SHOWN
        return {
            "text": self.text(start, SHOWN),
            "more_url": self._url("run_output", start=end) if end < self.length else "",
            "left": max(0, self.length - end),
            "file_url": self._url("run_output_file"),
        }

    def _url(self, name: str, **more: int) -> str:
        return f"{reverse(name, args=[self.run_id])}?{urlencode({'step': self.path, 'take': self.take, **more})}"


def large_output(run: Run, path: str, take: int, *, whole: bool = False) -> LargeOutput:
    """Raises Http404 for a step that has none."""
    found = Blob.objects.filter(run_id=run.pk, path=path.replace("\x00", ""), take=take).values_list(Length("content"), flat=True)
    length = found.first()
    if length is None:
        raise Http404("This step has no large output.")
    return LargeOutput(run.pk, path, take, length, whole)


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that the step at `path` gave, or that the run was started with, `size` bytes. `name` and `type` are what who sent it
    called it."""

    run_id: int
    path: str
    take: int
    name: str
    type: str
    size: int

    def pieces(self) -> Iterator[bytes]:
        found = StepFile.objects.filter(run_id=self.run_id, path=self.path, take=self.take)
        for start in range(0, self.size, PIECE):
            yield bytes(found.values_list(Substr("content", start + 1, Value(PIECE)), flat=True).get())

    def response(self) -> StreamingHttpResponse:
        """To be saved and not to be opened, whatever the other system says that it is."""
        response = StreamingHttpResponse(self.pieces(), content_type="application/octet-stream")
        response["Content-Disposition"] = content_disposition_header(True, self.name)
        response["Content-Length"] = str(self.size)
        response["X-Content-Type-Options"] = "nosniff"
        return response

    @property
    def url(self) -> str:
        return f"{reverse('run_file', args=[self.run_id])}?{urlencode({'step': self.path, 'take': self.take})}"


def given_file(run: Run, path: str, take: int) -> GivenFile | None:
    place = {"run_id": run.pk, "path": path.replace("\x00", ""), "take": take}
    size = StepFile.objects.filter(**place).values_list(Length("content"), flat=True).first()
    return None if size is None else _given(run, place, size)


def files_it_began_with(run: Run) -> list[GivenFile]:
    """Found by their rows: whoever sends an input may have it name thousands."""
    sizes = dict(StepFile.objects.filter(run_id=run.pk, path__startswith=FIELD, take=1).values_list("path", Length("content")))
    body = run.input.get("body") if sizes and isinstance(run.input, dict) else None
    paths = [FIELD + name for name, value in body.items() if isinstance(value, dict)] if isinstance(body, dict) else []
    return [_given(run, {"run_id": run.pk, "path": path, "take": 1}, sizes[path]) for path in paths if path in sizes]


def _given(run: Run, place: dict[str, Any], size: int) -> GivenFile:
    about = _told(run, place)
    name, type_ = file_name(str(about.get("filename") or "file")), str(about.get("type") or "")
    return GivenFile(place["run_id"], place["path"], place["take"], name, type_, size)


def _told(run: Run, place: dict[str, Any]) -> dict[str, Any]:
    """What is told of a file: by the run's input, or by the output of its step."""
    if place["path"].startswith(FIELD):
        holder, name = run.input, place["path"].removeprefix(FIELD)
        body = holder.get("body") if isinstance(holder, dict) else None
        about = body.get(name) if isinstance(body, dict) else None
    else:
        output = StepResult.objects.filter(**place).values_list("output", flat=True).first()
        about = output.get("body") if isinstance(output, dict) else None
    return about if isinstance(about, dict) else {}
