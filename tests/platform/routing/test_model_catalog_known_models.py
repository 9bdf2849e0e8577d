"""Known models (docs/providers.md, Known models): the data, files of the same form, and the entries that they fill."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.providers import KINDS
from gatehouse.platform.routing.model_catalog import known_models
from gatehouse.platform.routing.model_catalog.known_models import BadPriceFile, KnownModel, built_in, parse, vendor_of
from gatehouse.platform.routing.providers.presets import PRESETS
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

BASE = "/api/admin/models/catalog"
FILE = """
[openai.small]
context_window = 9_000
max_output_tokens = 500
capabilities = { vision = true, function_calling = false }
usd_per_million_tokens = { input = 0.15, cached_input = 0.075, output = 0.6 }
source_url = "https://vendor.example/prices"
recorded_on = 2026-11-01

[openai."large-2026-10-01"]
aliases = ["vendor/large"]
capabilities = { reasoning = true }
source_url = "https://vendor.example/prices"
recorded_on = 2026-11-02
"""


@pytest.fixture
def known(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake provider is the vendor `openai`, and `FILE` has the known models."""
    monkeypatch.setitem(known_models._VENDOR_BY_ORIGIN, fake.url, "openai")
    monkeypatch.setattr(known_models, "built_in", lambda: parse(FILE))


async def connect(tenant: Tenant, fake: Any) -> None:
    body = {"base_url": fake.url + "/v1"}
    assert (await tenant.admin.client.put("/api/admin/providers/mine/credentials", json=body)).status_code == 200


async def synced(tenant: Tenant) -> dict[str, dict[str, Any]]:
    assert (await tenant.admin.client.post(f"{BASE}/sync")).status_code == 200
    return {entry["model_id"]: entry for entry in (await tenant.admin.client.get(BASE)).json()["items"]}


@pytest.mark.parametrize("key", built_in().models, ids="/".join)
def test_an_entry_of_the_data_is_plausible(key: tuple[str, str]) -> None:
    model = built_in().models[key]
    assert date(2025, 1, 1) <= model.recorded_on <= date(2026, 12, 31)
    assert model.context_window is None or 256 <= model.context_window <= 20_000_000
    if model.max_output_tokens is not None and model.context_window is not None:
        assert model.max_output_tokens <= model.context_window
    prices = model.usd_per_million_tokens
    if prices is not None:
        assert prices.input <= 1_000
        assert prices.output is None or prices.input <= prices.output <= 2_000
        assert prices.cached_input is None or prices.cached_input <= prices.input
        assert prices.cache_write is None or prices.input <= prices.cache_write <= 2 * prices.input
    if model.capabilities.embeddings:
        assert not any(model.capabilities.model_dump(exclude={"embeddings", "vision"}).values())


def test_the_data_has_models_of_kinds_and_presets() -> None:
    vendors = {vendor for vendor, _ in built_in().models}
    assert vendors <= KINDS.keys() | PRESETS.keys()
    assert {"openai", "anthropic", "gemini", "mistral", "bedrock", "groq"} <= vendors
    assert len(built_in().models) >= 60


@pytest.mark.parametrize(
    ("provider", "vendor"),
    [
        ({"kind": "openai"}, "openai"),
        ({"kind": "openai", "config": ProviderConfig(base_url="https://API.openai.com/v1")}, "openai"),
        ({"kind": "openai", "config": ProviderConfig(base_url="https://proxy.example/v1")}, None),
        ({"kind": "openai_compatible", "config": ProviderConfig(base_url="https://api.groq.com/openai/v1")}, "groq"),
        ({"kind": "openai_compatible", "config": ProviderConfig(base_url="http://api.groq.com/openai/v1")}, None),
        ({"kind": "openai_compatible", "config": ProviderConfig(base_url="http://localhost:8000/v1")}, None),
        ({"kind": "bedrock", "config": ProviderConfig(cloud_region="us-east-1")}, "bedrock"),
        ({"kind": "bedrock", "config": ProviderConfig(cloud_region="eu-central-1")}, None),
        ({"kind": "ollama"}, None),
        ({"kind": "sandbox"}, None),
    ],
)
def test_a_provider_is_a_vendors_if_its_calls_go_to_the_vendors_address(
    provider: dict[str, Any], vendor: str | None
) -> None:
    assert vendor_of(ProviderRecord(id="any", name="Any", **provider)) == vendor


