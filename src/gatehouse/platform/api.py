"""The table of contents: every family of the administration API, a line each."""

from typing import Final

from fastapi import APIRouter

from gatehouse.foundation.http.envelopes import ErrorForm
from gatehouse.platform.access.accounts.routes import router as accounts
from gatehouse.platform.access.api_keys.routes import router as api_keys
from gatehouse.platform.access.oauth_clients.routes import router as oauth_clients
from gatehouse.platform.access.sessions.routes import router as sessions
from gatehouse.platform.access.tokens.routes import router as tokens
from gatehouse.platform.access.users.routes import router as users
from gatehouse.platform.routing.byoe.routes import router as byoe
from gatehouse.platform.routing.model_catalog.routes import router as model_catalog
from gatehouse.platform.routing.providers.routes import router as providers
from gatehouse.platform.routing.kill_switch.errors import FORM as KILL_SWITCH_FORM
from gatehouse.platform.routing.kill_switch.routes import router as kill_switch

FAMILIES: Final[tuple[APIRouter, ...]] = (
    accounts,
    api_keys,
    sessions,
    users,
    kill_switch,
    oauth_clients,
    tokens,
    # Before byoe: PATCH /providers/byoe/config is the config of a provider called `byoe`.
    providers,
    byoe,
    model_catalog,
)  # fmt: skip

#: The error forms of families that do not answer in `detail` form, by path prefix (each from its `errors.py`).
ERROR_FORMS: Final[dict[str, ErrorForm]] = {
    "/api/v1/admin/kill-switch": KILL_SWITCH_FORM,
}
