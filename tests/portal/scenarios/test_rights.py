"""Every operation in the OpenAPI document refuses each credential that does not permit the operation (docs/portal.md,
docs/errors.md)."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.portal import ADMIN_KEY, Org, RunningPortal

from gatehouse.foundation import jwt
from gatehouse.portal.server.app import build_api

DOCUMENT = build_api()[0].openapi()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def schemes(operation: dict[str, Any]) -> set[str]:
    """Returns the names of the security schemes, each of which permits the operation."""
    return {scheme for item in operation.get("security", ()) for scheme in item}


def _those(fits: Callable[[dict[str, Any]], bool]) -> list[Any]:
    return [
        pytest.param(method, path, id=f"{method} {path}") for method, path, operation in OPERATIONS if fits(operation)
    ]


#: These operations need no credential.
OPEN = {
    ("GET", "/api/health/live"), ("GET", "/api/health/ready"), ("GET", "/metrics"), ("GET", "/.well-known/jwks.json"),
    ("GET", "/v1/auth/sso/login"), ("GET", "/v1/auth/sso/callback"),
}  # fmt: skip
GUARDED = _those(lambda operation: bool(schemes(operation)))
ADMIN_KEY_ONLY = _those(lambda operation: schemes(operation) == {"adminKey"})
ORG_TOKEN = _those(lambda operation: "orgToken" in schemes(operation))
ORG_TOKEN_ONLY = _those(lambda operation: schemes(operation) == {"orgToken"})
ADMINS = _those(lambda operation: operation.get("x-required-role") == "admin")
#: These operations are for outposts and the platform. They refuse the admin key and organization tokens.
MACHINES = _those(lambda operation: bool(schemes(operation)) and not schemes(operation) & {"adminKey", "orgToken"})


@dataclass
class Cast:
    org: Org
    other: Org
    cancelled: Org


@pytest.fixture(scope="module")
async def cast(portal: RunningPortal) -> Cast:
    result = Cast(await portal.new_org(), await portal.new_org(), await portal.new_org())
    assert (await portal.admin.delete(result.cancelled.path)).status_code == 204
    return result


def filled(path: str, org: Org) -> str:
    """Returns the path with the organization's id, and with unknown ids for other parameters."""
    return re.sub(r"\{\w+\}", lambda _: str(uuid4()), path.replace("{org_id}", str(org.id)))


