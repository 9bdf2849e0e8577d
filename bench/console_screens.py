"""Measures how long each screen of the console needs to be usable after its data has arrived.

python bench/console_screens.py [--rounds 5]

An administrator opens each screen in Chromium, on a platform with one row of everything. The clock starts when the last
API answer that the screen needs has arrived completely. It stops when the screen's content has been painted and the
browser's main thread is free for input. The benchmark prints the median and the maximum of each screen, and of all. It
also prints the processor time that the main thread used to open the screen, scripts included. Other work on the machine
affects this time less.
The exit status is 1 if the median of a screen is above the limit, and 2 if Chromium is missing.
"""

import argparse
import asyncio
import os
import statistics
import sys
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
from playwright.async_api import CDPSession, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import chromium
from tests.support.console_screens import fill, paths_of_router
from tests.support.server import ADMIN_EMAIL, ADMIN_PASSWORD, GatehouseServer

LIMIT_SECONDS: Final = 1.0
TIERS: Final = '{"/login": 100000000, "/console": 100000000, "POST /api/auth/session/token": 100000000}'
#: A screen is complete when it has not changed for this time.
QUIET_MS: Final = 700
#: Notes the time at which the newest change of the page was painted and the main thread was free again.
NOTE_PAINTS: Final = """
window.paintedAt = 0;
new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => { window.paintedAt = performance.now(); })))
  .observe(document, { childList: true, subtree: true, characterData: true });
"""
IS_QUIET: Final = f"""() => window.paintedAt > 0 && performance.now() - window.paintedAt > {QUIET_MS}
  && document.querySelector("main h1") !== null
  && document.querySelector("main [aria-busy=true], main [class*=skeleton]") === null"""
USABLE_MS: Final = """() => {
  const calls = performance.getEntriesByType("resource").filter(({ initiatorType, responseEnd }) =>
    initiatorType === "fetch" && responseEnd < window.paintedAt);
  return window.paintedAt - Math.max(0, ...calls.map(({ responseEnd }) => responseEnd));
}"""


class Sample(NamedTuple):
    usable_seconds: float
    cpu_seconds: float


async def open_screen(page: Page, devtools: CDPSession, path: str) -> Sample:
    """Load the page of a screen, and return its times."""
    # With `threadTicks`, the metrics are the processor time of the main thread.
    await devtools.send("Performance.disable")
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    await page.goto(f"/console{path.rstrip('/')}")
    # Not `wait_for_function`, which the page's security policy forbids.
    while not await page.evaluate(IS_QUIET):
        await asyncio.sleep(0.05)
    metrics = {metric["name"]: metric["value"] for metric in (await devtools.send("Performance.getMetrics"))["metrics"]}
    return Sample(await page.evaluate(USABLE_MS) / 1000, metrics["TaskDuration"])


async def measure(server: GatehouseServer, special: dict[str, str], rounds: int) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {path: [] for path in paths_of_router()}
    async with chromium.browser() as browser:
        context = await browser.new_context(base_url=server.url, viewport={"width": 1440, "height": 900})
        page = await context.new_page()
        await page.goto("/console")
        await page.get_by_label("E-mail or user name").fill(ADMIN_EMAIL)
        await page.get_by_label("Password", exact=True).fill(ADMIN_PASSWORD)
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Account").wait_for()
        await page.add_init_script(NOTE_PAINTS)
        devtools = await context.new_cdp_session(page)
        # The first round fills the browser's cache and is not counted.
        for number in range(rounds + 1):
            for path, of_path in samples.items():
                sample = await open_screen(page, devtools, special.get(path, path))
                if number:
                    of_path.append(sample)
    return samples


def show(samples: dict[str, list[Sample]]) -> bool:
    """Print the figures. Returns whether the median of each screen is within the limit."""
    print(f"{'screen':28}{'median':>10}{'max':>10}{'CPU':>10}")
    medians = {}
    for path, of_path in samples.items():
        usable = [sample.usable_seconds for sample in of_path]
        cpu = statistics.median(sample.cpu_seconds for sample in of_path)
        medians[path] = statistics.median(usable)
        print(f"{path:28}{medians[path] * 1000:>7.0f} ms{max(usable) * 1000:>7.0f} ms{cpu * 1000:>7.0f} ms")
    every = [sample.usable_seconds for of_path in samples.values() for sample in of_path]
    print(f"{'all':28}{statistics.median(every) * 1000:>7.0f} ms{max(every) * 1000:>7.0f} ms")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return all(median <= LIMIT_SECONDS for median in medians.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if chromium.PROGRAM is None:
        print("The benchmark cannot run: apt-get install chromium", file=sys.stderr)
        return 2
    with GatehouseServer(env={"RATE_LIMIT_TIERS": TIERS}) as server:
        with httpx2.Client(base_url=server.url, timeout=60) as client:
            login = client.post("/api/auth/login", json={"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD})
            client.headers["Authorization"] = f"Bearer {login.raise_for_status().json()['access_token']}"
            special = fill(server, client)
        samples = asyncio.run(measure(server, special, arguments.rounds))
    return 0 if show(samples) else 1


if __name__ == "__main__":
    sys.exit(main())
