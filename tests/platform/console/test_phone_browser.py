"""Chat, approvals, kill switches and the overview at the width of a phone: also what a tap opens fits the window."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Browser, Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, call_model, enter_password, modal, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.chromium import PHONE, needs_chromium, page_of
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

HUMAN_IN_LOOP: Final = "/api/v1/admin/org/feature-flags/human_in_loop"

#: Returns the visible elements that extend beyond a device of the given width. The width of the window is no measure,
#: because it grows with the page. The content of an element with its own scroll bar is not counted, nor does content
#: that is cut off.
BEYOND: Final = """(device) => {
  const cut = (element) => {
    for (let outer = element.parentElement; outer !== null; outer = outer.parentElement) {
      const cuts = getComputedStyle(outer).overflowX !== "visible";
      if (cuts && outer.getBoundingClientRect().right <= device + 1) return true;
    }
    return false;
  };
  const beyond = document.documentElement.scrollWidth > device ? ["the document"] : [];
  for (const element of document.querySelectorAll("body *")) {
    const { left, right, width, height } = element.getBoundingClientRect();
    if (width < 2 || height < 2 || !element.checkVisibility({ visibilityProperty: true })) continue;
    if ((right > device + 1 || left < -1) && !cut(element)) beyond.push(element.outerHTML.slice(0, 160));
  }
  return beyond.slice(0, 5);
}"""
#: Returns the parts of an element that it can only show by scrolling sideways.
SCROLLED: Final = "(element) => element.scrollWidth > element.clientWidth + 1"

LONG_WORD: Final = "Donaudampfschifffahrtsgesellschaftskapitaen" * 4
ANSWER: Final = f"""# {LONG_WORD}

{LONG_WORD}

```python
{"a_long_line_of_code = " + " + ".join(f"number_{n}" for n in range(40))}
```

| {" | ".join(f"Column {n}" for n in range(12))} |
|{"---|" * 12}
| {" | ".join(f"{LONG_WORD[:30]} {n}" for n in range(12))} |

- {LONG_WORD} `{LONG_WORD}`
"""


async def assert_fits(page: Page) -> None:
    assert await page.evaluate(BEYOND, PHONE["width"]) == [], page.url
    await assert_accessible(page)


@pytest.fixture
def admin_user(new_user: Callable[[str], OtherUser]) -> OtherUser:
    return new_user("admin")


@pytest.fixture
def admin(server: GatehouseServer, admin_user: OtherUser) -> Iterator[httpx2.Client]:
    client = api(server, admin_user)
    yield client
    client.close()


@pytest.fixture
async def phone(server: GatehouseServer, chrome: Browser, admin_user: OtherUser) -> AsyncIterator[Page]:
    """A page on a phone, with the overview of an administrator."""
    context = await chrome.new_context(base_url=server.url, viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    async with page_of(context) as page:
        await page.emulate_media(reduced_motion="reduce")
        await page.goto("/console")
        await enter_password(page, admin_user.email)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        yield page
    await context.close()


async def test_a_request_is_opened_from_the_overview(
    server: GatehouseServer, phone: Page, admin: httpx2.Client
) -> None:
    name = f"{LONG_WORD[:200]} {uuid4().hex[:8]}"
    key = admin.post("/api/auth/api-keys", json={"description": name}).json()["api_key"]
    # A long name makes the list wider than the phone. The list scrolls, and the page does not.
    recorded_call(server, key, model=f"sandbox/{LONG_WORD[:100]}")
    recorded_call(server, key, "My card is 4242 4242 4242 4242.")
    await phone.goto("/console")
    await phone.get_by_role("button", name="Request to echo").first.click()
    detail = phone.get_by_role("complementary", name="Request")
    await expect(detail.get_by_role("heading", name="DLP events")).to_be_visible()
    await expect(detail.get_by_role("link", name=name)).to_be_visible()
    await assert_fits(phone)
    assert not await detail.evaluate(SCROLLED)
    await detail.get_by_role("button", name="Close").click()
    await expect(detail).to_have_count(0)
    await assert_fits(phone)


async def test_a_held_request_is_decided(server: GatehouseServer, phone: Page, admin: httpx2.Client) -> None:
    mark = uuid4().hex[:8]
    rule = {
        "detector_name": f"{LONG_WORD[:80]} {mark}", "detector_type": "regex", "entity_type": f"code_{mark}",
        "action_tier": "prompt", "config_json": {"pattern": f"Phone-{mark}"},
    }  # fmt: skip
    created = admin.post("/api/admin/dlp-rules/", json=rule)
    assert created.status_code == 201, created.text
    key = admin.post("/api/auth/api-keys", json={"description": "phone"}).json()["api_key"]
    admin.patch(HUMAN_IN_LOOP, json={"enabled": True}).raise_for_status()
    try:
        waiting = asyncio.create_task(
            asyncio.to_thread(call_model, server, key, f"Plans of Phone-{mark}", timeout_seconds=300)
        )
        await phone.goto("/console/approvals")
        card = phone.get_by_role("listitem").filter(has_text=mark)
        await expect(card).to_be_visible()
        await assert_fits(phone)
        await card.get_by_role("button", name="Deny").click()
        await modal(phone).get_by_label("Reason").fill(LONG_WORD)
        await assert_fits(phone)
        assert not await modal(phone).evaluate(SCROLLED)
        await modal(phone).get_by_role("button", name="Deny").click()
        await expect(card).to_have_count(0)
        assert (await waiting).status_code == 403
        await phone.get_by_role("link", name="Denied").click()
        await expect(card).to_contain_text(LONG_WORD)
        await assert_fits(phone)
    finally:
        admin.delete(f"/api/admin/dlp-rules/{created.json()['id']}")
        admin.patch(HUMAN_IN_LOOP, json={"enabled": False})


async def test_an_access_request_is_approved(
    server: GatehouseServer, phone: Page, admin: httpx2.Client, new_user: Callable[[str], OtherUser]
) -> None:
    model = f"tokens-{uuid4().hex[:8]}"
    body = {"provider": "sandbox", "model_id": model, "access": "restricted"}
    admin.post("/api/admin/models/catalog/", json=body).raise_for_status()
    group = admin.post("/api/admin/groups", json={"name": f"{LONG_WORD[:80]} {model}"}).json()["id"]
    rules = f"/api/admin/groups/{group}/model-access"
    admin.post(rules, json={"model_id": f"sandbox/{model}", "access_type": "ALLOW"}).raise_for_status()
    who = api(server, new_user("user"))
    access_request = {"kind": "model", "model": f"sandbox/{model}", "reason": LONG_WORD}
    who.post("/api/access-requests", json=access_request).raise_for_status()

    await phone.goto("/console/approvals?view=access")
    card = phone.get_by_role("listitem").filter(has_text=model)
    await expect(card).to_be_visible()
    await assert_fits(phone)
    await card.get_by_role("button", name="Approve").click()
    # Only groups with a rule that allows the model are offered.
    options = modal(phone).get_by_label("Group", exact=True).get_by_role("option")
    await expect(options).to_have_count(2)
    await modal(phone).get_by_label("Group", exact=True).select_option(f"{LONG_WORD[:80]} {model}")
    await assert_fits(phone)
    assert not await modal(phone).evaluate(SCROLLED)
    await modal(phone).get_by_role("button", name="Approve").click()
    await expect(card).to_have_count(0)
    assert len(admin.get(f"/api/admin/groups/{group}/members").json()) == 1
    admin.delete(f"/api/admin/groups/{group}").raise_for_status()


def switched(admin: httpx2.Client, model: str) -> dict[str, Any]:
    """Return the state of a model's kill switch."""
    state: dict[str, Any]
    ((state,),) = [
        provider["models"]
        for provider in admin.get("/api/v1/admin/kill-switch/providers", params={"search": model}).json()
    ]
    return state


