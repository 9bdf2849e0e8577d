"""Accounts that exist before their owner signs in, and the identity providers and directories that may use them
(`access.linking`)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.platform.access.saml.conftest import SignOn, configured, new_browser, prove
from tests.platform.access.scim.conftest import GROUP, PATCH, USER, Directory, directory_of
from tests.support import members
from tests.support.members import Member, enrol
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import Signer

from gatehouse.foundation.identity import SCOPES, TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.tokens import claims as token_claims
from gatehouse.platform.access.users.table import UserRow

FIRST, SECOND = "the first one's password", "the second one's password"
LOGIN, REGISTER, USERS = "/api/auth/login", "/api/auth/register", "/api/admin/users"


@dataclass
class World:
    """An organization with a verified domain that is open for registration, and an address of that domain."""

    platform: RunningPlatform
    tenant: Tenant
    domain: str
    browser: httpx2.AsyncClient
    signer: Signer
    #: API keys and access tokens of the person who used the account first
    credentials: list[str] = field(default_factory=list)
    sign_on: SignOn | None = None

    @property
    def email(self) -> str:
        return f"ceo@{self.domain}"

    def account(self) -> dict[str, Any]:
        rows = self.platform.sql(
            "SELECT to_jsonb(u) FROM users u WHERE tenant_id = %s AND email = %s", [self.tenant.id, self.email]
        )
        assert len(rows) == 1
        account: dict[str, Any] = rows[0][0]
        return account

    async def login(self, password: str) -> httpx2.Response:
        return await self.platform.anonymous.post(LOGIN, json={"email": self.email, "password": password})

    async def create_credentials(self) -> None:
        """Sign in with the first password and create an API key."""
        signed_in = await self.login(FIRST)
        assert signed_in.status_code == 200, signed_in.text
        token = signed_in.json()["access_token"]
        key = await self.platform.client(token).post("/api/auth/api-keys", json={"description": "the first one's"})
        self.credentials += [token, key.json()["api_key"]]

    async def accepted_credentials(self) -> list[bool]:
        """Return whether the platform accepts the credential, for each credential."""
        answers = [await self.platform.client(credential).get("/v1/models") for credential in self.credentials]
        return [answer.status_code == 200 for answer in answers]

    async def single_sign_on(self) -> SignOn:
        if self.sign_on is None:
            self.sign_on = await configured(self.platform, self.tenant, self.browser, self.signer)
        return self.sign_on


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer.new()


@pytest.fixture
async def world(platform: RunningPlatform, tenant: Tenant, signer: Signer) -> AsyncIterator[World]:
    domain = f"{uuid4().hex[:12]}.test"
    prove(platform, tenant, domain, jit=True)
    platform.sql("UPDATE allowed_domains SET self_registration = true WHERE domain = %s", [domain])
    async with new_browser(platform) as browser:
        yield World(platform, tenant, domain, browser, signer)


# sources of an account ----------------------------------------------------------------------------------------------


async def self_registration(world: World, password: str) -> int:
    body = {"email": world.email, "password": password}
    answer = await world.platform.anonymous.post(REGISTER, json=body)
    await world.platform.host.later.settle()
    return answer.status_code


async def invitation(world: World, password: str) -> int:
    created = await world.tenant.admin.client.post(USERS, json={"email": world.email})
    if created.status_code != 201:
        return created.status_code
    body = {"email": world.email, "password": password, "invitation_token": created.json()["invitation_token"]}
    return (await world.platform.anonymous.post(REGISTER, json=body)).status_code


async def administrator(world: World, password: str) -> int:
    body = {"email": world.email, "password": password}
    return (await world.tenant.admin.client.post(USERS, json=body)).status_code


async def scim(world: World, password: str) -> int:
    """Provision the user as a directory does: if the user exists, find and replace it."""
    directory = await directory_of(world.platform, world.tenant)
    body = {"schemas": [USER], "userName": world.email, "active": True, "displayName": "The CEO", "password": password}
    created = await directory.client.post("/api/scim/v2/Users", json=body)
    if created.status_code != 409:
        return created.status_code
    (user_id,) = await directory.matching_ids("/Users", f'userName eq "{world.email}"')
    return (await directory.client.put(f"/api/scim/v2/Users/{user_id}", json=body)).status_code


async def saml(world: World, password: str) -> int:
    return (await (await world.single_sign_on()).sign_in(email=world.email)).status_code


async def portal_owner(world: World, password: str) -> int:
    portal = await world.platform.new_m2m(None, "admin:write")
    key = tokens.mint_api_key()
    body = {"email": world.email, "key_prefix": key.shown, "key_sha256": key.digest.hex()}
    answer = await portal.put(f"/v1/platform/tenants/{world.tenant.id}/owner", json=body)
    if password == FIRST:
        world.credentials.append(key.plaintext)
    return answer.status_code


Source = Callable[[World, str], Awaitable[int]]
SOURCES: list[Source] = [self_registration, invitation, administrator, scim, saml, portal_owner]
#: Sources by which nobody has verified the address, except the organization's directory and identity provider.
UNPROVEN = {self_registration, administrator, portal_owner}
FIRST_STATUS = {self_registration: 202, invitation: 201, administrator: 201, scim: 201, saml: 303, portal_owner: 200}


def second_status(first: Source, second: Source) -> int:
    """Return the expected status of the second source."""
    if second is self_registration:
        return 403 if first is saml else 202
    if second in {invitation, administrator}:
        return 409
    if second is portal_owner:
        return 200 if first is portal_owner else 409
    return 200 if second is scim else 303


@pytest.mark.parametrize("second", SOURCES, ids=lambda source: f"then-{source.__name__}")
@pytest.mark.parametrize("first", SOURCES, ids=lambda source: source.__name__)
async def test_a_second_source_takes_over_an_account_only_if_permitted(
    world: World, first: Source, second: Source
) -> None:
    """For every ordered pair of sources: the address has one account, the second password does not open the account of
    the first person, and after an identity provider or a directory has taken over the account, the first person's
    credentials are invalid."""
    assert await first(world, FIRST) == FIRST_STATUS[first]
    if first in {self_registration, invitation, administrator}:
        await world.create_credentials()
    before = world.account()
    assert all(await world.accepted_credentials())

    assert await second(world, SECOND) == second_status(first, second)

    after = world.account()
    assert (after["id"], after["role"]) == (before["id"], before["role"])
    assert (await world.login(SECOND)).status_code == 401
    # A directory cannot take over an administrator's account, because it could invalidate the last administrator's
    # password.
    taken_over = first in UNPROVEN and (second is saml or (second is scim and first is not portal_owner))
    assert await world.accepted_credentials() == [not taken_over] * len(world.credentials)
    has_password = first in {self_registration, invitation, administrator} and not taken_over
    assert (await world.login(FIRST)).status_code == (200 if has_password else 401)
    assert (after["password_hash"] is not None) == has_password
    linked = first in {scim, saml} or second is saml or (second is scim and first is not portal_owner)
    assert (after["linked_at"] is not None) == linked
    events = await world.platform.audit(world.tenant, "user.linked")
    assert len(events) == (1 if linked and before["linked_at"] is None else 0)


async def test_an_invitation_that_a_machine_issued_proves_no_address(world: World) -> None:
    """The machine has received the token in the response and can accept the invitation itself."""
    machine = await world.platform.new_m2m(world.tenant.id, *SCOPES)
    created = await machine.post(USERS, json={"email": world.email})
    assert created.status_code == 201, created.text
    body = {"email": world.email, "password": FIRST, "invitation_token": created.json()["invitation_token"]}
    assert (await world.platform.anonymous.post(REGISTER, json=body)).status_code == 201
    await world.create_credentials()
    assert await saml(world, SECOND) == 303
    assert await world.accepted_credentials() == [False, False]
    assert (await world.login(FIRST)).status_code == 401


async def test_a_key_is_not_created_if_its_session_ends_during_the_request(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    """The session ends while an accepted request waits for the lock on the user's row."""
    with platform.owner_transaction() as transaction:
        transaction.execute("SELECT 1 FROM users WHERE id = %s FOR UPDATE", [tenant.user.id])
        creation = asyncio.create_task(tenant.user.client.post("/api/auth/api-keys", json={"description": "late"}))
        async with asyncio.timeout(60):
            while not platform.sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
                assert not creation.done()
                await asyncio.sleep(0.01)
        transaction.execute("UPDATE sessions SET revoked_at = now() WHERE user_id = %s", [tenant.user.id])
    assert (await creation).status_code == 401
    assert platform.sql("SELECT 1 FROM api_keys WHERE user_id = %s", [tenant.user.id]) == []


