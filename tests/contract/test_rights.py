"""The rights for every operation. A new route is tested as soon as it is registered.

`tests/support/operations.py` has the lists of operations and of open paths, `conftest.py` the ids of another
organization."""

import re

import httpx2
import pytest
from fastapi.routing import iter_route_contexts
from tests.contract.conftest import Furnished
from tests.support.operations import (
    ADMIN,
    ADMIN_READS,
    ADMIN_WRITES,
    CLOSED,
    COMMON,
    DOCUMENT,
    GUARDED,
    NAMING,
    OPERATIONS,
    OUTPOSTS,
    PERSONAL,
    SCIM,
    filled,
)
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.ingress.gateway import GATEWAY_PATHS
from gatehouse.platform.worker.app import administration

#: SCIM operations that this service does not offer.
_NOT_OFFERED = ["/.search", "/Users/.search", "/Groups/.search", "/Bulk", "/Me"]


def test_every_route_is_in_the_document_or_listed_as_hidden() -> None:
    """The other tests use the operations of the document, so they would miss a route that is hidden from it."""
    routes = iter_route_contexts(administration()[0].router.routes)
    served = {(method, _template(route.path or "")) for route in routes for method in route.methods or ()}
    # Pages for browsers have their own tests in `test_browser_attacks`.
    listed_paths = {
        *map(_template, GATEWAY_PATHS),
        "/",
        "/openapi.json",
        # Its messages have their own tests in `platform/administration/test_tools.py`.
        "/api/mcp",
        *(f"/api/scim/v2{path}" for path in _NOT_OFFERED),
    }
    hidden = {path for _, path in served - set(OPERATIONS)} - listed_paths
    assert {path for path in hidden if not re.match(r"/(login|logout|docs|console|connect)(/|$)", path)} == set()


def _template(path: str) -> str:
    """Return the path as in the document: without the types of its parameters."""
    return re.sub(r":\w+}", "}", path)


