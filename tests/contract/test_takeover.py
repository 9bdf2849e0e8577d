"""An administrator who controls everything in their own organization (its identity provider, directory, domains and
invitations) gains no access to a user of another one (docs/accounts.md)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.platform.access.saml.conftest import SignOn, configured, new_browser, prove
from tests.support import saml
from tests.support.members import HASH
from tests.support.platform import PASSWORD, RunningPlatform, Tenant
from tests.support.saml import Signer

from gatehouse.foundation.ids import new_id

ATTACKERS_PASSWORD = "what the attacker would sign in with"
SCIM_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


@dataclass
class Victim:
    """A user with a password and an address of a domain that their organization has verified."""

    platform: RunningPlatform
    tenant: Tenant
    id: UUID
    domain: str
    client: httpx2.AsyncClient
    sessions: int
    row: Any = None

    @property
    def email(self) -> str:
        return f"ada@{self.domain}"

    def stored(self) -> Any:
        """Return the user's row without the time of the last activity."""
        (row,) = self.platform.sql("SELECT to_jsonb(u) - 'last_login_at' FROM users u WHERE id = %s", [self.id])
        return row

    async def check(self) -> None:
        """Check that the user's account is unchanged and that no other account has gained anything of it."""
        assert self.stored() == self.row
        opened = self.platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [self.id])[0][0]
        assert opened == self.sessions
        assert (await self.client.get("/api/auth/sessions")).status_code == 200
        signed_in = await self.platform.anonymous.post(
            "/api/auth/login", json={"email": self.email, "password": PASSWORD}
        )
        assert (signed_in.status_code, signed_in.json()["user"]["id"]) == (200, str(self.id))
        assert signed_in.json()["user"]["tenant_id"] == str(self.tenant.id)
        self.sessions += 1
        # Other accounts with the address are unverified and in other organizations.
        other_accounts = self.platform.sql(
            "SELECT tenant_id, email_verified FROM users WHERE lower(email) = %s AND id <> %s", [self.email, self.id]
        )
        assert all(tenant != self.tenant.id and not verified for tenant, verified in other_accounts), other_accounts


@pytest.fixture
async def victim(platform: RunningPlatform, other_tenant: Tenant) -> Victim:
    domain, user_id = f"{uuid4().hex[:12]}.test", new_id()
    prove(platform, other_tenant, domain, jit=False)
    platform.sql(
        "INSERT INTO users (id, tenant_id, email, role, password_hash, email_verified)"
        " VALUES (%s, %s, %s, 'admin', %s, true)",
        [user_id, other_tenant.id, f"ada@{domain}", HASH],
    )
    platform.touch("user", user_id)
    await platform.refresh()
    signed_in = await platform.anonymous.post("/api/auth/login", json={"email": f"ada@{domain}", "password": PASSWORD})
    client = platform.client(signed_in.json()["access_token"])
    victim_user = Victim(platform, other_tenant, user_id, domain, client, 1)
    victim_user.row = victim_user.stored()
    return victim_user


@pytest.fixture(scope="module")
def key() -> Signer:
    """The key of the attacker's identity provider."""
    return Signer.new()


@pytest.fixture
async def provider(platform: RunningPlatform, tenant: Tenant, key: Signer) -> AsyncIterator[SignOn]:
    async with new_browser(platform) as browser:
        yield await configured(platform, tenant, browser, key)


