"""Runs: the list, one run, and what can be done to them."""

from __future__ import annotations

from django.urls import path

from .acts import act_on_runs, act_on_wait, answer_wait, cancel_run, told_of_runs
from .again import continue_run, fail_run, requeue_run, rerun_run, retry_run, skip_step
from .jobs import filter_delete, filter_save, job_file, job_list, job_page, job_stop
from .listing import run_list
from .outputs import run_file, run_output, run_output_file
from .page import run_live, run_page
from .step import run_step

urlpatterns = [
    path("runs/", run_list, name="runs"),
    path("runs/acts/", act_on_runs, name="runs_act"),
    path("runs/acts/told/", told_of_runs, name="runs_told"),
    path("runs/jobs/", job_list, name="jobs"),
    path("runs/jobs/<int:job_id>/", job_page, name="job"),
    path("runs/jobs/<int:job_id>/stop/", job_stop, name="job_stop"),
    path("runs/jobs/<int:job_id>/file/", job_file, name="job_file"),
    path("runs/filters/", filter_save, name="filter_save"),
    path("runs/filters/<int:filter_id>/delete/", filter_delete, name="filter_delete"),
    path("runs/<int:run_id>/", run_page, name="run"),
    path("runs/<int:run_id>/live/", run_live, name="run_live"),
    path("runs/<int:run_id>/output/", run_output, name="run_output"),
    path("runs/<int:run_id>/output/file/", run_output_file, name="run_output_file"),
    path("runs/<int:run_id>/file/", run_file, name="run_file"),
    path("runs/<int:run_id>/cancel/", cancel_run, name="run_cancel"),
    path("runs/<int:run_id>/requeue/", requeue_run, name="run_requeue"),
    path("runs/<int:run_id>/rerun/", rerun_run, name="run_rerun"),
    path("runs/<int:run_id>/continue/", continue_run, name="run_continue"),
    path("runs/<int:run_id>/retry/", retry_run, name="run_retry"),
    path("runs/<int:run_id>/skip/", skip_step, name="run_skip"),
    path("runs/<int:run_id>/step/", run_step, name="run_step"),
    path("runs/<int:run_id>/fail/", fail_run, name="run_fail"),
    path("runs/<int:run_id>/waits/<int:wait_id>/", act_on_wait, name="run_wait"),
    path("runs/<int:run_id>/waits/<int:wait_id>/answer/", answer_wait, name="run_answer"),
]
