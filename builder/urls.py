"""Every address of the product: one list per area. Who may open which stands in `builder.gate`."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from builder.views import (
    account,
    alerts,
    api,
    approvals,
    audit,
    callbacks,
    canvas,
    connections,
    edits,
    flows,
    gallery,
    health,
    hooks,
    hosted,
    inbox,
    keeping,
    mail,
    openid,
    operations,
    palette,
    overview,
    replaying,
    runs,
    samples,
    searching,
    teams,
    testing,
    trying,
    versions,
)

handler400 = "builder.views.refusals.bad_request"
urlpatterns = [
    path("admin/login/", RedirectView.as_view(pattern_name="login", query_string=True), name="admin_login"),  # asks for the code, too
    path("admin/password_change/", RedirectView.as_view(pattern_name="password_change"), name="admin_password"),  # guesses are counted there
    path("admin/", admin.site.urls),
    # For machines
    *hooks.urlpatterns,
    *callbacks.urlpatterns,
    *hosted.urlpatterns,
    *health.urlpatterns,
    *api.urlpatterns,
    # For people
    *flows.urlpatterns,
    *canvas.urlpatterns,
    *edits.urlpatterns,
    *overview.urlpatterns,
    *versions.urlpatterns,
    *replaying.urlpatterns,
    *keeping.urlpatterns,
    *testing.urlpatterns,
    *samples.urlpatterns,
    *trying.urlpatterns,
    *runs.urlpatterns,
    *searching.urlpatterns,
    *inbox.urlpatterns,
    *approvals.urlpatterns,
    *operations.urlpatterns,
    *alerts.urlpatterns,
    *mail.urlpatterns,
    *connections.urlpatterns,
    *account.urlpatterns,
    *openid.urlpatterns,
    *teams.urlpatterns,
    *audit.urlpatterns,
    *palette.urlpatterns,
    path("gallery/", gallery.gallery, name="gallery"),
]
