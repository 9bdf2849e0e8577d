"""Calls of the Responses and Messages APIs, token counts, and deployments with credentials have the same results on the
platform and on an outpost: the same bytes to client and provider, and the same records."""

import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.engine.providers.wires import ANTHROPIC_EVENTS, ANTHROPIC_REPLY, OPENAI_EVENTS, OPENAI_REPLY
from tests.parity.hosts import SEALER, TENANT, State, host_engine, outpost_ports, platform_ports, results
from tests.support import native_responses as native
from tests.support.engine import EngineHarness

from gatehouse.platform.live.ports import sealing_context
from gatehouse.policy.catalog import (
    CredentialRecord,
    DeploymentRecord,
    ModelAliasRecord,
    ModelRecord,
    ProviderConfig,
    ProviderRecord,
    TenantRecords,
    credential_key,
)

CARD = "4111 1111 1111 1111"
#: The keys of the credentials at the provider, by the label of the credential.
KEYS = {"default": "sk-first-4711", "second": "sk-second-4711"}
FUNCTION = {"name": "look", "parameters": {"type": "object"}}

RESPONSES: dict[str, Any] = {
    "model": "one/m",
    "instructions": "Answer briefly.",
    "input": [
        {"role": "user", "content": f"Is {CARD} mine?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": native.ENCRYPTED},
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "y"},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "include": ["reasoning.encrypted_content"],
}
MESSAGES: dict[str, Any] = {
    "model": "one/m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Answer briefly.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": f"Is {CARD} mine?"}],
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
}
COUNTED = {name: value for name, value in MESSAGES.items() if name != "max_tokens"}
ITEMS = (native.reasoning("Why"), native.message(f"It is {CARD}."), native.function_call('{"a": 1}'))
RESPONSE = [json.dumps(native.response(*ITEMS)).encode()]


def sealed(label: str) -> str:
    context = sealing_context(TENANT, credential_key("one", label))
    return SEALER.seal(msgspec.json.encode({"api_key": KEYS[label]}), context=context)


def state(kind: str, *aliases: ModelAliasRecord, labels: tuple[str, ...] = ("default",), **config: Any) -> State:
    """Return an organization whose provider `one` has credentials with these labels."""
    provider = ProviderRecord(
        id="one", name="one", kind=kind, sealed_credentials=sealed("default"),
        credentials=tuple(CredentialRecord(label=label, sealed=sealed(label)) for label in labels[1:]),
        config=ProviderConfig(base_url="http://one.test/v1", max_retries=0, **config),
    )  # fmt: skip
    model = ModelRecord(
        id=UUID(int=100), provider="one", model_id="m", cost_per_input_token=Decimal("0.000001"),
        cost_per_output_token=Decimal("0.000002"),
    )  # fmt: skip
    return State(
        TenantRecords(tenant_id=TENANT, revision=7, providers=(provider,), models=(model,), model_aliases=aliases)
    )


