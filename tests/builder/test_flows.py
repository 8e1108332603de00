"""The list of flows and what can be done from it."""

from __future__ import annotations

import json
import re
from io import BytesIO

import pytest
from django.urls import reverse

from builder import drafts, examples, flowlist
from builder.flowmaking import make_flow
from runtime.models import AuditEntry, Dispatch, Membership, Role, Run, Team, Trigger, Workflow
from runtime.publish import publish
from runtime.starts import start
from runtime.steps import step_types
from tests.builder.test_canvas import person
from tests.builder.test_editing import LEAD

pytestmark = pytest.mark.django_db
SMALL = {"format": 1, "name": "Small", "triggers": [{"id": "hand", "type": "manual"}], "steps": [{"id": "wait", "type": "delay", "config": {"for": "1h"}}]}

WHOLE = {"hx-request": "false"}


@pytest.fixture
def team():
    return Team.objects.create(name="Sales")


@pytest.fixture
def builder(team):
    return person(team, Role.BUILDER)


def test_without_a_flow_the_page_says_what_one_is_and_offers_examples(builder):
    text = builder.get("/", headers={"hx-request": "false"}).content.decode()
    assert "No flows yet" in text and "Lead qualification" in text


def test_the_list_shows_state_last_runs_and_what_starts_it_next(team, builder):
    flow = make_flow(team, "Leads", user=None, definition=SMALL)
    version = publish(flow, {**SMALL, "name": "Leads"})
    for _ in range(3):
        start(version, trigger_key="hand", input={"body": {}})
    run = Run.objects.order_by("pk").first()
    Dispatch.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=run.created_at)
    start(version, trigger_key="hand", input={"body": {}}, test=True)
    figures = flowlist.figures_of([flow])[flow.pk]
    assert figures.states == ("succeeded", "ready", "ready"), "test runs are not counted"
    assert figures.success == 100 and figures.today == 3
    text = builder.get("/").content.decode()
    assert "Live v1" in text and "By hand" in text and "100%" in text


def test_a_schedule_tells_its_next_time(team, builder):
    flow = make_flow(team, "Weekly", user=None)
    publish(flow, {"format": 1, "name": "Weekly", "triggers": [{"id": "s", "type": "schedule", "config": {"cron": "0 7 * * 1", "zone": "Asia/Tokyo"}}], "steps": []})
    assert Trigger.objects.get().next_at is not None
    shown = re.search(r'data-label="Next run"><div class="cell2"><span><time[^>]*>Mon [^<]*, (.....)</time>', builder.get("/").content.decode())
    assert shown[1] == "07:00", "told where its clock stands"


def test_filters_and_search_narrow_and_pages_go_by_key(team, builder, monkeypatch):
    monkeypatch.setattr(flowlist, "PER_PAGE", 2)
    flows = [make_flow(team, f"Flow {n}", user=None) for n in range(5)]
    publish(flows[0], {**SMALL, "name": "Flow 0"})
    first = flowlist.page_of(builder_user(builder))
    second = flowlist.page_of(builder_user(builder), before=first.older)
    third = flowlist.page_of(builder_user(builder), before=second.older)
    names = [row.workflow.name for page in (first, second, third) for row in page.rows]
    assert sorted(names) == [f"Flow {n}" for n in range(5)] and third.older == ""
    assert first.counts == {"": 5, "live": 1, "paused": 0, "draft": 4}
    assert [row.workflow.name for row in flowlist.page_of(builder_user(builder), search="low 3").rows] == ["Flow 3"]
    for odd in ("x", "~", "2026-13-99~1", "2026-01-01~x", "9999999999~9"):
        assert builder.get("/", {"before": odd}).status_code == 200


def builder_user(client):
    from django.contrib.auth import get_user

    request = type("R", (), {"session": client.session})()
    return get_user(request)


def test_a_new_flow_opens_in_the_builder(team, builder):
    response = builder.post(reverse("flow_new"), {"name": "My flow"})
    flow = Workflow.objects.get()
    assert response.url == reverse("flow", args=[flow.pk]) and flow.name == "My flow" and flow.team == team
    builder.post(reverse("flow_new"), {"example": "support_triage"})
    assert Workflow.objects.filter(name="Support triage").exists()
    assert builder.post(reverse("flow_new"), {"example": "nonsense"}).status_code == 404
    assert builder.post(reverse("flow_new"), {"name": "a\x00b"}).status_code == 302 and Workflow.objects.filter(name="a\ufffdb").exists()


def test_a_viewer_makes_nothing(team):
    assert person(team, Role.VIEWER, "vic").post(reverse("flow_new"), {"name": "x"}).status_code == 403


def test_nobody_makes_a_flow_for_another_team(builder):
    other = Team.objects.create(name="Other")
    assert builder.post(reverse("flow_new"), {"name": "x", "team": other.pk}).status_code == 404


def imported(client, text):
    file = BytesIO(text.encode() if isinstance(text, str) else text)
    file.name = "flow.json"
    return client.post(reverse("flow_import"), {"file": file})


