"""/api/v1: what programs may do, with a bearer token, under the same table of roles as the pages.

Every operation is registered with `guarded(<operation id>)`: an id that is not in `builder.gate.VIEWS` does not
import. Django-ninja makes the OpenAPI description; our own views show it (`builder/views/api.py`), because its ready-made
page loads scripts from elsewhere, and its own address makes the description anew for everybody who asks.
"""

from __future__ import annotations

from ninja import NinjaAPI

from . import account, approvals, runs, signals, workflows
from .auth import nobody
from .errors import add_handlers
from .reading import StrictParser

DESCRIPTION = """Send `Authorization: Bearer <token>`: make one on your account page, or with `manage.py apitoken USER`.

Lists come newest first, `limit` at a time. Pass `next` of one page as `cursor` to get the next, until it is null.
Errors are `{"error": {"message": ..., "problems": [{"step", "field", "message"}]}}`."""

api = NinjaAPI(
    title="Holdfast",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    docs_url=None,
    openapi_url=None,
    auth=nobody,
    parser=StrictParser(),
)
add_handlers(api)
api.add_router("", account.router, tags=["Account"])
api.add_router("", workflows.router, tags=["Workflows"])
api.add_router("", runs.router, tags=["Runs"])
api.add_router("", approvals.router, tags=["Approvals"])
api.add_router("", signals.router, tags=["Signals"])
