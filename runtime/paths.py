"""Paths name where a step executes in a run: `hot/yes/call`, in a loop `each[3]/call`, in an error lane
`call/on_error/notify`. The scope of a path is its innermost loop iteration: `each[3]`, or empty."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from functools import lru_cache


def scope_of(path: str) -> str:
    """`each[3]/hot/yes/call` -> `each[3]`; `hot/yes/call` -> ``."""
    return path[: path.rfind("]") + 1]


def scopes_of(path: str) -> list[str]:
    """All scopes that a step at this path sees, the root first: `a[1]/b[2]/c` -> `["", "a[1]", "a[1]/b[2]"]`."""
    return ["", *(path[: found.end()] for found in re.finditer(r"\]", path))]


def step_of(path: str) -> str:
    """The id of the step at the path: `each[3]/call` -> `call`."""
    return path.rpartition("/")[2].partition("[")[0]


def is_within(path: str, root: str) -> bool:
    """Whether it is the root itself, or lies in it: in one of its lanes or iterations."""
    return path == root or path.startswith((f"{root}/", f"{root}["))


def scope_sql(path: str = "path") -> str:
    """`scope_of` as Postgres says it, of a column."""
    return f"coalesce(substring({path} from '^.*[]]'), '')"


def step_sql(path: str = "path") -> str:
    """`step_of` as Postgres says it, of a column."""
    return f"split_part(regexp_replace({path}, '^.*/', ''), '[', 1)"


def key_of(run_id: int, created_at: datetime, path: str, take: int, operation: str = "call") -> str:
    """The Idempotency-Key of a step's calls; the run's creation time keeps two installations apart."""
    return key_from(f"{run_id}|{moment(created_at)}|{path}|{take}", operation)


def key_from(seed: str, operation: str) -> str:
    """The same from `{run}|{its moment}|{path}|{take}`, as where a call of another run is made again."""
    run_id, digest = seed.partition("|")[0], hashlib.sha256(f"{seed}|{operation}".encode()).hexdigest()
    return f"hf-{run_id}-{digest[:24]}"


@lru_cache(maxsize=2048)
def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