@pytest.mark.parametrize("path", _NOT_OFFERED)
async def test_unsupported_scim_paths_require_a_scim_token(platform: RunningPlatform, path: str) -> None:
    method = "GET" if path == "/Me" else "POST"
    assert (await platform.anonymous.request(method, f"/api/scim/v2{path}")).status_code == 401


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_a_call_without_a_credential_is_401(platform: RunningPlatform, method: str, path: str) -> None:
    assert (await platform.anonymous.request(method, filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_a_call_with_an_invented_key_is_401(platform: RunningPlatform, method: str, path: str) -> None:
    client = platform.client("gk_" + "x" * 38)
    assert (await client.request(method, filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), ADMIN)
async def test_a_user_gets_403(somebody: Tenant, method: str, path: str) -> None:
    assert (await somebody.user.client.request(method, filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), ADMIN_WRITES)
async def test_an_auditor_changes_nothing(somebody: Tenant, method: str, path: str) -> None:
    assert (await somebody.auditor.client.request(method, filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), ADMIN_READS)
async def test_an_auditor_reads_everything_an_admin_reads(furnished: Furnished, method: str, path: str) -> None:
    named = furnished.path(path)
    admins = await furnished.tenant.admin.client.request(method, named)
    auditors = await furnished.tenant.auditor.client.request(method, named)
    assert (admins.status_code, auditors.status_code) == (200, 200), (admins.text, auditors.text)


@pytest.mark.parametrize(("method", "path"), SCIM)
async def test_only_scim_tokens_are_valid_for_provisioning(
    platform: RunningPlatform, somebody: Tenant, method: str, path: str
) -> None:
    machine = await platform.new_m2m(somebody.id, "admin:read", "admin:write")
    key = platform.client(await platform.new_key(somebody.admin))
    for client in (somebody.admin.client, machine, key):
        assert (await client.request(method, filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), OUTPOSTS)
async def test_only_outpost_tokens_are_valid_for_outpost_endpoints(
    platform: RunningPlatform, somebody: Tenant, method: str, path: str
) -> None:
    machine = await platform.new_m2m(somebody.id, "admin:read", "admin:write")
    key = platform.client(await platform.new_key(somebody.admin))
    for client in (somebody.admin.client, machine, key):
        assert (await client.request(method, path, json={})).status_code == 401


@pytest.mark.parametrize(("method", "path"), NAMING)
async def test_another_organizations_id_is_404(
    platform: RunningPlatform, somebody: Tenant, furnished: Furnished, method: str, path: str
) -> None:
    # Only operators can access tenants, so the id must be an unknown one.
    client = (await platform.operator() if "{tenant_id}" in path else somebody.admin).client
    answer = await client.request(method, furnished.path(path), json=_BODIES.get(path, _ANY_BODY))
    assert answer.status_code == 404, answer.text


@pytest.mark.parametrize(("method", "path"), PERSONAL)
async def test_a_colleagues_id_is_404(furnished: Furnished, method: str, path: str) -> None:
    """The caller is an auditor, who can read everything in the organization but owns none of these rows."""
    body = _BODIES.get(path, _ANY_BODY)
    answer = await furnished.tenant.auditor.client.request(method, furnished.path(path), json=body)
    assert answer.status_code == 404, answer.text


async def test_a_share_link_is_found_only_in_its_own_conversation(furnished: Furnished) -> None:
    auditor = furnished.tenant.auditor.client
    own = (await auditor.post("/api/conversations", json={"title": "x"})).json()["id"]
    link = f"/api/conversations/{own}/share_links/{furnished.ids['token_id']}"
    assert (await auditor.delete(link)).status_code == 404


#: Operations on a person's own account, which need a session (docs/authentication.md, People).
IN_PERSON = [(method, path) for method, path in COMMON if path.startswith("/api/auth/")]


@pytest.mark.parametrize(("method", "path"), IN_PERSON)
async def test_a_key_is_refused_where_a_session_is_required(
    admins_key: httpx2.AsyncClient, method: str, path: str
) -> None:
    assert (await admins_key.request(method, filled(path))).status_code == 403


@pytest.fixture(scope="module")
async def admins_key(platform: RunningPlatform, somebody: Tenant) -> httpx2.AsyncClient:
    return platform.client(await platform.new_key(somebody.admin))


#: Operations for operators of the platform, which administrators of organizations may not call
#: (docs/authentication.md).
OPERATORS = [
    (method, path)
    for method, path in ADMIN
    if path.startswith("/v1/platform/") or (method, path) == ("POST", "/api/admin/system/maintenance")
]


@pytest.mark.parametrize(("method", "path"), OPERATORS)
async def test_an_organizations_administrator_cannot_call_operators_endpoints(
    platform: RunningPlatform, somebody: Tenant, method: str, path: str
) -> None:
    machine = await platform.new_m2m(somebody.id, "admin:read", "admin:write")
    for client in (somebody.admin.client, machine):
        assert (await client.request(method, filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), [item for item in SCIM if "s/{id}" in item[1]])
async def test_a_directory_gets_404_for_another_organizations_id(
    platform: RunningPlatform, somebody: Tenant, furnished: Furnished, method: str, path: str
) -> None:
    token = (await somebody.admin.client.post("/api/admin/scim/token", json={"description": "x"})).json()["token"]
    kind = path.removeprefix("/api/scim/v2/").partition("/")[0]
    named = filled(path, {"id": furnished.ids[_DIRECTORY.get(kind, "user_id")]})
    answer = await platform.client(token).request(method, named, json={})
    assert answer.status_code == 404, answer.text


_DIRECTORY = {"Users": "user_id", "Groups": "group_id"}


#: Operations that look up the row only after the body was validated.
_BODIES = {
    "/api/v1/admin/kill-switch/providers/{provider}/disable": {"reason": "other"},
    "/api/v1/admin/kill-switch/models/{model_config_id}/disable": {"reason": "other"},
    "/api/admin/providers/{provider_id}/credentials": {"api_key": "sk-0123456789abcdef"},
    "/api/auth/mfa/webauthn/{passkey_id}": {"name": "x"},
}
_ANY_BODY: dict[str, str] = {}


def test_the_document_states_which_operations_need_a_credential() -> None:
    security = {(method, path): DOCUMENT["paths"][path][method.lower()].get("security") for method, path in OPERATIONS}
    # An empty entry among several means that the credential need not be in a header.
    assert {item for item, ways in security.items() if ways and {} not in ways} == set(CLOSED)
    assert {item for item, ways in security.items() if ways and {} in ways} == set(GUARDED) - set(CLOSED)
