"""Drafts: every edit is a numbered revision, undo reaches back over all of them, and nobody overwrites anybody."""

from __future__ import annotations

import json
import threading
from contextlib import suppress

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import drafts
from builder.drafts import StaleRevision
from builder.editing import EditError, apply
from builder.flowmaking import make_flow
from builder.models import Draft, Revision
from runtime.models import Team
from runtime.publish import publish
from tests.builder.test_editing import LEAD, operations

STEP = {"op": "insert", "type": "delay", "place": {"index": 0}}


@pytest.fixture
def flow(db):
    user = get_user_model().objects.create_user("ines")
    return make_flow(Team.objects.create(name="Sales"), "Leads", user=user)


def insert(flow, revision):
    return drafts.edit(flow, STEP, revision=revision).draft.revision


@pytest.mark.django_db
def test_a_new_flow_begins_blank_at_revision_one(flow):
    draft = drafts.load(flow)
    assert draft.revision == 1 and draft.definition == {"format": 1, "name": "Leads", "triggers": [], "steps": []}
    assert drafts.history(draft) == drafts.History(None, None)


@pytest.mark.django_db
def test_a_flow_without_a_draft_begins_with_its_live_version(flow):
    publish(flow, {"format": 1, "name": "Leads", "steps": [{"id": "wait", "type": "delay", "config": {"for": "1h"}}]})
    Draft.objects.all().delete()
    flow.refresh_from_db()
    assert drafts.load(flow).definition["steps"][0]["id"] == "wait"


@pytest.mark.django_db
def test_an_edit_on_an_older_revision_changes_nothing_and_says_what_stands(flow):
    insert(flow, 1)
    with pytest.raises(StaleRevision) as stale:
        insert(flow, 1)
    assert (stale.value.draft.revision, stale.value.seen) == (2, 1)
    assert len(drafts.load(flow).definition["steps"]) == 1


@pytest.mark.django_db
def test_an_edit_that_is_sent_again_after_a_lost_reply_counts_once(flow):
    first = drafts.edit(flow, STEP, revision=1, key="k1")
    again = drafts.edit(flow, STEP, revision=1, key="k1")
    assert first.draft.revision == again.draft.revision == 2
    assert again.before["steps"] == [] and len(again.draft.definition["steps"]) == 1


@pytest.mark.django_db
def test_an_answer_that_got_lost_is_given_again_also_when_others_went_on(flow):
    drafts.edit(flow, STEP, revision=1, key="mine")
    drafts.edit(flow, {"op": "toggle", "step": "delay"}, revision=2, key="theirs")
    again = drafts.edit(flow, STEP, revision=1, key="mine")
    assert again.draft.revision == 3 and again.before["steps"] == [] and again.seen == 1
    undone = drafts.undo(flow, revision=3, key="back")
    twice = drafts.undo(flow, revision=3, key="back")
    assert undone.draft.revision == twice.draft.revision == 4 and twice.before["steps"][0]["off"] is True
    drafts.redo(flow, revision=4, key="forth")
    assert drafts.redo(flow, revision=4, key="forth").draft.revision == 5


@pytest.mark.django_db
def test_an_edit_wins_over_what_came_between_only_when_it_says_so_and_nothing_is_lost(flow):
    insert(flow, 1)
    drafts.edit(flow, {"op": "toggle", "step": "delay"}, revision=2)
    drafts.edit(flow, {"op": "insert", "type": "set", "place": {"after": "delay"}}, revision=3)
    again = {"op": "duplicate", "step": "delay"}
    with pytest.raises(StaleRevision):
        drafts.overwrite(flow, again, made_on=2, revision=3)
    saved = drafts.overwrite(flow, again, made_on=2, revision=4, key="mine")
    assert [step["id"] for step in saved.draft.definition["steps"]] == ["delay", "delay_2"]
    assert drafts.overwrite(flow, again, made_on=2, revision=4, key="mine").draft.revision == 5
    drafts.undo(flow, revision=5)
    assert [step["id"] for step in drafts.load(flow).definition["steps"]] == ["delay", "set_values"]
    with pytest.raises(EditError, match="no longer kept"):
        drafts.overwrite(flow, again, made_on=99, revision=6)


@pytest.mark.django_db
def test_undo_and_redo_walk_over_everything_also_after_a_reload(flow):
    revision = insert(flow, 1)
    revision = drafts.edit(flow, {"op": "configure", "step": "delay", "set": {"config.for": "2h"}, "label": "Change wait"}, revision=revision).draft.revision
    revision = drafts.undo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition["steps"][0]["config"] == {"for": "1h"}
    assert drafts.history(drafts.load(flow)) == drafts.History("Add Delay", "Change wait")
    revision = drafts.undo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition["steps"] == []
    assert drafts.history(drafts.load(flow)) == drafts.History(None, "Add Delay")
    revision = drafts.redo(flow, revision=revision).draft.revision
    revision = drafts.redo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition["steps"][0]["config"] == {"for": "2h"}
    assert drafts.history(drafts.load(flow)) == drafts.History("Change wait", None)
    drafts.undo(flow, revision=revision)
    assert drafts.history(drafts.load(flow)) == drafts.History("Add Delay", "Change wait")