async def test_a_kill_switch_is_engaged_and_released(phone: Page, admin: httpx2.Client) -> None:
    model = f"switched-{uuid4().hex[:8]}"
    body = {"provider": "sandbox", "model_id": model, "display_name": f"{LONG_WORD[:80]} {model}"}
    admin.post("/api/admin/models/catalog/", json=body).raise_for_status()
    await phone.goto("/console/kill-switches")
    search = phone.get_by_role("searchbox", name="Provider or model")
    await search.fill(model)
    await search.press("Enter")
    row = phone.get_by_role("region", name="sandbox", exact=True).get_by_role("listitem")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("Serving")
    await assert_fits(phone)

    await row.get_by_role("button", name="Stop").click()
    await modal(phone).get_by_label("Reason").select_option("Runaway cost")
    await assert_fits(phone)
    assert not await modal(phone).evaluate(SCROLLED)
    await modal(phone).get_by_role("button", name="Stop now").click()
    await expect(modal(phone)).to_have_count(0)
    await expect(row).to_contain_text("Runaway cost")
    assert switched(admin, model)["disabled_reason"] == "cost_runaway"
    changes = phone.get_by_role("region", name="Latest changes").get_by_role("listitem")
    await expect(changes.first).to_contain_text(model)
    await assert_fits(phone)

    await row.get_by_role("button", name="Release").click()
    await assert_fits(phone)
    await modal(phone).get_by_role("button", name="Release now").click()
    await expect(modal(phone)).to_have_count(0)
    await expect(row).to_contain_text("Serving")
    assert switched(admin, model)["disabled_reason"] is None
    await assert_fits(phone)


async def test_a_conversation_with_code_and_a_table_is_read(phone: Page, admin: httpx2.Client) -> None:
    made = admin.post("/api/conversations", json={"title": LONG_WORD[:120], "model": "sandbox/echo"}).json()["id"]
    admin.post(f"/api/conversations/{made}/messages", json={"content": ANSWER}).raise_for_status()
    await phone.goto(f"/console/chat/{made}")
    await expect(phone.get_by_role("table").first).to_be_visible()
    await expect(phone.get_by_role("button", name="Copy code").first).to_be_visible()
    await assert_fits(phone)
    await phone.get_by_role("button", name="Share").click()
    await expect(modal(phone)).to_be_visible()
    await assert_fits(phone)


async def test_the_navigation_scrolls_to_the_entry_of_the_page(page: Page, sign_in: SignIn) -> None:
    await page.set_viewport_size({"width": 1440, "height": 600})
    await sign_in("admin", "/console/retention")
    navigation = page.get_by_role("navigation", name="Main")
    for name in ("Retention", "Overview"):
        await navigation.get_by_role("link", name=name).click()
        entry = navigation.locator("[aria-current=page]")
        await expect(entry).to_have_text(name)
        await expect(entry).to_be_in_viewport(ratio=1)
        inside = (
            "(entry) => entry.getBoundingClientRect().bottom <= entry.closest('nav').getBoundingClientRect().bottom"
        )
        assert await entry.evaluate(inside)
    await page.goto("/console/system")
    await expect(navigation.get_by_role("link", name="System")).to_be_in_viewport(ratio=1)
    assert await page.evaluate("scrollY") == 0
