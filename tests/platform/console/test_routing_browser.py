"""Providers, models, routing policies and the model registry in Chromium: the main task of each, by clicking."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

from playwright.async_api import Page, expect
from tests.platform.console.conftest import (
    OtherUser,
    SignIn,
    api,
    call_model,
    check_screen,
    modal,
    recorded_call,
)
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer
from tests.support.vendors.google_cloud import KEY

pytestmark = needs_chromium

#: A closed port: a provider at this address is unreachable.
BASE_URL = "http://127.0.0.1:9/v1"
SECRET = "sk-of-the-console-4711"
CATALOG = "/api/admin/models/catalog/"
POLICIES = "/api/admin/cost-routing/policies"
#: Buttons that only administrators have.
CHANGES = re.compile("Add|Actions for|New policy|Simulate|Discover|Register model|Move")


def new_name(kind: str) -> str:
    return f"{kind} {uuid4().hex[:8]}"


async def choose(page: Page, name: str, item: str) -> None:
    """Choose an item of the menu in the row with this name."""
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=item).click()


async def test_a_provider_is_added_checked_and_disabled(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/providers")
    await expect(page.get_by_role("row").filter(has_text="Sandbox")).to_contain_text("Built-in sandbox")
    row = page.get_by_role("row", name=re.compile("in-house"))
    await page.get_by_role("button", name="Add provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("openai_compatible")
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(dialog.get_by_role("alert").first).to_have_text("Enter a value.")
    await dialog.get_by_label("Name in model ids").fill("in-house")
    await dialog.get_by_label("Base URL").fill("not a URL")
    await dialog.get_by_label("API key").fill(SECRET)
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(dialog.get_by_label("Base URL")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Base URL").fill(BASE_URL)
    await dialog.get_by_role("button", name="Add provider").click()
    await expect(row).to_contain_text("Active")
    await check_screen(page)

    await choose(page, "in-house", "Check health now")
    await expect(page.get_by_text("in-house is not healthy").first).to_be_visible()
    await expect(row).to_contain_text("Unreachable")
    await choose(page, "in-house", "Disable")
    await expect(row).to_contain_text("Disabled")
    await choose(page, "in-house", "Enable")
    await expect(row).to_contain_text("Active")
    await choose(page, "in-house", "Replace credentials")
    await expect(dialog.get_by_label("Base URL")).to_have_value(BASE_URL)
    await expect(dialog.get_by_label("API key")).to_have_value("")
    assert SECRET not in await page.content()
    await dialog.get_by_role("button", name="Cancel").click()
    # A self-hosted provider needs no credentials, so there is no menu item to remove them.
    await page.get_by_role("button", name="Actions for in-house").click()
    await expect(page.get_by_role("menuitem", name="Remove credentials")).to_have_count(0)
    await page.keyboard.press("Escape")


async def test_a_providers_credentials_are_removed(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/providers")
    await page.get_by_role("button", name="Add provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("mistral")
    await dialog.get_by_label("API key").fill(SECRET)
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    await choose(page, "Mistral", "Remove credentials")
    await dialog.get_by_role("button", name="Remove credentials").click()
    await expect(page.get_by_role("row", name=re.compile("mistral"))).to_contain_text("No credentials")
    assert server.sql("SELECT sealed_credentials FROM providers WHERE id = 'mistral'") == [(None,)]


async def test_a_service_is_added_from_a_preset_and_removed(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/providers")
    await page.get_by_role("button", name="Add provider").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("Groq")
    await expect(dialog.get_by_label("Name in model ids")).to_have_value("groq")
    await expect(dialog.get_by_label("Base URL")).to_have_value("https://api.groq.com/openai/v1")
    documentation = dialog.get_by_role("link", name="Documentation of Groq")
    await expect(documentation).to_have_attribute("href", "https://console.groq.com/docs/openai")
    await check_screen(page)
    await dialog.get_by_role("button", name="Add provider").press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a value.")
    await dialog.get_by_label("API key").fill(SECRET)
    await dialog.get_by_role("button", name="Add provider").press("Enter")
    await expect(dialog).to_be_hidden()
    row = page.get_by_role("row").filter(has_text="groq")
    await expect(row).to_contain_text("Groq")
    query = "SELECT name, kind, config->>'base_url' FROM providers WHERE id = 'groq'"
    assert server.sql(query) == [("Groq", "openai_compatible", "https://api.groq.com/openai/v1")]

    # A self-hosted server (vLLM) needs no API key, and the base URL of the preset can be changed.
    await page.get_by_role("button", name="Add provider").click()
    await dialog.get_by_label("Provider").select_option("vLLM")
    await dialog.get_by_label("Base URL").fill(BASE_URL)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row").filter(has_text="vllm")).to_contain_text("Active")

    for name in ("Groq", "vLLM"):
        await choose(page, name, "Remove…")
        await dialog.get_by_role("button", name="Remove").click()
        await expect(dialog).to_be_hidden()
        await expect(page.get_by_role("row").filter(has_text=name)).to_have_count(0)
    assert server.sql("SELECT id FROM providers WHERE id IN ('groq', 'vllm')") == []


async def test_a_way_of_authentication_is_chosen(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/providers")
    dialog = modal(page)
    await page.get_by_role("button", name="Add provider").click()
    await dialog.get_by_label("Provider").select_option("Amazon Bedrock")
    await expect(dialog.get_by_label("Access key id")).to_be_visible()
    await dialog.get_by_label("Authentication").select_option("API key")
    await expect(dialog.get_by_label("Access key id")).to_have_count(0)
    await dialog.get_by_label("API key").fill("ABSK-of-the-console-4711")
    await dialog.get_by_label("Region").fill("eu-central-1")
    await check_screen(page)
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    await page.get_by_role("button", name="Add provider").click()
    await dialog.get_by_label("Provider").select_option("Google Vertex AI")
    await expect(dialog.get_by_label("Authentication")).to_have_count(0)
    await dialog.get_by_label("Key of a service account").fill(json.dumps(KEY, indent=2).replace("\n", ""))
    await dialog.get_by_label("Project").fill("our-project")
    await dialog.get_by_label("Location").fill("europe-west4")
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    query = "SELECT id FROM providers WHERE kind IN ('bedrock', 'vertex_ai') AND sealed_credentials IS NOT NULL"
    assert server.sql(f"{query} ORDER BY id") == [("bedrock",), ("vertex_ai",)]
    for name in ("Amazon Bedrock", "Google Vertex AI"):
        await choose(page, name, "Remove…")
        await dialog.get_by_role("button", name="Remove").click()
        await expect(dialog).to_be_hidden()


async def test_a_second_account_of_a_kind_has_its_own_name(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/providers")
    dialog = modal(page)
    for name, endpoint in (("azure_openai", "https://one.example"), ("azure-eu", "https://two.example")):
        await page.get_by_role("button", name="Add provider").click()
        await dialog.get_by_label("Provider").select_option("Azure OpenAI")
        await dialog.get_by_label("API key").fill(SECRET)
        await dialog.get_by_label("Endpoint").fill(endpoint)
        if name == "azure-eu":
            await expect(dialog.get_by_label("Name in model ids")).to_have_value("azure-openai-2")
            await dialog.get_by_label("Name in model ids").fill("azure_openai")
            await page.keyboard.press("Enter")
            await expect(dialog.get_by_role("alert")).to_contain_text("A provider of this name exists.")
            await assert_accessible(page)
            await dialog.get_by_label("Name in model ids").fill(name)
        await page.keyboard.press("Enter")
        await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("row").filter(has_text="azure-eu")).to_contain_text("Azure OpenAI")
    await check_screen(page)
    query = "SELECT id, kind, config->>'hosted_endpoint' FROM providers WHERE kind = 'azure_openai' ORDER BY id"
    assert server.sql(query) == [
        ("azure-eu", "azure_openai", "https://two.example"),
        ("azure_openai", "azure_openai", "https://one.example"),
    ]
    await choose(page, "azure-eu", "Replace credentials")
    await dialog.get_by_label("API key").fill("another")
    await dialog.get_by_role("button", name="Save credentials").click()
    await expect(dialog).to_be_hidden()
    for name in ("azure-eu", "Azure OpenAI"):
        await choose(page, name, "Remove…")
        await dialog.get_by_role("button", name="Remove").click()
        await expect(dialog).to_be_hidden()
    assert server.sql(query) == []


async def test_a_model_is_added_edited_deactivated_and_removed(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    caller = api(server, new_user("user"))
    key = caller.post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    await sign_in("admin", "/console/models")
    await check_screen(page)
    await page.get_by_role("button", name="Add model").click()
    dialog = modal(page)
    await dialog.get_by_label("Provider").select_option("sandbox")
    await dialog.get_by_label("Model id").fill("of-the-console")
    await dialog.get_by_label("Name", exact=True).fill("Model of the console")
    await dialog.get_by_label("input tokens").fill("0.15")
    await dialog.get_by_label("output tokens").fill("abc")
    await dialog.get_by_role("button", name="Add model").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a number.")
    await dialog.get_by_label("output tokens").fill("0.6")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Add model").click()
    await page.get_by_label("Search").fill("of-the-console")
    await page.keyboard.press("Enter")
    row = page.get_by_role("row", name=re.compile("Model of the console"))
    await expect(row).to_contain_text("$0.15")
    query = "SELECT cost_per_input_token, cost_per_output_token FROM model_configs WHERE model_id = 'of-the-console'"
    assert server.sql(query) == [(Decimal("0.00000015"), Decimal("0.0000006"))]

    await choose(page, "Model of the console", "Edit")
    await dialog.get_by_label("output tokens").fill("")
    await dialog.get_by_label("Access").select_option("restricted")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("no price")
    await expect(row).to_contain_text("Only groups with an access rule")
    assert call_model(server, key, model="sandbox/of-the-console").status_code == 404
    await choose(page, "Model of the console", "Deactivate")
    await expect(row).to_contain_text("Inactive")
    await choose(page, "Model of the console", "Activate")
    await expect(row).to_contain_text("Active")
    await choose(page, "Model of the console", "Remove")
    await dialog.get_by_role("button", name="Remove model").click()
    await expect(page.get_by_role("heading", name="No model matches the filters")).to_be_visible()
    assert server.sql(query) == []


async def test_new_models_of_the_providers_are_chosen_and_added(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    query = "SELECT model_id FROM model_configs WHERE model_id IN ('embed', 'slow-200ms') AND provider = 'sandbox'"
    server.sql("DELETE FROM model_configs WHERE model_id IN ('embed', 'slow-200ms')")
    await sign_in("admin", "/console/models")
    dialog = modal(page)
    await page.get_by_role("button", name="Discover").click()
    await expect(dialog.get_by_label("sandbox/slow-200ms")).not_to_be_checked()
    await dialog.get_by_role("button", name="Add 0 models").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Choose a model.")
    await dialog.get_by_label("sandbox/embed").check()
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Add one model").click()
    await expect(page.get_by_text("One model was added.").first).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("sandbox.embed"))).to_be_visible()
    assert server.sql(query) == [("embed",)]
    await page.get_by_role("button", name="Discover").press("Enter")
    await dialog.get_by_role("button", name=re.compile("Choose all")).click()
    await dialog.get_by_role("button", name=re.compile("^Add")).click()
    await expect(dialog).to_be_hidden()
    assert sorted(server.sql(query)) == [("embed",), ("slow-200ms",)]
    await page.get_by_role("button", name="Discover").click()
    await expect(dialog.get_by_role("status")).to_have_text("The catalog has all models of its providers.")
    await dialog.get_by_role("button", name="Done").click()


async def test_a_custom_endpoint_is_added_with_its_models(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/models")
    await page.get_by_role("button", name="Add your own endpoint").click()
    dialog = modal(page)
    await dialog.get_by_label("Name in model ids").fill("our-lab")
    await dialog.get_by_label("Display name").fill("Our lab")
    await dialog.get_by_label("Base URL").fill("not a URL")
    await dialog.get_by_label("API key").fill(SECRET)
    await dialog.get_by_role("button", name="Add another model").click()
    for number, model in enumerate(("small", "large"), start=1):
        group = dialog.get_by_role("group", name=f"Model {number}")
        await group.get_by_label("Model id").fill(model)
        await group.get_by_label("Context window").fill("8192")
        await group.get_by_label("million input tokens").fill("0.15")
        await group.get_by_label("million output tokens").fill("0.6")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Add endpoint").click()
    await expect(dialog.get_by_label("Base URL")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Base URL").fill(BASE_URL)
    await dialog.get_by_role("button", name="Add endpoint").click()
    await expect(page.get_by_text("Our lab was added.").first).to_be_visible()
    query = "SELECT model_id, cost_per_input_token FROM model_configs WHERE provider = 'our-lab' ORDER BY model_id"
    assert server.sql(query) == [("large", Decimal("0.00000015")), ("small", Decimal("0.00000015"))]
    await page.get_by_label("Search").fill("large")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row", name=re.compile("our-lab.large"))).to_be_visible()


# routing policies -----------------------------------------------------------------------------------------------------


async def test_a_routing_policy_is_created_simulated_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin = api(server, new_user("admin"))
    for model, price in {"tokens-1-1": 0.000001, "tokens-2-2": 0.000002}.items():
        prices = {"cost_per_input_token": price, "cost_per_output_token": price}
        admin.post(CATALOG, json={"provider": "sandbox", "model_id": model, **prices}).raise_for_status()
    group = new_name("Support")
    group_id = admin.post("/api/admin/groups", json={"name": group}).json()["id"]
    name = new_name("Cheap")
    await sign_in("admin", "/console/routing")
    await expect(page.get_by_role("heading", name="No routing policies yet")).to_be_visible()

    await page.get_by_role("button", name="New policy").press("Enter")
    dialog = modal(page)
    create = dialog.get_by_role("button", name="Create")
    await create.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a name.")
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label(group).check()
    await dialog.get_by_role("group", name="Providers").get_by_label("Sandbox").check()
    await dialog.get_by_label("Excluded models").fill("sandbox/echo")
    await dialog.get_by_label("Highest input price").fill("2.5")
    for label, model in {"Model 1": "sandbox/tokens-2-2", "Model 2": "sandbox/absent"}.items():
        await dialog.get_by_role("button", name="Add a model").press("Enter")
        await dialog.get_by_label(label, exact=True).fill(model)
    await dialog.get_by_label("Highest cost of a request").fill("0.05")
    await dialog.get_by_label("If a request costs more").select_option("Use the cheapest model")
    await assert_accessible(page)
    await create.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("must be a model of this provider in the catalog")
    await expect(dialog.get_by_label("Model 2", exact=True)).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Model 2", exact=True).fill("sandbox/tokens-1-1")
    await dialog.get_by_role("button", name="Move model 2 up").press("Enter")
    await check_screen(page)
    await create.press("Enter")
    await expect(dialog).to_be_hidden()
    row = page.get_by_role("row").filter(has_text=name)
    await expect(row).to_contain_text("Then sandbox/tokens-1-1, sandbox/tokens-2-2")
    await expect(row).to_contain_text(group)
    policy = admin.get(POLICIES).json()["policies"][0]
    assert policy["group_ids"] == [group_id]
    assert policy["model_filters"]["max_cost_per_1k_input_tokens_usd"] == 0.0025
    assert [entry["model_id"] for entry in policy["fallback_chain"]] == ["tokens-1-1", "tokens-2-2"]
    assert policy["cost_cap"] == {"max_cost_per_request_usd": 0.05, "action_on_exceed": "use_cheapest"}

    await page.get_by_role("button", name="New policy").click()
    await dialog.get_by_label("Name").fill(new_name("Second"))
    await dialog.get_by_label(group).check()
    await create.click()
    await expect(dialog.get_by_role("alert")).to_contain_text(name)
    await dialog.get_by_role("button", name="Cancel").click()

    await choose(page, name, "Simulate")
    simulation = page.get_by_role("region", name="Simulate a request")
    await simulation.get_by_role("button", name="Simulate").press("Enter")
    candidates = simulation.get_by_role("list", name="Considered models").get_by_role("listitem")
    await expect(candidates.nth(0)).to_contain_text("Selected")
    await expect(candidates.nth(0)).to_contain_text("sandbox/tokens-1-1")
    await expect(candidates.nth(0)).to_contain_text("$0.0015")
    await expect(candidates.nth(1)).to_contain_text("Fallback")
    await expect(candidates.filter(has_text="sandbox/echo")).to_contain_text(
        "excluded by the policy's filters: excluded_models"
    )
    await simulation.get_by_label("Input tokens").fill("-1")
    await simulation.get_by_role("button", name="Simulate").click()
    await expect(simulation.get_by_role("status")).to_contain_text("estimated_input_tokens")
    await simulation.get_by_label("Input tokens").fill("100000000")
    await simulation.get_by_role("button", name="Simulate").click()
    await expect(simulation).to_contain_text("Refused")
    await expect(candidates.nth(0)).to_contain_text("above the cost cap")
    await check_screen(page)

    await choose(page, name, "Edit")
    await dialog.get_by_role("button", name="Remove model 1").click()
    await dialog.get_by_label(group).uncheck()
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("Then sandbox/tokens-2-2")
    await choose(page, name, "Disable")
    await expect(row).to_contain_text("Disabled")
    await page.get_by_label("Status", exact=True).select_option("Enabled")
    await expect(page.get_by_role("heading", name="Nothing matches the filters")).to_be_visible()
    assert "enabled=true" in page.url
    await page.get_by_role("button", name="Clear").first.click()
    policy = admin.get(POLICIES).json()["policies"][0]
    assert (policy["group_ids"], policy["enabled"], len(policy["fallback_chain"])) == ([], False, 1)
    await choose(page, name, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No routing policies yet")).to_be_visible()
    assert admin.get(POLICIES).json()["total"] == 0


# model registry -------------------------------------------------------------------------------------------------------


async def test_called_models_are_discovered_and_registered(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    key = api(server, new_user("user")).post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    recorded_call(server, key)
    await sign_in("admin", "/console/registry")
    await expect(page.get_by_role("heading", name="No models are registered")).to_be_visible()
    await page.get_by_role("button", name="Discover").press("Enter")
    dialog = modal(page)
    await dialog.get_by_label("Days").fill("400")
    await dialog.get_by_role("button", name="Preview").click()
    await expect(dialog.get_by_label("Days")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Days").fill("7")
    await dialog.get_by_label("Risk tier").select_option("Tier 3: moderate")
    await dialog.get_by_role("button", name="Preview").press("Enter")
    await expect(dialog.get_by_role("list", name="Models that are not registered")).to_contain_text("sandbox/echo")
    assert server.sql("SELECT count(*) FROM registered_models") == [(0,)]
    await check_screen(page)
    await dialog.get_by_role("button", name=re.compile("Add [0-9]+ draft")).press("Enter")
    await expect(dialog).to_be_hidden()
    row = page.get_by_role("row").filter(has_text="sandbox/echo")
    await expect(row).to_contain_text("Tier 3")
    await expect(row).to_contain_text("Draft")
    await choose(page, "sandbox/echo", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row).to_have_count(0)


async def test_a_model_is_registered_validated_and_its_evidence_downloaded(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/registry")
    dialog = modal(page)
    for attempt in ("first", "second"):
        await page.get_by_role("button", name="Register model").click()
        await dialog.get_by_label("Model", exact=True).fill("gpt-9")
        await dialog.get_by_role("button", name="Register model").click()
        await expect(dialog.get_by_role("alert")).to_have_text("Enter provider/model-id.")
        await dialog.get_by_label("Model", exact=True).fill("acme/gpt-9")
        await dialog.get_by_label("Risk tier").select_option("Tier 2: high")
        await dialog.get_by_label("Tags").fill("region=eu\ncustomer-facing")
        await dialog.get_by_role("button", name="Register model").click()
        if attempt == "first":
            await expect(dialog).to_be_hidden()
    await expect(dialog.get_by_role("alert")).to_contain_text("acme")
    await dialog.get_by_role("button", name="Cancel").click()
    tags = {"region": "eu", "customer-facing": ""}
    query = "SELECT risk_tier, validation_status, tags::jsonb, owner FROM registered_models WHERE model_id = 'gpt-9'"
    assert server.sql(query) == [("tier_2", "draft", tags, None)]
    await choose(page, "acme/gpt-9", "Edit")
    await dialog.get_by_label("Owner").fill("Model risk")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("row").filter(has_text="acme/gpt-9")).to_contain_text("Model risk")
    assert server.sql(query) == [("tier_2", "draft", tags, "Model risk")]

    await page.get_by_role("button", name="Evidence of acme/gpt-9").press("Enter")
    for status in ("Pending validation", "In validation", "Validated"):
        await dialog.get_by_role("button", name=status).press("Enter")
        await dialog.last.get_by_role("button", name="Move").press("Enter")
        await expect(dialog).to_have_count(1)
        await expect(dialog.get_by_role("list", name="History").get_by_role("listitem").first).to_contain_text(status)
    assert server.sql(query)[0][1] == "validated"
    await expect(dialog.get_by_role("list", name="History")).to_contain_text("→ Model risk")
    await expect(dialog.get_by_role("group", name="Move to").get_by_role("button")).to_have_text(["Deprecated"])
    await check_screen(page)
    async with page.expect_download() as download:
        await dialog.get_by_role("button", name="Download evidence").click()
    evidence = json.loads(Path(await (await download.value).path()).read_text())
    assert [move["new_status"] for move in evidence["validation"]][-1] == "validated"
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()

    await page.get_by_label("Status", exact=True).select_option("Validated")
    await page.get_by_label("Search").fill("gpt-9")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("status=validated.*search=gpt-9|search=gpt-9.*status=validated"))
    table = page.get_by_role("table", name="Model registry")
    await expect(table).to_have_attribute("aria-busy", "false")
    await expect(table.get_by_role("row")).to_have_count(2)
    await check_screen(page)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download CSV").click()
    assert "acme" in Path(await (await download.value).path()).read_text()


# roles ----------------------------------------------------------------------------------------------------------------


async def test_auditors_can_only_read_and_users_see_no_links_to_these_pages(
    page: Page, sign_in: SignIn, server: GatehouseServer, new_user: Callable[[str], OtherUser]
) -> None:
    admin = api(server, new_user("admin"))
    body = {"name": new_name("Of the auditor"), "strategy": "balanced", "enabled": False}
    admin.post(POLICIES, json=body).raise_for_status()
    admin.post("/api/admin/models", json={"provider": "acme", "model_id": "of-the-auditor"}).raise_for_status()
    for path in ("/console/providers", "/console/models", "/console/routing", "/console/registry"):
        await page.context.clear_cookies()
        await sign_in("auditor", path)
        await expect(page.get_by_role("row").nth(1)).to_be_visible()
        await expect(page.get_by_role("button", name=CHANGES)).to_have_count(0)
    await page.get_by_role("button", name="Evidence of acme/of-the-auditor").click()
    await expect(modal(page).get_by_role("list", name="History")).to_contain_text("Registered")
    await expect(modal(page).get_by_role("group", name="Move to")).to_have_count(0)

    await page.context.clear_cookies()
    await sign_in("user")
    for name in ("Providers", "Models", "Routing", "Model registry"):
        await expect(page.get_by_role("link", name=name)).to_have_count(0)
    await page.goto("/console/registry")
    await expect(page.get_by_role("alert")).to_be_visible()
