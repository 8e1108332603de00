"""What a webhook is measured against: Django with one view that inserts one row, on PORT, served by the same server as Holdfast."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from builder.management.commands.serve import serve


def insert(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("insert into bench_posted (body) values (%s) returning id", [request.body.decode()])
        return JsonResponse({"run": cursor.fetchone()[0]}, status=202)


urlpatterns = [path("", insert)]

if __name__ == "__main__":
    database = urlsplit(os.environ["DATABASE_URL"])
    place = {"NAME": database.path[1:], "USER": database.username, "HOST": unquote(database.netloc.rpartition("@")[2])}
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF="tests.bench.bare", SECRET_KEY="unused", HOLDFAST_BIND="127.0.0.1",
        PORT=int(os.environ["PORT"]), HOLDFAST_PREFIX="", HOLDFAST_WEB_THREADS=8,
        MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None, **place}},
    )  # fmt: skip
    from builder.listening import listening_socket

    serve(listening_socket())
