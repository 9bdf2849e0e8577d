"""New employees in Chromium: single sign-on, a key, a first call, a DLP rule, a restricted model, and an administrator
who gives access to it. A directory creates an account, and deactivates it later."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from playwright.async_api import Browser, Page, expect
from tests.platform.console.conftest import DESK, call_model, enter_password, modal
from tests.support import chromium
from tests.support.chromium import needs_chromium, page_of
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.members import HASH
from tests.support.ports import free_port
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.console.files import BUILT, INDEX

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not (BUILT / INDEX).is_file(), reason="the console is not built: make setup"),
]

DOMAIN = "acme.test"
ADMIN = f"admin@{DOMAIN}"
RESTRICTED = "sandbox/stream-3"
RULE = {
    "detector_name": "Project names", "detector_type": "regex", "entity_type": "project", "action_tier": "block",
    "config_json": {"pattern": "Aurora-[0-9]+"},
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    """A server with four workers at `localhost`, which is another site for a browser than the identity provider's
    127.0.0.1."""
    port = free_port()
    tiers = '{"/login": 100000000, "/console": 100000000, "POST /api/auth/session/token": 100000000}'
    env = {"PUBLIC_URL": f"http://localhost:{port}", "RATE_LIMIT_TIERS": tiers}
    with GatehouseServer(workers=4, env=env, arguments=["--port", str(port)]) as running:
        yield running


@pytest.fixture(scope="module")
async def provider(server: GatehouseServer) -> AsyncIterator[IdentityProvider]:
    """The organization's identity provider. People of its verified domain get an account at their first sign-in."""
    async with identity_provider() as running:
        await running.trust(server.env["PUBLIC_URL"])
        admin_id = new_id()
        server.sql(
            "INSERT INTO users (id, tenant_id, email, role, password_hash) VALUES (%s, %s, %s, 'admin', %s)",
            [admin_id, DEFAULT_TENANT, ADMIN, HASH],
        )
        server.touch("user", admin_id)
        server.settled()
        server.sql(
            "INSERT INTO allowed_domains (tenant_id, domain, jit_provisioning, verified_at)"
            " VALUES (%s, %s, true, now())",
            [DEFAULT_TENANT, DOMAIN],
        )
        headers = {"Authorization": f"Bearer {server.key}"}
        async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as admin:
            for path, body in (
                ("/api/admin/saml/idp", running.config),
                ("/api/admin/dlp-rules/", RULE),
                (
                    "/api/admin/models/catalog/",
                    {"provider": "sandbox", "model_id": "stream-3", "display_name": "Large", "access": "restricted"},
                ),
            ):
                answer = await admin.post(path, json=body)
                assert answer.status_code == 201, answer.text
        yield running


@pytest.fixture(scope="module")
async def chrome() -> AsyncIterator[Browser]:
    async with chromium.browser() as started:
        yield started


async def new_page(chrome: Browser, server: GatehouseServer) -> AsyncIterator[Page]:
    context = await chrome.new_context(base_url=server.env["PUBLIC_URL"], viewport=DESK)  # type: ignore[arg-type]
    async with page_of(context) as page:
        yield page
    await context.close()


@pytest.fixture
async def page(chrome: Browser, server: GatehouseServer) -> AsyncIterator[Page]:
    """The employee's browser."""
    async for opened in new_page(chrome, server):
        yield opened


@pytest.fixture
async def office(chrome: Browser, server: GatehouseServer) -> AsyncIterator[Page]:
    """The administrator's browser."""
    async for opened in new_page(chrome, server):
        yield opened


async def sign_in(page: Page, email: str) -> None:
    """Sign in with the organization's identity provider."""
    await page.goto("/console")
    await page.get_by_label("E-mail or user name").fill(email)
    await page.get_by_role("button", name="single sign-on").click()
    await page.get_by_role("link", name="Continue with").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def create_key(page: Page) -> str:
    await page.get_by_role("link", name="API keys").click()
    await page.get_by_role("button", name="Create key").first.click()
    dialog = modal(page)
    await dialog.get_by_label("Name").fill("my first one")
    await dialog.get_by_role("button", name="Create key").click()
    key = await dialog.get_by_label("Your new API key").inner_text()
    await dialog.get_by_role("button", name="Done").click()
    return key


