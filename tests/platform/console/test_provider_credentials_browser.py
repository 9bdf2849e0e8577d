"""The credentials of a provider in Chromium: their changes by clicking and by keyboard, and changes by others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from playwright.async_api import Locator, Page, Route, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

PROVIDERS = "/api/admin/providers"
PATH = f"{PROVIDERS}/gemini/credentials"
SECRETS = ("sk-of-the-console-0001", "sk-of-the-console-0002", "sk-of-the-console-0003")
REFUSAL = "Somebody else has changed it"


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> httpx2.Client:
    """Another administrator, with the API. The provider `gemini` has the credentials `default` and `second`."""
    client = api(server, new_user("admin"))
    client.delete(f"{PROVIDERS}/gemini")
    client.put(PATH, json={"api_key": SECRETS[0]}).raise_for_status()
    client.post(PATH, json={"label": "second", "api_key": SECRETS[1]}).raise_for_status()
    return client


def states(admin: httpx2.Client) -> dict[str, str]:
    return {entry["label"]: entry["state"] for entry in admin.get(PATH).json()["credentials"]}


async def choose(page: Page, item: str) -> None:
    await page.get_by_role("button", name="Actions for Google Gemini").click()
    await page.get_by_role("menuitem", name=item, exact=True).click()


def entries_of(dialog: Locator) -> Locator:
    return dialog.get_by_role("list", name="Credentials").get_by_role("listitem")


async def test_credentials_are_added_rotated_drained_and_removed(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/providers")
    await page.get_by_role("button", name="Add provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("gemini")
    await dialog.get_by_label("API key").fill(SECRETS[0])
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    await choose(page, "Credentials…")
    entries = entries_of(dialog)
    await expect(entries).to_have_count(1)
    await dialog.get_by_role("button", name="Add credential").click()
    await dialog.get_by_role("button", name="Add credential").click()
    await expect(dialog.get_by_role("alert").first).to_contain_text("Enter lower-case letters")
    await dialog.get_by_label("Label").fill("second")
    await dialog.get_by_label("API key").fill(SECRETS[1])
    await page.keyboard.press("Enter")
    await expect(entries).to_have_count(2)
    await check_screen(page)
    await dialog.get_by_role("button", name="Rotate default").click()
    await dialog.get_by_label("API key").fill(SECRETS[2])
    await dialog.get_by_role("button", name="Replace the secret").click()
    await expect(page.get_by_text("The secret of “default” was replaced.").first).to_be_visible()
    await dialog.get_by_role("button", name="Change state of default").click()
    await dialog.get_by_label("State").select_option("draining")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Set the state").click()
    await expect(page.get_by_text("“default” is draining.").first).to_be_visible()
    await expect(entries.first).to_contain_text("Draining")
    await dialog.get_by_role("button", name="Remove default").click()
    await page.get_by_role("button", name="Remove credential").click()
    await expect(entries).to_have_count(1)
    # The last one stays.
    await dialog.get_by_role("button", name="Change state of second").click()
    await dialog.get_by_label("State").select_option("disabled")
    await dialog.get_by_role("button", name="Set the state").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("no other credential in use")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(entries).to_contain_text("Active")
    content = await page.content()
    assert not any(secret in content for secret in SECRETS)
    rows = server.sql("SELECT label, state FROM provider_credentials WHERE provider_id = 'gemini'")
    assert rows == [("second", "active")]


async def test_a_state_changes_only_by_the_button(page: Page, sign_in: SignIn, admin: httpx2.Client) -> None:
    await sign_in("admin", "/console/providers")
    await choose(page, "Credentials…")
    dialog = modal(page)
    await dialog.get_by_role("button", name="Change state of second").press("Enter")
    await expect(dialog.get_by_label("State")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("d")
    await expect(dialog.get_by_label("State")).not_to_have_value("active")
    await page.wait_for_load_state("networkidle")
    assert states(admin) == {"default": "active", "second": "active"}
    await dialog.get_by_role("button", name="Cancel").press("Enter")
    await expect(entries_of(dialog)).to_have_count(2)
    assert states(admin) == {"default": "active", "second": "active"}
    # The focus stays in the dialog.
    await page.keyboard.press("Tab")
    assert await dialog.evaluate("(element) => element.contains(document.activeElement)")
    await dialog.get_by_role("button", name="Change state of second").press("Enter")
    await page.keyboard.press("ArrowDown")
    await dialog.get_by_role("button", name="Set the state").press("Enter")
    await expect(entries_of(dialog).last).to_contain_text("Draining")
    assert states(admin) == {"default": "active", "second": "draining"}


async def test_changes_of_a_credential_that_another_administrator_has_changed_are_refused(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    await sign_in("admin", "/console/providers")
    await choose(page, "Credentials…")
    dialog = modal(page)
    refusal = dialog.get_by_role("alert").filter(has_text=REFUSAL)

    def change(state: str) -> None:
        admin.patch(f"{PATH}/second", json={"state": state}).raise_for_status()

    await dialog.get_by_role("button", name="Change state of second").click()
    change("draining")
    await dialog.get_by_label("State").select_option("disabled")
    await dialog.get_by_role("button", name="Set the state").click()
    await expect(refusal).to_be_visible()
    assert states(admin)["second"] == "draining"
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(entries_of(dialog).last).to_contain_text("Draining")

    for label in ("second", "default"):
        await dialog.get_by_role("button", name=f"Rotate {label}").click()
        # The version of the default credential is that of the provider.
        change("active" if label == "second" else "draining")
        await dialog.get_by_label("API key").fill("sk-never-stored")
        await dialog.get_by_role("button", name="Replace the secret").click()
        await expect(refusal).to_be_visible()
        await dialog.get_by_role("button", name="Cancel").click()

    await dialog.get_by_role("button", name="Remove second").click()
    change("active")
    await page.get_by_role("button", name="Remove credential").click()
    await expect(page.get_by_text(REFUSAL).first).to_be_visible()
    assert states(admin) == {"default": "active", "second": "active"}
    await page.get_by_role("button", name="Cancel").click()
    await expect(entries_of(dialog)).to_have_count(2)
    # With the new version, the removal is accepted.
    await dialog.get_by_role("button", name="Remove second").click()
    await page.get_by_role("button", name="Remove credential").click()
    await expect(entries_of(dialog)).to_have_count(1)


async def test_replacing_the_credentials_of_a_changed_provider_is_refused(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    query = "SELECT sealed_credentials FROM providers WHERE id = 'gemini'"
    await sign_in("admin", "/console/providers")
    await choose(page, "Replace credentials…")
    dialog = modal(page)
    admin.put(PATH, json={"api_key": SECRETS[2]}).raise_for_status()
    before = server.sql(query)
    await dialog.get_by_label("API key").fill("sk-never-stored")
    await dialog.get_by_role("button", name="Save credentials").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
    assert server.sql(query) == before
    await dialog.get_by_role("button", name="Cancel").click()
    await choose(page, "Replace credentials…")
    await dialog.get_by_label("API key").fill(SECRETS[0])
    await dialog.get_by_role("button", name="Save credentials").click()
    await expect(dialog).to_be_hidden()
    assert server.sql(query) != before


@asynccontextmanager
async def delayed(page: Page, method: str) -> AsyncIterator[None]:
    """Delay the requests of the method until the end of the block."""
    released = asyncio.Event()

    async def wait(route: Route) -> None:
        if route.request.method == method:
            await released.wait()
        await route.continue_()

    await page.route(f"**{PATH}**", wait)
    yield
    released.set()


async def test_results_that_arrive_after_the_dialog_was_closed_are_shown(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    await sign_in("admin", "/console/providers")
    dialog = modal(page)

    async def set_state_of_second(state: str) -> None:
        await choose(page, "Credentials…")
        await dialog.get_by_role("button", name="Change state of second").click()
        await dialog.get_by_label("State").select_option(state)
        await dialog.get_by_role("button", name="Set the state").click()

    async with delayed(page, "PATCH"):
        await set_state_of_second("draining")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        # A form that was opened meanwhile stays open.
        await choose(page, "Credentials…")
        await dialog.get_by_role("button", name="Add credential").click()
        await dialog.get_by_label("Label").fill("third")
    await expect(page.get_by_text("“second” is draining.").first).to_be_visible()
    await expect(dialog.get_by_label("Label")).to_have_value("third")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Discard changes").click()
    await expect(dialog).to_have_count(0)

    async with delayed(page, "PATCH"):
        await set_state_of_second("disabled")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        admin.patch(f"{PATH}/second", json={"state": "active"}).raise_for_status()
    await expect(page.get_by_text(REFUSAL).first).to_be_visible()
    assert states(admin) == {"default": "active", "second": "active"}
