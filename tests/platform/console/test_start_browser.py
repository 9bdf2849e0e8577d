"""From the first start of a server to the first recorded request, in Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, Route, expect
from tests.platform.console.conftest import DESK, SignIn, call_model, check_screen, modal, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium, page_of
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

EMAIL = "admin@gatehouse.local"
NEW_PASSWORD = "a password that nobody else has"


@pytest.fixture
def first_start(console: Path) -> Iterator[GatehouseServer]:
    """A server that generates its first administrator's password."""
    server = GatehouseServer(env={"SANDBOX_ENABLED": "true"}, is_first_start=True)
    del server.env["GATEHOUSE_ADMIN_EMAIL"], server.env["GATEHOUSE_ADMIN_PASSWORD"]
    with server:
        yield server


async def test_the_link_of_the_first_start_leads_to_the_first_recorded_request(
    first_start: GatehouseServer, chrome: Browser
) -> None:
    server = first_start
    file = server.home / "first-admin"
    email, password, link = file.read_text().splitlines()
    assert link not in server.log()
    context = await chrome.new_context(base_url=server.url, viewport=DESK)
    async with page_of(context) as page:
        await page.goto(link)
        await expect(page.get_by_label("E-mail")).to_have_value(email)
        await page.get_by_label("Your name").fill("Ada Lovelace")
        await page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
        await page.get_by_label("The same again").fill(NEW_PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile("/console/start$"))
        await expect(page.get_by_role("button", name="Account")).to_contain_text("Ada Lovelace")
        await expect(page.get_by_text("Ready: Sandbox")).to_be_visible()
        await check_screen(page)

        await page.get_by_role("button", name="Create key").click()
        key = await page.get_by_label("Your new API key").inner_text()
        await expect(page.get_by_role("status").filter(has_text="Waiting for the first request")).to_be_visible()
        await check_screen(page)
        await page.get_by_role("button", name="I have stored the key").click()
        answer = call_model(server, key, "My card is 4242 4242 4242 4242.")
        assert answer.status_code == 200
        detail = page.get_by_role("complementary", name="Request")
        await expect(detail).to_contain_text(answer.headers["x-request-id"], timeout=60_000)
        await expect(detail).to_contain_text("Redacted")
        await expect(detail).to_contain_text("gateway.request")

        # The link works only once, and the printed password is no longer valid.
        await context.clear_cookies()
        await page.goto(link)
        await page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
        await page.get_by_label("The same again").fill(NEW_PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
    await context.close()
    for candidate, status in ((password, 401), (NEW_PASSWORD, 200)):
        login = {"email": EMAIL, "password": candidate}
        assert httpx2.post(f"{server.url}/api/auth/login", json=login).status_code == status
    assert server.stop() == 0
    server.start()
    assert not file.exists()
    assert "First admin" not in server.log().rpartition("serves on")[2]


def question(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Leave without the key?")


async def test_the_key_of_the_first_steps_is_not_lost_by_a_link_or_by_the_first_request(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("user", "/console/start")
    await page.get_by_role("button", name="Create key").click()
    shown = page.get_by_label("Your new API key")
    key = await shown.inner_text()
    for name in ("Skip, and go to the overview", "API keys"):
        await page.get_by_role("link", name=name, exact=True).click()
        await expect(question(page)).to_contain_text("It is not shown again.")
        await question(page).get_by_role("button", name="Stay").click()
        await expect(question(page)).to_have_count(0)
        await expect(shown).to_have_text(key)

    # The first request does not open its record while the key has not been copied.
    recorded_call(server, key)
    arrived = page.get_by_role("status").filter(has_text="The first request has arrived")
    await expect(arrived).to_contain_text("Copy the key")
    await expect(shown).to_have_text(key)
    await check_screen(page)
    await page.get_by_role("link", name="Open the record").click()
    await question(page).get_by_role("button", name="Stay").click()
    await page.get_by_role("button", name="I have stored the key").click()
    await expect(arrived).not_to_contain_text("Copy the key")
    await expect(shown).to_have_text(key)
    await page.get_by_role("link", name="Open the record").click()
    await expect(page.get_by_role("complementary", name="Request")).to_be_visible()
    await expect(question(page)).to_have_count(0)


@pytest.mark.parametrize("way", ["button", "program", "selection", "none"])
async def test_a_key_that_was_copied_is_left_without_a_question(
    page: Page, sign_in: SignIn, context: BrowserContext, way: str
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    await sign_in("user", "/console/start")
    await page.get_by_role("button", name="Create key").click()
    shown = page.get_by_label("Your new API key")
    key = await shown.inner_text()
    if way == "button":
        await page.get_by_role("button", name="Copy").first.click()
    elif way == "program":
        await page.get_by_role("tabpanel").get_by_role("button", name="Copy").click()
    elif way == "selection":
        await shown.dblclick()
        await page.keyboard.press("Control+c")
    if way != "none":
        assert key in await page.evaluate("navigator.clipboard.readText()")
    await page.get_by_role("link", name="Skip, and go to the overview").click()
    if way == "none":
        await question(page).get_by_role("button", name="Leave without the key").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await expect(question(page)).to_have_count(0)


async def test_only_the_sandbox_needs_no_key(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    without_key, enabling = page.get_by_text("needs no key and no network"), page.get_by_text("SANDBOX_ENABLED=true")
    await sign_in("admin", "/console/start")
    await expect(without_key).to_be_visible()
    await expect(enabling).to_have_count(0)
    with_key = {
        "id": "openai", "name": "OpenAI", "kind": "openai", "enabled": True, "credentials_configured": True,
    }  # fmt: skip

    async def without_sandbox(route: Route) -> None:
        answer = await route.fetch()
        body = await answer.json()
        await route.fulfill(response=answer, json={**body, "providers": [{**body["providers"][0], **with_key}]})

    await page.route("**/api/admin/providers", without_sandbox)
    await page.reload()
    await expect(page.get_by_text("Ready: OpenAI.")).to_be_visible()
    await expect(without_key).to_have_count(0)
    await expect(enabling).to_contain_text("gatehouse migrate")


async def test_each_start_makes_a_new_link_and_ends_the_one_before(first_start: GatehouseServer) -> None:
    file = first_start.home / "first-admin"
    links = []
    for _ in range(2):
        links.append(file.read_text().splitlines()[2])
        assert first_start.stop() == 0
        first_start.start()
    links.append(file.read_text().splitlines()[2])
    assert len(set(links)) == 3
    assert file.stat().st_mode & 0o777 == 0o600
    query = "SELECT count(*), min(expires_at) < now() + interval '24 hours' FROM one_time_tokens WHERE used_at IS NULL"
    assert first_start.sql(query) == [(1, True)]


async def test_a_provider_that_does_not_answer_is_reported_at_once(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/start")
    await page.get_by_role("button", name="Add a provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("openai_compatible")
    await dialog.get_by_label("Name in model ids").fill("nowhere")
    await dialog.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("No connection")
    await assert_accessible(page)
    # The next attempt replaces the provider that this dialog has stored.
    async with page.expect_response(lambda answer: answer.request.method == "PUT") as replaced:
        await dialog.get_by_role("button", name="Add provider").click()
    assert (await replaced.value).status == 200


async def test_a_new_provider_never_replaces_one_of_the_same_name(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    def add(provider_id: str) -> None:
        server.sql(
            "INSERT INTO providers (tenant_id, id, name, kind, sealed_credentials, credentials_updated_at)"
            " VALUES (%s, %s, 'Kept', 'openai', 'sealed', now())",
            [DEFAULT_TENANT, provider_id],
        )

    add("first")
    try:
        await sign_in("admin", "/console/start")
        await page.get_by_role("button", name="Add a provider").click()
        dialog = modal(page)
        await dialog.get_by_label("Name in model ids").fill("first")
        # The name that the user typed is kept when another provider is selected.
        await dialog.get_by_label("Provider").select_option("mistral")
        await expect(dialog.get_by_label("Name in model ids")).to_have_value("first")
        await dialog.get_by_label("Provider").select_option("openai")
        await dialog.get_by_label("API key").fill("k")
        await dialog.get_by_role("button", name="Add provider").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("A provider of this name exists")
        # The second provider is added after the console has loaded the list.
        add("second")
        await dialog.get_by_label("Name in model ids").fill("second")
        await dialog.get_by_role("button", name="Add provider").click()
        await expect(dialog.get_by_role("alert").first).to_contain_text("exists")
        query = "SELECT DISTINCT sealed_credentials FROM providers WHERE name = 'Kept'"
        assert server.sql(query) == [("sealed",)]
    finally:
        server.sql("DELETE FROM providers WHERE name = 'Kept'")


async def test_a_user_has_first_steps_without_the_providers(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/start")
    await expect(page.get_by_role("button", name="Create key")).to_be_visible()
    await expect(page.get_by_role("button", name="Add a provider")).to_have_count(0)
    await page.get_by_role("link", name="Skip, and go to the overview").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
