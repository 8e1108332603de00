"""A call that may have happened, as the person reads it who has to say so: what is known of its answer, what running it again
sends, and what its step gives."""

from __future__ import annotations

import json
from typing import Any

from runtime.courses import NoSuchStep, course_of
from runtime.models import Attempt, FrameValue, Run, Wait
from runtime.paths import key_of

from .dataflow.samples import Samples, output_shapes
from .dataflow.shapes import sketch_of


def asked(run: Run, step: dict[str, Any], wait: Wait, attempt: Attempt | None) -> dict[str, Any]:
    """`answered`: there was an answer, which does not tell; `aside`: others of the run go on meanwhile; `again`: what is
    sent once more; `sketch`: an output of the step's shape."""
    response = attempt.response if attempt else None
    return {
        "answered": isinstance(response, dict) and isinstance(response.get("status"), int),
        "aside": goes_on_beside(run.version.definition, wait.path),
        "again": sent_again(run, attempt) if attempt else TWICE,
        "sketch": output_sketch(step),
    }


TWICE = "If the first call did happen, it will have happened twice."


def sent_again(run: Run, attempt: Attempt) -> str:
    """The call, and its key where it had one of ours: a take has a key of its own, so that the other system sees two calls."""
    request = attempt.request if isinstance(attempt.request, dict) else {}
    method, url, headers = request.get("method"), request.get("url"), request.get("headers") or {}
    call = f"{method} {url}" if method and url else "The call"
    old, new = (key_of(run.pk, run.created_at, attempt.path, take) for take in (attempt.take, attempt.take + 1))
    header = next((name for name, value in headers.items() if value == old), "")
    if not header:
        return f"{call} goes out once more. {_pages(attempt)}{TWICE}"
    return (
        f"{call} goes out once more, with a new {header}: {new}. The first call had {old}, so the other system takes this for "
        f"another call. {TWICE}"
    )


def _pages(attempt: Attempt) -> str:
    """Of an API call that follows pages: where it goes on. A page whose address holds a secret is not kept, nor what led to it."""
    page = int(attempt.operation.removeprefix("page.")) if attempt.operation.startswith("page.") else 1
    kept = FrameValue.objects.filter(run_id=attempt.run_id, path=attempt.path, take=attempt.take).count()
    if page == 1:
        return ""
    if kept == page - 1:
        kept_words = "The page before it is" if page == 2 else f"The {page - 1} pages before it are"
        return f"{kept_words} kept, and not called again. "
    return f"Pages {kept + 1} to {page} are called again, since they could not be kept. "


def goes_on_beside(definition: dict[str, Any], path: str) -> bool:
    """Whether a step may have lanes or iterations beside it."""
    try:
        course = course_of(definition, path)
    except NoSuchStep:
        return False
    at_once = ((loop.get("config") or {}).get("concurrency", 1) for _, _, loop in course.loops)
    return bool(course.parallels) or any(number > 1 for number in at_once)


def output_sketch(step: dict[str, Any]) -> str:
    """JSON of the shape that this step gives, for who has to write an output by hand."""
    alone = {"id": "step", "type": step.get("type", ""), "config": step.get("config") or {}}
    shape = output_shapes({"steps": [alone]}, Samples())["step"]
    return json.dumps(sketch_of(shape), ensure_ascii=False)
