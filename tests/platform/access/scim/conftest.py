"""A directory: a client with a SCIM token of the organization `tenant`."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/scim/v2"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


@dataclass
class Directory:
    """Calls the platform as a directory does. `expect` is the required status."""

    client: httpx2.AsyncClient
    token: str
    token_id: str

    async def call(self, method: str, path: str, body: Any = None, *, expect: int = 200, **query: Any) -> Any:
        headers = {"Content-Type": "application/scim+json"}
        answer = await self.client.request(method, BASE + path, json=body, params=query, headers=headers)
        assert answer.status_code == expect, answer.text
        if expect == 204:
            assert answer.content == b""
            return None
        assert answer.headers["content-type"] == "application/scim+json"
        return answer.json()

    async def user(self, **fields: Any) -> dict[str, Any]:
        name = f"{uuid4().hex[:12]}@example.test"
        body = {"schemas": [USER], "userName": name, "active": True, **fields}
        created: dict[str, Any] = await self.call("POST", "/Users", body, expect=201)
        return created

    async def group(self, *members: dict[str, Any], **fields: Any) -> dict[str, Any]:
        named = [{"value": member["id"]} for member in members]
        body = {"schemas": [GROUP], "displayName": uuid4().hex, "members": named, **fields}
        created: dict[str, Any] = await self.call("POST", "/Groups", body, expect=201)
        return created

    async def patch(self, path: str, *operations: dict[str, Any], expect: int = 200) -> Any:
        return await self.call("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)}, expect=expect)

    async def matching_ids(self, path: str, filter: str) -> list[str]:
        """Return the ids of the matching resources."""
        return [resource["id"] for resource in (await self.call("GET", path, filter=filter))["Resources"]]


async def directory_of(platform: RunningPlatform, tenant: Tenant) -> Directory:
    created = await tenant.admin.client.post("/api/admin/scim/token", json={"description": "a directory"})
    assert created.status_code == 201, created.text
    return Directory(platform.client(created.json()["token"]), created.json()["token"], created.json()["token_id"])


@pytest.fixture
async def directory(platform: RunningPlatform, tenant: Tenant) -> Directory:
    return await directory_of(platform, tenant)