@pytest.mark.django_db
def test_an_edit_after_undo_begins_a_new_way_but_the_old_one_stays_stored(flow):
    revision = insert(flow, 1)
    revision = drafts.undo(flow, revision=revision).draft.revision
    drafts.edit(flow, {"op": "add_trigger", "type": "manual"}, revision=revision)
    draft = drafts.load(flow)
    assert drafts.history(draft).redo is None
    assert drafts.at_revision(draft, 2)["steps"][0]["type"] == "delay"


@pytest.mark.django_db
def test_an_edit_that_changes_nothing_writes_nothing(flow):
    drafts.edit(flow, {"op": "configure_workflow", "set": {"name": "Leads"}}, revision=1)
    assert drafts.load(flow).revision == 1


@pytest.mark.django_db
def test_what_cannot_be_stored_or_has_no_sound_shape_is_refused(flow):
    for values in ({"name": "x\x00"}, {"name": "x" * 300}, {"search": [float("nan")]}, {"search": "no list"}):
        with pytest.raises(EditError):
            drafts.edit(flow, {"op": "configure_workflow", "set": values}, revision=1)
    assert drafts.load(flow).revision == 1


@pytest.mark.django_db
def test_rows_keep_the_order_in_which_they_were_written(flow):
    values = {"zebra": 1, "a": 2, "middle": 3}
    drafts.edit(flow, {"op": "insert", "type": "set", "place": {"index": 0}}, revision=1)
    drafts.edit(flow, {"op": "configure", "step": "set_values", "set": {"config.values": values}}, revision=2)
    assert list(drafts.load(flow).definition["steps"][0]["config"]["values"]) == ["zebra", "a", "middle"]


@pytest.mark.django_db
def test_until_the_first_publishing_the_drafts_name_is_the_flows(flow):
    drafts.edit(flow, {"op": "configure_workflow", "set": {"name": "Warm leads"}}, revision=1)
    flow.refresh_from_db()
    assert flow.name == "Warm leads"


@pytest.mark.django_db
def test_old_revisions_are_dropped_and_undo_ends_there(flow, monkeypatch):
    monkeypatch.setattr(drafts, "KEPT", 3)
    revision = 1
    for _ in range(6):
        revision = insert(flow, revision)
    assert Revision.objects.count() == 3
    for _ in range(9):
        revision = drafts.undo(flow, revision=revision).draft.revision
    assert drafts.history(drafts.load(flow)).undo is None


@pytest.mark.django_db
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_was_done_undo_of_all_returns_the_start_and_redo_the_end(flow, data):
    drafts.save(flow, LEAD, revision=None)
    start = drafts.load(flow)
    revision, done = start.revision, 0
    for _ in range(data.draw(st.integers(1, 8))):
        operation = data.draw(operations(drafts.load(flow).definition))
        try:
            after = drafts.edit(flow, operation, revision=revision).draft.revision
        except EditError as refused:
            assert str(refused)
            continue
        done += after > revision
        revision = after
    end = drafts.load(flow).definition
    for _ in range(done):
        revision = drafts.undo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition == start.definition
    for _ in range(done):
        revision = drafts.redo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition == end


@pytest.mark.django_db
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flow_that_was_exported_and_imported_is_the_same_to_the_letter(flow, client, data):
    flow.team.memberships.get_or_create(user=flow.created_by, defaults={"role": "builder"})
    client.force_login(flow.created_by)
    definition = LEAD
    for _ in range(data.draw(st.integers(0, 6))):
        with suppress(EditError):
            definition = apply(definition, data.draw(operations(definition))).definition
    drafts.save(flow, definition, revision=None)
    written = client.get(f"/flows/{flow.pk}/export/").content
    answer = client.post("/flows/import/", {"file": SimpleUploadedFile("flow.json", written)})
    again = client.get(f"{answer['Location']}export/").content
    assert json.loads(again) == definition and again == written


@pytest.mark.django_db(transaction=True)
@pytest.mark.fault(34)
def test_of_two_edits_at_the_same_time_one_wins_and_the_other_is_told():
    flow = make_flow(Team.objects.create(name="Sales"), "Leads", user=get_user_model().objects.create_user("ines"))
    outcomes, together = [], threading.Barrier(6)

    def one():
        together.wait()
        try:
            outcomes.append(insert(flow, 1))
        except StaleRevision:
            outcomes.append("stale")
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["2"] + ["stale"] * 5
    assert len(drafts.load(flow).definition["steps"]) == 1


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from(["delay", "http", "condition", "loop", "parallel"]), min_size=1, max_size=6))
def test_undo_of_everything_returns_the_start_and_redo_the_end(flow, kinds):
    start = drafts.load(flow)
    before, revision = start.definition, start.revision
    for kind in kinds:
        revision = drafts.edit(flow, {"op": "insert", "type": kind, "place": {"index": 0}}, revision=revision).draft.revision
    end = drafts.load(flow).definition
    for _ in kinds:
        revision = drafts.undo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition == before
    for _ in kinds:
        revision = drafts.redo(flow, revision=revision).draft.revision
    assert drafts.load(flow).definition == end
    for _ in kinds:
        revision = drafts.undo(flow, revision=revision).draft.revision