@pytest.fixture
async def directory(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    scim_token = await tenant.admin.client.post("/api/admin/scim/token", json={"description": "the attacker's"})
    return platform.client(scim_token.json()["token"])


def sessions_for(platform: RunningPlatform, tenant: Tenant, domain: str) -> list[Any]:
    return platform.sql(
        "SELECT u.email FROM sessions s JOIN users u ON u.id = s.user_id"
        " WHERE u.tenant_id = %s AND u.email LIKE %s AND s.revoked_at IS NULL",
        [tenant.id, f"%@{domain}"],
    )


# by SAML ------------------------------------------------------------------------------------------------------------

SPELLINGS = [
    "ada@{domain}", "ADA@{domain}", "Ada@{DOMAIN}", " ada@{domain} ", "ada@{domain}.", "ada@{domain}\u200b",
    "\uff41da@{domain}", "x@elsewhere.test,ada@{domain}", "ada@{domain}\n", "new@{domain}", "ada@sub.{domain}",
]  # fmt: skip


@pytest.mark.parametrize("claimed", [False, True])
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_an_identity_provider_signs_in_only_users_of_its_own_organization(
    platform: RunningPlatform, tenant: Tenant, victim: Victim, provider: SignOn, spelling: str, claimed: bool
) -> None:
    if claimed:
        await tenant.admin.client.post(
            "/api/v1/admin/org/allowed-domains", json={"domain": victim.domain, "jit_provisioning": True}
        )
    email = spelling.format(domain=victim.domain, DOMAIN=victim.domain.upper())
    answer = await provider.sign_in(email=email, name_id=email.strip())
    if "@sub." in spelling:
        # An address of an unverified domain leads to a separate, unverified user.
        assert answer.status_code == 303, answer.text
    else:
        assert answer.status_code in {400, 403}, answer.text
        assert "gatehouse_session" not in answer.cookies
    assert sessions_for(platform, tenant, victim.domain) == []
    await victim.check()


async def test_an_identity_provider_with_the_same_name_cannot_answer_for_another(
    platform: RunningPlatform, tenant: Tenant, victim: Victim, key: Signer
) -> None:
    entity_id = f"https://idp-{uuid4().hex}.test"
    async with new_browser(platform) as browser:
        theirs = await configured(platform, victim.tenant, browser, Signer.new(), entity_id=entity_id)
        own = await configured(platform, tenant, browser, key, entity_id=entity_id)
        begun_there = await theirs.begin()
        fields = await own.assertion_fields(email=victim.email, in_response_to=begun_there)
        answers = [await own.post(saml.signed(fields, key)), await own.sign_in(email=victim.email)]
        assert [answer.status_code for answer in answers] == [400, 403]
        assert "gatehouse_session" not in browser.cookies
    await victim.check()


# by SCIM ------------------------------------------------------------------------------------------------------------


async def test_a_directory_cannot_reach_users_of_another_organization(
    victim: Victim, directory: httpx2.AsyncClient
) -> None:
    path = f"/api/scim/v2/Users/{victim.id}"
    whole = {"schemas": [SCIM_USER], "userName": "x@elsewhere.test", "active": False, "externalId": "x"}
    off = {"schemas": [PATCH], "Operations": [{"op": "replace", "value": {"active": False}}]}
    for method, body in (("GET", None), ("PUT", whole), ("PATCH", off), ("DELETE", None)):
        assert (await directory.request(method, path, json=body)).status_code == 404
    for item in (f'userName eq "{victim.email}"', f'emails.value eq "{victim.email}"', "active eq true"):
        result = (await directory.get("/api/scim/v2/Users", params={"filter": item})).json()
        assert victim.email not in str(result.get("Resources", result)), result
    await victim.check()


async def test_a_directory_cannot_add_users_of_another_organization_to_its_groups(
    platform: RunningPlatform, victim: Victim, directory: httpx2.AsyncClient
) -> None:
    group = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "displayName": "x"}
    made = (await directory.post("/api/scim/v2/Groups", json=group)).json()
    for members in ({"members": [{"value": str(victim.id)}]}, [{"value": str(victim.id)}]):
        whole = members if isinstance(members, dict) else {"members": members}
        adding = {"schemas": [PATCH], "Operations": [{"op": "add", "path": "members", "value": whole["members"]}]}
        await directory.patch(f"/api/scim/v2/Groups/{made['id']}", json=adding)
        await directory.put(f"/api/scim/v2/Groups/{made['id']}", json={**group, **whole})
    assert platform.sql("SELECT 1 FROM group_members WHERE user_id = %s", [victim.id]) == []
    await victim.check()