async def test_an_account_with_a_changed_address_must_be_linked_again(world: World) -> None:
    """The earlier person's credentials are invalid for the account of the person with the new address."""
    earlier = f"earlier@{world.domain}"
    single = await world.single_sign_on()
    assert (await single.sign_in(email=earlier)).status_code == 303
    [(user_id,)] = world.platform.sql("SELECT id FROM users WHERE email = %s", [earlier])
    reset = await world.tenant.admin.client.post(f"{USERS}/{user_id}/password-reset")
    body = {"token": reset.json()["token"], "password": FIRST}
    assert (await world.platform.anonymous.post("/api/auth/password/reset", json=body)).status_code == 204
    moved = await world.tenant.admin.client.patch(f"{USERS}/{user_id}", json={"email": world.email})
    assert moved.status_code == 200, moved.text
    await world.create_credentials()
    assert await saml(world, SECOND) == 303
    assert await world.accepted_credentials() == [False, False]
    assert (await world.login(FIRST)).status_code == 401


@pytest.mark.parametrize("proven", [True, False])
async def test_an_account_stays_linked_when_its_directory_changes_the_address(world: World, proven: bool) -> None:
    """The earlier person's credentials become invalid at once, and the person with the new address can sign in."""
    single = await world.single_sign_on()
    assert (await single.sign_in(email=world.email)).status_code == 303
    account = world.account()["id"]
    reset = await world.tenant.admin.client.post(f"{USERS}/{account}/password-reset")
    body = {"token": reset.json()["token"], "password": FIRST}
    assert (await world.platform.anonymous.post("/api/auth/password/reset", json=body)).status_code == 204
    await world.create_credentials()
    directory = await directory_of(world.platform, world.tenant)
    domain = world.domain if proven else f"{uuid4().hex[:12]}.test"
    for email in (f"second@{domain}", f"third@{domain}"):
        await directory.patch(f"/Users/{account}", {"op": "replace", "path": "userName", "value": email})
        change = {"op": "replace", "path": 'emails[type eq "work"].value', "value": email}
        await directory.patch(f"/Users/{account}", change)
        query = "SELECT email, linked_at IS NOT NULL, password_hash FROM users WHERE id = %s"
        assert world.platform.sql(query, [account]) == [(email, True, None)]
        assert await world.accepted_credentials() == [False, False]
        assert (await single.sign_in(email=email)).status_code == 303
    events = await world.platform.audit(world.tenant, "user.linked")
    assert [event["details"]["ended"]["api_keys"] for event in events] == [1, 0]
    # Other changes invalidate nothing.
    name = {"op": "replace", "path": "displayName", "value": "The CEO"}
    await directory.patch(f"/Users/{account}", name)
    assert len(await world.platform.audit(world.tenant, "user.linked")) == 2


