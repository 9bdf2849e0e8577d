"""The table of model access: the server filters and paginates models and rules."""

from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from playwright.async_api import Page, Request, expect
from tests.platform.console.conftest import OtherUser, SignIn, api
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

GROUPS = "/api/admin/groups"
CATALOG = "/api/admin/models/catalog/"
MODELS = 60


@pytest.fixture
def group(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> Iterator[tuple[httpx2.Client, str]]:
    """An administrator's client and the path of a group with a rule for each of 60 models."""
    admin = api(server, new_user("admin"))
    path = f"{GROUPS}/{admin.post(GROUPS, json={'name': 'Many rules'}).json()['id']}"
    ids = []
    for number in range(MODELS):
        model = f"ruled-{number:02}"
        created = admin.post(CATALOG, json={"provider": "sandbox", "model_id": model})
        ids.append(created.raise_for_status().json()["id"])
        rule = {"model_id": f"sandbox/{model}", "access_type": "ALLOW"}
        admin.post(f"{path}/model-access", json=rule).raise_for_status()
    yield admin, path
    admin.delete(path).raise_for_status()
    for model_id in ids:
        admin.delete(f"{CATALOG}{model_id}").raise_for_status()


async def test_models_with_rules_are_loaded_by_page_and_edits_of_two_pages_are_saved(
    page: Page, sign_in: SignIn, group: tuple[httpx2.Client, str]
) -> None:
    admin, path = group
    sent: list[str] = []

    def note(request: Request) -> None:
        if "model-access" in request.url or "/models/catalog" in request.url:
            sent.append(request.url)

    page.on("request", note)
    await sign_in("admin", "/console/access?ruled=true&group=Many+rules&search=ruled-")
    rows = page.get_by_role("table", name="Model access").get_by_role("row")
    await expect(rows).to_have_count(51)
    await page.get_by_role("combobox", name="sandbox/ruled-00 for Many rules").select_option("No rule")
    await page.get_by_role("navigation", name="Pages of models").get_by_role("button", name="Next page").click()
    await expect(rows).to_have_count(MODELS - 50 + 1)
    await page.get_by_role("combobox", name="sandbox/ruled-59 for Many rules").select_option("Deny")
    # The edit of the page that is no longer shown is saved too.
    await page.get_by_role("button", name="Save 2 changes").click()
    await expect(page.get_by_text("2 changes were saved.").first).to_be_visible()
    rules = {rule["model_id"]: rule["access_type"] for rule in admin.get(f"{path}/model-access").json()}
    assert len(rules) == MODELS - 1
    assert "sandbox/ruled-00" not in rules
    assert rules["sandbox/ruled-59"] == "DENY"
    reads = [urlsplit(url) for url in sent if "model-access/models?" in url]
    assert {part.path for part in map(urlsplit, sent) if "catalog" in part.path} == set()
    assert f"{GROUPS}/model-access" not in {urlsplit(url).path for url in sent}
    assert {parse_qs(part.query)["limit"][0] for part in reads} == {"50"}
    assert {parse_qs(part.query)["offset"][0] for part in reads} == {"0", "50"}
