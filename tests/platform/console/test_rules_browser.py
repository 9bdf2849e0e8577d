"""DLP rules, content filters and policies in Chromium: the main task of each, by clicking."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Final

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, call_model
from tests.support.accessibility import assert_accessible
from tests.support.chromium import PHONE, needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

RULES: Final = "/api/admin/dlp-rules/"
FILTERS: Final = "/api/admin/content-filters/"
POLICIES: Final = "/api/admin/policies"
SAMPLING: Final = "/api/v1/admin/org/dlp-sampling"
SAMPLES: Final = "/api/admin/dlp-rules/samples"
LISTS: Final = (RULES, FILTERS, POLICIES)
NAVIGATION: Final = ("DLP rules", "Content filters", "Policies")


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> Iterator[httpx2.Client]:
    """An administrator's client. At its end the organization has no rules."""
    client = api(server, new_user("admin"))
    yield client
    for path in LISTS:
        for row in client.get(path).json():
            client.delete(f"{path.rstrip('/')}/{row['id']}").raise_for_status()


@pytest.fixture
def key(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> str:
    answer = api(server, new_user("user")).post("/api/auth/api-keys", json={"description": "calls"})
    new_key: str = answer.json()["api_key"]
    return new_key


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


async def choose(page: Page, name: str, action: str) -> None:
    """Chooses an action in the menu of a rule."""
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=action).click()


async def delete(page: Page, name: str) -> None:
    await choose(page, name, "Delete")
    dialog = page.get_by_role("dialog", name=f"Delete “{name}”?")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_have_count(0)


async def check_screen(page: Page) -> None:
    """Check that axe finds nothing at the width of a desktop and of a phone, and that the content fits the phone."""
    await assert_accessible(page)
    desk = page.viewport_size
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0
    await assert_accessible(page)
    await page.set_viewport_size(desk or PHONE)  # type: ignore[arg-type]


# DLP rules ----------------------------------------------------------------------------------------------------------


async def test_a_dlp_rule_is_tried_created_edited_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    await sign_in("admin", "/console/dlp-rules")
    await expect(page.get_by_role("heading", name="No rules of your own yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New rule").click()
    dialog = page.get_by_role("dialog", name="New DLP rule")
    await dialog.get_by_label("Name").fill("Project names")
    await dialog.get_by_label("Entity type").fill("project")
    await dialog.get_by_label("Action").select_option("block")
    await dialog.get_by_label("Pattern", exact=True).fill("Aurora-[0-9]+")
    await dialog.get_by_label("Sample text").fill("🚀 Plans of Aurora-77")
    # The text is tested while the user types in it or in the pattern.
    await expect(dialog.locator("mark")).to_have_text("Aurora-77")
    await dialog.get_by_label("Pattern", exact=True).fill("Plans")
    await expect(dialog.locator("mark")).to_have_text("Plans")
    await dialog.get_by_label("Pattern", exact=True).fill("Aurora-[0-9]+")
    await dialog.get_by_role("button", name="Test rule").click()
    await expect(dialog.get_by_role("status")).to_contain_text("1 match")
    await expect(dialog.locator("mark")).to_have_text("Aurora-77")
    await expect(dialog.locator("mark")).to_be_in_viewport()
    await check_screen(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, "Project names")).to_contain_text("Block")
    assert call_model(server, key, "Plans of Aurora-77").status_code == 403

    await choose(page, "Project names", "Edit")
    dialog = page.get_by_role("dialog", name="Edit “Project names”")
    await expect(dialog.get_by_label("Pattern", exact=True)).to_have_value("Aurora-[0-9]+")
    await dialog.get_by_label("Action").select_option("log_only")
    await dialog.get_by_label("Context words").fill("plans\nproject")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row(page, "Project names")).to_contain_text("Log only")
    (rule,) = admin.get(RULES).json()
    assert rule["action_tier"] == "log_only"
    assert rule["config_json"] == {"pattern": "Aurora-[0-9]+", "context": ["plans", "project"], "reversible": False}
    assert call_model(server, key, "Plans of Aurora-77").status_code == 200
    await check_screen(page)

    await delete(page, "Project names")
    assert admin.get(RULES).json() == []


