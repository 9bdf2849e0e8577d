"""Compares the time in which the console opens its list of API keys with 400,000 keys and with ten keys.

python bench/console_lists.py [--keys 400000] [--rounds 15]

Two platforms run at the same time, one with ten keys of other users and one with many. Each round opens the first page,
a page in the middle and a filtered page on both platforms in turn. A page is opened by the API, and in Chromium until
its rows are displayed. The benchmark prints the medians and their ratios. The exit status is 2 if Chromium is missing.
"""

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Final

import httpx2
from playwright.async_api import Browser, Page, async_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import required_programs
from tests.support.server import ADMIN_EMAIL, ADMIN_PASSWORD, GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

FEW_KEYS: Final = 10
USERS: Final = 1_000
PAGE_SIZE: Final = 50
FILL: Final = (
    "INSERT INTO users (id, tenant_id, email) SELECT gen_random_uuid(), %(tenant)s, 'user-' || n || '@example.com'"
    " FROM generate_series(1, %(users)s) n",
    "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description, is_enabled, created_at)"
    " SELECT gen_random_uuid(), u.tenant_id, u.id, 'gk_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), 'key ' || n,"
    " n %% 50 > 0, now() - n * interval '1 minute' FROM generate_series(1, %(keys)s) n"
    " JOIN (SELECT id, tenant_id, row_number() OVER (ORDER BY email) AS number FROM users WHERE email LIKE 'user-%%') u"
    " ON u.number = 1 + n %% %(users)s",
    "VACUUM ANALYZE",
)
TIERS: Final = '{"/login": 100000000, "/console": 100000000, "POST /api/auth/session/token": 100000000}'


class Platform:
    """A server with some number of API keys, and the client of an administrator."""

    def __init__(self, server: GatehouseServer, keys: int) -> None:
        for statement in FILL:
            values = {"tenant": DEFAULT_TENANT, "users": min(USERS, keys), "keys": keys}
            server.sql(statement, None if statement.startswith("VACUUM") else values)
        self.url, self.keys = server.url, keys
        self.client = httpx2.Client(base_url=server.url, timeout=60)
        login = self.client.post("/api/auth/login", json={"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD})
        self.client.headers["Authorization"] = f"Bearer {login.raise_for_status().json()['access_token']}"

    @property
    def lists(self) -> dict[str, dict[str, str]]:
        """Return the queries that are measured, by name."""
        middle = self.keys // 2 // PAGE_SIZE * PAGE_SIZE
        size = {"limit": str(PAGE_SIZE)}
        return {
            "first page": size,
            "middle page": {**size, "offset": str(middle)},
            "disabled": {**size, "enabled": "false"},
        }

    def list_seconds(self, query: dict[str, str]) -> float:
        began = time.perf_counter()
        self.client.get("/api/admin/api-keys", params=query).raise_for_status()
        return time.perf_counter() - began


async def page_seconds(page: Page, url: str) -> float:
    """Return the time until the list of all keys shows its rows."""
    began = time.perf_counter()
    await page.goto(f"{url}/console/keys?all=true")
    await page.get_by_role("row").nth(1).get_by_role("cell").first.wait_for()
    return time.perf_counter() - began


async def signed_in(browser: Browser, url: str) -> Page:
    page = await (await browser.new_context()).new_page()
    await page.goto(f"{url}/console")
    await page.get_by_label("E-mail or user name").fill(ADMIN_EMAIL)
    await page.get_by_label("Password", exact=True).fill(ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Account").wait_for()
    return page


async def measure(few: Platform, many: Platform, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    samples: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in (*few.lists, "in Chromium")}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=required_programs.find("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        pages = [await signed_in(browser, platform.url) for platform in (few, many)]
        # The first round fills caches and is not counted.
        for number in range(rounds + 1):
            for index, (platform, page) in enumerate(zip((few, many), pages, strict=True)):
                for name, query in platform.lists.items():
                    seconds = platform.list_seconds(query)
                    if number:
                        samples[name][index].append(seconds)
                seconds = await page_seconds(page, platform.url)
                if number:
                    samples["in Chromium"][index].append(seconds)
        await browser.close()
    return samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    if required_programs.find("chromium") is None:
        print("The benchmark cannot run: apt-get install chromium", file=sys.stderr)
        return 2
    env = {"RATE_LIMIT_TIERS": TIERS}
    with GatehouseServer(env=env) as first, GatehouseServer(env=env) as second:
        samples = asyncio.run(measure(Platform(first, FEW_KEYS), Platform(second, chosen.keys), chosen.rounds))
    print(f"{'':14}{FEW_KEYS:>10} keys{chosen.keys:>10,} keys     ratio")
    for name, (few, many) in samples.items():
        left, right = statistics.median(few), statistics.median(many)
        print(f"{name:14}{left * 1000:>12.1f} ms{right * 1000:>12.1f} ms{right / left:>10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