def test_what_is_exported_can_be_imported_and_is_the_same(team, builder):
    flow = make_flow(team, "Lead qualification", user=None, definition=LEAD)
    text = builder.get(reverse("flow_export", args=[flow.pk])).content.decode()
    assert json.loads(text) == LEAD
    imported(builder, text)
    copy = Workflow.objects.order_by("-pk").first()
    assert copy.pk != flow.pk and drafts.load(copy).definition == LEAD
    assert list(drafts.load(copy).definition) == list(LEAD)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 2, "name": "x"}', '{"format": 1, "name": "x", "steps": [{"id": "A"}]}', '{"format": 1, "name": "a\\u0000"}', b"\xff\xfe", '{"format": 1, "name": "x", "hm": 1}'])
def test_a_file_that_is_no_flow_imports_nothing_and_says_why(builder, text):
    assert imported(builder, text).status_code == 302
    assert not Workflow.objects.exists()
    assert "Nothing was imported" in builder.get("/", headers={"hx-request": "false"}).content.decode()


def test_a_flow_of_another_product_is_told_as_that(builder):
    imported(builder, '{"name": "x", "nodes": [{"type": "n8n-nodes-base.set"}], "connections": {}}')
    assert "This is a flow of another product" in builder.get("/", headers={"hx-request": "false"}).content.decode() and not Workflow.objects.exists()


@pytest.mark.parametrize("page", ["/?before=2027-01-15T09:00:00Z~²", "{}export/?version=²", "{}versions/?before=²", "{}status/?revision=²", "{}test/result/?run=²&step=call"])
def test_digits_that_are_no_numbers_are_no_fault_of_ours(team, builder, page):
    address = reverse("flow", args=[make_flow(team, "Leads", user=None, definition=LEAD).pk])
    assert builder.get(page.format(address)).status_code in (200, 404)


@pytest.mark.parametrize("trigger", [
    {"type": "webhook", "config": {"signature": 7, "dedupe": 7}},
    {"type": "webhook", "config": {"signature": {"kind": []}, "sample": []}},
    {"type": "manual", "config": {"fields": 7}},
    {"type": "manual", "config": {"fields": [7, None, {}, {"id": []}, {"id": "x", "type": "nothing"}, {"id": "y", "type": []}]}},
    {"type": "schedule", "config": {"cron": 7, "zone": []}},
])  # fmt: skip
def test_a_trigger_whose_settings_are_anything_can_still_be_opened_and_put_right(team, builder, trigger):
    text = json.dumps({"format": 1, "name": "Odd", "steps": [], "triggers": [{"id": "lead", **trigger}]})
    imported(builder, text)
    address = reverse("flow", args=[Workflow.objects.get(name="Odd").pk])
    for page in ("", "panel/?step=lead", "panel/?settings", "publish/", "test/run/", "field/?owner=lead&field=name", "changes/"):
        assert builder.get(address + page).status_code in (200, 404), page
    assert builder.post(f"{address}test/run/", {"trigger": "lead", "x": "1", "y": "2", "body": "{}"}).status_code == 422
    assert builder.post(f"{address}publish/", {"revision": 1}).status_code == 422
    removal = {"revision": 1, "operation": json.dumps({"op": "remove_trigger", "trigger": "lead"})}
    assert builder.post(f"{address}edit/", removal).status_code == 200


@pytest.mark.parametrize("value", [None, 1.5, True, "x", [], [1], {}, {"a": 1}], ids=repr)
def test_a_step_whose_settings_are_anything_can_still_be_opened(team, builder, value):
    """Programs and files may bring any: one field after the other, of every type at once."""
    flow = make_flow(team, "Odd", user=None)
    plain = {name: kind for name, kind in step_types().items() if not kind.children}
    for place in range(max(len(kind.Config.model_fields) for kind in plain.values())):
        steps = []
        for name, kind in plain.items():
            fields = [field.alias or key for key, field in kind.Config.model_fields.items()]
            changed = {fields[place]: value} if place < len(fields) else {}
            steps.append({"id": f"the_{name}", "type": name, "config": {**(kind.example or {}), **changed}})
        steps.append({"id": "last", "type": "set", "config": {"values": {step["id"]: f"{{{{ steps.{step['id']}.output }}}}" for step in steps}}})
        drafts.save(flow, {"format": 1, "name": "Odd", "triggers": [], "steps": steps}, revision=None)
        address = reverse("flow", args=[flow.pk])
        opened = steps[place % len(steps)]["id"]
        for page in (f"?step={opened}", f"panel/?step={opened}&tab=test", "publish/"):
            assert builder.get(address + page).status_code == 200, (place, page)
        assert builder.post(f"{address}test/step/", {"step": opened}).status_code == 200, (place, opened)


