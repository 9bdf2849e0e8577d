"""Measures how long the lists of API keys and users take to open, with 400,000 rows and with 10 rows.

python bench/console_lists.py [--rows 400000] [--rounds 15]

Two platforms run at the same time: one with ten API keys of ten users, and one with many keys and users. Each round
requests the same pages from both platforms in turn: the first page in every order, filtered pages, searches, and a page
in the middle. It also opens the list of keys in Chromium and waits until its rows are displayed. The requests are those
of the console. The benchmark prints the medians and their ratios. The exit status is 2 if Chromium is missing.
"""

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
from playwright.async_api import Browser, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import chromium
from tests.support.server import ADMIN_EMAIL, ADMIN_PASSWORD, GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

FEW_ROWS: Final = 10
PAGE_ROWS: Final = 50
#: The total at which the server stops counting. Same value as in the console.
MAX_TOTAL: Final = 10_000
#: Number of users who own keys. With 400,000 rows, each of them has 400 keys.
OWNERS: Final = 1_000
INSERT_ROWS: Final = (
    "INSERT INTO users (id, tenant_id, email, display_name, is_active, last_login_at, created_at)"
    " SELECT gen_random_uuid(), %(tenant)s, 'user-' || n || '@example.com', 'Person ' || left(md5(n::text), 8),"
    " n %% 50 > 0, CASE WHEN n %% 3 > 0 THEN now() - n * interval '7 minutes' END, now() - n * interval '1 minute'"
    " FROM generate_series(1, %(rows)s) n",
    "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description, is_enabled, created_at, last_used,"
    " expires_at) SELECT gen_random_uuid(), u.tenant_id, u.id, 'gk_' || left(md5(n::text), 5), sha256(n::text::bytea),"
    " 'key ' || n, n %% 50 > 0, now() - n * interval '1 minute', CASE WHEN n %% 3 > 0 THEN now() - n * interval '3"
    " minutes' END, CASE WHEN n %% 4 > 0 THEN now() + n * interval '5 minutes' END FROM generate_series(1, %(rows)s) n"
    " JOIN (SELECT id, tenant_id, row_number() OVER (ORDER BY email) AS number FROM users WHERE email LIKE 'user-%%') u"
    " ON u.number = 1 + n %% least(%(owners)s, %(rows)s)",
    # Three quarters of the keys were used this month.
    "INSERT INTO spend_deltas (tenant_id, day, user_id, api_key_id, requests, input_tokens, output_tokens,"
    " cached_tokens, cost_usd, records) SELECT tenant_id, (now() AT TIME ZONE 'UTC')::date, user_id, id, 1, 0, 0, 0,"
    " random(), 0 FROM api_keys WHERE description LIKE 'key %%' AND right(description, 1) > '2'",
    "SELECT gatehouse_fold_spend()",
)
KEY_ORDERS: Final = (
    "-created_at", "description", "owner", "-last_used", "last_used", "expires_at", "-expires_at",
    "-month_cost_usd", "month_cost_usd",
)  # fmt: skip
USER_ORDERS: Final = ("-created_at", "name", "-name", "role", "-last_login_at", "last_login_at")
RATE_LIMIT_TIERS: Final = '{"/login": 100000000, "/console": 100000000, "POST /api/auth/session/token": 100000000}'


class ListRequest(NamedTuple):
    """A request for a page of a list."""

    path: str
    query: dict[str, str]