@pytest.mark.parametrize("way", ["POST", "PUT", "PATCH", "PATCH by path"])
async def test_an_address_invented_by_a_directory_is_not_verified(
    platform: RunningPlatform, tenant: Tenant, victim: Victim, directory: httpx2.AsyncClient, way: str
) -> None:
    users = "/api/scim/v2/Users"
    twin = {
        "schemas": [SCIM_USER],
        "userName": victim.email,
        "active": True,
        "password": ATTACKERS_PASSWORD,
        "emails": [{"value": victim.email, "primary": True}],
    }
    if way == "POST":
        await directory.post(users, json=twin)
    else:
        start = {**twin, "userName": f"{uuid4().hex}@elsewhere.test", "emails": []}
        own = (await directory.post(users, json=start)).json()
        if way == "PUT":
            await directory.put(f"{users}/{own['id']}", json=twin)
        elif way == "PATCH":
            value = {"userName": victim.email, "emails": twin["emails"]}
            operation = {"op": "replace", "value": value}
            await directory.patch(f"{users}/{own['id']}", json={"schemas": [PATCH], "Operations": [operation]})
        else:
            for path in ("userName", 'emails[type eq "work"].value'):
                operation = {"op": "replace", "path": path, "value": victim.email}
                await directory.patch(f"{users}/{own['id']}", json={"schemas": [PATCH], "Operations": [operation]})
    await no_way_in_by_the_twin(platform, tenant, victim)
    await victim.check()


# by registration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("open_here", [False, True])
async def test_an_unproven_domain_does_not_permit_registration(
    platform: RunningPlatform, tenant: Tenant, victim: Victim, open_here: bool
) -> None:
    claim = {"domain": victim.domain, "jit_provisioning": True, "self_registration": True}
    await tenant.admin.client.post("/api/v1/admin/org/allowed-domains", json=claim)
    if open_here:
        platform.sql("UPDATE allowed_domains SET self_registration = true WHERE tenant_id = %s", [victim.tenant.id])
    proven = await tenant.admin.client.post(f"/api/v1/admin/org/allowed-domains/{victim.domain}/verify")
    assert proven.status_code in {404, 409}, proven.text
    for email in (victim.email, victim.email.upper(), f"new@{victim.domain}", f"new@sub.{victim.domain}"):
        answer = await platform.anonymous.post(
            "/api/auth/register", json={"email": email, "password": ATTACKERS_PASSWORD}
        )
        # If the owner of the domain allows registration, new users join the owner's organization and no other.
        assert answer.status_code in ({202, 403} if open_here else {403}), answer.text
    assert (
        platform.sql("SELECT 1 FROM users WHERE tenant_id = %s AND email LIKE %s", [tenant.id, f"%{victim.domain}"])
        == []
    )
    await no_way_in_by_the_twin(platform, tenant, victim)
    await victim.check()


@pytest.mark.parametrize("role", ["user", "admin"])
async def test_an_invitation_creates_an_account_only_in_its_organization(
    platform: RunningPlatform, tenant: Tenant, victim: Victim, role: str
) -> None:
    invited = await tenant.admin.client.post("/api/admin/users", json={"email": victim.email, "role": role})
    token = invited.json().get("invitation_token", "x")
    body = {"email": victim.email, "password": ATTACKERS_PASSWORD, "invitation_token": token}
    await platform.anonymous.post("/api/auth/register", json=body)
    await no_way_in_by_the_twin(platform, tenant, victim)
    await victim.check()


async def test_an_administrator_cannot_reset_passwords_of_another_organization(tenant: Tenant, victim: Victim) -> None:
    admin, users = tenant.admin.client, f"/api/admin/users/{victim.id}"
    assert (await admin.post(f"{users}/password-reset")).status_code == 404
    assert (await admin.delete(f"{users}/mfa")).status_code == 404
    assert (await admin.patch(users, json={"is_active": False})).status_code == 404
    assert (await admin.post(f"{users}/api-keys", json={"description": "x"})).status_code == 404
    # Giving the address to a user of the attacker's organization does not help either.
    answer = await admin.patch(f"/api/admin/users/{tenant.user.id}", json={"email": victim.email})
    assert answer.status_code in {200, 409, 422}, answer.text
    await victim.check()


async def no_way_in_by_the_twin(platform: RunningPlatform, tenant: Tenant, victim: Victim) -> None:
    """Check that the attacker's password does not sign in to the victim's account, with and without the organization's
    name."""
    for extra in ({}, {"tenant": victim.tenant.slug}, {"tenant": tenant.slug}):
        body = {"email": victim.email, "password": ATTACKERS_PASSWORD, **extra}
        answer = await platform.anonymous.post("/api/auth/login", json=body)
        if answer.status_code == 200:
            user = answer.json()["user"]
            assert (user["tenant_id"], user["id"] == str(victim.id)) == (str(tenant.id), False)
            # The attacker's own account is not shown as the victim's.
            assert not user["email_verified"]
