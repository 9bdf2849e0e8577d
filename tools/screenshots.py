"""Takes the screenshots of docs/console.md (`python -m tools.screenshots`), in Chromium, from a platform with made-up
data.

It writes docs/images/console-SCREEN-SCHEME.png for each screen, in the light and the dark scheme, with at most 256
colours, so that all of them together stay small. It needs Chromium, which `.ci/run` installs.
"""

import asyncio
import io
import sys
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import httpx2
from PIL import Image
from playwright.async_api import Page

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support import chromium  # noqa: E402
from tests.support.server import ADMIN_EMAIL, ADMIN_PASSWORD, GatehouseServer  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
SIZE: Final = {"width": 1280, "height": 800}
#: the name and path of each screen, and the selector of something in it that is visible once it is loaded
SCREENS: Final = {
    "overview": ("/console", "[data-open]"),
    "requests": ("/console/requests", "[data-open]"),
    "dlp-rules": ("/console/dlp-rules", "text=Project names"),
    "access": ("/console/access", "text=Engineering"),
    "budgets": ("/console/budgets", "text=Engineering"),
    "kill-switches": ("/console/kill-switches", "text=sandbox"),
}
#: Colours of a stored picture.
COLOURS: Final = 256

PEOPLE: Final = {
    "Ada Lovelace": "Research", "Grace Hopper": "Engineering", "Alan Turing": "Research",
    "Katherine Johnson": "Engineering", "Dorothy Vaughan": "Support",
}  # fmt: skip
PROMPTS: Final = (
    "Summarise the minutes of yesterday's meeting.",
    "Write an answer to mary.smith@example.org about her invoice.",
    "Which of these functions is recursive?",
    "Is 4111 1111 1111 1111 a valid card number?",
    "Translate the release notes into French.",
    "What do we know about Project Nightjar?",
    "Explain this stack trace.",
)
MODELS: Final = ("sandbox/echo", "sandbox/tokens-1000-200", "sandbox/slow-200ms", "sandbox/echo", "sandbox/status-503")
CALLS: Final = 60


def main() -> None:
    tiers = '{"/login": 100000000, "/console": 100000000, "POST /api/auth/session/token": 100000000}'
    with GatehouseServer(env={"RATE_LIMIT_TIERS": tiers}) as server:
        fill(server)
        asyncio.run(take_all(server.url))


def fill(server: GatehouseServer) -> None:
    """Create people, groups, rules and budgets, and call models."""
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        signed_in = created(client.post("/api/auth/login", json={"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}))
        client.headers["Authorization"] = f"Bearer {signed_in['access_token']}"
        created(client.put("/api/v1/admin/org/settings", json={"display_name": "Analytical Engines"}))
        rule = {
            "detector_name": "Project names", "detector_type": "regex", "entity_type": "PROJECT",
            "action_tier": "block", "config_json": {"pattern": r"Project [A-Z][a-z]+"},
        }  # fmt: skip
        created(client.post("/api/admin/dlp-rules/", json=rule))
        groups = {name: group_of(client, name) for name in sorted(set(PEOPLE.values()))}
        created(client.post(f"/api/admin/groups/{groups['Support']}/model-access", json=DENIED))
        keys = [key_of(client, name, groups[group]) for name, group in PEOPLE.items()]
        budget = {"scope_type": "group", "period": "month", "limit_usd": 500, "limit_requests": 100}
        created(client.post("/api/admin/budgets", json={**budget, "scope_id": groups["Engineering"]}))
        created(
            client.post("/api/admin/budgets", json={"scope_type": "tenant", "period": "day", "limit_tokens": 50_000})
        )
        for key, prompt, model, _ in zip(cycle(keys), cycle(PROMPTS), cycle(MODELS), range(CALLS), strict=False):
            body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
            client.post("/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})
        models = {model["model_id"]: model["id"] for model in created(client.get(CATALOG))["items"]}
        switch = f"/api/v1/admin/kill-switch/models/{models['slow-200ms']}/disable"
        created(client.post(switch, json={"reason": "cost_runaway"}))


CATALOG: Final = "/api/admin/models/catalog/"
DENIED: Final = {"model_id": "sandbox/tools", "access_type": "DENY"}


def created(answer: httpx2.Response) -> Any:
    """Return the body of an answer. Raises `SystemExit` if it is not a success."""
    if not answer.is_success:
        raise SystemExit(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}")
    return answer.json() if answer.content else None


def group_of(client: httpx2.Client, name: str) -> str:
    return str(created(client.post("/api/admin/groups", json={"name": name}))["id"])


def key_of(client: httpx2.Client, name: str, group: str) -> str:
    """Create a person in a group, and return a key of theirs."""
    email = f"{name.lower().replace(' ', '.')}@example.com"
    body = {"email": email, "display_name": name, "password": ADMIN_PASSWORD}
    user = created(client.post("/api/admin/users", json=body))
    created(client.post(f"/api/admin/groups/{group}/members", json={"user_id": user["id"]}))
    signed_in = created(client.post("/api/auth/login", json={"email": email, "password": ADMIN_PASSWORD}))
    token = {"Authorization": f"Bearer {signed_in['access_token']}"}
    return str(created(client.post("/api/auth/api-keys", json={"description": "laptop"}, headers=token))["api_key"])


async def take_all(url: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    async with chromium.browser() as browser:
        context = await browser.new_context(base_url=url, viewport=SIZE)  # type: ignore[arg-type]
        page = await context.new_page()
        await page.goto("/console")
        await page.get_by_label("E-mail or user name").fill(ADMIN_EMAIL)
        await page.get_by_label("Password", exact=True).fill(ADMIN_PASSWORD)
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Account").wait_for()
        for name, (path, selector) in SCREENS.items():
            await take(page, name, path, selector)


async def take(page: Page, name: str, path: str, selector: str) -> None:
    for scheme in ("light", "dark"):
        # The page is loaded in each scheme, because charts take their colours when they are drawn.
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await page.goto(path)
        await page.get_by_role("main").locator(selector).first.wait_for()
        await page.wait_for_load_state("networkidle")
        file = IMAGES / f"console-{name}-{scheme}.png"
        write(file, await page.screenshot())
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")


def write(file: Path, picture: bytes) -> None:
    """Store a screenshot as a PNG with a palette, a third of the size of the original."""
    with Image.open(io.BytesIO(picture)) as original:
        palette = original.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    palette.save(file, optimize=True)


if __name__ == "__main__":
    main()
