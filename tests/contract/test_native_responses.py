"""OpenAI's client over a provider with the Responses API, with DLP on: plain and streamed calls, tools, structured
answers, kept responses. `tests/engine/scenarios` has the details."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pydantic
import pytest
from tests.support.coding_agents import CODEX_HEADERS, codex_request
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream
from tests.support.vendors.responses_api import CARD, ResponsesApi

LOOK: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
FIELDS = "/api/v1/admin/org/request-fields"


class Payment(pydantic.BaseModel):
    card: str
    amount: int


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
async def vendor(platform: RunningPlatform, tenant: Tenant) -> AsyncIterator[ResponsesApi]:
    api = ResponsesApi()
    async with upstream(api) as server:
        await platform.add_provider(
            tenant.id, "own", "byoe", "m", base_url=f"{server.url}/v1", format="openai", responses_api=True,
            max_retries=0,
        )  # fmt: skip
        yield api


@pytest.fixture
async def tenant(platform: RunningPlatform) -> Tenant:
    return await platform.new_tenant()


@pytest.fixture
async def client(platform: RunningPlatform, tenant: Tenant, url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(api_key=await platform.new_key(tenant.user), base_url=f"{url}/v1") as client:
        yield client


async def allow_state(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(FIELDS, json={"allowed": ["store", "previous_response_id"]})
    assert answer.status_code == 200, answer.text
    await platform.refresh()


async def test_a_plain_answer(client: openai.AsyncOpenAI, vendor: ResponsesApi) -> None:
    answer = await client.responses.create(model="own/m", input=f"My card is {CARD}.")
    assert answer.output_text == "Your card is [CREDIT_CARD_1]."
    assert answer.model == "own/m"
    assert answer.usage is not None
    assert answer.usage.output_tokens_details.reasoning_tokens == 4
    assert vendor.calls == [{"model": "m", "input": "My card is [CREDIT_CARD_1].", "store": False}]


async def test_a_streamed_answer(client: openai.AsyncOpenAI, vendor: ResponsesApi) -> None:
    async with client.responses.stream(model="own/m", input="Hello") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == final.output_text
    assert final.output_text == "Your card is [CREDIT_CARD_1]."
    assert [event.sequence_number for event in events] == sorted(event.sequence_number for event in events)
    assert CARD not in "".join(str(event.model_dump(warnings=False)) for event in events)


async def test_a_structured_answer(client: openai.AsyncOpenAI, vendor: ResponsesApi) -> None:
    answer = await client.responses.parse(model="own/m", input="Pay", text_format=Payment)
    assert answer.output_parsed == Payment(card="[CREDIT_CARD_1]", amount=5)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_with_a_tool_whose_items_are_sent_back(
    client: openai.AsyncOpenAI, vendor: ResponsesApi, stream: bool
) -> None:
    items: list[Any] = [{"role": "user", "content": "Look"}]
    first = await _create(client, stream, input=items, tools=[LOOK], include=["reasoning.encrypted_content"])
    call = first.output[-1]
    assert json.loads(call.arguments) == {"card": "[CREDIT_CARD_1]"}
    items += [item.to_dict() for item in first.output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": f"seen {CARD}"})
    second = await _create(client, stream, input=items, tools=[LOOK])
    # The label of the first turn is in the conversation, so the value gets the next number.
    assert second.output_text == "The tool says: seen [CREDIT_CARD_2]"
    # The gateway marks the content with its provider, and removes the mark again.
    assert first.output[0].encrypted_content.endswith("_" + vendor.calls[1]["input"][1]["encrypted_content"])
    assert CARD not in json.dumps(vendor.calls)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_with_a_tool_over_a_kept_response(
    platform: RunningPlatform, tenant: Tenant, client: openai.AsyncOpenAI, vendor: ResponsesApi, stream: bool
) -> None:
    await allow_state(platform, tenant)
    first = await _create(client, stream, input="Look", tools=[LOOK])
    result: Any = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "seen"}
    second = await _create(client, stream, input=[result], tools=[LOOK], previous_response_id=first.id)
    assert second.output_text == "The tool says: seen"
    assert second.previous_response_id == first.id
    assert [call.get("previous_response_id") for call in vendor.calls] == [None, "resp_up1"]


async def test_a_kept_response_is_read_listed_and_deleted_by_its_user_only(
    platform: RunningPlatform, tenant: Tenant, client: openai.AsyncOpenAI, vendor: ResponsesApi, url: str
) -> None:
    await allow_state(platform, tenant)
    first = await client.responses.create(model="own/m", input=[{"role": "user", "content": f"{n}"} for n in range(3)])
    again = await client.responses.retrieve(first.id)
    assert (again.id, again.output_text) == (first.id, "Your card is [CREDIT_CARD_1].")
    listed = [item async for item in client.responses.input_items.list(first.id, limit=2)]
    assert len(listed) == 3
    colleague = await platform.new_key(tenant.admin)
    stranger = await platform.new_key((await platform.new_tenant()).user)
    for key in (colleague, stranger):
        async with openai.AsyncOpenAI(api_key=key, base_url=f"{url}/v1") as other:
            for operation in (
                other.responses.retrieve(first.id),
                other.responses.delete(first.id),
                other.responses.input_items.list(first.id),
            ):
                with pytest.raises(openai.NotFoundError, match="You have no response"):
                    await operation
    with pytest.raises(openai.NotFoundError, match="nothing to cancel"):
        await client.responses.cancel(first.id)
    await client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)
    unauthorized = await platform.anonymous.get(f"/v1/responses/{first.id}")
    assert unauthorized.status_code == 401


async def test_operations_are_recorded_and_cost_nothing(
    platform: RunningPlatform, tenant: Tenant, client: openai.AsyncOpenAI, vendor: ResponsesApi
) -> None:
    await allow_state(platform, tenant)
    first = await client.responses.create(model="own/m", input="Hi")
    raw = await client.responses.with_raw_response.retrieve(first.id)
    assert raw.headers["x-gateway-provider"] == "own"
    assert raw.headers["x-dlp-action"] == "REDACT"
    assert float(raw.headers["x-cost-usd"]) == 0


async def test_a_compacted_conversation(client: openai.AsyncOpenAI, vendor: ResponsesApi) -> None:
    compacted = await client.responses.compact(model="own/m", input=[{"role": "user", "content": CARD}])
    assert compacted.output[0].type == "compaction"
    assert vendor.calls == [{"model": "m", "input": [{"role": "user", "content": "[CREDIT_CARD_1]"}]}]


async def test_state_needs_permission(client: openai.AsyncOpenAI, vendor: ResponsesApi) -> None:
    for changes in ({"store": True}, {"previous_response_id": "resp_x"}):
        with pytest.raises(openai.BadRequestError) as raised:
            await client.responses.create(model="own/m", input="Hi", **changes)  # type: ignore[call-overload]
        assert (raised.value.code, raised.value.param) == ("field_not_allowed", next(iter(changes)))
    assert vendor.calls == []


async def test_a_request_of_codex_passes(client: openai.AsyncOpenAI, vendor: ResponsesApi) -> None:
    request = {**codex_request("own/m", "Hello"), "stream": False}
    raw = await client.responses.with_raw_response.create(
        **{name: request.pop(name) for name in ("model", "input")}, extra_body=request, extra_headers=CODEX_HEADERS
    )
    assert raw.headers["x-gateway-dropped"] == "tools.web_search"
    (call,) = vendor.calls
    assert [tool["type"] for tool in call["tools"]] == ["function", "function", "custom", "namespace", "tool_search"]
    assert call["client_metadata"] == request["client_metadata"]


async def _create(client: openai.AsyncOpenAI, stream: bool, **fields: Any) -> Any:
    if not stream:
        return await client.responses.create(model="own/m", **fields)
    async with client.responses.stream(model="own/m", **fields) as events:
        return await events.get_final_response()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/admin/providers/own/config", {"responses_api": False}),
        ("/api/admin/providers/byoe/own", {"responses_api": False}),
        ("/api/admin/providers/byoe/own", {"config": {"responses_api": False}}),
    ],
)
async def test_an_administrator_sets_whether_calls_are_passed_through(
    platform: RunningPlatform, tenant: Tenant, vendor: ResponsesApi, path: str, body: dict[str, Any]
) -> None:
    for person, status in ((tenant.user, 403), (tenant.auditor, 403)):
        assert (await person.client.patch(path, json=body)).status_code == status
    assert (await platform.anonymous.patch(path, json=body)).status_code == 401
    other = await platform.new_tenant()
    assert (await other.admin.client.patch(path, json=body)).status_code == 404
    answer = await tenant.admin.client.patch(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["config"]["responses_api"] is False
    bad = await tenant.admin.client.patch(path, json={"responses_api": "maybe"})
    assert bad.status_code in {400, 422}
    assert "responses_api" in bad.text


async def test_a_kind_without_the_api_has_no_such_setting(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.add_provider(tenant.id, "anthropic", "anthropic", "claude")
    answer: httpx2.Response = await tenant.admin.client.patch(
        "/api/admin/providers/anthropic/config", json={"responses_api": True}
    )
    assert answer.status_code == 422
    assert "responses_api" in answer.text