async def status(client: httpx2.AsyncClient, method: str, path: str, org: Org, **headers: str) -> int:
    answer = await client.request(
        method, filled(path, org), headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    assert answer.json()["error"] == {401: "unauthorized", 403: "forbidden", 404: "not_found"}[answer.status_code]
    assert answer.json()["detail"]
    return answer.status_code


def test_every_operation_declares_its_callers() -> None:
    """Only the operations in `OPEN` have no security scheme."""
    result = {(method, path) for method, path, operation in OPERATIONS if "security" not in operation}
    assert result == OPEN
    assert {scheme for _, _, operation in OPERATIONS for scheme in schemes(operation)} <= set(
        DOCUMENT["components"]["securitySchemes"]
    )


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_every_operation_needs_a_credential(portal: RunningPortal, cast: Cast, method: str, path: str) -> None:
    assert await status(portal.anonymous, method, path, cast.org) == 401


@pytest.mark.parametrize(("method", "path"), MACHINES)
async def test_machine_endpoints_refuse_other_credentials(
    portal: RunningPortal, cast: Cast, method: str, path: str
) -> None:
    for client in (portal.admin, cast.org.client):
        # No platform runs, so the portal cannot fetch the keys of the platform and may answer 503.
        assert (await client.request(method, filled(path, cast.org))).status_code in {401, 403, 503}


@pytest.mark.parametrize(("method", "path"), ORG_TOKEN_ONLY)
async def test_the_admin_key_is_refused_as_an_organization_token(
    portal: RunningPortal, cast: Cast, method: str, path: str
) -> None:
    assert await status(portal.admin, method, path, cast.org) == 401


# the admin key -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), ADMIN_KEY_ONLY)
async def test_administration_requires_the_admin_key(portal: RunningPortal, cast: Cast, method: str, path: str) -> None:
    assert await status(portal.anonymous, method, path, cast.org, X_API_Key="not the portal's admin key") == 401
    assert await status(portal.anonymous, method, path, cast.org, X_API_Key="") == 401
    assert await status(portal.anonymous, method, path, cast.org, Authorization=f"Bearer {ADMIN_KEY}") == 401
    assert await status(cast.org.client, method, path, cast.org) == 401


@pytest.mark.parametrize(("method", "path"), [item for item in ADMIN_KEY_ONLY if "{org_id}" in item.values[1]])
async def test_a_cancelled_organization_cannot_be_administered(
    portal: RunningPortal, cast: Cast, method: str, path: str
) -> None:
    if (method, path) == ("DELETE", "/v1/orgs/{org_id}"):
        assert (await portal.admin.delete(cast.cancelled.path)).status_code == 409
    else:
        assert await status(portal.admin, method, path, cast.cancelled) == 404
    nobody = Org(uuid4(), "", portal.admin, "")
    assert await status(portal.admin, method, path, nobody) == 404


# organization tokens -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), ORG_TOKEN)
async def test_an_invalid_token_is_refused(portal: RunningPortal, cast: Cast, method: str, path: str) -> None:
    claims = {"sub": str(cast.org.id), "plan": "enterprise"}
    now = int(time.time())
    valid_token = await portal.signed(claims)
    forged = jwt.SigningKey.generate()
    invalid_tokens = {
        "nothing": "",
        "another scheme": "Basic YTpi",
        "no token": "Bearer ",
        "malformed": "Bearer x.y.z",
        "expired": f"Bearer {await portal.signed(claims, iat=now - 100, exp=now - 10)}",
        "signed by somebody else": f"Bearer {jwt.sign(await portal.host.keys.verify(valid_token), forged)}",
        "cut": f"Bearer {valid_token[:-8]}",
        "for another audience": f"Bearer {await portal.signed(claims, aud='somebody else')}",
        "without an organization": f"Bearer {await portal.signed({'plan': 'enterprise'})}",
        "with an invalid organization id": f"Bearer {await portal.signed({'sub': 'x'})}",
    }
    for why, authorization in invalid_tokens.items():
        assert await status(portal.anonymous, method, path, cast.org, Authorization=authorization) == 401, why


@pytest.mark.parametrize(("method", "path"), ORG_TOKEN)
async def test_a_revoked_token_is_refused(portal: RunningPortal, cast: Cast, method: str, path: str) -> None:
    issued = (await portal.admin.post(f"{cast.org.path}/tokens", json={})).json()
    token = issued["token"]
    revoked = await portal.admin.post(f"{cast.org.path}/tokens/revoke/{issued['jti']}", json={"reason": "lost"})
    assert revoked.status_code == 200
    assert await status(portal.client(token), method, path, cast.org) == 403
    removed = await portal.signed({"sub": str(cast.org.id), "uid": str(uuid4()), "role": "admin"})
    assert await status(portal.client(removed), method, path, cast.org) == 403
    nobodys = await portal.signed({"sub": str(uuid4())})
    assert await status(portal.client(nobodys), method, path, cast.org) == 403


@pytest.mark.parametrize(("method", "path"), [item for item in ORG_TOKEN if "{org_id}" in item.values[1]])
async def test_a_token_is_valid_only_for_its_own_organization(cast: Cast, method: str, path: str) -> None:
    assert await status(cast.other.client, method, path, cast.org) == 403
    assert await status(cast.other.client, method, path.replace("{org_id}", "nonsense"), cast.org) == 403


@pytest.mark.parametrize(("method", "path"), ORG_TOKEN)
async def test_a_cancelled_organization_is_not_found(cast: Cast, method: str, path: str) -> None:
    assert await status(cast.cancelled.client, method, path, cast.cancelled) == 404


@pytest.mark.parametrize(("method", "path"), ADMINS)
async def test_members_are_refused_administrators_operations(
    portal: RunningPortal, cast: Cast, method: str, path: str
) -> None:
    member = await portal.new_member(cast.org)
    assert await status(member.client, method, path, cast.org) == 403


async def test_a_members_current_role_applies(portal: RunningPortal, org: Org) -> None:
    """The role in the token does not matter."""
    member = await portal.new_member(org, "member", claimed="admin")
    assert (await member.client.patch(f"{org.path}/settings", json={"name": "Mine"})).status_code == 403
    await org.client.put(f"{org.path}/members/{member.id}", json={"role": "admin"})
    assert (await member.client.patch(f"{org.path}/settings", json={"name": "Mine"})).status_code == 200
    await portal.new_member(org, "admin")
    await org.client.delete(f"{org.path}/members/{member.id}")
    assert (await member.client.get(org.path)).status_code == 403


async def test_wrong_credentials_of_one_address_are_limited(portal: RunningPortal) -> None:
    headers = {"X-API-Key": "guess after guess", "X-Forwarded-For": "203.0.113.77"}
    answers = [(await portal.anonymous.post("/v1/orgs", json={}, headers=headers)).status_code for _ in range(61)]
    assert (answers[:60], answers[60]) == ([401] * 60, 429)
    # The correct credential is still accepted.
    right = await portal.admin.post("/v1/orgs", json={}, headers={"X-Forwarded-For": "203.0.113.77"})
    assert right.status_code == 422
