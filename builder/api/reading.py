"""Request bodies: strict JSON, whatever the Content-Type says."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.parser import Parser

from builder.bodies import parse_body, refuse_compressed

DEEPEST = 200
"""Definitions nest their steps 24 levels deep, which takes more levels of JSON than a value may have."""


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        refuse_compressed(request)
        content_type = request.headers.get("Content-Type", "")
        return parse_body(request.body, content_type, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE, deepest=DEEPEST)