async def test_a_fault_of_a_dlp_rule_is_shown_at_its_field(page: Page, sign_in: SignIn, admin: httpx2.Client) -> None:
    await sign_in("admin", "/console/dlp-rules")
    await page.get_by_role("button", name="New rule").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_have_text(["Enter a name.", "Enter an entity type."])
    await dialog.get_by_label("Name").fill("x")
    await dialog.get_by_label("Entity type").fill("project")
    pattern = dialog.get_by_label("Pattern", exact=True)
    await pattern.fill("(?=a)")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("look-ahead is not possible")
    await expect(pattern).to_have_attribute("aria-invalid", "true")
    assert admin.get(RULES).json() == []


async def test_a_text_is_tested_against_all_dlp_rules_with_an_explanation(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/dlp-rules")
    test = page.get_by_role("region", name="Test a text against all rules")
    await test.get_by_role("button", name="Test text").click()
    await expect(test.get_by_role("alert")).to_have_text("Enter a text.")
    await test.get_by_label("Text").fill("My card is 4242 4242 4242 4242.")
    await test.get_by_role("button", name="Test text").press("Enter")
    await expect(test.locator("mark")).to_have_text("4242 4242 4242 4242")
    await expect(test.get_by_role("status")).to_contain_text("Redact")
    await expect(test.get_by_role("status")).to_contain_text("Built-in")
    await test.get_by_text("How this was decided").click()
    await expect(test.locator("ol li").first).to_be_visible()
    await check_screen(page)


async def test_dlp_rules_are_filtered_by_the_url_and_disabled(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    for name, detector, config in (
        ("By pattern", "regex", {"pattern": "x+"}), ("By meaning", "llm", {"labels": ["jailbreak"]}),
    ):  # fmt: skip
        body = {"detector_name": name, "detector_type": detector, "entity_type": "custom", "action_tier": "redact"}
        admin.post(RULES, json={**body, "config_json": config}).raise_for_status()
    await sign_in("admin", "/console/dlp-rules?detector=llm")
    await expect(row(page, "By meaning")).to_contain_text("jailbreak")
    await expect(row(page, "By pattern")).to_have_count(0)
    await choose(page, "By meaning", "Disable")
    await expect(row(page, "By meaning")).to_contain_text("Disabled")
    await page.get_by_label("Status").select_option("true")
    await expect(page.get_by_role("heading", name="Nothing matches the filters")).to_be_visible()
    assert "enabled=true" in page.url
    await page.get_by_role("button", name="Clear").first.click()
    await expect(row(page, "By pattern")).to_contain_text("Enabled")


# content filters ----------------------------------------------------------------------------------------------------


async def test_a_content_filter_is_created_tested_edited_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    await sign_in("admin", "/console/content-filters")
    await expect(page.get_by_role("heading", name="No content filters yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New filter").click()
    dialog = page.get_by_role("dialog", name="New content filter")
    await dialog.get_by_label("Name").fill("Secret projects")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await expect(dialog.get_by_label("Keywords")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Keywords").fill("Falcon\nProject X, phase 2\n")
    await check_screen(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(row(page, "Secret projects")).to_contain_text("Falcon, Project X, phase 2")
    assert call_model(server, key, "What is Falcon?").status_code == 403

    test = page.get_by_role("region", name="Test a text")
    for text, result in (("What is falcon?", "The filter “Secret projects” refuses it."), ("Hello", "Passes")):
        await test.get_by_label("Text").fill(text)
        await test.get_by_role("button", name="Test text").click()
        await expect(test.get_by_role("status")).to_contain_text(result)
    await check_screen(page)

    await choose(page, "Secret projects", "Edit")
    dialog = page.get_by_role("dialog", name="Edit “Secret projects”")
    await dialog.get_by_label("Type").select_option("custom_instruction")
    await dialog.get_by_label("Instruction").fill("Be brief.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row(page, "Secret projects")).to_contain_text("Be brief.")
    (stored,) = admin.get(FILTERS).json()
    assert (stored["filter_type"], stored["config"]) == ("custom_instruction", {"instruction": "Be brief."})
    assert call_model(server, key, "What is Falcon?").status_code == 200
    await delete(page, "Secret projects")


async def test_a_content_filter_is_created_and_enabled_again_by_keyboard_alone(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    await sign_in("admin", "/console/content-filters")
    new = page.get_by_role("button", name="New filter")
    await new.press("Enter")
    await expect(page.get_by_label("Name")).to_be_focused()
    await page.keyboard.type("Typed")
    for _ in range(3):
        await page.keyboard.press("Tab")
    await expect(page.get_by_label("Keywords")).to_be_focused()
    await page.keyboard.type("Falcon")
    for _ in range(3):
        await page.keyboard.press("Tab")
    await expect(page.get_by_label("Enabled", exact=True)).to_be_focused()
    await page.keyboard.press("Space")
    await page.keyboard.press("Enter")
    await expect(row(page, "Typed")).to_contain_text("Disabled")
    await expect(new).to_be_focused()
    await page.get_by_role("button", name="Actions for Typed").focus()
    for pressed in ("Enter", "ArrowDown", "Enter"):
        await page.keyboard.press(pressed)
    await expect(row(page, "Typed")).to_contain_text("Enabled")
    assert [(stored["name"], stored["enabled"]) for stored in admin.get(FILTERS).json()] == [("Typed", True)]


async def test_a_content_filter_for_a_group_is_tested_as_a_member(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    group = admin.post("/api/admin/groups", json={"name": "Interns"}).json()["id"]
    try:
        await sign_in("admin", "/console/content-filters")
        await page.get_by_role("button", name="New filter").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Name").fill("For interns")
        await dialog.get_by_label("Keywords").fill("salary")
        await dialog.get_by_label("Applies to").select_option(label="Interns")
        await dialog.get_by_role("button", name="Create").click()
        await expect(row(page, "For interns")).to_contain_text("Interns")
        test = page.get_by_role("region", name="Test a text")
        await test.get_by_label("Text").fill("My salary")
        for member, result in (("No group", "Passes"), ("Interns", "Blocked")):
            await test.get_by_label("As a member of").select_option(label=member)
            await test.get_by_role("button", name="Test text").click()
            await expect(test.get_by_role("status")).to_contain_text(result)
    finally:
        admin.delete(f"/api/admin/groups/{group}").raise_for_status()


# policies -----------------------------------------------------------------------------------------------------------


async def test_a_policy_is_checked_created_tested_edited_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    await sign_in("admin", "/console/policies")
    await expect(page.get_by_role("heading", name="No policies yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New policy").click()
    dialog = page.get_by_role("dialog", name="New policy")
    await dialog.get_by_label("Name").fill("No echo")
    condition = dialog.get_by_label("Condition", exact=True)
    await condition.fill("provider ==")
    await dialog.get_by_role("button", name="Check condition").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Syntax error")
    await expect(condition).to_have_attribute("aria-invalid", "true")
    await condition.fill('model == "sandbox/echo" && !("card" in dlp.entities)')
    for entities, result in (("", "Matches"), ("card, ssn", "Does not match")):
        await dialog.get_by_label("Model").fill("sandbox/echo")
        await dialog.get_by_label("Detected entity types").fill(entities)
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("status")).to_contain_text(result)
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await check_screen(page)
    await dialog.get_by_role("button", name="Dry run on recorded requests").click()
    await expect(dialog.get_by_role("status")).to_contain_text("There are no recorded requests")
    await dialog.get_by_role("button", name="Create").click()
    await expect(row(page, "No echo")).to_contain_text("Block")
    assert call_model(server, key).status_code == 403

    test = page.get_by_role("region", name="Test the active policies")
    await test.get_by_label("Model").fill("sandbox/echo")
    await test.get_by_role("button", name="Test policies").click()
    await expect(test.get_by_role("status")).to_contain_text("Decided by the policy “No echo”.")
    await check_screen(page)

    await choose(page, "No echo", "Edit")
    dialog = page.get_by_role("dialog", name="Edit “No echo”")
    await dialog.get_by_label("Action").select_option("ROUTE")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("is required for the action ROUTE")
    await dialog.get_by_label("Action").select_option("LOG")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row(page, "No echo")).to_contain_text("Log")
    (stored,) = admin.get(POLICIES).json()
    assert (stored["action"], stored["terminal"], stored["message"]) == ("LOG", False, None)
    assert call_model(server, key).status_code == 200
    await choose(page, "No echo", "Disable")
    await expect(row(page, "No echo")).to_contain_text("Disabled")
    await delete(page, "No echo")


async def test_a_policy_has_a_dry_run_on_recorded_requests(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    rule = {"name": "No echo", "condition": 'model == "sandbox/echo"', "action": "BLOCK", "enabled": False}
    admin.post(POLICIES, json=rule).raise_for_status()
    admin.put(SAMPLING, json={"share": 1}).raise_for_status()
    try:
        call_model(server, key)
        deadline = time.monotonic() + 60
        while not admin.get(SAMPLES).json()["samples"]:
            assert time.monotonic() < deadline, "no sample was stored"
            time.sleep(0.05)
        await sign_in("admin", "/console/policies")
        await choose(page, "No echo", "Edit")
        dialog = page.get_by_role("dialog", name="Edit “No echo”")
        for condition, result in (
            ('model == "sandbox/echo"', "1 Stricter"),
            ('model == "sandbox/other"', "1 Unchanged"),
        ):
            await dialog.get_by_label("Condition", exact=True).fill(condition)
            await dialog.get_by_role("button", name="Dry run on recorded requests").click()
            await expect(dialog.get_by_role("status")).to_contain_text(result)
        await check_screen(page)
        await dialog.get_by_role("button", name="Cancel").click()
        await expect(dialog).to_be_hidden()
        assert admin.get(POLICIES).json()[0]["condition"] == 'model == "sandbox/echo"'
        assert call_model(server, key).status_code == 200
    finally:
        admin.put(SAMPLING, json={"share": 0}).raise_for_status()
        server.sql("DELETE FROM dlp_samples")


# roles --------------------------------------------------------------------------------------------------------------


async def test_an_auditor_sees_the_rules_without_buttons(page: Page, sign_in: SignIn, admin: httpx2.Client) -> None:
    body = {
        "detector_name": "Seen rule", "detector_type": "regex", "entity_type": "custom", "action_tier": "redact",
        "config_json": {"pattern": "x+"},
    }  # fmt: skip
    admin.post(RULES, json=body).raise_for_status()
    body = {
        "name": "Seen filter", "filter_type": "keyword_block", "config": {"keywords": ["a"]}, "scope": "org",
        "priority": 1,
    }  # fmt: skip
    admin.post(FILTERS, json=body).raise_for_status()
    admin.post(POLICIES, json={"name": "Seen policy", "condition": "true", "action": "LOG"}).raise_for_status()
    await sign_in("auditor")
    for link, name in zip(NAVIGATION, ("Seen rule", "Seen filter", "Seen policy"), strict=True):
        await page.get_by_role("link", name=link).click()
        await expect(row(page, name)).to_be_visible()
        main = page.get_by_role("main")
        # Buttons that open a rule's versions, sort the list or select a page change nothing, so they are not counted.
        changing = main.locator("button:not([data-open], th button, nav button)")
        await expect(changing).to_have_count(0)
        await expect(main.get_by_role("heading", name=re.compile("^Test"))).to_have_count(0)
        await check_screen(page)


async def test_a_user_has_no_link_to_rules(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await expect(page.get_by_role("link", name="API keys")).to_be_visible()
    for link in NAVIGATION:
        await expect(page.get_by_role("link", name=link)).to_have_count(0)
    await page.goto("/console/policies")
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_role("button", name="New policy")).to_have_count(0)