async def test_a_key_that_is_being_enabled_while_its_account_is_linked_stays_disabled(world: World) -> None:
    """Without this, an attacker could repeatedly enable a disabled key until a request runs at the right moment."""
    await self_registration(world, FIRST)
    await world.create_credentials()
    world.platform.sql("UPDATE api_keys SET is_enabled = false WHERE user_id = %s", [world.account()["id"]])
    sign_on = await world.single_sign_on()
    with world.platform.owner_transaction() as enabling:
        enabling.execute("UPDATE api_keys SET is_enabled = true WHERE user_id = %s", [world.account()["id"]])
        linking = asyncio.create_task(sign_on.sign_in(email=world.email))
        while not linking.done() and not world.platform.sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
    assert (await linking).status_code == 303
    keys = world.platform.sql(
        "SELECT is_enabled, disabled_by FROM api_keys WHERE user_id = %s", [world.account()["id"]]
    )
    assert keys == [(False, "owner")]


async def test_a_key_that_waits_to_be_enabled_while_its_session_ends_stays_disabled(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = (await tenant.user.client.post("/api/auth/api-keys", json={"description": "late"})).json()
    path = f"/api/auth/api-keys/{created['id']}"
    assert (await tenant.user.client.patch(path, json={"is_enabled": False})).status_code == 200
    with platform.owner_transaction() as transaction:
        transaction.execute("SELECT 1 FROM api_keys WHERE id = %s FOR UPDATE", [created["id"]])
        enabling = asyncio.create_task(tenant.user.client.patch(path, json={"is_enabled": True}))
        while not platform.sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        transaction.execute("UPDATE sessions SET revoked_at = now() WHERE user_id = %s", [tenant.user.id])
    assert (await enabling).status_code == 401
    assert platform.sql("SELECT is_enabled FROM api_keys WHERE id = %s", [created["id"]]) == [(False,)]


# taking over an account ----------------------------------------------------------------------------------------------


async def test_single_sign_on_of_the_owner_ends_all_credentials_of_a_stranger(world: World) -> None:
    """A stranger registers the address, signs in, creates a key, enrols a second factor and authorizes an application.
    Then the owner of the address signs in by single sign-on."""
    platform = world.platform
    assert await self_registration(world, FIRST) == 202
    await world.create_credentials()
    signed_in = (await world.login(FIRST)).json()
    stranger = Member(UUID(signed_in["user"]["id"]), world.email, platform.anonymous, platform.anonymous)
    await members.use(platform, stranger, signed_in)
    await enrol(platform, stranger)
    client_id, digest = uuid4(), uuid4().bytes
    platform.sql(
        "INSERT INTO oauth_clients (id, client_id, name, secret_digest) VALUES (%s, %s, 'an application', '')",
        [client_id, client_id],
    )
    platform.sql(
        "INSERT INTO authorization_codes (digest, tenant_id, session_id, user_id, client_id, redirect_uri, challenge,"
        " scope, expires_at) VALUES (%s, %s, %s, %s, %s, '', '', 'openid', now() + interval '1 minute')",
        [digest, world.tenant.id, stranger.session_id, stranger.id, client_id],
    )
    group = {"name": "board", "external_group_id": "ext-board"}
    assert (await world.tenant.admin.client.post("/api/admin/groups", json=group)).status_code == 201

    answer = await (await world.single_sign_on()).sign_in(email=world.email, attributes={"groups": ["ext-board"]})
    assert answer.status_code == 303, answer.text

    assert (await world.login(FIRST)).status_code == 401
    assert await world.accepted_credentials() == [False, False]
    assert (await stranger.client.get("/api/auth/sessions")).status_code == 401
    refreshed = await platform.anonymous.post("/api/auth/refresh", json={"refresh_token": stranger.refresh_token})
    assert refreshed.status_code == 401
    for table in ("authorization_codes", "mfa_totp", "mfa_recovery_codes"):
        assert platform.sql(f"SELECT 1 FROM {table} WHERE user_id = %s", [stranger.id]) == []
    (event,) = await platform.audit(world.tenant, "user.linked")
    assert event["resource_id"] == str(stranger.id)
    assert event["details"]["by"] == "saml"
    ended = event["details"]["ended"]
    assert (ended["passwords"], ended["api_keys"], ended["oauth_grants"], ended["second_factors"]) == (1, 1, 1, 1)
    assert ended["sessions"] >= 2
    assert ended["refresh_tokens"] >= 2
    # A second sign-in takes over nothing, and the owner's newer credentials stay valid.
    platform.sql("UPDATE api_keys SET is_enabled = true WHERE user_id = %s", [stranger.id])
    assert await saml(world, "") == 303
    assert platform.sql("SELECT is_enabled FROM api_keys WHERE user_id = %s", [stranger.id]) == [(True,)]
    assert len(await platform.audit(world.tenant, "user.linked")) == 1


async def test_an_outstanding_invitation_is_void_after_its_account_is_linked(world: World) -> None:
    created = (await world.tenant.admin.client.post(USERS, json={"email": world.email})).json()
    assert await saml(world, "") == 303
    body = {"email": world.email, "password": FIRST, "invitation_token": created["invitation_token"]}
    assert (await world.platform.anonymous.post(REGISTER, json=body)).status_code == 403


@pytest.mark.parametrize("how", ["POST", "PUT", "PATCH"])
async def test_a_directory_that_adds_an_account_to_a_group_takes_it_over(world: World, how: str) -> None:
    """Some directories only write the membership of an existing user, and the membership grants the group's rights."""
    await self_registration(world, FIRST)
    await world.create_credentials()
    directory = await directory_of(world.platform, world.tenant)
    members = [{"value": world.account()["id"]}]
    if how == "POST":
        await directory.group(members[0] | {"id": members[0]["value"]})
    else:
        group = await directory.group()
        path = f"/api/scim/v2/Groups/{group['id']}"
        body: dict[str, Any] = {"schemas": [GROUP], "displayName": group["displayName"], "members": members}
        if how == "PATCH":
            body = {"schemas": [PATCH], "Operations": [{"op": "add", "path": "members", "value": members}]}
        assert (await directory.client.request(how, path, json=body)).status_code == 200
    assert (await world.login(FIRST)).status_code == 401
    assert await world.accepted_credentials() == [False, False]


async def test_an_account_of_an_unproven_domain_is_not_taken_over(world: World) -> None:
    """The identity provider could name any address, for example an administrator's private address."""
    await administrator(world, FIRST)
    await world.create_credentials()
    world.platform.sql("DELETE FROM allowed_domains WHERE domain = %s", [world.domain])
    sign_on = await world.single_sign_on()
    refused = await sign_on.sign_in(email=world.email)
    assert (refused.status_code, refused.json()) == (
        403,
        {
            "detail": "A local account has this address, and the organization has not verified the address's domain."
            " Ask your administrator to verify the domain, or to remove the account.",
            "reason": "address_not_proven",
        },
    )
    (event,) = await world.platform.audit(world.tenant, "saml.refused")
    assert event["reason"] == "address_not_proven"
    assert await scim(world, "") == 200
    assert await world.accepted_credentials() == [True, True]
    assert world.account()["linked_at"] is None
    # After the domain is verified, the same account is taken over.
    prove(world.platform, world.tenant, world.domain, jit=False)
    assert await saml(world, "") == 303
    assert await world.accepted_credentials() == [False, False]


async def test_a_directory_grants_no_rights_to_a_self_registered_account_of_an_unproven_domain(world: World) -> None:
    await self_registration(world, FIRST)
    world.platform.sql("DELETE FROM allowed_domains WHERE domain = %s", [world.domain])
    assert await scim(world, "") == 403
    directory = await directory_of(world.platform, world.tenant)
    body = {"schemas": [GROUP], "displayName": "board", "members": [{"value": world.account()["id"]}]}
    assert (await directory.client.post("/api/scim/v2/Groups", json=body)).status_code == 403


async def test_a_user_of_an_unproven_domain_joins_unverified_and_can_sign_in_again(world: World) -> None:
    sign_on = await world.single_sign_on()
    email = f"new@{uuid4().hex[:12]}.test"
    for _ in range(2):
        assert (await sign_on.sign_in(email=email)).status_code == 303
    rows = world.platform.sql("SELECT email_verified, address_proven_at FROM users WHERE email = %s", [email])
    assert rows == [(False, None)]


async def test_applications_see_a_self_registered_address_as_unverified(world: World) -> None:
    """The portal identifies people by their verified address."""
    await self_registration(world, FIRST)
    assert world.account()["email_verified"] is True
    assert (await claims(world))["email_verified"] is False
    await saml(world, "")
    assert (await claims(world))["email_verified"] is True


async def claims(world: World) -> dict[str, Any]:
    async with world.platform.host.database.tenant(TenantId(world.tenant.id)) as session:
        user = await session.get_one(UserRow, UUID(world.account()["id"]))
        return await token_claims.claims_for(session, user, ["openid", "email"])


# machines and addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["admin", "auditor", "operator"])
@pytest.mark.parametrize("how", ["PUT", "PATCH", "PATCH emails", "PATCH users"])
async def test_a_machine_cannot_change_the_address_of_an_administrator(world: World, role: str, how: str) -> None:
    """Without this, the machine could give the account an employee's address, and the employee would sign in as the
    administrator."""
    platform, tenant = world.platform, world.tenant
    machine = await platform.new_m2m(tenant.id, "admin:write", "api:read", "api:write", "chat:write")
    created = await machine.post("/api/admin/scim/token", json={"description": "the machine's"})
    directory = Directory(platform.client(created.json()["token"]), "", "")
    await administrator(world, FIRST)
    user_id = world.account()["id"]
    operator = role == "operator"
    # Marks the administrator's account as linked.
    platform.sql(
        "UPDATE users SET role = %s, operator = %s, linked_at = now() WHERE id = %s",
        ["admin" if operator else role, operator, user_id],
    )
    await platform.refresh()
    email = f"eve@{world.domain}"
    if how == "PATCH users":
        answer = await machine.patch(f"{USERS}/{user_id}", json={"email": email})
    else:
        path = f"/api/scim/v2/Users/{user_id}"
        body: dict[str, Any] = {"schemas": [USER], "userName": email, "active": True}
        if how != "PUT":
            entry = {"op": "replace", "path": "userName", "value": email}
            if how == "PATCH emails":
                entry = {"op": "add", "value": {"emails": [{"value": email, "primary": True}]}}
            body = {"schemas": [PATCH], "Operations": [entry]}
        answer = await directory.client.request(how.partition(" ")[0], path, json=body)
    # The directory may set the name, because nobody signs in with it.
    renamed = how == "PATCH" and not operator
    assert answer.status_code == (200 if renamed else 403), answer.text
    assert platform.sql("SELECT email FROM users WHERE id = %s", [user_id]) == [(world.email,)]
    eve = await (await world.single_sign_on()).sign_in(email=email)
    assert platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [user_id]) == [(0,)]
    assert eve.status_code == (403 if renamed else 303)


