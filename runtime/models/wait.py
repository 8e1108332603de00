"""Places where a run is parked, what may wake it, and the approvals that people answer."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Upper

from ..clock import BusinessNow
from ..states import WaitKind, WaitState, values
from .json_in_order import JsonInOrder


class Wait(models.Model):
    """One parked place. Who resolves it first wins; every resolver holds the run's dispatch row.

    `n` tells several waits of one kind at one place apart (the third retry). `outcome` is what the step resumes with:
    `{"by": "due"}`, `{"by": "signal", "payload": ...}`, `{"by": "decision", ...}`, `{"by": "person", "answer": ...}`.
    """

    run_id = models.BigIntegerField()
    scope = models.TextField(db_collation="C", default="")
    path = models.TextField(db_collation="C")
    take = models.IntegerField(default=1)
    kind = models.CharField(max_length=8)
    n = models.IntegerField(default=1)
    state = models.CharField(max_length=9, default=WaitState.OPEN)
    due_at = models.DateTimeField(null=True, blank=True)
    data = JsonInOrder(default=dict)
    outcome = JsonInOrder(null=True, blank=True)
    created_at = models.DateTimeField(db_default=BusinessNow())
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "wait"
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=values(WaitKind)), name="wait_kind"),
            models.CheckConstraint(condition=Q(state__in=values(WaitState)), name="wait_state"),
            models.CheckConstraint(
                condition=Q(state="resolved", outcome__isnull=False, resolved_at__isnull=False)
                | (~Q(state="resolved") & Q(outcome__isnull=True)),
                name="wait_outcome",
            ),
            models.UniqueConstraint(fields=["run_id", "scope", "path", "take", "kind", "n"], name="wait_place"),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="open", due_at__isnull=False), name="wait_due"),
            models.Index(fields=["kind", "-id"], condition=Q(state="open") & ~Q(kind=""), name="wait_open_of"),
            models.Index(fields=["run_id", "due_at"], condition=Q(state="open"), name="wait_open_run"),
        ]


class Signal(models.Model):
    """An outside event for a place of a run, stored even when it comes before the wait. Taken by at most one wait."""

    run_id = models.BigIntegerField()
    path = models.TextField(db_collation="C")
    dedupe = models.TextField()
    payload = JsonInOrder(null=True)
    received_at = models.DateTimeField(db_default=BusinessNow())
    wait = models.ForeignKey(Wait, models.SET_NULL, null=True, blank=True, related_name="signals")

    class Meta:
        db_table = "signal"
        constraints = [models.UniqueConstraint(fields=["run_id", "path", "dedupe"], name="signal_once")]


class NamedSignal(models.Model):
    """An event for whichever run of the team waits for this name and key (see `runtime.signals`). One for test runs is no real
    event: no other run may take it, and no test run a real one."""

    team = models.ForeignKey("runtime.Team", models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    key = models.CharField(max_length=255)
    test = models.BooleanField(default=False, db_default=False)
    dedupe = models.TextField()
    payload = JsonInOrder(null=True)
    received_at = models.DateTimeField(db_default=BusinessNow())
    wait_id = models.BigIntegerField(null=True, blank=True)

    class Meta:
        db_table = "named_signal"
        constraints = [models.UniqueConstraint(fields=["team", "name", "key", "dedupe"], name="named_signal_once")]
        indexes = [models.Index(fields=["wait_id"], condition=Q(wait_id__isnull=False), name="named_signal_wait")]


class Approval(models.Model):
    """The question behind an approval wait. `details` is a list of `{"label", "value"}`, `form` a list of fields
    `{"id", "label", "type", "required", "options"}`, `effects` says what each answer causes.

    `rules` are the step's choices that hold while it is open (see `runtime.asking`): `remind`, `escalate` (seconds),
    `comment`, `sign_in`, `outvoted`, `starters`, `members` (address -> `Person.member_of`). `stage` is the one that is asked, of those that are asked one after the other;
    `next_at` when somebody is to be reminded or asked in addition."""

    wait = models.OneToOneField(Wait, models.CASCADE, primary_key=True, related_name="approval")
    run_id = models.BigIntegerField(db_index=True)
    subject = models.TextField()
    message = models.TextField(blank=True, default="")
    details = JsonInOrder(default=list)
    form = JsonInOrder(default=list)
    effects = JsonInOrder(default=dict)
    policy = models.CharField(max_length=8, default="any")
    needed = models.IntegerField(default=1)
    on_expired = models.CharField(max_length=8, default="reject")
    rules = JsonInOrder(default=dict, db_default=Value("{}", output_field=models.TextField()))
    stage = models.SmallIntegerField(default=1, db_default=1)
    next_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "approval"
        constraints = [
            models.CheckConstraint(condition=Q(policy__in=["any", "all", "count", "ordered"]), name="approval_policy")
        ]
        indexes = [models.Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="approval_next")]


class Recipient(models.Model):
    """One approver of one approval. Only the hash of the link's token and its nonce are stored.

    `asked_at` is empty for those whose turn has not come: a later stage, or `standby`, who are asked when nobody else
    answers. `handed_to` is the address of the one who was asked instead."""

    approval = models.ForeignKey(Approval, models.CASCADE, related_name="recipients")
    address = models.EmailField(max_length=320)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    nonce = models.CharField(max_length=44)
    key_id = models.CharField(max_length=16)
    token_hash = models.CharField(max_length=64, unique=True)
    viewed_at = models.DateTimeField(null=True, blank=True)
    stage = models.SmallIntegerField(default=1, db_default=1)
    standby = models.BooleanField(default=False, db_default=False)
    asked_at = models.DateTimeField(null=True, blank=True, db_default=BusinessNow())
    handed_to = models.CharField(max_length=320, blank=True, default="", db_default="")

    class Meta:
        db_table = "recipient"
        constraints = [models.UniqueConstraint(fields=["approval", "address"], name="recipient_once")]
        indexes = [models.Index(Upper("address"), name="recipient_address")]


class Decision(models.Model):
    """One person's answer, kept as long as its run."""

    approval = models.ForeignKey(Approval, models.CASCADE, related_name="decisions")
    recipient = models.ForeignKey(Recipient, models.PROTECT, null=True, blank=True, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    decided_by = models.TextField()
    answer = models.CharField(max_length=7)
    comment = models.TextField(blank=True, default="")
    form = JsonInOrder(default=dict)
    address = models.GenericIPAddressField(null=True, blank=True)
    decided_at = models.DateTimeField(db_default=BusinessNow())

    class Meta:
        db_table = "decision"
        constraints = [
            models.CheckConstraint(condition=Q(answer__in=["approve", "reject"]), name="decision_answer"),
            models.UniqueConstraint(
                fields=["approval", "recipient"], condition=Q(recipient__isnull=False), name="decision_once"
            ),
        ]
