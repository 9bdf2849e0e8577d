"""Every screen of the console by keyboard alone, and checked by axe, as administrator, auditor and user."""

import asyncio
import re
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
from tests.support.console_screens import SCREENS, SCREENS_OF_USERS, TASKS, Use, fill, paths_of_router
from tests.support.console_tasks import STEPS, WITHOUT_TASK, Enter, Finish, Press, Shows, Step
from tests.support.keyboard import (
    FOCUS_FAULT,
    MAX_TABS,
    SHOWN_VALUE,
    assert_focus_is_seen,
    choose,
    enter,
    press,
    tab_to,
)  # fmt: skip
from tests.support.members import HASH
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

# The first test also waits for the platform, and for a page of each role.
pytestmark = [needs_chromium, pytest.mark.timeout(600)]

#: Screens with a table whose rows open details. The fixture creates a row of each, which auditors and users see.
WITH_DETAILS = {
    "/requests", "/audit", "/dlp-rules", "/compliance", "/model-aliases", "/registry", "/users", "/groups", "/webhooks",
    "/alerts", "/oauth-clients", "/mcp-servers", "/mcp-servers/tools",
}  # fmt: skip

#: Screens on which everybody changes what is their own.
OF_EVERYBODY = {"/chat", "/keys", "/access-requests", "/connections", "/security", "/start", "/tools"}
#: Screens on which administrators change nothing either, or only rows that the fixture does not create.
ONLY_READ = {"/", "/requests", "/usage", "/spend", "/audit", "/approvals", "/mcp-servers/tools", "/mcp-servers/calls"}
#: Buttons that change nothing. Auditors see them too.
READING = re.compile(r"Copy .+|Export…?|Download .+|Verify chain…|Show older events|Follow|Check again")
#: Returns the names of the controls that may change something: all but those that open, sort and page rows.
CHANGING_CONTROLS = """() => [...document.querySelectorAll(
  "main button:not([data-open]):enabled, main td select:enabled, main [role=switch]:enabled",
)].filter((control) => control.closest("thead, nav") === null)
  .map((control) => control.ariaLabel ?? control.labels?.[0]?.textContent ?? control.textContent)"""

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
    wish = {"kind": "model", "model": "sandbox/tokens-7-3", "reason": "Somebody else decides about it."}
    assert user.post("/api/access-requests", json=wish).is_success
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
    if path not in ONLY_READ:
        names = await page.evaluate(CHANGING_CONTROLS)
        assert [name for name in names if READING.fullmatch(name) is None], "the screen has no button for a change"
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
async def test_every_screen_of_auditors_and_users_is_accessible_and_changes_nothing(
    screens: Screens, role: str, path: str
) -> None:
    page = await screens.open(role, path)
    await assert_accessible(page)
    if role == "auditor" and path not in OF_EVERYBODY:
        names = await page.evaluate(CHANGING_CONTROLS)
        assert [name for name in names if READING.fullmatch(name) is None] == [], path
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


def test_every_screen_with_something_to_do_has_a_task() -> None:
    assert sorted([*TASKS, *STEPS, *WITHOUT_TASK]) == sorted(SCREENS)


@pytest.mark.parametrize("path", STEPS)
async def test_the_main_task_of_a_screen_is_done_by_keyboard_alone(screens: Screens, path: str) -> None:
    page = await screens.open("admin", path)
    was_open = False
    for step in STEPS[path]:
        is_open = await modal(page).count() > 0
        if is_open and not was_open:
            await assert_accessible(page)
        was_open = is_open
        await perform(page, step)
        assert await page.evaluate("document.activeElement !== document.body"), (page.url, step)


async def perform(page: Page, step: Step) -> None:
    """Do the step in the open dialog, or on the page if no dialog is open."""
    main = page.get_by_role("main")
    is_open = await modal(page).count() > 0
    place = modal(page) if is_open else main
    if not is_open:
        # The control may be before the one that has the focus.
        await main.evaluate("(element) => element.focus()")
    if isinstance(step, Shows):
        await expect(page.get_by_text(step.text).filter(visible=True).first).to_be_visible()
    elif isinstance(step, Enter):
        await enter(page, place.get_by_label(step.label, exact=True), step.value)
    else:
        await press_control(page, place, step)


async def press_control(page: Page, place: Locator, step: Press) -> None:
    await press(page, place.get_by_role(step.role, name=re.compile(f"^{re.escape(step.name)}")).last)
    if step.item is not None:
        await choose(page, step.item)
    if isinstance(step, Finish):
        await expect(modal(page)).to_have_count(0)


@pytest.mark.parametrize("path", TASKS)
async def test_a_row_is_created_edited_and_deleted_by_keyboard_alone(screens: Screens, path: str) -> None:
    task, page = TASKS[path], await screens.open("admin", path)
    main, dialog = page.get_by_role("main"), modal(page)
    new = main.get_by_role("button", name=task.new).first
    menu = main.get_by_role("button", name=f"Actions for {task.row}", exact=True)

    async def finish(button: str) -> None:
        await press(page, dialog.get_by_role("button", name=button, exact=True).last)

    await main.evaluate("(element) => element.focus()")
    await press(page, new)
    for label, value in task.fields.items():
        await enter(page, dialog.get_by_label(label, exact=True), value)
    await finish(task.create)
    if task.is_shown_once:
        await expect(dialog.get_by_role("button", name="Done")).to_be_visible()
        await assert_accessible(page)
        await finish("Done")
    await expect(dialog).to_have_count(0)
    await expect(new).to_be_focused()

    if task.edited is not None:
        await press(page, menu)
        await choose(page, "Edit")
        label, value = task.edited
        await enter(page, dialog.get_by_label(label, exact=True), value)
        await finish("Save")
        await expect(dialog).to_have_count(0)
        await expect(menu).to_be_focused()
        await page.keyboard.press("Enter")
        await choose(page, "Edit")
        shown = await dialog.get_by_label(label, exact=True).evaluate(SHOWN_VALUE)
        assert shown == value, label
        await page.keyboard.press("Escape")
        await expect(menu).to_be_focused()
        await page.keyboard.press("Enter")
    else:
        await press(page, menu)
    await choose(page, task.remove)
    await expect(dialog).to_be_visible()
    await assert_accessible(page)
    await finish(task.removed)
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
