"""Providers and models in Chromium: added, checked, changed and removed by clicking."""

import re
from collections.abc import Callable
from decimal import Decimal

from playwright.async_api import Page, expect
from tests.platform.console.conftest import Colleague, SignIn, api, call_model, check_screen, is_accessible, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

#: Nothing listens there.
BASE_URL = "http://127.0.0.1:9/v1"
SECRET = "sk-of-the-console-4711"


async def choose(page: Page, name: str, item: str) -> None:
    """Choose an item of the menu in the row with this name."""
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=item).click()


async def test_a_provider_is_added_checked_and_disabled(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/providers")
    row = page.get_by_role("row", name=re.compile("in-house"))
    await page.get_by_role("button", name="Add provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("openai_compatible")
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(dialog.get_by_role("alert").first).to_have_text("Enter a value.")
    await dialog.get_by_label("Name in model ids").fill("in-house")
    await dialog.get_by_label("Base URL").fill("not a URL")
    await dialog.get_by_label("API key").fill(SECRET)
    await is_accessible(page)
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(dialog.get_by_label("Base URL")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Base URL").fill(BASE_URL)
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(row).to_contain_text("Active")
    await check_screen(page)

    await choose(page, "in-house", "Check health now")
    await expect(page.get_by_text("in-house is not healthy").first).to_be_visible()
    await expect(row).to_contain_text("Unreachable")
    await choose(page, "in-house", "Disable")
    await expect(row).to_contain_text("Disabled")
    await choose(page, "in-house", "Enable")
    await expect(row).to_contain_text("Active")
    await choose(page, "in-house", "Replace credentials")
    await expect(dialog.get_by_label("Base URL")).to_have_value(BASE_URL)
    await expect(dialog.get_by_label("API key")).to_have_value("")
    assert SECRET not in await page.content()
    await dialog.get_by_role("button", name="Cancel").click()
    # A server of one's own works without credentials.
    await page.get_by_role("button", name="Actions for in-house").click()
    await expect(page.get_by_role("menuitem", name="Remove credentials")).to_have_count(0)
    await page.keyboard.press("Escape")


async def test_a_providers_credentials_are_removed(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/providers")
    await page.get_by_role("button", name="Add provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("mistral")
    await dialog.get_by_label("API key").fill(SECRET)
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    await choose(page, "Mistral", "Remove credentials")
    await dialog.get_by_role("button", name="Remove credentials").click()
    await expect(page.get_by_role("row", name=re.compile("mistral"))).to_contain_text("No credentials")
    assert server.sql("SELECT sealed_credentials FROM providers WHERE id = 'mistral'") == [(None,)]


async def test_a_model_is_added_edited_deactivated_and_removed(
    server: GatehouseServer, page: Page, sign_in: SignIn, colleague: Callable[[str], Colleague]
) -> None:
    caller = api(server, colleague("user"))
    key = caller.post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    await sign_in("admin", "/console/models")
    await check_screen(page)
    await page.get_by_role("button", name="Add model").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("sandbox")
    await dialog.get_by_label("Model id").fill("of-the-console")
    await dialog.get_by_label("Name", exact=True).fill("Model of the console")
    await dialog.get_by_label("input tokens").fill("0.15")
    await dialog.get_by_label("output tokens").fill("abc")
    await dialog.get_by_role("button", name="Add model").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a number.")
    await dialog.get_by_label("output tokens").fill("0.6")
    await is_accessible(page)
    await dialog.get_by_role("button", name="Add model").click()
    await page.get_by_label("Search").fill("of-the-console")
    await page.keyboard.press("Enter")
    row = page.get_by_role("row", name=re.compile("Model of the console"))
    await expect(row).to_contain_text("$0.15")
    query = "SELECT cost_per_input_token, cost_per_output_token FROM model_configs WHERE model_id = 'of-the-console'"
    assert server.sql(query) == [(Decimal("0.00000015"), Decimal("0.0000006"))]

    await choose(page, "Model of the console", "Edit")
    await dialog.get_by_label("output tokens").fill("")
    await dialog.get_by_label("Access").select_option("restricted")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("no price")
    await expect(row).to_contain_text("Groups with a rule")
    assert call_model(server, key, model="sandbox/of-the-console").status_code == 404
    await choose(page, "Model of the console", "Deactivate")
    await expect(row).to_contain_text("Inactive")
    await choose(page, "Model of the console", "Activate")
    await expect(row).to_contain_text("Active")
    await choose(page, "Model of the console", "Remove")
    await dialog.get_by_role("button", name="Remove model").click()
    await expect(page.get_by_role("heading", name="No model matches the filters")).to_be_visible()
    assert server.sql(query) == []


async def test_new_models_of_the_providers_are_added(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    server.sql("DELETE FROM model_configs WHERE model_id = 'embed'")
    await sign_in("admin", "/console/models")
    await page.get_by_role("button", name="Add new models").click()
    await expect(page.get_by_text(re.compile("models? w(as|ere) added")).first).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("sandbox.embed"))).to_be_visible()


async def test_auditors_look_and_change_nothing(page: Page, sign_in: SignIn) -> None:
    for path in ("/console/providers", "/console/models"):
        await page.context.clear_cookies()
        await sign_in("auditor", path)
        await expect(page.get_by_role("row").nth(1)).to_be_visible()
        await expect(page.get_by_role("button", name=re.compile("Add|Actions for"))).to_have_count(0)
