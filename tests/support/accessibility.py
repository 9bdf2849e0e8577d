"""Accessibility of pages in Chromium, checked by axe (WCAG 2.2, AA, and its best practices)."""

from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.async_api import Page, expect

#: Installed with the packages of the console.
AXE: Final = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"

needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe is not installed: make setup")

ALL_RULES: Final[dict[str, Any]] = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
_COLORS: Final[dict[str, Any]] = {"type": "rule", "values": ["color-contrast"]}
_RUN_AXE: Final = """async (rules) => {
  // Elements that pass are not described, only those that do not.
  const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
  return violations.map(({ id, help, nodes }) => ({ id, help, where: nodes.map((node) => node.html.slice(0, 200)),
    why: nodes[0].failureSummary }));
}"""


_WAIT_FOR_TRANSITIONS: Final = """() => Promise.allSettled(
  document.getAnimations().filter((animation) => animation instanceof CSSTransition).map(({ finished }) => finished))
  .then(() => null)"""


async def assert_accessible(page: Page) -> None:
    """Check the page with all rules in the light theme, and only its colors in the dark theme, because nothing else
    differs. The page must allow scripts."""
    await assert_no_violations(page, _COLORS, "dark")
    await assert_no_violations(page)


async def assert_no_violations(
    page: Page, rules: dict[str, Any] = ALL_RULES, scheme: Literal["light", "dark"] = "light"
) -> None:
    # A table that loads other rows is pale, and fades in again.
    await expect(page.locator("[data-stale]")).to_have_count(0)
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.evaluate(_WAIT_FOR_TRANSITIONS)
    if not await page.evaluate("'axe' in window"):
        # The browser's debugger runs it, so that the page's policy does not apply.
        await page.evaluate(AXE.read_text())
    violations: list[dict[str, Any]] = await page.evaluate(_RUN_AXE, rules)
    assert violations == [], (page.url, scheme, violations)
