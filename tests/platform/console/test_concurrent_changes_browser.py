"""Two administrators who change the same thing: the second one sees a message instead of overwriting the first
change."""

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

GROUPS: Final = "/api/admin/groups"
SAMPLING: Final = "/api/v1/admin/org/dlp-sampling"
CONFIGURATION: Final = "/api/admin/config"
SIEM: Final = "/api/v1/admin/siem"
MAINTENANCE: Final = "/api/admin/system/maintenance"
REFUSAL: Final = "Somebody else has changed it"


@pytest.fixture
def first(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> httpx2.Client:
    """The client of the first administrator."""
    return api(server, new_user("admin"))


async def test_a_model_access_rule_that_somebody_else_replaced_is_kept_until_the_next_save(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    name = f"Payments {uuid4().hex[:8]}"
    group = f"{GROUPS}/{first.post(GROUPS, json={'name': name}).json()['id']}"
    rules, rule = f"{group}/model-access", f"{group}/model-access/sandbox/echo"
    first.post(rules, json={"model_id": "sandbox/echo", "access_type": "ALLOW"}).raise_for_status()
    await sign_in("admin", f"/console/access?group={name.replace(' ', '+')}")
    cell = page.get_by_role("combobox", name=f"sandbox/echo for {name}")
    await cell.select_option("No rule")
    first.delete(rule).raise_for_status()
    first.post(rules, json={"model_id": "sandbox/echo", "access_type": "DENY"}).raise_for_status()

    await page.get_by_role("button", name="Save 1 change").click()
    await expect(page.get_by_role("alert").filter(has_text=REFUSAL)).to_contain_text("sandbox/echo")
    assert [kept["access_type"] for kept in first.get(rules).json()] == ["DENY"]
    await page.get_by_role("button", name="Save 1 change").click()
    await expect(page.get_by_text("1 change was saved.").first).to_be_visible()
    assert first.get(rules).json() == []

    # The rule that the second administrator wants to create exists already.
    await cell.select_option("Allow")
    first.post(rules, json={"model_id": "sandbox/echo", "access_type": "DENY"}).raise_for_status()
    await page.get_by_role("button", name="Save 1 change").click()
    await expect(page.get_by_role("alert").filter(has_text="1 change was not saved")).to_be_visible()
    assert [kept["access_type"] for kept in first.get(rules).json()] == ["DENY"]
    first.delete(group).raise_for_status()


def settings(client: httpx2.Client) -> dict[str, Any]:
    """Return the settings for recording requests. The fields with the sources of the settings are left out."""
    answer: dict[str, Any] = client.get(SAMPLING).json()
    del answer["sources"]
    return answer


async def test_the_recording_of_requests_that_somebody_else_changed_is_kept(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    before = settings(first)
    await sign_in("admin", "/console/dlp-rules/replay")
    await page.get_by_role("button", name="Change…").click()
    dialog = modal(page)
    await dialog.get_by_label("Days until removal").fill("7")
    first.put(SAMPLING, json={"share": 0.5}).raise_for_status()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
    assert settings(first) == {**before, "share": 0.5}

    await dialog.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Change…").click()
    await expect(dialog.get_by_label("Share of requests")).to_have_value("50")
    await dialog.get_by_label("Days until removal").fill("7")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    assert settings(first) == {"share": 0.5, "retention_days": 7}
    first.put(SAMPLING, json=before).raise_for_status()


async def test_an_api_key_that_somebody_else_edited_is_kept(page: Page, sign_in: SignIn, first: httpx2.Client) -> None:
    name = f"nightly {uuid4().hex[:8]}"
    created = first.post("/api/auth/api-keys", json={"description": name}).json()
    path = f"/api/admin/api-keys/{created['id']}"
    await sign_in("admin", f"/console/keys?all=true&search={name.replace(' ', '+')}")
    menu = page.get_by_role("button", name=f"Actions for {name}")
    await menu.click()
    await page.get_by_role("menuitem", name="Edit").click()
    dialog = modal(page)
    await dialog.get_by_label("Name", exact=True).fill(f"{name} of the second")
    first.patch(path, json={"expires_in_days": 7}).raise_for_status()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
    assert first.get(path).json()["description"] == name

    await dialog.get_by_role("button", name="Cancel").click()
    await menu.click()
    await page.get_by_role("menuitem", name="Edit").click()
    await dialog.get_by_label("Name", exact=True).fill(f"{name} of the second")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    changed = first.get(path).json()
    assert (changed["description"], changed["expires_at"] is None) == (f"{name} of the second", False)
    first.delete(path).raise_for_status()


async def test_a_configuration_entry_that_somebody_else_changed_is_kept(
    page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    key = "max_conversation_messages"

    def value() -> str:
        (entry,) = [entry for entry in first.get(CONFIGURATION).json() if entry["key"] == key]
        shown: str = entry["value"]
        return shown

    before = value()
    await sign_in("admin", "/console/organization")
    edit = page.get_by_role("button", name=f"Edit {key}")
    await edit.click()
    dialog = modal(page)
    field = dialog.get_by_label("Value", exact=True)
    await field.fill("800")
    first.put(f"{CONFIGURATION}/{key}", json={"value": "900"}).raise_for_status()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
    assert value() == "900"
    # The administrator has seen the message, so the next change replaces the value.
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    assert value() == "800"
    # A change of another setting on the same page is no conflict.
    await edit.click()
    await field.fill(before)
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    assert value() == before


async def test_a_receiver_that_somebody_else_set_up_is_kept(
    server: GatehouseServer, page: Page, sign_in: SignIn, first: httpx2.Client
) -> None:
    await sign_in("admin", "/console/siem")
    await page.get_by_role("button", name="Set up a receiver").click()
    dialog = modal(page)
    await dialog.get_by_label("Type").select_option("Syslog over TCP")
    await dialog.get_by_label("Host").fill("1.1.1.1")
    await dialog.get_by_label("Port").fill("515")
    try:
        receiver = {"type": "syslog_tcp", "host": "1.1.1.1", "port": 514, "enabled": False}
        first.put(SIEM, json=receiver).raise_for_status()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
        assert first.get(SIEM).json()["port"] == 514
        await dialog.get_by_role("button", name="Cancel").click()
        await page.get_by_role("button", name="Edit the receiver").click()
        await expect(dialog.get_by_label("Port")).to_have_value("514")
        await dialog.get_by_label("Port").fill("515")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        assert first.get(SIEM).json()["port"] == 515
    finally:
        for table in ("siem_queue", "siem_cursors", "siem_targets"):
            server.sql(f"DELETE FROM {table}")


async def test_the_message_of_maintenance_that_another_operator_changed_is_kept(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    users = [await sign_in("admin", "/console/groups"), new_user("admin")]
    for user in users:
        server.sql("UPDATE users SET operator = true WHERE id = %s", [user.id])
        server.touch("user", user.id)
    server.settled()
    other = api(server, users[1])

    def message() -> str:
        shown: str = other.get(MAINTENANCE).json()["message"]
        return shown

    await page.goto("/console/system")
    on = {"enabled": True, "drain_timeout_seconds": 0}
    try:
        other.post(MAINTENANCE, json={**on, "message": "Back at noon."}).raise_for_status()
        await page.get_by_role("button", name="Change message").click()
        dialog = modal(page)
        field = dialog.get_by_label("Message")
        await expect(field).to_have_value("Back at noon.")
        await field.fill("Back at two.")
        other.post(MAINTENANCE, json={**on, "message": "Back at one."}).raise_for_status()
        # The page behind the form shows the new message. The form still sends the version that it showed.
        await expect(page.get_by_text("Back at one.")).to_have_count(1)
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
        assert message() == "Back at one."
        await dialog.get_by_role("button", name="Cancel").click()
        await page.get_by_role("button", name="Change message").click()
        await expect(field).to_have_value("Back at one.")
        await field.fill("Back at two.")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        assert message() == "Back at two."
    finally:
        other.post(MAINTENANCE, json={"enabled": False}).raise_for_status()
