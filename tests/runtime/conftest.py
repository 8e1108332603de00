"""Fixtures of the runtime's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def zygote(django_db_setup) -> Iterator[object]:
    from tests.runtime.engine import Zygote

    os.environ["HOLDFAST_STEP_MODULES"] = "tests.runtime.engine_steps"
    try:
        started = Zygote()
    finally:
        del os.environ["HOLDFAST_STEP_MODULES"]
    yield started
    started.close()


@pytest.fixture
def engine(zygote, transactional_db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Flows, runs and worker processes; see `tests/runtime/engine.py`."""
    from runtime.steps import step_types
    from tests.runtime.engine import Engine

    monkeypatch.setenv("HOLDFAST_STEP_MODULES", "tests.runtime.engine_steps")
    step_types.cache_clear()
    tmp_path.chmod(0o755)
    made = Engine(zygote, tmp_path)
    yield made
    for worker in made.workers:
        if said := worker.tail():  # shown with the report of a test that failed
            print(f"worker {worker.pid} said last:\n{said}")
    made.kill_all()
    step_types.cache_clear()


@pytest.fixture(scope="session")
def crm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from tests.servers.crm import Crm

    with Crm(ledger=tmp_path_factory.mktemp("crm") / "ledger.db") as server:
        yield server


@pytest.fixture
def crm(crm_server) -> object:
    """A CRM with a ledger, behaving well until told otherwise. Its ledger is the session's: tell rows apart by path."""
    usual = {"keys": "honour", "after_commit": "reply", "before_commit": "reply", "refuse": 0, "require": ""}
    crm_server.control(**usual, after_commit_times=None, before_commit_times=None, refuse_times=None)
    return crm_server
