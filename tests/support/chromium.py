"""A real browser: Debian's Chromium, driven by Playwright. No part of it is downloaded."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect
from tests.support import required_programs

_FLAGS: Final = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

# A page may take longer where many tests share a machine.
expect.set_options(timeout=60_000)

PHONE: Final = {"width": 360, "height": 740}

#: The shell has no windows, and opens a page in a third of the time.
PROGRAM: Final = required_programs.find("chromium-headless-shell") or required_programs.find("chromium")

needs_chromium = required_programs.needs("chromium-headless-shell", "chromium")


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=PROGRAM, args=_FLAGS)
        try:
            yield started
        finally:
            await started.close()


#: What Chromium's messages about security policies name: warnings, and violations that are only reported, too.
_POLICY: Final = re.compile(
    r"content.security.policy|csp|permissions.policy|trusted.?type|trustedscript", re.IGNORECASE
)
#: Writes a console error for each violation. The browser's debugger adds it, so that the page's policy does not apply.
_REPORT_VIOLATIONS: Final = """addEventListener("securitypolicyviolation", (event) => {
  const { disposition, effectiveDirective, blockedURI, sourceFile, lineNumber } = event;
  console.error(`security policy (${disposition}): ${effectiveDirective} ${blockedURI} ${sourceFile}:${lineNumber}`);
}, true)"""


@asynccontextmanager
async def page_of(context: BrowserContext) -> AsyncIterator[Page]:
    """Yield a page. Checks at the end that nothing violated a security policy, not even one that only reports, and that
    no script failed."""
    page = await context.new_page()
    await page.add_init_script(_REPORT_VIOLATIONS)
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" or _POLICY.search(message.text):
            complaints.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_default_timeout(60_000)
    yield page
    # Chromium reports every answer without success as an error. The test itself checks the statuses.
    errors = [complaint for complaint in complaints if "the server responded with a status of" not in complaint]
    assert errors == [], errors
