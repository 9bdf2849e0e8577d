"""Organizations on platform and portal, and their people."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx2
from tests.support.portal import RunningPortal
from tests.support.server import GatehouseServer
from tests.support.surfer import Person

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.passwords import hash_now

PASSWORD = "a member's long password"
HASH = hash_now(PASSWORD)


@dataclass
class Provisioned:
    """An organization on the platform. `key` is its owner's API key."""

    id: UUID
    name: str
    key: str
    owner: Person
    client: httpx2.AsyncClient

    @property
    def path(self) -> str:
        return f"/v1/orgs/{self.id}"


class Town:
    """Creates organizations and people."""

    def __init__(self, portal: RunningPortal, server: GatehouseServer) -> None:
        self.portal, self.server = portal, server

    async def organization(self, **more: Any) -> Provisioned:
        email = f"owner-{uuid4().hex[:10]}@example.test"
        slug = f"o-{uuid4().hex[:12]}"
        body = {"name": slug.upper(), "slug": slug, "plan_tier": "enterprise", "contact_email": email, **more}
        response = await self.portal.admin.post("/v1/orgs", json=body)
        assert response.status_code == 201, response.text
        org_id = response.json()["org"]["id"]
        deadline = time.monotonic() + 60
        query = "SELECT provisioning_status FROM organizations WHERE id = %s"
        while self.portal.sql(query, [org_id]) != [("active",)]:
            assert time.monotonic() < deadline, self.portal.sql("SELECT * FROM jobs WHERE org_id = %s", [org_id])
            await asyncio.sleep(0.05)
        token = (await self.portal.admin.post(f"/v1/orgs/{org_id}/tokens", json={})).json()["token"]
        ((owner_id,),) = self.server.sql(
            "UPDATE users SET password_hash = %s WHERE tenant_id = %s AND email = %s RETURNING id",
            [HASH, org_id, email],
        )
        owner = Person(str(owner_id), org_id, email, PASSWORD)
        return Provisioned(UUID(org_id), body["name"], response.json()["api_key"], owner, self.portal.client(token))

    def person(self, org: Provisioned, email: str | None = None) -> Person:
        """Create a user of the organization's tenant who is not a member at the portal."""
        user_id, email = new_id(), email or f"person-{uuid4().hex[:10]}@example.test"
        self.server.sql(
            "INSERT INTO users (id, tenant_id, email, role, password_hash) VALUES (%s, %s, %s, 'user', %s)",
            [user_id, org.id, email, HASH],
        )
        self.server.touch("user", user_id)
        return Person(str(user_id), str(org.id), email, PASSWORD)

    def proven(self, org: Provisioned) -> Person:
        """Create a user who is not a member at the portal, and whose address is in a domain that the organization has
        verified on the platform."""
        domain = f"{uuid4().hex[:12]}.test"
        self.server.sql(
            "INSERT INTO allowed_domains (tenant_id, domain, verified_at) VALUES (%s, %s, now())", [org.id, domain]
        )
        who = self.person(org, f"person@{domain}")
        self.server.sql("UPDATE users SET email_verified = true WHERE id = %s", [who.id])
        return who

    async def invite(self, org: Provisioned, email: str, role: str = "member") -> str:
        answer = await org.client.post(f"{org.path}/members", json={"email": email, "role": role})
        assert answer.status_code == 201, answer.text
        token: str = answer.json()["invite_token"]
        return token

    def join(self, org: Provisioned, who: Person, role: str = "member") -> UUID:
        """Make the user a member, like an accepted invitation."""
        member_id = new_id()
        self.portal.sql(
            "INSERT INTO members (id, org_id, email, role, platform_sub, platform_tenant_id, accepted_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, now())",
            [member_id, org.id, who.email, role, who.id, who.tenant_id],
        )
        return member_id