class Platform:
    """A server with some number of API keys and users, and the client of an administrator."""

    def __init__(self, server: GatehouseServer, rows: int) -> None:
        # These indexes are built faster once the rows are there.
        indexes = server.sql("SELECT indexname, indexdef FROM pg_indexes WHERE indexname LIKE '%_trigrams'")
        for name, _ in indexes:
            server.sql(f"DROP INDEX {name}")
        for statement in INSERT_ROWS:
            server.sql(statement, {"tenant": DEFAULT_TENANT, "rows": rows, "owners": OWNERS})
        for _, definition in indexes:
            server.sql(definition)
        server.sql("VACUUM ANALYZE")
        self.url, self.rows = server.url, rows
        self.client = httpx2.Client(base_url=server.url, timeout=60)
        login = self.client.post("/api/auth/login", json={"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD})
        self.client.headers["Authorization"] = f"Bearer {login.raise_for_status().json()['access_token']}"

    @property
    def requests(self) -> dict[str, ListRequest]:
        """Return the requests that are measured, by name."""
        middle = self.rows // 2 // PAGE_ROWS
        keys = {"limit": str(PAGE_ROWS), "max_total": str(MAX_TOTAL)}
        users = {"page_size": str(PAGE_ROWS), "max_total": str(MAX_TOTAL)}
        key_queries = {
            **{f"by {order}": {"sort": order} for order in KEY_ORDERS},
            "disabled": {"enabled": "false"},
            "search of one row": {"search": f"key {self.rows}"},
            "search of an owner": {"search": "user-7@"},
            "search of all rows": {"search": "key"},
            "search of nothing": {"search": "nobody has this"},
            "middle page": {"offset": str(middle * PAGE_ROWS)},
            "middle page by expires_at": {"offset": str(middle * PAGE_ROWS), "sort": "expires_at"},
        }
        user_queries = {
            **{f"by {order}": {"sort": order} for order in USER_ORDERS},
            "inactive": {"active": "false"},
            "administrators": {"role": "admin"},
            "search of one row": {"search": f"user-{self.rows}@"},
            "search of all rows": {"search": "person"},
            "search of two characters": {"search": "pe"},
            "search of nothing": {"search": "nobody has this"},
            "middle page": {"page": str(middle + 1)},
        }
        return {
            **{
                f"keys, {name}": ListRequest("/api/admin/api-keys", keys | query) for name, query in key_queries.items()
            },
            **{
                f"users, {name}": ListRequest("/api/admin/users", users | query) for name, query in user_queries.items()
            },
        }

    def request_seconds(self, request: ListRequest) -> float:
        """Return the time of one request."""
        began = time.perf_counter()
        self.client.get(request.path, params=request.query).raise_for_status()
        return time.perf_counter() - began


async def page_seconds(page: Page, url: str) -> float:
    """Return the time until the list of all keys shows its rows."""
    began = time.perf_counter()
    await page.goto(f"{url}/console/keys?all=true")
    await page.get_by_role("row").nth(1).get_by_role("cell").first.wait_for()
    return time.perf_counter() - began


async def sign_in(browser: Browser, url: str) -> Page:
    page = await (await browser.new_context()).new_page()
    await page.goto(f"{url}/console")
    await page.get_by_label("E-mail or user name").fill(ADMIN_EMAIL)
    await page.get_by_label("Password", exact=True).fill(ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Account").wait_for()
    return page


async def measure(few: Platform, many: Platform, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    samples: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in (*few.requests, "keys in Chromium")
    }
    async with chromium.browser() as browser:
        pages = [await sign_in(browser, platform.url) for platform in (few, many)]
        # The first round fills caches and is not counted.
        for number in range(rounds + 1):
            for index, (platform, page) in enumerate(zip((few, many), pages, strict=True)):
                for name, request in platform.requests.items():
                    seconds = platform.request_seconds(request)
                    if number:
                        samples[name][index].append(seconds)
                seconds = await page_seconds(page, platform.url)
                if number:
                    samples["keys in Chromium"][index].append(seconds)
    return samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if chromium.PROGRAM is None:
        print("Chromium is not installed. Install it with: apt-get install chromium", file=sys.stderr)
        return 2
    env = {"RATE_LIMIT_TIERS": RATE_LIMIT_TIERS}
    with GatehouseServer(env=env) as small_server, GatehouseServer(env=env) as large_server:
        samples = asyncio.run(
            measure(Platform(small_server, FEW_ROWS), Platform(large_server, arguments.rows), arguments.rounds)
        )
    print(f"{'':34}{FEW_ROWS:>10} rows{arguments.rows:>10,} rows     ratio")
    for name, (few, many) in samples.items():
        left, right = statistics.median(few), statistics.median(many)
        print(f"{name:34}{left * 1000:>12.1f} ms{right * 1000:>12.1f} ms{right / left:>10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
