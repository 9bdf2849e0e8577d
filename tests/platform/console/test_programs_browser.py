"""The programs that are shown with a new API key. Those for curl and Python are run as they are shown."""

import asyncio
import subprocess
import sys
from collections.abc import Callable

from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

TABS = ["curl", "Python", "Node", "Claude Code", "Codex"]
INTERPRETERS = {"curl": ("bash", "-c"), "Python": (sys.executable, "-c")}


async def shown(page: Page, name: str) -> str:
    """Return the program in the tab."""
    await page.get_by_role("tab", name=name, exact=True).click()
    return await page.get_by_role("tabpanel", name=name, exact=True).locator("code").inner_text()


async def run(name: str, program: str) -> str:
    ran = await asyncio.to_thread(
        subprocess.run, [*INTERPRETERS[name], program], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def test_the_first_steps_show_programs_and_open_the_record_of_the_request(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/start")
    await page.get_by_role("button", name="Create key").click()
    key = await page.get_by_label("Your new API key").inner_text()
    await expect(page.get_by_role("tab")).to_have_text(TABS)
    programs = {name: await shown(page, name) for name in TABS}
    for name, program in programs.items():
        assert key in program, name
    await expect(page.get_by_role("status").filter(has_text="Waiting for the first request")).to_be_visible()
    # The page opens the record by itself only if the key was stored before the request arrived.
    await page.get_by_role("button", name="I have stored the key").click()
    for name in INTERPRETERS:
        assert "Hello, Gatehouse" in await run(name, programs[name])
    detail = page.get_by_role("complementary", name="Request")
    await expect(detail.get_by_role("region", name="Tokens and cost")).to_contain_text("$")
    await expect(detail).to_contain_text("A test's user")


async def test_a_new_key_is_shown_with_programs_for_a_model_that_the_user_may_use(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin = api(server, new_user("admin"))
    who = await sign_in("user", "/console/keys")
    group = f"/api/admin/groups/{admin.post('/api/admin/groups', json={'name': 'Without echo'}).json()['id']}"
    admin.post(f"{group}/members", json={"user_id": str(who.id)}).raise_for_status()
    admin.post(f"{group}/model-access", json={"model_id": "sandbox/echo", "access_type": "DENY"}).raise_for_status()
    usable = {model["id"] for model in api(server, who).get("/v1/models").json()["data"]}
    assert usable
    assert "sandbox/echo" not in usable
    try:
        await page.get_by_role("button", name="Create key").first.click()
        await modal(page).get_by_label("Name").fill("programs")
        await page.keyboard.press("Enter")
        await expect(modal(page).get_by_role("tabpanel")).not_to_contain_text("sandbox/echo")
        for name in ("Python", "Node", "Codex"):
            program = await shown(page, name)
            assert "sandbox/echo" not in program
            assert any(f'"{model}"' in program for model in usable), program
        program = await shown(page, "Claude Code")
        for variable in ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"):
            assert any(f"export {variable}={model}\n" in program for model in usable), program
    finally:
        admin.delete(group).raise_for_status()
