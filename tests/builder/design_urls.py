"""Addresses for the tests of the frame: the pages of the rail, the gallery, and a way in."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.urls import path

from builder.views.gallery import gallery


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("here")


urlpatterns = [
    path("", page, name="flows"),
    path("runs/", page, name="runs"),
    path("approvals/", page, name="approvals"),
    path("palette/", page, name="palette"),
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("gallery/", gallery, name="gallery"),
]
