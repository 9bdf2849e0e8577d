"""Administration while the database is unavailable: 503 in the path's error form, and normal answers afterwards."""

from contextlib import AsyncExitStack

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.identity import TenantId


async def test_an_exhausted_connection_pool_is_503_and_not_500(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = platform.host.database
    monkeypatch.setattr(database._app.pool, "_timeout", 0.05)
    async with AsyncExitStack() as stack:
        for _ in range(database.pool_size):
            await stack.enter_async_context(database.tenant(TenantId(tenant.id)))
        detail = await tenant.admin.client.get("/api/auth/api-keys")
        coded = await tenant.admin.client.get("/api/v1/admin/org/feature-flags")
    for answer in (detail, coded):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "5"
    assert "database" in detail.json()["detail"]
    assert coded.json()["error"] == "database_unavailable"
    assert (await tenant.admin.client.get("/api/auth/api-keys")).status_code == 200


async def test_sign_in_is_refused_while_attempts_cannot_be_counted(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = platform.host.database
    monkeypatch.setattr(database._service.pool, "_timeout", 0.05)
    body = {"email": "ada@example.test", "password": "wrong password"}
    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(database.at_once())
        refused = await platform.anonymous.post("/api/auth/login", json=body)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert "database" in refused.json()["detail"]
    assert (await platform.anonymous.post("/api/auth/login", json=body)).status_code == 401