PRESET = """
[presets.{name}]
name = "Models of a team"
dialect = "openai"
base_url = "https://{host}/{name}/v1"
key_required = true
source_url = "https://proxy.example/models"
recorded_on = 2026-11-01

[{name}.small]
source_url = "https://proxy.example/{name}"
recorded_on = 2026-11-01
"""


@pytest.mark.parametrize(
    ("config", "vendor"),
    [
        ({"base_url": "https://proxy.example/team-a/v1"}, "team-a"),
        ({"base_url": "https://proxy.example/team-b/v1"}, "team-b"),
        ({"base_url": "https://proxy.example/other/v1", "preset": "team-a"}, "team-a"),
        ({"base_url": "https://proxy.example/other/v1"}, None),
        ({"base_url": "https://elsewhere.example/team-a/v1", "preset": "team-a"}, None),
        ({"base_url": "https://single.example/other/v1"}, "single"),
        ({"base_url": "https://api.groq.com/openai/v1", "preset": "groq"}, None),
        ({"base_url": "https://api.groq.com/other"}, None),
    ],
)
def test_presets_at_one_host_have_their_own_models(config: dict[str, Any], vendor: str | None) -> None:
    hosts = {
        "team-a": "proxy.example", "team-b": "proxy.example", "single": "single.example", "ours": "api.groq.com",
    }  # fmt: skip
    known = parse("".join(PRESET.format(name=name, host=host) for name, host in hosts.items()))
    provider = ProviderRecord(id="any", name="Any", kind="openai_compatible", config=ProviderConfig(**config))
    model = known.find_at(provider, "small")
    assert (None if model is None else model.source_url.rsplit("/", 1)[1]) == vendor


ENTRY = '[openai.x]\nsource_url = "https://vendor.example"\nrecorded_on = 2026-11-01\n'


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("models = ", "not valid TOML"),
        ("a = " + "[" * 100_000, "not valid TOML"),
        (ENTRY + ENTRY, "Cannot declare ('openai', 'x') twice (at line 4"),
        ("\n\n[nobody.x]\n", "line 3: nobody: is not a vendor"),
        ("openai = 3\n", "openai: must be a table"),
        ('[openai."two words"]\n', 'line 1: openai."two words": a model id'),
        ("[openai.x]\n", "line 1: openai.x.source_url: Field required"),
        (ENTRY + "price = 3\n", "line 1: openai.x.price: Extra inputs"),
        (ENTRY.replace("https", "http"), "openai.x.source_url"),
        (ENTRY.replace("2026-11-01", "'soon'"), "openai.x.recorded_on"),
        (ENTRY + "context_window = 0\n", "openai.x.context_window"),
        (ENTRY + "capabilities = { flying = true }\n", "openai.x.capabilities.flying"),
        (ENTRY + "usd_per_million_tokens = { input = -1, output = 1 }\n", "usd_per_million_tokens.input"),
        (ENTRY + "usd_per_million_tokens = { input = nan, output = 1 }\n", "usd_per_million_tokens.input"),
        (ENTRY + "usd_per_million_tokens = { input = 1, output = 100_001 }\n", "usd_per_million_tokens.output"),
        (ENTRY + "usd_per_million_tokens = { input = 1 }\n", "usd_per_million_tokens.output: is required"),
        (ENTRY + ENTRY.replace(".x]", ".y]") + 'aliases = ["x"]\n', "line 4: openai.y: 'x' is also a name of 'x'"),
    ],
)
def test_a_fault_is_named_with_its_line_and_key(content: str, fault: str) -> None:
    with pytest.raises(BadPriceFile) as error:
        parse(content)
    assert fault in str(error.value)