@pytest.fixture(autouse=True)
def outposts_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment in which the outpost has the credentials that the platform has in its database."""
    monkeypatch.setenv("PROVIDER_ONE_API_KEY", KEYS["default"])
    monkeypatch.setenv("PROVIDER_ONE__SECOND_API_KEY", KEYS["second"])


async def on_both(
    organization: State, body: dict[str, Any], path: str, dialect: str, pieces: list[bytes], *, requests: int = 1
) -> list[dict[str, Any]]:
    """Return the results of the requests on the platform, after a comparison with those on the outpost."""
    harness = EngineHarness()
    encoded = json.dumps(body).encode()

    async def on_one(ports: Any) -> list[dict[str, Any]]:
        engine = host_engine(ports, harness)
        harness.outbound.script = [(200, list(pieces)) for _ in range(requests)]
        return [await results(engine, harness, encoded, path=path, dialect=dialect) for _ in range(requests)]

    on_platform = await on_one(platform_ports(organization, harness.ports))
    async for ports in outpost_ports(organization, harness.ports):
        assert await on_one(ports) == on_platform
    return on_platform


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("is_native", [True, False])
async def test_responses(is_native: bool, stream: bool) -> None:
    organization = state("openai_compatible", responses_api=is_native)
    body = {name: value for name, value in RESPONSES.items() if is_native or name != "include"}
    if is_native:
        pieces = native.stream(*ITEMS) if stream else RESPONSE
    else:
        pieces = OPENAI_EVENTS if stream else [OPENAI_REPLY]
        body["input"] = body["input"][:1]
    (result,) = await on_both(
        organization, {**body, "stream": stream}, "/v1/responses", "openai_responses", pieces
    )  # fmt: skip
    ((url, headers, sent),) = result["sent"]
    assert url.removeprefix("http://one.test/v1/") == ("responses" if is_native else "chat/completions")
    assert headers["Authorization"] == f"Bearer {KEYS['default']}"
    assert (result["status"], CARD.encode() in sent, CARD.encode() in result["body"]) == (200, False, False)
    (outcome,) = result["outcomes"]
    assert (outcome["outcome"], outcome["model_id"], outcome["dlp_action"]) == ("success", "m", "REDACT")
    assert outcome["output_tokens"] == (9 if is_native else 4)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["anthropic", "openai_compatible"])
async def test_messages(kind: str, stream: bool) -> None:
    replies = {"anthropic": (ANTHROPIC_REPLY, ANTHROPIC_EVENTS), "openai_compatible": (OPENAI_REPLY, OPENAI_EVENTS)}
    whole, events = replies[kind]
    pieces = events if stream else [whole]
    (result,) = await on_both(
        state(kind), {**MESSAGES, "stream": stream}, "/v1/messages", "anthropic_messages", pieces
    )  # fmt: skip
    ((url, _, sent),) = result["sent"]
    assert url.rpartition("/")[2] == ("messages" if kind == "anthropic" else "completions")
    assert (result["status"], CARD.encode() in sent, "Hi ä".encode() in result["body"]) == (200, False, True)
    (outcome,) = result["outcomes"]
    assert (outcome["outcome"], outcome["input_tokens"], outcome["output_tokens"]) == ("success", 9, 4)


@pytest.mark.parametrize("kind", ["anthropic", "openai_compatible"])
@pytest.mark.parametrize(
    ("path", "dialect", "body"),
    [
        ("/v1/messages/count_tokens", "anthropic_token_count", COUNTED),
        ("/v1/responses/input_tokens", "openai_token_count", {"model": "one/m", "input": f"Is {CARD} mine?"}),
    ],
)
async def test_token_counts(kind: str, path: str, dialect: str, body: dict[str, Any]) -> None:
    (result,) = await on_both(state(kind), body, path, dialect, [b'{"input_tokens": 42}'])
    by_provider = kind == "anthropic" and dialect == "anthropic_token_count"
    assert (result["status"], len(result["sent"])) == (200, by_provider)
    assert result["headers"]["X-Gateway-Token-Count"] == ("provider" if by_provider else "estimate")
    assert (json.loads(result["body"])["input_tokens"] == 42) == by_provider
    assert [outcome["outcome"] for outcome in result["outcomes"]] == ["success"]


async def test_deployments_use_the_credentials_that_they_name() -> None:
    alias = ModelAliasRecord(
        id=UUID(int=200),
        name="fast",
        sticky=True,
        deployments=tuple(DeploymentRecord(provider="one", model_id="m", credential=label) for label in KEYS),
    )
    organization = state("openai_compatible", alias, labels=tuple(KEYS))
    used = set()
    for number in range(10):
        body = {"model": "fast", "messages": [{"role": "user", "content": f"Question {number}"}]}
        (result,) = await on_both(organization, body, "/v1/chat/completions", "openai_chat", [OPENAI_REPLY])
        ((_, headers, _),) = result["sent"]
        key, label = headers["Authorization"].removeprefix("Bearer "), result["outcomes"][0]["credential"]
        assert KEYS[label] == key
        used.add(label)
    assert used == set(KEYS)


async def test_several_credentials_are_used_in_the_same_turns() -> None:
    organization = state("openai_compatible", labels=tuple(KEYS))
    body = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}
    results = await on_both(organization, body, "/v1/chat/completions", "openai_chat", [OPENAI_REPLY], requests=4)
    assert [result["outcomes"][0]["credential"] for result in results] == ["default", "second"] * 2