async def test_a_new_employee_signs_in_and_gets_access_to_a_restricted_model(
    server: GatehouseServer, provider: IdentityProvider, page: Page, office: Page
) -> None:
    # Ada signs in with the organization's identity provider, for the first time.
    await provider.next(email=f"ada@{DOMAIN}", name_id="ada")
    await sign_in(page, f"ada@{DOMAIN}")
    await expect(page.get_by_role("button", name="Account")).to_contain_text(f"ada@{DOMAIN}")
    assert server.sql("SELECT role FROM users WHERE email = %s", [f"ada@{DOMAIN}"]) == [("user",)]

    # She creates a key, and calls a model with it.
    key = await create_key(page)
    assert call_model(server, key).status_code == 200

    # A DLP rule blocks a call, and her records show it.
    blocked = call_model(server, key, "The plans of Aurora-77")
    assert (blocked.status_code, blocked.json()["error"]["code"]) == (403, "dlp_violation")
    await page.get_by_role("link", name="Requests", exact=True).click()
    await page.get_by_label("Status").select_option("refused")
    await expect(page.get_by_role("row").filter(has_text="Blocked")).to_have_count(1)

    # A restricted model looks like an unknown one. She requests access to it.
    closed = call_model(server, key, model=RESTRICTED)
    assert (closed.status_code, closed.json()["error"]["code"]) == (404, "model_not_found")
    await page.get_by_role("link", name="My usage").click()
    await page.get_by_role("link", name="Ask for a model").click()
    dialog = modal(page)
    await dialog.get_by_label("Model").fill(RESTRICTED)
    await dialog.get_by_label("Reason").fill("Summaries of long reports.")
    await dialog.get_by_role("button", name="Send request").click()
    own = page.get_by_role("listitem").filter(has_text=RESTRICTED)
    await expect(own).to_contain_text("Waiting")

    # The administrator sees the request on the overview, and approves it.
    await office.goto("/console")
    await enter_password(office, ADMIN)
    await office.get_by_role("link", name="One request waits for a decision.").click()
    card = office.get_by_role("listitem").filter(has_text=RESTRICTED)
    await expect(card).to_contain_text(f"ada@{DOMAIN}")
    await card.get_by_role("button", name="Approve").click()
    await modal(office).get_by_role("button", name="Approve").click()
    await expect(office.get_by_text("The request was approved.")).to_be_visible()

    # Now the same key can call the model on every worker, and Ada sees the approval.
    assert {call_model(server, key, model=RESTRICTED).status_code for _ in range(12)} == {200}
    await expect(own).to_contain_text("Approved")
    await expect(own).to_contain_text(f"Member of “Access to {RESTRICTED}”")


async def test_a_person_of_the_directory_signs_in_and_creates_a_key_until_the_directory_deactivates_them(
    server: GatehouseServer, provider: IdentityProvider, page: Page
) -> None:
    email = f"grace@{DOMAIN}"
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as directory:
        created = await directory.post("/api/admin/scim/token", json={"description": "the directory"})
        directory.headers["Authorization"] = f"Bearer {created.json()['token']}"
        schemas = ["urn:ietf:params:scim:schemas:core:2.0:User"]
        body = {"schemas": schemas, "userName": email, "displayName": "Grace Hopper", "active": True}
        account = await directory.post("/api/scim/v2/Users", json=body)
        assert account.status_code == 201, account.text

        await provider.next(email=email, name_id="grace")
        await sign_in(page, email)
        await expect(page.get_by_role("button", name="Account")).to_contain_text("Grace Hopper")
        key = await create_key(page)
        assert call_model(server, key).status_code == 200
        assert server.sql("SELECT count(*) FROM users WHERE email = %s", [email]) == [(1,)]

        path = f"/api/scim/v2/Users/{account.json()['id']}"
        (await directory.put(path, json={**body, "active": False})).raise_for_status()
    assert {call_model(server, key).status_code for _ in range(12)} == {401}
    await page.reload()
    await expect(page.get_by_label("E-mail or user name")).to_be_visible()