def test_flows_are_put_into_folders_and_the_list_is_narrowed_to_one(team, builder):
    sales, other, loose = (make_flow(team, name, user=None) for name in ("Leads", "Invoices", "Loose"))
    there = Team.objects.create(name="Elsewhere")
    make_flow(there, "Hidden", user=None)
    Workflow.objects.filter(name="Hidden").update(folder="Secret")
    assert "All folders" not in builder.get("/", headers=WHOLE).content.decode()
    saved = builder.post(reverse("flow_folder", args=[sales.pk]), {"folder": "  Big   deals "}).content.decode()
    assert "Saved." in saved and 'value="Big deals"' in saved
    builder.post(reverse("flow_folder", args=[other.pk]), {"folder": "Money"})
    text = builder.get("/", headers=WHOLE).content.decode()
    assert "All folders" in text and "Big deals · Edited" in text and "Secret" not in text
    text = builder.get("/", {"folder": "Big deals"}, headers=WHOLE).content.decode()
    assert "Leads" in text and "Invoices" not in text and 'name="folder" value="Big deals"' in text
    assert "Invoices" in builder.get("/", {"q": "mone"}).content.decode(), "the search knows folders"
    assert "Loose" in builder.get("/", {"folder": "gone"}).content.decode()
    builder.post(reverse("flow_duplicate", args=[sales.pk]))
    assert Workflow.objects.get(name="Leads (copy)").folder == "Big deals"
    assert [(one.detail["before"], one.detail["folder"]) for one in AuditEntry.objects.filter(action="folder_flow", subject=f"workflow:{sales.pk}")] == [("", "Big deals")]
    Membership.objects.update(role=Role.VIEWER)
    assert builder.post(reverse("flow_folder", args=[loose.pk]), {"folder": "Mine"}).status_code in (403, 404)


def test_a_copy_is_a_draft_of_its_own(team, builder):
    flow = make_flow(team, "Leads", user=None, definition=LEAD)
    builder.post(reverse("flow_duplicate", args=[flow.pk]))
    copy = Workflow.objects.order_by("-pk").first()
    assert copy.name == "Leads (copy)" and drafts.load(copy).definition["steps"] == LEAD["steps"] and copy.live_version is None


def test_deleting_hides_the_flow_stops_its_triggers_and_keeps_its_runs(team, builder):
    flow = make_flow(team, "Leads", user=None)
    start(publish(flow, {**SMALL, "name": "Leads"}), trigger_key="hand", input={})
    builder.post(reverse("flow_delete", args=[flow.pk]))
    assert builder.get(reverse("flow", args=[flow.pk])).status_code == 404
    assert Run.objects.count() == 1 and not Trigger.objects.filter(enabled=True).exists()


def test_pausing_and_going_on(team, builder):
    flow = make_flow(team, "Leads", user=None)
    for paused, why in ((True, "<the CRM>\x00 is down" + 300 * "!"), (False, "")):
        for _ in range(2):  # two presses of the button are no way back
            builder.post(reverse("flow_pause", args=[flow.pk]), {"why": why, "to": "paused" if paused else ""})
        flow.refresh_from_db()
        assert flow.paused is paused
        for name in ("flow", "flow_versions"):
            page = builder.get(reverse(name, args=[flow.pk])).content.decode()
            assert ("takes no new runs: &lt;the CRM&gt;" in page) is paused
    (first, second) = AuditEntry.objects.filter(action__in=["pause", "unpause"]).order_by("pk").values_list("detail", flat=True)
    assert first["why"].startswith("<the CRM>") and len(first["why"]) == 300 and "\x00" not in first["why"]
    assert second == {} and flow.paused_why == ""


def test_the_first_examples_load_once(team):
    assert examples.load(team) == "5 made"
    assert examples.load(team) == "already there"
    flows = Workflow.objects.filter(team=team)
    assert flows.count() == len(examples.MADE_AT_START) and not flows.filter(live_version=None).exists()
    for flow in flows:
        assert drafts.load(flow).definition == flow.live_version.definition


def test_an_example_that_somebody_renamed_or_deleted_does_not_come_back(team, builder):
    examples.load(team)
    first, second = Workflow.objects.order_by("pk")[:2]
    Workflow.objects.filter(pk=first.pk).update(name="Mine now")
    builder.post(reverse("flow_delete", args=[second.pk]))
    assert examples.load(team) == "already there"


def test_an_administrator_says_how_long_runs_are_kept_and_others_see_it(team, builder):
    flow = make_flow(team, "Leads", user=None)
    admin, url = person(team, Role.ADMIN, "ada"), reverse("flow_retention", args=[flow.pk])
    panel = reverse("flow_panel", args=[flow.pk]) + "?settings"
    for typed, kept in (("30", 30), ("0", 0), ("", None)):
        assert b"Saved." in admin.post(url, {"days": typed}).content
        flow.refresh_from_db()
        assert flow.retention_days == kept
        shown = admin.get(panel).content.decode()
        assert f'name="days" inputmode="numeric" maxlength="5" autocomplete="off" value="{typed}"' in shown
    assert AuditEntry.objects.filter(action="keep_runs").count() == 3
    for typed in ("-1", "1.5", "many", "99999", "٣", "00000040000", "0" * 5000):
        refused = admin.post(url, {"days": typed}).content.decode()
        assert "Write a whole number of days" in refused and f'value="{typed[:12]}"' in refused
    assert builder.post(url, {"days": "1"}).status_code in (403, 404)
    assert "An administrator of the team can change it" in builder.get(panel).content.decode()
    flow.refresh_from_db()
    assert flow.retention_days is None
