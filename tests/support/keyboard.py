"""Steps of a user who has only a keyboard: Tab, Enter, Space, arrows, Escape and typing."""

import asyncio
from typing import Final

from playwright.async_api import Locator, Page, expect

#: Maximum number of presses of Tab from the beginning of the content to a control, or around a dialog.
MAX_TABS: Final = 90
MAX_ITEMS: Final = 12

#: Returns what is wrong with the element that has the focus, or null.
FOCUS_FAULT: Final = """() => {
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
IS_AT_GUARD: Final = "document.activeElement?.hasAttribute('data-base-ui-focus-guard') ?? false"
HAS_FOCUS: Final = "(element) => element === document.activeElement"
#: Returns `reached` or `guard` if such a stop of the page has the focus, and `replaced` if the control is not in the
#: page any more. For other elements, returns what is wrong, or null.
STOP_ON_PAGE: Final = f"""(control) => {{
  if ({IS_AT_GUARD}) return "guard";
  if (!control.isConnected) return "replaced";
  return ({FOCUS_FAULT})() ?? (document.activeElement === control ? "reached" : null);
}}"""
#: Returns the text of a field, or that of its chosen option.
SHOWN_VALUE: Final = "(field) => field.selectedOptions?.[0].label ?? field.value"
KIND: Final = "(field) => field.localName === 'input' ? field.type : field.localName"


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


async def press(page: Page, button: Locator) -> None:
    """Move to the button and press it."""
    await tab_to(page, button)
    await page.keyboard.press("Enter")


async def enter(page: Page, field: Locator, value: str) -> None:
    """Move to the field, and replace its text by the value, choose the option with this label, or check the box."""
    if not await field.evaluate(HAS_FOCUS):
        await tab_to(page, field)
    kind = await field.evaluate(KIND)
    if kind == "checkbox":
        await page.keyboard.press("Space")
    elif kind == "select":
        await _choose_option(page, field, value)
    else:
        await page.keyboard.press("ControlOrMeta+a")
        await page.keyboard.type(value)


async def _choose_option(page: Page, field: Locator, label: str) -> None:
    for key in ("ArrowDown", "ArrowUp"):
        for _ in range(MAX_ITEMS):
            if await field.evaluate(SHOWN_VALUE) == label:
                return
            await page.keyboard.press(key)
    raise AssertionError(f"{label} is not reached by the arrows on {page.url}")