def test_all_faults_are_named_up_to_a_limit() -> None:
    content = "".join(f"[openai.m{number}]\n" for number in range(30))
    with pytest.raises(BadPriceFile) as error:
        parse(content)
    lines = str(error.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 40 more")


def test_prices_are_exact_per_token() -> None:
    model = parse(FILE).find("openai", "small")
    assert isinstance(model, KnownModel)
    assert model.usd_per_million_tokens is not None
    assert model.usd_per_million_tokens.columns == {
        "cost_per_input_token": Decimal("0.00000015"), "cost_per_output_token": Decimal("0.0000006"),
        "cost_per_cached_input_token": Decimal("0.000000075"), "cost_per_cache_write_token": None,
    }  # fmt: skip
    assert parse(FILE).find("openai", "vendor/large") is not None
    assert parse(FILE).find("groq", "small") is None


@pytest.mark.usefixtures("known")
async def test_a_sync_adds_values_that_the_provider_does_not_state(tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    discovered = {model["model_id"]: model for model in (await tenant.admin.client.get(f"{BASE}/discover")).json()}
    small = discovered["small"]
    # The provider states a window of 8,000.
    assert (small["context_window"], small["max_tokens"], small["supports_vision"]) == (8_000, 500, True)
    assert (small["cost_per_input_token"], small["cost_per_output_token"]) == (0.00000015, 0.0000006)
    entries = await synced(tenant)
    small = entries["small"]
    assert (small["context_window"], small["max_output_tokens"]) == (8_000, 500)
    assert small["capabilities"] == {
        "streaming": True, "function_calling": False, "vision": True, "structured_output": None, "embeddings": None,
        "code_execution": None, "moderation": None, "rerank": None, "image_generation": None, "transcription": None,
        "speech": None, "reasoning": None, "max_context_window": 8_000,
    }  # fmt: skip
    assert (small["cost_per_input_token"], small["cost_per_cached_input_token"]) == (0.00000015, 0.000000075)
    assert (small["price_source"], small["price_recorded_on"]) == ("known_models", "2026-11-01")
    large = entries["vendor/large"]
    assert (large["capabilities"]["reasoning"], large["cost_per_input_token"]) == (True, None)
    assert (large["price_source"], large["price_recorded_on"]) == (None, None)


@pytest.mark.usefixtures("known")
async def test_a_price_that_an_administrator_changes_is_the_administrators(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    entry = (await synced(tenant))["small"]
    path = f"{BASE}/{entry['id']}"
    # The whole entry as it was read, with another name: the prices are unchanged.
    same = (await tenant.admin.client.put(path, json={**entry, "display_name": "Small"})).json()
    assert (same["display_name"], same["price_source"]) == ("Small", "known_models")
    changed = (await tenant.admin.client.put(path, json={"cost_per_output_token": 0.000001})).json()
    assert (changed["price_source"], changed["price_recorded_on"]) == ("administrator", None)
    assert changed["cost_per_input_token"] == entry["cost_per_input_token"]
    forged = await tenant.admin.client.put(path, json={"price_source": "known_models"})
    assert (forged.status_code, forged.json()["detail"][0]["loc"]) == (422, ["body", "price_source"])
    assert (await synced(tenant))["small"]["cost_per_output_token"] == 0.000001


@pytest.mark.usefixtures("known")
async def test_a_capability_can_become_unknown(tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    entry = (await synced(tenant))["small"]
    body = {"capabilities": {"vision": None, "structured_output": True}}
    changed = (await tenant.admin.client.put(f"{BASE}/{entry['id']}", json=body)).json()
    assert (changed["supports_vision"], changed["capabilities"]["vision"]) == (None, None)
    assert (changed["capabilities"]["structured_output"], changed["capabilities"]["function_calling"]) == (True, False)


@pytest.mark.usefixtures("known")
async def test_a_new_entry_has_the_known_values_that_are_not_sent(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)

    async def created(model_id: str, **fields: Any) -> dict[str, Any]:
        body = {"provider": "mine", "model_id": model_id, **fields}
        answer = await tenant.admin.client.post(BASE + "/", json=body)
        assert answer.status_code == 201, answer.text
        entry: dict[str, Any] = answer.json()
        await tenant.admin.client.delete(f"{BASE}/{entry['id']}")
        return entry

    entry = await created("small", max_output_tokens=7, capabilities={"vision": False})
    assert (entry["context_window"], entry["max_output_tokens"], entry["supports_vision"]) == (9_000, 7, False)
    assert (entry["capabilities"]["function_calling"], entry["capabilities"]["reasoning"]) == (False, None)
    assert (entry["cost_per_output_token"], entry["price_source"]) == (0.0000006, "known_models")
    entry = await created("small", cost_per_input_token=0.000001, context_window=None)
    assert (entry["cost_per_output_token"], entry["price_source"]) == (None, "administrator")
    assert entry["context_window"] is None
    assert (await created("small", cost_per_input_token=None))["price_source"] is None
    assert (await created("other"))["price_source"] is None
    first, *_ = await platform.audit(tenant, "model_config.created")
    assert first["details"]["price_recorded_on"] == "2026-11-01"
