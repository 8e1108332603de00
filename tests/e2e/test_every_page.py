"""Every page there is, from the resolver: one that is added is looked at here without being named."""

from __future__ import annotations

import pytest
from django.urls import reverse

from runtime.models import Job, Recipient
from tests.builder import factories
from tests.builder.test_access import NAMED, Visitor, url_of, world  # noqa: F401
from tests.e2e.axe import barriers, overflow
from tests.e2e.people import enter, listen

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Looks that a page has at other addresses than its own.
ALSO = {
    "flow": ("?settings", "?step=qualify", "?step=hot&tab=safety", "?step=deal&tab=test", "?step=lead", "?step=approve_vip"),
    "search": ("?q=lead",),
    "run": ("?view=canvas", "?step=trigger&tab=log"),
    "run_retry": ("?step=qualify",),
    "run_step": ("?step=qualify",),
    "approvals": ("?all=1",),
    "flow_compare": ("?from=7&to=draft",),
}


def pages(world) -> list[str]:  # noqa: F811
    """The addresses that answer an administrator with a whole page. Django's own administration is Django's, and a mail's body
    is the mail, in which no script runs."""
    root, found = Visitor(world["people"]["superuser"]), []
    for address in NAMED:
        url = url_of(address, world["ours"])
        for query in ("", *ALSO.get(address.name, ())) if not address.name.startswith(("admin:", "mail_body")) else ():
            answer = root.ask("GET", url + query)
            if answer.status_code == 200 and not answer.streaming and b"<html" in answer.content[:500]:
                found.append(url + query)
    return found


def test_every_page_is_accessible_in_both_themes_and_fits(page, live_server, world):  # noqa: F811
    complaints = listen(page)
    enter(page, live_server, world["people"]["superuser"])
    world["ours"]["job_id"] = Job.objects.create(action="export", user=world["people"]["superuser"], total=1, runs=[1], teams=[1]).pk
    link = reverse("approve", args=[factories.token_of(Recipient.objects.first())])
    addresses, wrong = [*pages(world), link, "/nowhere/"], []
    for address in addresses:
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(live_server.url + address)
        wrong += [f"{address} {barrier}" for barrier in barriers(page)]
        for width in (1024, 390):
            page.set_viewport_size({"width": width, "height": 844})
            wrong += [f"{address} overflows by {overflow(page)} at {width}"] if overflow(page) > 0 else []
    assert not wrong, "\n".join(wrong)
    assert [one for one in complaints if "404" not in one] == []
