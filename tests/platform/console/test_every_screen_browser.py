"""Every screen of the console by keyboard alone, and checked by axe, as administrator, auditor and user."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Browser, Dialog, Locator, Page, expect
from tests.platform.console.conftest import DESK, TIERS, OtherUser, api, enter_password, modal, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.chromium import PHONE, needs_chromium, page_of
from tests.support.console_screens import SCREENS, SCREENS_OF_USERS, Use, fill, paths_of_router
from tests.support.members import HASH
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

# The first test also waits for the platform, and for a page of each role.
pytestmark = [needs_chromium, pytest.mark.timeout(600)]

#: Maximum number of presses of Tab from the beginning of the content to a control, or around a dialog.
MAX_TABS = 90
MAX_ITEMS = 12
#: Screens with a table whose rows open details. The fixture creates a row of each, which auditors and users see.
WITH_DETAILS = {
    "/requests", "/audit", "/dlp-rules", "/compliance", "/model-aliases", "/registry", "/users", "/groups", "/webhooks",
    "/alerts", "/oauth-clients",
}  # fmt: skip

#: Returns what is wrong with the element that has the focus, or null.
FOCUS_FAULT = """() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return "nothing has the focus";
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  if (outlineStyle === "none" || parseFloat(outlineWidth) < 1) return "no outline: " + element.outerHTML.slice(0, 200);
  const { top, bottom, left, right } = element.getBoundingClientRect();
  const x = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
  const y = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
  const there = document.elementFromPoint(x, y);
  const seen = there !== null && (element.contains(there) || there.contains(element));
  return seen ? null : "covered or out of view: " + element.outerHTML.slice(0, 200);
}"""
IS_AT_GUARD = "document.activeElement?.hasAttribute('data-base-ui-focus-guard') ?? false"
HAS_FOCUS = "(element) => element === document.activeElement"
#: Returns `reached` or `guard` if such a stop of the page has the focus, and `replaced` if the control is not in the
#: page any more. For other elements, returns what is wrong, or null.
STOP_ON_PAGE = f"""(control) => {{
  if ({IS_AT_GUARD}) return "guard";
  if (!control.isConnected) return "replaced";
  return ({FOCUS_FAULT})() ?? (document.activeElement === control ? "reached" : null);
}}"""
#: Returns `first` or `guard` if such a stop of the dialog has the focus. For other elements, returns what is wrong, or
#: null.
STOP_IN_DIALOG = f"""(dialog, first) => {{
  const element = document.activeElement;
  if (element === first) return "first";
  if (element.hasAttribute("data-base-ui-focus-guard")) return "guard";
  if (element === dialog || !dialog.contains(element)) return "outside of the dialog";
  return ({FOCUS_FAULT})();
}}"""


#: Numbers the visible controls of the page, and returns their number. Radio buttons of one group are one stop of Tab. A
#: control that Tab skips, such as a menu item, has `tabindex="-1"`, and is none.
NUMBER_CONTROLS = """() => {
  const controls = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]");
  const radios = new Map();
  let count = 0;
  for (const element of controls) {
    if (element.closest("[inert], [aria-hidden=true]") !== null || element.disabled || element.tabIndex < 0) continue;
    if (!element.checkVisibility({ visibilityProperty: true }) || "baseUiFocusGuard" in element.dataset) continue;
    const group = element.type === "radio" ? element.name : "";
    if (group !== "" && radios.has(group)) {
      element.dataset.stop = radios.get(group);
      continue;
    }
    if (group !== "") radios.set(group, count);
    element.dataset.stop = count++;
  }
  return count;
}"""
#: Returns the number of the control that has the focus (null if it has none), and what is wrong with its focus.
NUMBER_AT_FOCUS = f"""() => {{
  const element = document.activeElement;
  if (element === null || element === document.body) return [null, null];
  return [Number(element.dataset.stop ?? -1), ({FOCUS_FAULT})()];
}}"""
CONTROL = "(number) => document.querySelector(`[data-stop='${number}']`).outerHTML.slice(0, 200)"
#: Controls of which Tab visits several parts, such as the day and the hour of a time.
MAX_STOPS_OF_CONTROL = 8


@dataclass
class Screens:
    """A page of each role, and the paths of screens that have a parameter."""

    pages: dict[str, Page]
    paths: dict[str, str]
    admin: httpx2.Client

    async def open(self, role: str, path: str) -> Page:
        page = self.pages[role]
        await page.goto("/console" + self.paths.get(path, path).rstrip("/"))
        await is_ready(page)
        return page


@pytest.fixture(scope="module")
def server(console: Path) -> Iterator[GatehouseServer]:
    """A server with one row of everything. Other modules begin with empty lists."""
    with GatehouseServer(env={"RATE_LIMIT_TIERS": TIERS}) as running:
        yield running


@pytest.fixture(scope="module")
async def screens(server: GatehouseServer, chrome: Browser) -> AsyncIterator[Screens]:
    people = {role: _new_user(server, role) for role in ("admin", "auditor", "user")}
    # Only operators may start maintenance mode.
    server.sql("UPDATE users SET operator = true WHERE id = %s", [people["admin"].id])
    server.touch("user", people["admin"].id)
    server.settled()
    admin = api(server, people["admin"])
    paths = fill(server, admin)
    user = api(server, people["user"])
    recorded_call(server, user.post("/api/auth/api-keys", json={"description": "of the user"}).json()["api_key"])
    user.close()
    async with AsyncExitStack() as stack:
        pages = {}
        for role, person in people.items():
            context = await chrome.new_context(base_url=server.url, viewport=DESK)  # type: ignore[arg-type]
            stack.push_async_callback(context.close)
            page = await stack.enter_async_context(page_of(context))
            await page.emulate_media(reduced_motion="reduce")
            await page.goto("/console")
            await enter_password(page, person.email)
            await expect(page.get_by_role("button", name="Account")).to_be_visible()
            pages[role] = page
        yield Screens(pages, paths, admin)
    admin.close()


def _new_user(server: GatehouseServer, role: str) -> OtherUser:
    user = OtherUser(new_id(), f"{role}-{uuid4().hex[:10]}@example.test", role)
    server.sql(
        "INSERT INTO users (id, tenant_id, email, role, password_hash, display_name) VALUES (%s, %s, %s, %s, %s, %s)",
        [user.id, DEFAULT_TENANT, user.email, role, HASH, f"A test's {role}"],
    )
    server.touch("user", user.id)
    return user


async def is_ready(page: Page) -> None:
    """Wait until the screen shows its content. The locators use no roles, because an open dialog may hide the content
    from them."""
    await expect(page.locator("main h1")).to_be_visible()
    await expect(page.locator("main [aria-busy=true], main [class*=skeleton]")).to_have_count(0)


async def assert_focus_is_seen(page: Page) -> None:
    # A focus guard at the end of a dialog moves the focus to another element.
    while await page.evaluate(IS_AT_GUARD):
        await asyncio.sleep(0.01)
    assert (fault := await page.evaluate(FOCUS_FAULT)) is None, (page.url, fault)


async def tab_to(page: Page, control: Locator) -> None:
    """Press Tab until the control has the focus. At each stop on the way, the focus must be visible."""
    await expect(control).to_be_visible()
    # The control is looked for once, because a search by its name takes longer than a press of Tab.
    element = await control.element_handle()
    for _ in range(MAX_TABS):
        await page.keyboard.press("Tab")
        while (stop := await page.evaluate(STOP_ON_PAGE, element)) in {"guard", "replaced"}:
            # A focus guard at the end of a dialog moves the focus to another element.
            await asyncio.sleep(0.01)
            if stop == "replaced":
                element = await control.element_handle()
        if stop == "reached":
            return
        assert stop is None, (page.url, stop)
    raise AssertionError(f"{control} is not reached by Tab on {page.url}")


async def choose(page: Page, item: str) -> None:
    """Choose an item of the open menu with the arrow keys."""
    choice = page.get_by_role("menuitem", name=item)
    await expect(choice).to_be_visible()
    for _ in range(MAX_ITEMS):
        if await choice.evaluate(HAS_FOCUS):
            await page.keyboard.press("Enter")
            return
        await page.keyboard.press("ArrowDown")
    raise AssertionError(f"{item} is not reached by the arrows on {page.url}")


async def go_around(page: Page, dialog: Locator) -> None:
    """Press Tab until the first stop of the dialog has the focus again. The focus must not leave the dialog."""
    await expect(page.locator(":focus")).not_to_have_count(0)
    await page.keyboard.press("Tab")
    await assert_focus_is_seen(page)
    first = await page.evaluate_handle("document.activeElement")
    for _ in range(MAX_TABS):
        await page.keyboard.press("Tab")
        while (stop := await dialog.evaluate(STOP_IN_DIALOG, first)) == "guard":
            await asyncio.sleep(0.01)
        if stop == "first":
            return
        assert stop is None, (page.url, stop)
    raise AssertionError(f"a dialog has more than {MAX_TABS} stops on {page.url}")


async def use(page: Page, use: Use) -> None:
    """Perform the action by keyboard alone, check what it opens, and close it again."""
    main = page.get_by_role("main")
    await main.evaluate("(element) => element.focus()")
    control = main.get_by_role(use.role, name=use.control).first
    await tab_to(page, control)
    if use.text:
        await page.keyboard.insert_text(use.text)
    for key in use.keys:
        await page.keyboard.press(key)
    if use.item is not None:
        await choose(page, use.item)
    if use.opens == "dialog":
        dialog = modal(page)
        await expect(dialog).to_be_visible()
        await go_around(page, dialog)
        await assert_accessible(page)
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await expect(control).to_be_focused()
    elif use.opens == "detail":
        detail = page.get_by_role("complementary", name="Request")
        await expect(detail).to_be_focused()
        await assert_accessible(page)
        await page.keyboard.press("Escape")
        await expect(detail).to_have_count(0)
        await expect(control).to_be_focused()
    else:
        await page.wait_for_url(lambda url: use.opens in url)
        await is_ready(page)


def test_every_screen_of_the_router_is_tested() -> None:
    paths = paths_of_router()
    assert len(paths) > 30
    assert sorted(paths) == sorted(SCREENS)


@pytest.mark.parametrize("path", SCREENS)
async def test_an_administrator_uses_every_screen_by_keyboard_alone(screens: Screens, path: str) -> None:
    page = await screens.open("admin", path)
    await assert_accessible(page)
    for number, one in enumerate(SCREENS[path]):
        if number and page.url.rpartition("/console")[2] != screens.paths.get(path, path):
            await screens.open("admin", path)
        await use(page, one)
    assert await page.evaluate("document.activeElement !== document.body"), page.url


@pytest.mark.parametrize("path", SCREENS)
async def test_tab_reaches_every_control_of_every_screen_and_leaves_it_again(screens: Screens, path: str) -> None:
    page = await screens.open("admin", path)
    await page.evaluate("document.activeElement.blur()")
    controls = await page.evaluate(NUMBER_CONTROLS)
    assert controls
    missing = set(range(controls))
    first, last, presses = None, None, 0
    for _ in range(MAX_STOPS_OF_CONTROL * controls):
        await page.keyboard.press("Tab")
        number, fault = await page.evaluate(NUMBER_AT_FOCUS)
        assert fault is None, (page.url, fault)
        presses = presses + 1 if number == last else 1
        assert presses <= MAX_STOPS_OF_CONTROL, (page.url, "Tab does not leave", await page.evaluate(CONTROL, number))
        # The first stop is not the first control of the page if the page focuses a field.
        if not missing or (number == first and number != last):
            break
        first, last = number if first is None else first, number
        missing.discard(number)
    assert [await page.evaluate(CONTROL, number) for number in missing] == [], page.url


@pytest.mark.parametrize("path", ["/", "/chat", "/chat/$conversationId", "/approvals", "/kill-switches"])
async def test_screens_for_phones_are_used_at_the_width_of_a_phone(screens: Screens, path: str) -> None:
    page = screens.pages["admin"]
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    try:
        await screens.open("admin", path)
        await assert_accessible(page)
        for one in SCREENS[path]:
            await screens.open("admin", path)
            opened = urlsplit(page.url).path
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
            await use(page, one)
            # A link may have opened a screen that is made for wider windows.
            if urlsplit(page.url).path == opened:
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
    finally:
        await page.set_viewport_size(DESK)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "path"),
    [("auditor", path) for path in SCREENS if "$" not in path] + [("user", path) for path in SCREENS_OF_USERS],
)
async def test_every_screen_of_auditors_and_users_is_accessible(screens: Screens, role: str, path: str) -> None:
    page = await screens.open(role, path)
    await assert_accessible(page)
    # Everybody who can see a row can open it.
    openers = page.get_by_role("main").locator("button[data-open]")
    if path not in WITH_DETAILS:
        assert path == "/" or await openers.count() == 0, (path, "has rows with details: add it to WITH_DETAILS")
        return
    await expect(openers, "the table has no row").not_to_have_count(0)
    opener = openers.first
    await opener.press("Enter")
    await expect(modal(page).or_(page.get_by_role("complementary", name="Request")).first).to_be_visible()
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await expect(opener).to_be_focused()


async def test_a_matrix_of_choices_is_changed_and_saved_by_keyboard(screens: Screens) -> None:
    page = await screens.open("admin", "/access")
    main = page.get_by_role("main")
    await main.evaluate("(element) => element.focus()")
    await tab_to(page, main.get_by_role("combobox", name="sandbox/embed for Engineering"))
    await page.keyboard.press("ArrowDown")
    save = main.get_by_role("button", name="Save 1 change")
    await expect(save).to_be_enabled()
    await main.evaluate("(element) => element.focus()")
    await tab_to(page, save)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 change was saved.").first).to_be_visible()
    await expect(page.locator(":focus")).to_have_count(1)
    assert await page.evaluate("document.activeElement !== document.body")


@pytest.mark.parametrize(
    ("path", "new", "label", "row"),
    [("/groups", "New group", "Name", "Short-lived"), ("/keys", "Create key", "Name", "Short-lived")],
)
async def test_a_row_is_created_and_deleted_by_keyboard_and_the_focus_stays_in_the_page(
    screens: Screens, path: str, new: str, label: str, row: str
) -> None:
    page = await screens.open("admin", path)
    main, dialog = page.get_by_role("main"), modal(page)
    await main.evaluate("(element) => element.focus()")
    await tab_to(page, main.get_by_role("button", name=new).first)
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_label(label, exact=True)).to_be_focused()
    await page.keyboard.type(row)
    await page.keyboard.press("Enter")
    if path == "/keys":
        await expect(dialog.get_by_label("Your new API key")).to_be_visible()
        await tab_to(page, dialog.get_by_role("button", name="Done"))
        await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    await expect(main.get_by_role("button", name=new).first).to_be_focused()

    menu = main.get_by_role("button", name=f"Actions for {row}")
    await tab_to(page, menu)
    await page.keyboard.press("Enter")
    await choose(page, "Delete")
    await expect(dialog).to_be_visible()
    await tab_to(page, dialog.get_by_role("button", name="Delete").last)
    await page.keyboard.press("Enter")
    await expect(menu).to_have_count(0)
    await expect(dialog).to_have_count(0)
    # The button that opened the dialog no longer exists, so the main content gets the focus.
    await expect(main).to_be_focused()


async def test_the_skip_link_leads_past_the_navigation(screens: Screens) -> None:
    page = await screens.open("admin", "/keys")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Create key").first).to_be_focused()


async def test_the_browser_asks_before_a_form_with_changes_is_left(screens: Screens) -> None:
    page = await screens.open("admin", "/groups")
    questions: list[str] = []

    async def stay(question: Dialog) -> None:
        questions.append(question.type)
        await question.dismiss()

    page.on("dialog", stay)
    try:
        await page.get_by_role("button", name="New group").first.click()
        field = modal(page).get_by_label("Name", exact=True)
        await field.press_sequentially("Half of a na")
        async with page.expect_event("dialog"):
            await page.evaluate("() => { setTimeout(() => location.reload()); }")
        await expect(field).to_have_value("Half of a na")
        # After the form is closed, the browser reloads the page without a question.
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Discard changes").click()
        await expect(modal(page)).to_have_count(0)
        await page.reload()
        await is_ready(page)
        assert questions == ["beforeunload"]
    finally:
        page.remove_listener("dialog", stay)
