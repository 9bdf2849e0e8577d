"""Dialogs send the version that they showed when they opened, even if the page has loaded its data again."""

from collections.abc import Callable
from typing import Final
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

BUNDLES: Final = "/api/admin/compliance-bundles"
HOLD: Final = "/api/v1/admin/retention/legal-hold"
RULES: Final = "/api/admin/dlp-rules/"
REFUSAL: Final = "Somebody else has changed it"

#: Moves the page's clock by a minute, so that its data is stale, and then tells the page that its tab is visible.
COME_BACK: Final = """() => {
  const now = Date.now.bind(Date);
  Date.now = () => now() + 60_000;
  window.dispatchEvent(new Event("visibilitychange"));
}"""
TWO_FRAMES: Final = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture
def first(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> httpx2.Client:
    """The client of the first administrator."""
    return api(server, new_user("admin"))


async def load_again(page: Page, path: str) -> None:
    """Let the page load its data again, as it does when the user comes back to its tab. Wait for the answer of the
    path."""
    async with page.expect_response(lambda answer: path in answer.url and answer.request.method == "GET") as loaded:
        await page.evaluate(COME_BACK)
    await (await loaded.value).finished()
    await page.evaluate(TWO_FRAMES)


async def is_refused(page: Page, button: Locator) -> None:
    async with page.expect_response(lambda answer: answer.status == 412):
        await button.click()
    await expect(page.get_by_text(REFUSAL).first).to_be_visible()


async def test_a_model_that_somebody_else_edited_is_not_moved(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    model = f"m-{uuid4().hex[:8]}"
    entry = first.post("/api/admin/models", json={"provider": "acme", "model_id": model}).json()["id"]
    path = f"/api/admin/models/{entry}"
    await sign_in("admin", f"/console/registry?entry={entry}")
    moves, question = page.get_by_role("group", name="Move to"), page.get_by_role("dialog", name=f"Move acme/{model}")
    move = moves.get_by_role("button").first
    status = await move.inner_text()
    owner = page.locator("[role=dialog] dd").get_by_text("Ada", exact=True)
    first.put(path, json={"risk_tier": "tier_1", "owner": "Ada"}).raise_for_status()
    await load_again(page, "/evidence")
    # The dialog still shows the entry that the user has read.
    await expect(owner).to_have_count(0)
    await move.click()
    await is_refused(page, question.get_by_role("button", name="Move", exact=True))
    assert first.get(path).json()["validation_status"] == "draft"
    # Now it shows the changed entry, so the status can be set.
    await expect(owner).to_have_count(1)
    await question.get_by_role("button", name="Move", exact=True).click()
    await expect(page.get_by_text(f"acme/{model} is now “{status}”").first).to_be_visible()
    assert first.get(path).json()["validation_status"] != "draft"
    first.delete(path).raise_for_status()


async def test_a_bundle_that_somebody_else_changed_keeps_its_state(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    name = f"Privacy {uuid4().hex[:8]}"
    body = {"name": name, "regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["iban"]}
    bundle = first.post(BUNDLES, json=body).json()["id"]
    path = f"{BUNDLES}/{bundle}"
    await sign_in("admin", f"/console/compliance?bundle={bundle}&search={name.replace(' ', '+')}")
    dialog = modal(page)
    types = dialog.get_by_role("list", name="Entity types")
    await expect(types).to_have_text("iban")
    first.put(path, json={"seed_rule_mappings": ["email"]}).raise_for_status()
    await load_again(page, BUNDLES)
    await expect(types).to_have_text("iban")
    acknowledge = dialog.get_by_role("button", name="Acknowledge")
    await is_refused(page, acknowledge)
    assert first.get(path).json()["acknowledged_at"] is None
    await expect(types).to_have_text("email")
    await acknowledge.click()
    await expect(acknowledge).to_have_count(0)
    assert first.get(path).json()["acknowledged_at"] is not None
    await page.keyboard.press("Escape")

    # The question before a bundle is archived, and the items of the menu.
    for item, kind, state in (
        ("Archive", "iban", "Archived"),
        ("Activate", "email", "Not acknowledged"),
        ("Acknowledge", "iban", "Acknowledged"),
    ):
        await page.get_by_role("button", name=f"Actions for {name}").click()
        choice = page.get_by_role("menuitem", name=item)
        if item == "Archive":
            await choice.click()
            choice = dialog.get_by_role("button", name="Archive")
        before = first.get(path).json()
        first.put(path, json={"seed_rule_mappings": [kind]}).raise_for_status()
        await load_again(page, BUNDLES)
        await is_refused(page, choice)
        after = first.get(path).json()
        assert (after["state"], after["acknowledged_at"]) == (before["state"], None), item
        if item != "Archive":
            await page.get_by_role("button", name=f"Actions for {name}").click()
        await choice.click()
        await expect(page.get_by_role("row").filter(has_text=name).get_by_text(state, exact=True)).to_be_visible()
    first.delete(path).raise_for_status()


async def test_a_legal_hold_with_another_reason_is_not_released(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    first.put(HOLD, json={"reason": "Case 1"}).raise_for_status()
    await sign_in("admin", "/console/retention")
    panel, dialog = page.get_by_role("region", name="Legal hold", exact=True), modal(page)
    await expect(panel).to_contain_text("Case 1")
    await panel.get_by_role("button", name="Release").click()
    first.put(HOLD, json={"reason": "Case 2"}).raise_for_status()
    await load_again(page, HOLD)
    await is_refused(page, dialog.get_by_role("button", name="Release the hold"))
    assert first.get(HOLD).json()["reason"] == "Case 2"
    await dialog.get_by_role("button", name="Release the hold").click()
    await expect(panel).to_contain_text("Records are removed when their time is over.")
    assert first.get(HOLD).json()["active"] is False


async def test_a_version_does_not_replace_a_rule_that_somebody_else_changed(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    name = f"Projects {uuid4().hex[:8]}"
    body = {
        "detector_name": name, "detector_type": "regex", "entity_type": "project", "action_tier": "log_only",
        "config_json": {"pattern": "Aurora-[0-9]+"},
    }  # fmt: skip
    path = f"{RULES}{first.post(RULES, json=body).json()['id']}"
    first.put(path, json={"action_tier": "redact"}).raise_for_status()
    await sign_in("admin", f"/console/dlp-rules?versions={path.rpartition('/')[2]}")
    dialog, restore = modal(page), page.get_by_role("button", name="Restore", exact=True)
    versions = page.locator("[role=dialog] ol > li")
    await dialog.get_by_role("button", name="Restore the version of").click()
    first.put(path, json={"action_tier": "block"}).raise_for_status()
    await load_again(page, f"{RULES}?")
    await is_refused(page, restore)
    assert first.get(path).json()["action_tier"] == "block"
    await restore.click()
    await expect(versions).to_have_count(4)
    assert first.get(path).json()["action_tier"] == "log_only"
    first.delete(path).raise_for_status()
