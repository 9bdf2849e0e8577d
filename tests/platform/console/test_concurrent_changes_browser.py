"""Two administrators who change the same thing: the second one sees a message instead of overwriting the first
change."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple
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


class Edited(NamedTuple):
    """A row that two administrators edit: the first through the API, the second in the form of the page."""

    collection: str
    body: dict[str, Any]
    #: what the first administrator changes
    change: dict[str, Any]
    #: the field of the form that the second administrator changes, and what is entered
    label: str
    text: str
    #: the row's name in the list, with `{name}` for the name of the test
    row: str = "{name}"
    #: the field of the response with the id of the row
    id: str = "id"


_RULE: Final = {
    "detector_name": "{name}", "detector_type": "regex", "entity_type": "project", "action_tier": "redact",
    "config_json": {"pattern": "Aurora-[0-9]+"},
}  # fmt: skip
_PATTERN: Final = {"name": "{name}", "pattern": "TCK-[0-9]+", "entity_type": "ticket", "action_tier": "log_only"}
_BUNDLE: Final = {
    "name": "{name}", "regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["iban"],
}  # fmt: skip
_WEBHOOK: Final = {
    "name": "{name}", "url": "https://hooks.example.org/", "events": ["quota_exceeded"], "enabled": False,
    "secret": "a secret of the test",
}  # fmt: skip
_ALERT: Final = {
    "name": "{name}", "metric_type": "cost", "threshold": 1, "comparison": "gt", "window_minutes": 5, "enabled": False,
}  # fmt: skip
_ALIAS: Final = {"name": "{name}", "deployments": [{"provider": "sandbox", "model_id": "echo"}]}
_ROUTING: Final = {"name": "{name}", "strategy": "cost_optimized", "enabled": False}
_USER: Final = {"email": "{name}@example.test", "display_name": "{name}", "password": "a long password of a test"}
_BY_FIRST: Final = {"description": "by the first"}
_DESCRIPTION: Final = ("Description", "by the second")
_NAME: Final = ("Name", "of the second")

EDITED: Final = {
    "/budgets": Edited(
        "/api/admin/budgets", {"scope_type": "group", "scope_id": "{group}", "period": "month", "limit_usd": 5},
        {"limit_usd": 6}, "Limit in requests", "7", "{name}, month",
    ),
    "/dlp-rules": Edited("/api/admin/dlp-rules/", _RULE, {"action_tier": "block"}, *_NAME),
    "/dlp-rules/patterns": Edited(
        "/api/admin/dlp-rules/custom-patterns", _PATTERN, {"action_tier": "block"}, *_NAME
    ),
    "/policies": Edited(
        "/api/admin/policies", {"name": "{name}", "condition": "true", "action": "LOG"}, _BY_FIRST, *_NAME
    ),
    "/alerts": Edited("/api/alerts", _ALERT, {"threshold": 2}, *_NAME),
    "/webhooks": Edited("/api/admin/webhooks/", _WEBHOOK, {"include_logged": True}, *_NAME),
    "/compliance": Edited("/api/admin/compliance-bundles", _BUNDLE, _BY_FIRST, *_NAME),
    "/routing": Edited(
        "/api/admin/cost-routing/policies", _ROUTING, {"latency_budget_ms": 900}, *_NAME, id="policy_id"
    ),
    "/model-aliases": Edited("/api/v1/admin/model-aliases", _ALIAS, _BY_FIRST, *_DESCRIPTION),
    "/groups": Edited(GROUPS, {"name": "{name}"}, _BY_FIRST, *_NAME),
    "/users": Edited("/api/admin/users", _USER, {"role": "auditor"}, *_NAME),
    "/models": Edited(
        "/api/admin/models/catalog/", {"provider": "sandbox", "model_id": "{name}"}, {"display_name": "by the first"},
        "Context window (tokens)", "8000",
    ),
}  # fmt: skip


def filled_in(value: Any, names: dict[str, str]) -> Any:
    """Return the value with the names of the test in all its texts."""
    if isinstance(value, dict):
        return {key: filled_in(inner, names) for key, inner in value.items()}
    return value.format(**names) if isinstance(value, str) and "{" in value and "[" not in value else value


@pytest.mark.parametrize("path", EDITED)
async def test_a_row_that_somebody_else_edited_is_not_overwritten(
    page: Page, sign_in: SignIn, first: httpx2.Client, path: str
) -> None:
    edited = EDITED[path]
    names = {"name": f"shared-{uuid4().hex[:8]}", "group": ""}
    group = ""
    if path == "/budgets":
        names["group"] = first.post(GROUPS, json={"name": names["name"]}).json()["id"]
        group = f"{GROUPS}/{names['group']}"
    created = first.post(edited.collection, json=filled_in(edited.body, names))
    assert created.is_success, created.text
    one = f"{edited.collection.rstrip('/')}/{created.json()[edited.id]}"
    await sign_in("admin", f"/console{path}" + ("" if path == "/budgets" else f"?search={names['name']}"))
    await page.get_by_role("button", name=f"Actions for {edited.row.format(**names)}").click()
    await page.get_by_role("menuitem", name="Edit").click()
    dialog = modal(page)
    await dialog.get_by_label(edited.label, exact=True).fill(edited.text)
    changed = first.request("PATCH" if path in {"/users", "/routing"} else "PUT", one, json=edited.change)
    assert changed.is_success, changed.text
    async with page.expect_response(lambda answer: answer.status == 412):
        await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text(REFUSAL)
    await expect(dialog.get_by_label(edited.label, exact=True)).to_have_value(edited.text)
    if path != "/dlp-rules/patterns":
        assert first.get(one).json()["updated_at"] == changed.json()["updated_at"]
    first.delete(one).raise_for_status()
    if group:
        first.delete(group).raise_for_status()
