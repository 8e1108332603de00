"""Every address of the product: one list per area. Who may open which stands in `builder.access`."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from builder.views import account, api, approvals, callbacks, connections, gallery, health, hooks, mail, operations, runs, teams

urlpatterns = [
    path("admin/", admin.site.urls),
    # For machines
    *hooks.urlpatterns,
    *callbacks.urlpatterns,
    *health.urlpatterns,
    *api.urlpatterns,
    # For people
    *runs.urlpatterns,
    *approvals.urlpatterns,
    *operations.urlpatterns,
    *mail.urlpatterns,
    *connections.urlpatterns,
    *account.urlpatterns,
    *teams.urlpatterns,
    path("gallery/", gallery.gallery, name="gallery"),
]
