"""Runs: the list, one run, and what can be done to them."""

from __future__ import annotations

from django.urls import path

from .acts import act_on_runs, act_on_wait, answer_wait, cancel_run
from .again import fail_run, requeue_run, rerun_run, retry_run, skip_step
from .listing import run_list
from .page import run_live, run_page

urlpatterns = [
    path("runs/", run_list, name="runs"),
    path("runs/acts/", act_on_runs, name="runs_act"),
    path("runs/<int:run_id>/", run_page, name="run"),
    path("runs/<int:run_id>/live/", run_live, name="run_live"),
    path("runs/<int:run_id>/cancel/", cancel_run, name="run_cancel"),
    path("runs/<int:run_id>/requeue/", requeue_run, name="run_requeue"),
    path("runs/<int:run_id>/rerun/", rerun_run, name="run_rerun"),
    path("runs/<int:run_id>/retry/", retry_run, name="run_retry"),
    path("runs/<int:run_id>/skip/", skip_step, name="run_skip"),
    path("runs/<int:run_id>/fail/", fail_run, name="run_fail"),
    path("runs/<int:run_id>/waits/<int:wait_id>/", act_on_wait, name="run_wait"),
    path("runs/<int:run_id>/waits/<int:wait_id>/answer/", answer_wait, name="run_answer"),
]