async def test_a_machine_creates_a_scim_token_only_with_the_rights_of_a_user(world: World) -> None:
    """With the token the machine could act as any user."""
    machine = await world.platform.new_m2m(world.tenant.id, "admin:write")
    refused = await machine.post("/api/admin/scim/token", json={"description": "x"})
    assert refused.status_code == 403


# registration --------------------------------------------------------------------------------------------------------


async def test_registration_does_not_reveal_who_has_an_account(world: World) -> None:
    body = {"password": FIRST, "username": f"name-{uuid4().hex[:8]}"}
    answers = []
    for email in (world.email, world.email, f"other@{world.domain}"):
        answers.append(await world.platform.anonymous.post(REGISTER, json={**body, "email": email}))
        await world.platform.host.later.settle()
    assert {(answer.status_code, answer.text) for answer in answers} == {(202, answers[0].text)}
    assert {tuple(sorted(set(answer.headers) - {"x-request-id"})) for answer in answers} == {
        tuple(sorted(set(answers[0].headers) - {"x-request-id"}))
    }
    # The user name was taken by the first account.
    rows = world.platform.sql(
        "SELECT email, username FROM users WHERE email LIKE %s ORDER BY created_at", [f"%@{world.domain}"]
    )
    assert rows == [(world.email, body["username"]), (f"other@{world.domain}", None)]


async def test_an_active_identity_provider_closes_registration(world: World) -> None:
    sign_on = await world.single_sign_on()
    body = {"email": world.email, "password": FIRST}
    closed = await world.platform.anonymous.post(REGISTER, json=body)
    assert (closed.status_code, closed.json()["error"]) == (403, "registration_closed")
    await world.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json={"is_active": False})
    assert await self_registration(world, FIRST) == 202


async def test_jit_provisioning_does_not_open_registration(world: World) -> None:
    path = f"/api/v1/admin/org/allowed-domains/{world.domain}"
    changed = await world.tenant.admin.client.patch(path, json={"self_registration": False})
    assert (changed.json()["jit_provisioning"], changed.json()["self_registration"]) == (True, False)
    assert await self_registration(world, FIRST) == 403
