"""Single sign-on in a real browser, with its rules for cookies and forms of other sites."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page, expect
from tests.platform.access.saml.conftest import IDP, prove
from tests.support import chromium
from tests.support.chromium import needs_chromium, page_of
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.platform import RunningPlatform, Tenant
from tests.support.ports import free_port

from gatehouse.foundation.settings import Settings

pytestmark = needs_chromium


@pytest.fixture(scope="module")
async def served(settings: Settings, platform: RunningPlatform) -> AsyncIterator[RunningPlatform]:
    """A platform at `localhost`. For a browser this is another site than the provider's 127.0.0.1."""
    port = free_port()
    public = settings.model_copy(update={"public_url": f"http://localhost:{port}"})
    async with RunningPlatform.start(public) as running, running.listening(port):
        yield running


@pytest.fixture(scope="module")
async def provider(served: RunningPlatform) -> AsyncIterator[IdentityProvider]:
    async with identity_provider() as running:
        await running.trust(served.host.settings.public_url or "")
        yield running


@pytest.fixture(scope="module")
async def chrome() -> AsyncIterator[Browser]:
    async with chromium.browser() as started:
        yield started


@pytest.fixture
async def page(chrome: Browser, served: RunningPlatform) -> AsyncIterator[Page]:
    context = await chrome.new_context(base_url=served.host.settings.public_url)
    async with page_of(context) as opened:
        yield opened
    await context.close()


@pytest.fixture
async def domain(served: RunningPlatform, tenant: Tenant, provider: IdentityProvider) -> str:
    """A verified domain of an organization that uses the provider."""
    created = await tenant.admin.client.post(IDP, json=provider.config)
    assert created.status_code == 201, created.text
    text = f"{uuid4().hex[:12]}.test"
    prove(served, tenant, text, jit=True)
    return text


async def sign_in(page: Page, domain: str) -> None:
    await page.goto("/login")
    await page.get_by_label("E-mail or user name").fill(f"anybody@{domain}")
    await page.get_by_role("button", name="single sign-on").click()
    await page.get_by_role("link", name="Continue with").click()


async def test_a_user_signs_in_and_out_at_the_platform_and_at_the_provider(
    page: Page, provider: IdentityProvider, domain: str
) -> None:
    name = uuid4().hex
    await provider.next(email=f"ada@{domain}", name_id=name)
    await sign_in(page, domain)
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    await expect(page.get_by_text(f"ada@{domain}")).to_be_visible()

    await page.get_by_role("button", name="Sign out").click()
    await page.locator("a[href*=SAMLRequest]").click()
    await expect(page.get_by_text("You are signed out here and at your organization's")).to_be_visible()
    assert name in await provider.left()

    await sign_in(page, domain)
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    await page.goto(f"{provider.url}/leave?name_id={name}")
    await expect(page.get_by_text("signed out")).to_be_visible()
    assert page.url.startswith(provider.url)
    await page.goto("/login")
    await expect(page.get_by_label("E-mail or user name")).to_be_visible()


async def test_a_refused_person_sees_the_reason(
    page: Page, provider: IdentityProvider, domain: str, tenant: Tenant
) -> None:
    local = f"ada@{uuid4().hex[:12]}.test"
    created = await tenant.admin.client.post("/api/admin/users", json={"email": local})
    assert created.status_code == 201, created.text
    await provider.next(email=local)
    await sign_in(page, domain)
    await expect(page.get_by_role("heading", name="That did not work")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("Ask your administrator")
    await page.get_by_role("link", name="sign-in page").click()
    await expect(page.get_by_label("E-mail or user name")).to_be_visible()
