"""Sign-in, OAuth clients, service accounts and users' sessions in Chromium: the main task of each, by clicking."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from aiohttp import web
from playwright.async_api import Browser, Locator, Page, expect
from tests.platform.console.conftest import (
    TIERS,
    OtherUser,
    SignIn,
    api,
    call_model,
    check_screen,
    modal,
)
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium, page_of
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.receiver import HERE, Receiver, certificate
from tests.support.saml import Signer, provider_metadata
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

IDP = "/api/admin/saml/idp"


@pytest.fixture(scope="module")
def server(console: Path) -> Iterator[GatehouseServer]:
    """A server that may fetch metadata from this machine."""
    env = {"RATE_LIMIT_TIERS": TIERS, "EGRESS_ALLOWLIST": ",".join(HERE), "SSL_CERT_FILE": str(certificate())}
    with GatehouseServer(env=env) as running:
        yield running


@pytest.fixture
async def provider(server: GatehouseServer) -> AsyncIterator[IdentityProvider]:
    async with identity_provider() as running:
        await running.trust(server.url)
        yield running


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> httpx2.Client:
    return api(server, new_user("admin"))


@pytest.fixture
def no_providers(admin: httpx2.Client) -> Iterator[None]:
    """Remove the identity providers of earlier tests, and of this one."""

    def remove_all() -> None:
        for idp in admin.get(IDP).json()["idps"]:
            admin.delete(f"{IDP}/{idp['id']}").raise_for_status()

    remove_all()
    yield
    remove_all()


Visit = Callable[[str], Awaitable[Page]]


@pytest.fixture
async def visit(chrome: Browser, server: GatehouseServer) -> AsyncIterator[Visit]:
    """Open an address in another browser profile."""
    context = await chrome.new_context(base_url=server.url)
    async with page_of(context) as page:

        async def open_address(address: str) -> Page:
            await page.goto(address)
            return page

        yield open_address
    await context.close()


def verified_domain(server: GatehouseServer) -> str:
    """Return a verified mail domain. Single sign-on creates accounts for addresses in it."""
    domain = f"{uuid4().hex[:12]}.test"
    server.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, jit_provisioning, verified_at) VALUES (%s, %s, true, now())",
        [DEFAULT_TENANT, domain],
    )
    return domain


async def choose(page: Page, name: str, item: str) -> None:
    """Choose an item of the menu in the row with this name."""
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=item).click()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def new_name(kind: str) -> str:
    return f"{kind} {uuid4().hex[:8]}"


# single sign-on -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_providers")
async def test_an_identity_provider_is_set_up_from_its_metadata_tested_and_left(
    server: GatehouseServer, page: Page, sign_in: SignIn, provider: IdentityProvider, visit: Visit
) -> None:
    name = new_name("Acme")
    await sign_in("admin", "/console/sign-in")
    await expect(page.get_by_role("heading", name="No identity provider yet")).to_be_visible()
    addresses = page.get_by_role("region", name="Addresses for your identity provider")
    await expect(addresses).to_contain_text(f"{server.url}/api/saml/acs")
    await expect(addresses.get_by_role("button", name="Copy Single logout service")).to_be_visible()
    await check_screen(page)

    await page.get_by_role("button", name="Add identity provider").click()
    dialog = modal(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert").first).to_have_text("Enter a name.")
    await dialog.get_by_label("Name", exact=True).fill(name)
    await dialog.get_by_label("Metadata URL").fill("https://10.1.2.3/metadata")
    await dialog.get_by_role("button", name="Read").click()
    await expect(dialog.get_by_label("Metadata URL")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    async with Receiver.listening() as publisher:
        publisher.answers.append(web.Response(text=provider_metadata(provider.url, provider.certificate)))
        await dialog.get_by_label("Metadata URL").fill(publisher.url)
        await dialog.get_by_label("Metadata URL").press("Enter")
        await expect(dialog.get_by_label("Entity ID")).to_have_value(provider.url)
    await expect(dialog.get_by_label("Sign-in URL")).to_have_value(f"{provider.url}/sso")
    await expect(dialog.get_by_label("Logout URL")).to_have_value(f"{provider.url}/slo")
    await dialog.get_by_label("Groups").fill("memberOf")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_contain_text(re.compile("Expires.*Enabled"))
    stored = server.sql(
        "SELECT entity_id, sso_url, attribute_mapping, is_active FROM saml_identity_providers WHERE name = %s", [name]
    )
    assert stored == [(provider.url, f"{provider.url}/sso", {"groups": "memberOf"}, True)]
    await check_screen(page)

    await choose(page, name, "Test sign-in")
    address = await dialog.get_by_label("Sign-in address").inner_text()
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Done").click()
    name_id, email = uuid4().hex, f"ada@{verified_domain(server)}"
    await provider.next(email=email, name_id=name_id)
    other = await visit(address)
    await expect(other.get_by_role("button", name="Account")).to_contain_text(email)

    await other.get_by_role("button", name="Account").click()
    await other.get_by_role("menuitem", name="Sign out").click()
    await expect(
        other.get_by_text("You are signed out here and at your organization's identity provider.")
    ).to_be_visible()
    assert await provider.left() == [name_id]
    query = "SELECT s.revoked_reason FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.email = %s"
    assert server.sql(query, [email]) == [("logout",)]

    await choose(page, name, "Disable")
    await expect(row(page, name)).to_contain_text("Disabled")
    assert httpx2.get(address).status_code == 404
    await choose(page, name, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No identity provider yet")).to_be_visible()


@pytest.mark.usefixtures("no_providers")
async def test_a_new_certificate_is_read_from_a_file(
    page: Page, sign_in: SignIn, admin: httpx2.Client, provider: IdentityProvider
) -> None:
    admin.post(IDP, json=provider.config).raise_for_status()
    await sign_in("admin", "/console/sign-in")
    await choose(page, "a test's", "Edit")
    dialog = modal(page)
    await dialog.get_by_label("Or a metadata file").set_input_files(
        {"name": "metadata.xml", "mimeType": "text/xml", "buffer": b"<html/>"}
    )
    await expect(dialog.get_by_role("alert")).to_contain_text("must describe one identity provider")
    changed = Signer.new()
    content = provider_metadata(provider.url, changed.certificate).encode()
    await dialog.get_by_label("Or a metadata file").set_input_files(
        {"name": "metadata.xml", "mimeType": "text/xml", "buffer": content}
    )
    await expect(dialog.get_by_label("Certificate")).to_have_value(changed.certificate)
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    (idp,) = admin.get(IDP).json()["idps"]
    assert idp["x509_cert"] == changed.certificate


@pytest.mark.usefixtures("no_providers")
async def test_signing_out_warns_that_the_provider_session_may_remain(
    server: GatehouseServer, admin: httpx2.Client, provider: IdentityProvider, visit: Visit
) -> None:
    idp = admin.post(IDP, json={**provider.config, "slo_url": None}).json()["id"]
    await provider.next(email=f"ada@{verified_domain(server)}", name_id=uuid4().hex)
    page = await visit(f"{server.url}/api/saml/login?idp_id={idp}")
    await page.get_by_role("button", name="Account").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_text("identity provider may still know you")).to_be_visible()
    await page.goto("/console")
    await expect(page.get_by_label("Password", exact=True)).to_be_visible()


# provisioning and policies ------------------------------------------------------------------------------------------


async def test_a_provisioning_token_is_shown_once_works_and_is_revoked(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    name = new_name("Directory")
    await sign_in("admin", "/console/sign-in")
    panel = page.get_by_role("region", name="Provisioning (SCIM)")
    base = await panel.locator("code").first.inner_text()
    assert base == f"{server.url}/api/scim/v2"
    await panel.get_by_role("button", name="New token").click()
    dialog = modal(page)
    await dialog.get_by_label("Directory").fill(name)
    await dialog.get_by_label("Expires after").select_option("90 days")
    await dialog.get_by_role("button", name="Create").press("Enter")
    token = await dialog.get_by_label("Token", exact=True).inner_text()
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await dialog.get_by_role("button", name="Done").click()
    await expect(row(page, name)).to_contain_text("in 2 months")
    await expect(dialog).to_be_hidden()
    assert token not in await page.content()
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx2.get(f"{base}/Users", headers=headers).status_code == 200

    await choose(page, name, "Revoke")
    await dialog.get_by_role("button", name="Revoke token").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_have_count(0)
    assert httpx2.get(f"{base}/Users", headers=headers).status_code == 401


def policies(server: GatehouseServer) -> tuple[dict[str, object], dict[str, object]]:
    """Return the stored policies for second factors and for sessions."""
    ((mfa, sessions),) = server.sql("SELECT mfa_policy, session_policy FROM tenants WHERE id = %s", [DEFAULT_TENANT])
    return mfa, sessions


async def has_no_changes(panel: Locator) -> None:
    """Wait until everything is saved. The button is disabled during the save as well as without changes, so `aria-busy`
    is checked too."""
    save = panel.get_by_role("button", name="Save")
    await expect(save).to_have_attribute("aria-disabled", "true")
    await expect(save).not_to_have_attribute("aria-busy", "true")


async def test_the_policies_for_second_factors_and_sessions_are_changed(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/sign-in")
    panel = page.get_by_role("region", name="Second factors")
    save = panel.get_by_role("button", name="Save")
    await has_no_changes(panel)
    await expect(panel.get_by_label("Grace period (hours)")).to_have_count(0)
    await panel.get_by_label("Who needs one").select_option("Everybody")
    await panel.get_by_label("Grace period (hours)").fill("0")
    await assert_accessible(page)
    await save.click()
    # The policy would lock out the administrator, who has no second factor.
    await expect(panel.get_by_role("alert")).to_contain_text("you have none that the organization accepts")
    await panel.get_by_label("Who needs one").select_option("Nobody")
    await panel.get_by_label("Passkeys").uncheck()
    await panel.get_by_label("Ask again after (minutes)").fill("5")
    await save.press("Enter")
    await expect(page.get_by_text("The policy was saved.").first).to_be_visible()
    mfa, _ = policies(server)
    assert (mfa["enforcement_level"], mfa["mfa_methods"], mfa["mfa_assertion_ttl_seconds"]) == ("off", ["totp"], 300)
    await panel.get_by_label("Who needs one").select_option("Who has set one up")
    await panel.get_by_label("Passkeys").check()
    await save.click()
    await has_no_changes(panel)

    panel = page.get_by_role("region", name="Sessions")
    await panel.get_by_label("Sessions of one user").select_option("At most 2")
    await panel.get_by_label("Sign in again after (days)").fill("400")
    await panel.get_by_role("button", name="Save").click()
    await expect(panel.get_by_label("Sign in again after (days)")).to_have_attribute("aria-invalid", "true")
    await panel.get_by_label("Sign in again after (days)").fill("7")
    await panel.get_by_role("button", name="Save").click()
    await has_no_changes(panel)
    _, sessions = policies(server)
    assert (sessions["concurrent_sessions"], sessions["refresh_token_ttl_days"]) == ("2", 7)
    await panel.get_by_label("Sessions of one user").select_option("Any number")
    await panel.get_by_role("button", name="Save").click()
    await has_no_changes(panel)
    await panel.get_by_role("link", name="Organization").click()
    await expect(page.get_by_role("heading", name="Mail domains")).to_be_visible()


# OAuth clients ------------------------------------------------------------------------------------------------------


def token_status(server: GatehouseServer, client_id: str, secret: str) -> int:
    form = {"grant_type": "client_credentials"}
    return httpx2.post(f"{server.url}/oauth/token", data=form, auth=(client_id, secret)).status_code


async def test_an_oauth_client_is_created_rotated_edited_disabled_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    name = new_name("Reports")
    await sign_in("admin", "/console/oauth-clients")
    await page.get_by_role("button", name="New client").click()
    dialog = modal(page)
    scopes_field = dialog.get_by_role("group", name="Scopes", exact=True)
    await dialog.get_by_label("Name", exact=True).fill(name)
    await scopes_field.get_by_label("admin:read").check()
    await dialog.get_by_label("A token is valid for").fill("1500")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await assert_accessible(page)
    await dialog.get_by_label("A token is valid for").fill("30")
    await expect(dialog.get_by_label("For all organizations")).to_have_count(0)
    await dialog.get_by_role("button", name="Create").press("Enter")
    secret = await dialog.get_by_label("Client secret").inner_text()
    ((client_id, scopes, seconds),) = server.sql(
        "SELECT client_id, scopes, token_lifetime_seconds FROM oauth_clients WHERE name = %s", [name]
    )
    await expect(dialog).to_contain_text(str(client_id))
    await check_screen(page)
    assert (sorted(scopes), seconds) == (["admin:read", "chat:write"], 1800)
    assert token_status(server, str(client_id), secret) == 200
    await dialog.get_by_role("button", name="Done").click()
    await expect(dialog).to_be_hidden()
    assert secret not in await page.content()
    await check_screen(page)

    await choose(page, name, "New secret")
    grace = dialog.get_by_label("The previous secret is accepted for")
    # The time of the installation is shown with its source.
    await expect(grace.locator("option:checked")).to_have_text("The installation's time: 1 day")
    await expect(dialog.get_by_text("Default.", exact=True)).to_be_visible()
    await grace.select_option("No time: it ends now")
    await expect(dialog.get_by_text("Default.", exact=True)).to_have_count(0)
    await dialog.get_by_role("button", name="Create secret").click()
    renewed = await dialog.get_by_label("Client secret").inner_text()
    assert (token_status(server, str(client_id), secret), token_status(server, str(client_id), renewed)) == (401, 200)
    await dialog.get_by_role("button", name="Done").click()
    await choose(page, name, "Edit")
    await scopes_field.get_by_label("admin:read").uncheck()
    await dialog.get_by_label("Rate limit").select_option("Premium")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    query = "SELECT scopes, rate_limit_tier FROM oauth_clients WHERE name = %s"
    assert server.sql(query, [name]) == [(["chat:write"], "premium")]
    await choose(page, name, "Disable")
    await expect(row(page, name)).to_contain_text("Disabled")
    assert token_status(server, str(client_id), renewed) == 401
    await page.get_by_label("Status").select_option("Enabled")
    await expect(row(page, name)).to_have_count(0)
    await page.get_by_role("button", name="Clear").first.click()
    await choose(page, name, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_have_count(0)
    assert server.sql(query, [name]) == []


async def test_an_operator_registers_an_application_that_people_sign_in_to(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    name = new_name("Portal")
    who = await sign_in("admin", "/console")
    server.sql("UPDATE users SET operator = true WHERE id = %s", [who.id])
    server.touch("user", who.id)
    server.settled()
    await page.goto("/console/oauth-clients")
    await page.get_by_role("button", name="New client").click()
    dialog = modal(page)
    await dialog.get_by_label("Name", exact=True).fill(name)
    await dialog.get_by_role("group", name="Scopes").get_by_label("chat:write").uncheck()
    await dialog.get_by_label("For all organizations").check()
    await dialog.get_by_label("Redirect URIs").fill("http://portal.example.com/callback")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await dialog.get_by_label("Redirect URIs").fill("https://portal.example.com/callback")
    for_people = dialog.get_by_role("group", name="What it may do for people who sign in")
    await for_people.get_by_label("api:read").check()
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").click()
    await dialog.get_by_role("button", name="Done").click()
    await expect(row(page, name)).to_contain_text("For all organizations")
    query = "SELECT tenant_id, scopes, user_scopes, redirect_uris FROM oauth_clients WHERE name = %s"
    assert server.sql(query, [name]) == [(None, [], ["api:read"], ["https://portal.example.com/callback"])]
    await choose(page, name, "Edit")
    await expect(for_people.get_by_label("api:read")).to_be_checked()
    await for_people.get_by_label("chat:write").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    ((_, _, granted, _),) = server.sql(query, [name])
    assert sorted(granted) == ["api:read", "chat:write"]
    await choose(page, name, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_have_count(0)


# service accounts and sessions --------------------------------------------------------------------------------------


async def test_a_service_account_gets_a_key_that_is_disabled_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    email = f"bot-{uuid4().hex[:8]}@example.test"
    await sign_in("admin", "/console/users")
    await page.get_by_role("button", name="New user").click()
    dialog = modal(page)
    await dialog.get_by_label("E-mail address").fill(email)
    await dialog.get_by_label("Kind").select_option("Service account")
    await dialog.get_by_role("button", name="Create user").click()
    await expect(dialog).to_be_hidden()
    await page.get_by_label("Kind").select_option("Service accounts")
    await expect(page.get_by_role("row").filter(has_text="A test's")).to_have_count(0)
    await page.get_by_role("button", name=f"API keys of {email}").press("Enter")
    await expect(dialog).to_contain_text("No API keys yet")
    await dialog.get_by_role("button", name="Create key").click()
    creating = dialog.last
    await expect(creating).to_contain_text(f"The key has the rights of {email}")
    await creating.get_by_label("Name", exact=True).fill("nightly")
    await creating.get_by_role("button", name="Create key").click()
    key = await creating.get_by_label("Your new API key").inner_text()
    assert call_model(server, key).status_code == 200
    await creating.get_by_role("button", name="Done").click()
    keys = dialog.get_by_role("list", name="API keys").get_by_role("listitem")
    await expect(keys).to_contain_text(re.compile("nightly.*Active"))
    await check_screen(page)
    await choose(page, "nightly", "Disable")
    await expect(keys).to_contain_text("Disabled")
    assert call_model(server, key).status_code == 401
    await choose(page, "nightly", "Delete")
    await dialog.last.get_by_role("button", name="Delete key").click()
    await expect(dialog).to_have_count(1)
    await expect(keys).to_have_count(0)
    assert server.sql("SELECT count(*) FROM api_keys WHERE description = 'nightly'") == [(0,)]


async def test_an_administrator_ends_the_sessions_of_a_user(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("user")
    first, second, third = (api(server, who) for _ in range(3))
    await sign_in("admin", f"/console/users?search={who.email}")
    await page.get_by_role("button", name="Sessions of A test's user").press("Enter")
    dialog = modal(page)
    sessions = dialog.first.get_by_role("list", name="Sessions").get_by_role("listitem")
    await expect(sessions).to_have_count(3)
    assert "user=" in page.url
    await check_screen(page)
    await sessions.first.get_by_role("button", name="End session").click()
    await dialog.last.get_by_role("button", name="End session").click()
    await expect(sessions).to_have_count(2)
    # The newest session is listed first, so it was ended.
    assert [client.get("/api/auth/sessions").status_code for client in (first, second, third)] == [200, 200, 401]
    await expect(dialog.first.get_by_role("link", name="Spend by API key")).to_be_visible()
    await dialog.first.get_by_role("button", name="End all sessions").click()
    await dialog.last.get_by_role("button", name="End all sessions").click()
    await expect(dialog.first).to_contain_text("No session is open")
    assert [client.get("/api/auth/sessions").status_code for client in (first, second)] == [401, 401]


# roles --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_providers")
async def test_auditors_can_only_read_and_users_have_no_links_to_these_pages(
    page: Page, sign_in: SignIn, admin: httpx2.Client, provider: IdentityProvider
) -> None:
    mapping = {"email": "urn:oid:1.2.3", "username": None, "groups": None}
    admin.post(IDP, json={**provider.config, "attribute_mapping": mapping}).raise_for_status()
    admin.post("/api/admin/scim/token", json={"description": "Seen token"}).raise_for_status()
    seen = {"name": "Seen client", "token_lifetime_seconds": 5400, "rate_limit_tier": "premium"}
    client = admin.post("/api/admin/oauth-clients/", json=seen).json()["client_id"]
    navigation = page.get_by_role("navigation", name="Main")
    main = page.get_by_role("main")
    changes = main.get_by_role("button", name=re.compile("New|Add|Actions|Save"))
    who = await sign_in("auditor", "/console/sign-in")
    await expect(row(page, "a test's")).to_contain_text(provider.url)
    await expect(row(page, "Seen token")).to_be_visible()
    await expect(page.get_by_label("Who needs one")).to_be_disabled()
    await expect(changes).to_have_count(0)
    await check_screen(page)
    await page.get_by_role("button", name="Details of “a test's”").press("Enter")
    await expect(modal(page)).to_contain_text(f"{provider.url}/slo")
    await expect(modal(page)).to_contain_text("urn:oid:1.2.3")
    await page.reload()
    await expect(modal(page)).to_contain_text("urn:oid:1.2.3")
    await assert_accessible(page)
    await expect(modal(page).get_by_role("button")).to_have_count(1)
    await page.keyboard.press("Escape")
    await navigation.get_by_role("link", name="OAuth clients").click()
    await expect(row(page, "Seen client")).to_be_visible()
    await expect(changes).to_have_count(0)
    await page.get_by_role("button", name="Details of “Seen client”").press("Enter")
    for text in (client, "Premium", "90"):
        await expect(modal(page)).to_contain_text(text)
    await expect(modal(page).get_by_role("button")).to_have_count(1)
    await assert_accessible(page)
    await page.goto(f"/console/oauth-clients?search=nobody&client={client}")
    await expect(modal(page)).to_contain_text("Seen client")
    await page.keyboard.press("Escape")
    await expect(modal(page)).to_be_hidden()
    assert "client=" not in page.url
    await page.goto(f"/console/users?user={who.id}")
    await expect(modal(page).get_by_role("list", name="Sessions")).to_contain_text("This one")
    await expect(modal(page).get_by_role("button", name=re.compile("End"))).to_have_count(0)

    await page.context.clear_cookies()
    await sign_in("user")
    for entry in ("Sign-in", "OAuth clients"):
        await expect(navigation.get_by_role("link", name=entry)).to_have_count(0)
    await page.goto("/console/sign-in")
    await expect(page.get_by_role("alert").first).to_be_visible()
