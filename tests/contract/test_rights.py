"""Who may call what, over every operation there is: a new route is under these tests the day it is registered."""

import re
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.app import administration

_DOCUMENT: dict[str, Any] = administration(Settings())[0].openapi()
_OPERATIONS = [
    (method.upper(), path)
    for path, methods in _DOCUMENT["paths"].items()
    for method in methods
    if method != "parameters"
]

#: Open to everybody by contract (reference 1, Authentication, 6), or their own credential is in the body.
OPEN = {
    "/api/auth/login", "/api/auth/register", "/api/auth/refresh", "/api/auth/password/reset", "/oauth/token",
    "/.well-known/jwks.json", "/health", "/api/health/live", "/api/health/ready", "/api/health/startup", "/metrics",
}  # fmt: skip

CLOSED = [(method, path) for method, path in _OPERATIONS if path.rstrip("/") not in OPEN]
ADMIN = [(method, path) for method, path in CLOSED if "/admin/" in path or path.startswith("/v1/platform/")]
WRITES = [(method, path) for method, path in ADMIN if method != "GET"]


def _filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", lambda _: str(uuid4()), path)


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_without_a_credential_it_is_401(platform: RunningPlatform, method: str, path: str) -> None:
    assert (await platform.anonymous.request(method, _filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_with_a_made_up_key_it_is_401(platform: RunningPlatform, method: str, path: str) -> None:
    client = platform.client("gk_" + "x" * 38)
    assert (await client.request(method, _filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), ADMIN)
async def test_a_user_gets_403(platform: RunningPlatform, somebody: Tenant, method: str, path: str) -> None:
    assert (await somebody.user.client.request(method, _filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_an_auditor_changes_nothing(somebody: Tenant, method: str, path: str) -> None:
    assert (await somebody.auditor.client.request(method, _filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_a_reading_machine_changes_nothing(
    platform: RunningPlatform, somebody: Tenant, method: str, path: str
) -> None:
    client = await platform.new_m2m(somebody.id, "admin:read", "api:read", "api:write", "chat:write")
    assert (await client.request(method, _filled(path))).status_code == 403


@pytest.fixture(scope="module")
async def somebody(platform: RunningPlatform) -> Tenant:
    return await platform.new_tenant()
