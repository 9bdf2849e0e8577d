"""Model aliases in Chromium: their main task, by clicking."""

import re
from collections.abc import Callable
from uuid import uuid4

from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, modal, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

ALIASES = "/api/v1/admin/model-aliases"
#: Buttons that only administrators have.
CHANGES = re.compile("New alias|Actions for")


async def choose(page: Page, name: str, item: str) -> None:
    """Choose an item of the menu in the row with this name."""
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=item, exact=True).click()


async def test_an_alias_is_created_compared_edited_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    name = f"alias-{uuid4().hex[:8]}"
    await sign_in("admin", "/console/model-aliases")
    await page.get_by_role("button", name="New alias").click()
    dialog = modal(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert").first).to_have_text("Enter a name.")
    await dialog.get_by_label("Name", exact=True).fill(name)
    first = dialog.get_by_role("listitem", name="Deployment 1")
    await first.get_by_label("Model").fill("sandbox/nowhere")
    await first.get_by_label("Weight").fill("3")
    await first.get_by_label("Requests per minute").fill("600")
    await dialog.get_by_role("button", name="Add deployment").click()
    second = dialog.get_by_role("listitem", name="Deployment 2")
    await second.get_by_label("Model").fill("sandbox/slow-200ms")
    await second.get_by_label("Role").select_option("shadow")
    await second.get_by_label("Share of requests").fill("0.5")
    await expect(second.get_by_label("Weight")).to_have_count(0)
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").click()
    # The message of the API is at the field.
    await expect(first.get_by_label("Model")).to_have_attribute("aria-invalid", "true")
    await first.get_by_label("Model").fill("sandbox/echo")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    row = page.get_by_role("row", name=re.compile(name))
    await expect(row).to_contain_text("1 and 1 shadow")
    await check_screen(page)
    stored = server.sql("SELECT id, deployments FROM model_aliases WHERE name = %s", [name])[0]
    assert [(entry["model_id"], entry["role"]) for entry in stored[1]] == [("echo", "live"), ("slow-200ms", "shadow")]
    assert (stored[1][0]["weight"], stored[1][0]["requests_per_minute"], stored[1][1]["share"]) == (3, 600, 0.5)

    recorded_call(server, server.key, model=name)
    await page.get_by_role("button", name=f"Deployments of “{name}”").click()
    table = modal(page).get_by_role("table")
    await expect(table.get_by_role("row").nth(1)).to_contain_text(re.compile(r"sandbox/echo\s*1"))
    await assert_accessible(page)
    await modal(page).get_by_label("Period").select_option("week")
    await expect(table.get_by_role("row")).to_have_count(3)
    await page.wait_for_url(re.compile(f"alias={stored[0]}.*compared=week"))
    await page.reload()
    await expect(modal(page).get_by_label("Period")).to_have_value("week")
    await expect(table.get_by_role("row")).to_have_count(3)
    await page.keyboard.press("Escape")
    await expect(modal(page)).to_be_hidden()
    assert "alias=" not in page.url
    assert "compared=" not in page.url

    await choose(page, name, "Edit…")
    await expect(dialog.get_by_label("Name", exact=True)).to_have_attribute("readonly", "")
    await dialog.get_by_role("button", name="Remove deployment 2").click()
    await dialog.get_by_label("Balance").select_option("least_busy")
    await expect(dialog.get_by_label("Keep a conversation at its deployment")).to_be_disabled()
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("Least busy")
    await choose(page, name, "Disable")
    await expect(row).to_contain_text("Disabled")
    await page.get_by_label("Search", exact=True).fill(name[-5:])
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("search="))
    await expect(page.get_by_role("row")).to_have_count(2)
    await choose(page, name, "Delete…")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Nothing matches the filters")).to_be_visible()


async def test_the_deployments_of_one_model_name_different_credentials(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    name, provider = f"alias-{uuid4().hex[:8]}", f"account-{uuid4().hex[:8]}"
    admin = api(server, new_user("admin"))
    path = f"/api/admin/providers/{provider}/credentials"
    assert admin.put(
        path, json={"base_url": "https://vendor.example/v1", "api_key": "sk-of-the-console-0001"}
    ).is_success
    assert admin.post(path, json={"label": "second", "api_key": "sk-of-the-console-0002"}).is_success
    entry = {"provider": provider, "model_id": "small"}
    assert admin.post("/api/admin/models/catalog/", json=entry).is_success
    await sign_in("admin", "/console/model-aliases")
    await page.get_by_role("button", name="New alias").click()
    dialog = modal(page)
    await dialog.get_by_label("Name", exact=True).fill(name)
    await dialog.get_by_role("button", name="Add deployment").click()
    for number, label in ((1, "default"), (2, "")):
        deployment = dialog.get_by_role("listitem", name=f"Deployment {number}")
        await deployment.get_by_label("Model").fill(f"{provider}/small")
        await deployment.get_by_label("Credential").select_option(label)
    await dialog.get_by_role("button", name="Create").click()
    # The message of the API is at the field.
    credential = dialog.get_by_role("listitem", name="Deployment 2").get_by_label("Credential")
    await expect(credential).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    await expect(credential.get_by_role("option")).to_have_text(
        ["All credentials of the provider, in turn", "default", "second"]
    )
    await credential.select_option("second")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    stored = server.sql("SELECT deployments FROM model_aliases WHERE name = %s", [name])[0][0]
    assert [(entry["model_id"], entry["credential"]) for entry in stored] == [("small", "default"), ("small", "second")]
    await choose(page, name, "Edit…")
    await expect(credential).to_have_value("second")
    await page.keyboard.press("Escape")
    # A label that the provider does not have any more stays visible.
    assert admin.delete(f"{path}/second").is_success
    await page.reload()
    await choose(page, name, "Edit…")
    await expect(credential.get_by_role("option")).to_have_text(
        ["All credentials of the provider, in turn", "default", "second"]
    )
    await expect(credential).to_have_value("second")


async def test_auditors_read_aliases_and_change_nothing(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    name = f"alias-{uuid4().hex[:8]}"
    admin = api(server, new_user("admin"))
    alias = {"name": name, "deployments": [{"provider": "sandbox", "model_id": "echo"}]}
    assert admin.post(ALIASES, json=alias).status_code == 201
    await sign_in("auditor", "/console/model-aliases")
    await page.get_by_role("link", name="Model aliases").click()
    await expect(page.get_by_role("row", name=re.compile(name))).to_be_visible()
    await expect(page.get_by_role("button", name=CHANGES)).to_have_count(0)
    await page.get_by_role("button", name=f"Deployments of “{name}”").click()
    await expect(modal(page).get_by_text("No requests in this period")).to_be_visible()
