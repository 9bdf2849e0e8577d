"""Responses that a provider keeps: their ids are bound to the organization and user, through the whole engine."""

import json
from typing import Any

import msgspec
import pytest
from tests.engine.scenarios.test_native_responses import ask, ask_streamed, ask_whole, engine, sent
from tests.support import native_responses as native
from tests.support.engine import EngineHarness

from gatehouse.engine.conversation.dialects.openai_responses.native import mark_of
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id

ALLOWED = ("store", "previous_response_id")


def become_another_user(harness: EngineHarness) -> None:
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, user_id=new_id())


def become_another_tenant(harness: EngineHarness) -> None:
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, tenant_id=TenantId(new_id()))


def error_of(body: bytes) -> tuple[str, str]:
    error = json.loads(body)["error"]
    return error["code"], error["param"]


async def test_without_permission_nothing_is_kept_and_ids_are_the_providers() -> None:
    harness = engine()
    first = await ask_whole(harness, native.message("Hi"))
    assert sent(harness)["store"] is False
    assert first["id"] == "resp_up1"
    assert first["output"][0]["id"] == "msg_1b"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_kept_response_is_continued_under_the_providers_id(stream: bool) -> None:
    harness = engine(*ALLOWED)
    if stream:
        received = await ask_streamed(harness, native.stream(native.message("Hi"), native.function_call("{}")))
        first = received[-1]["response"]
        assert {event["response"]["id"] for event in received if "response" in event} == {first["id"]}
        assert {event["item_id"] for event in received if "item_id" in event} == {
            item["id"] for item in first["output"]
        }
    else:
        first = await ask_whole(harness, native.message("Hi"), native.function_call("{}"))
    assert "store" not in sent(harness)
    assert first["id"] != "resp_up1"
    assert "up1" not in json.dumps(first)
    second = await ask_whole(harness, native.message("Ho"), previous_response_id=first["id"])
    assert sent(harness)["previous_response_id"] == "resp_up1"
    assert second["output"][0]["content"][0]["text"] == "Ho"


async def test_the_id_of_the_previous_response_is_repeated_as_the_client_sent_it() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.message("Hi"))
    harness.outbound.script = [
        (200, [json.dumps(native.response(native.message("Ho"), previous_response_id="resp_up1")).encode()])
    ]
    answer = await ask(harness, previous_response_id=first["id"])
    assert json.loads(answer.body)["previous_response_id"] == first["id"]


@pytest.mark.parametrize("change", [become_another_user, become_another_tenant])
async def test_another_callers_response_is_not_found(change: Any) -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.message("Hi"))
    change(harness)
    answer = await ask(harness, previous_response_id=first["id"])
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "previous_response_id"))
    assert len(harness.outbound.sent) == 1


@pytest.mark.parametrize("unknown", ["resp_up1", "", "resp_", "resp_ä", "resp_" + "A" * 5000, "x" * 40])
async def test_an_unknown_response_is_not_found(unknown: str) -> None:
    harness = engine(*ALLOWED)
    answer = await ask(harness, previous_response_id=unknown)
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "previous_response_id"))
    assert harness.outbound.sent == []


async def test_a_changed_id_is_not_found() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.message("Hi"))
    for position in range(5, len(first["id"]) - 1):
        other = "A" if first["id"][position] != "A" else "B"
        changed = first["id"][:position] + other + first["id"][position + 1 :]
        assert (await ask(harness, previous_response_id=changed)).status == 404


async def test_a_response_is_continued_only_by_its_provider() -> None:
    harness = engine(*ALLOWED)
    harness.serve("two", "n", responses_api=True)
    harness.serve("three", "o")
    first = await ask_whole(harness, native.message("Hi"))
    answer = await ask(harness, model="two/n", previous_response_id=first["id"])
    assert (answer.status, error_of(answer.body)[1]) == (400, "previous_response_id")
    assert "provider one" in json.loads(answer.body)["error"]["message"]
    answer = await ask(harness, model="three/o", previous_response_id=first["id"])
    assert (answer.status, error_of(answer.body)[1]) == (400, "previous_response_id")
    # The other models leave the chain, so that a failure is not answered by a model without the conversation.
    harness.outbound.script = [(500, [b"{}"])]
    answer = await ask(harness, previous_response_id=first["id"], fallbacks=["two/n", "three/o"])
    assert answer.status == 502
    assert [request.url for request in harness.outbound.sent[1:]] == ["http://one.test/v1/responses"]


async def test_a_bare_name_leads_to_the_provider_of_the_response() -> None:
    harness = engine(*ALLOWED)
    harness.serve("another", "m", responses_api=True)
    first = await ask_whole(harness, native.message("Hi"))
    harness.outbound.script = [(200, [json.dumps(native.response(native.message("Ho"))).encode()])]
    answer = await ask(harness, model="m", previous_response_id=first["id"])
    assert answer.status == 200
    assert harness.outbound.sent[-1].url == "http://one.test/v1/responses"


async def test_a_reference_to_a_kept_item_passes_for_its_owner_only() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.message("Hi"))
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    items = [{"role": "user", "content": "a"}, reference, {"role": "user", "content": "b"}]
    await ask_whole(harness, native.message("Ho"), input=items)
    assert sent(harness)["input"][1] == {"type": "item_reference", "id": "msg_1b"}
    become_another_user(harness)
    answer = await ask(harness, input=items)
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "input[1].id"))


async def test_items_that_are_sent_back_have_the_providers_ids() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.reasoning("Why"), native.function_call("{}"))
    items = [*first["output"], {"type": "function_call_output", "call_id": "call_1", "output": "x"}]
    await ask_whole(harness, native.message("Ho"), input=items)
    assert sent(harness)["input"][:2] == [native.reasoning("Why"), native.function_call("{}")]


@pytest.mark.parametrize("allowed", [(), ALLOWED])
async def test_a_reference_to_an_item_that_nobody_keeps_is_refused_or_left_out(allowed: tuple[str, ...]) -> None:
    harness = engine(*allowed)
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "x"}
    answer = await ask(
        harness, input=[{"type": "item_reference", "id": "msg_others"}, {"role": "user", "content": "a"}]
    )
    assert (answer.status, error_of(answer.body)[1]) == (400, "input[0].id")
    harness.outbound.script = [(200, [json.dumps(native.response(native.message("Ho"))).encode()])]
    answer = await ask(
        harness,
        input=[
            {"role": "user", "content": "a"},
            {"type": "item_reference", "id": "rs_others"},
            {"type": "item_reference", "id": "msg_others"},
            call,
            result,
        ],
        store=False,
    )
    assert answer.status == 200, answer.body
    assert sent(harness)["input"][1:] == [call, result]
    assert answer.headers["X-Gateway-Dropped"] == "input.item_reference"


@pytest.mark.parametrize("provider", ["one/m", "two/n"])
async def test_a_reference_to_a_call_before_another_call_is_refused(provider: str) -> None:
    harness = engine()
    harness.serve("two", "n")
    items = [
        {"role": "user", "content": "a"},
        {"type": "item_reference", "id": "fc_1"},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
        {"type": "function_call_output", "call_id": "c2", "output": "y"},
    ]
    answer = await ask(harness, model=provider, input=items)
    assert (answer.status, error_of(answer.body)[1]) == (400, "input[1].id")
    assert harness.outbound.sent == []


async def test_a_converted_call_of_an_organization_that_allows_state_keeps_nothing() -> None:
    harness = engine(*ALLOWED)
    harness.serve("two", "n")
    answer = await ask(harness, model="two/n", store=True)
    assert (answer.status, error_of(answer.body)[1]) == (400, "store")


def operation(harness: EngineHarness, public_id: str, *, method: str = "GET", path: str = "", query: str = "") -> Any:
    body = {"method": method, "public_id": public_id, "path": path, "query": query}
    return harness.engine.answer(harness.request(body, dialect="openai_kept_response"))


async def kept_id(harness: EngineHarness) -> str:
    first = await ask_whole(harness, native.message("Hi"))
    identifier: str = first["id"]
    return identifier


async def test_a_kept_response_is_read_and_inspected() -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    kept = native.response(native.message("Your card is 4111 1111 1111 1111."))
    harness.outbound.script = [(200, [json.dumps(kept).encode()])]
    answer = await operation(harness, public_id, query="include[]=x&other=1")
    request = harness.outbound.sent[-1]
    assert (request.method, request.url) == ("GET", "http://one.test/v1/responses/resp_up1?include%5B%5D=x")
    received = json.loads(answer.body)
    assert (received["id"], received["model"]) == (public_id, "one/m")
    assert received["output"][0]["content"][0]["text"] == "Your card is [CREDIT_CARD_1]."
    assert "Repeated" not in json.dumps(received)
    outcome = harness.outcomes[-1]
    assert (outcome.provider, outcome.model_id, float(outcome.cost_usd or "nan")) == ("one", "m", 0)
    assert (outcome.input_tokens, outcome.output_tokens) == (0, 0)


async def test_a_kept_response_is_deleted() -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    harness.outbound.script = [(200, [b'{"id":"resp_up1","object":"response","deleted":true}'])]
    answer = await operation(harness, public_id, method="DELETE")
    assert json.loads(answer.body) == {"id": public_id, "object": "response", "deleted": True}
    assert harness.outbound.sent[-1].method == "DELETE"


async def test_the_items_of_an_input_are_listed_page_by_page() -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    item = {
        "id": "msg_in1",
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "4111 1111 1111 1111"}],
    }
    page = {"object": "list", "data": [item], "first_id": "msg_in1", "last_id": "msg_in1", "has_more": True}
    harness.outbound.script = [(200, [json.dumps(page).encode()])] * 2
    listed = json.loads((await operation(harness, public_id, path="/input_items", query="limit=1")).body)
    assert harness.outbound.sent[-1].url == "http://one.test/v1/responses/resp_up1/input_items?limit=1"
    assert listed["data"][0]["content"][0]["text"] == "[CREDIT_CARD_1]"
    assert listed["last_id"] == listed["data"][0]["id"] != "msg_in1"
    await operation(harness, public_id, path="/input_items", query=f"after={listed['last_id']}")
    assert harness.outbound.sent[-1].url.endswith("?after=msg_in1")
    answer = await operation(harness, public_id, path="/input_items", query="after=msg_in1")
    assert (answer.status, error_of(answer.body)[1]) == (400, "after")


@pytest.mark.parametrize("change", [become_another_user, become_another_tenant])
@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("DELETE", ""), ("GET", "/input_items")])
async def test_operations_on_another_callers_response_are_not_found(change: Any, method: str, path: str) -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    change(harness)
    answer = await operation(harness, public_id, method=method, path=path)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "response_not_found")
    assert len(harness.outbound.sent) == 1


async def test_operations_on_unknown_responses_are_not_found() -> None:
    harness = engine(*ALLOWED)
    for unknown in ("resp_up1", "x", "resp_" + "A" * 60):
        assert (await operation(harness, unknown)).status == 404
    public_id = await kept_id(harness)
    harness.outbound.script = [(404, [b"{}"])]
    answer = await operation(harness, public_id)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "response_not_found")


async def test_a_kept_response_of_a_model_that_is_switched_off_is_not_read() -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    harness.off = {"m"}
    answer = await operation(harness, public_id)
    assert answer.status == 503
    assert len(harness.outbound.sent) == 1


async def test_a_stream_of_a_kept_response_is_refused() -> None:
    harness = engine(*ALLOWED)
    answer = await operation(harness, await kept_id(harness), query="stream=true")
    assert (answer.status, error_of(answer.body)[1]) == (400, "stream")


async def test_a_conversation_is_compacted_by_a_provider_with_the_api() -> None:
    harness = engine()
    harness.serve("two", "n")
    summary = {"id": "cmp_1", "type": "compaction", "encrypted_content": native.ENCRYPTED}
    compaction = {
        "id": "resp_c",
        "object": "response.compaction",
        "created_at": 1,
        "usage": native.USAGE,
        "output": [native.message("4111 1111 1111 1111"), summary],
    }
    harness.outbound.script = [(200, [json.dumps(compaction).encode()])]
    body = {"model": "one/m", "input": [{"role": "user", "content": "4111 1111 1111 1111"}]}
    answer = await harness.engine.answer(harness.request(body, dialect="openai_compaction"))
    assert harness.outbound.sent[-1].url == "http://one.test/v1/responses/compact"
    assert sent(harness) == {"model": "m", "input": [{"role": "user", "content": "[CREDIT_CARD_1]"}]}
    output = json.loads(answer.body)["output"]
    assert output[0]["content"][0]["text"] == "[CREDIT_CARD_1]"
    assert output[1]["encrypted_content"] == mark_of("one") + native.ENCRYPTED
    assert harness.outcomes[-1].output_tokens == 9
    refused = await harness.engine.answer(harness.request({**body, "model": "two/n"}, dialect="openai_compaction"))
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (400, "responses_api_required")
    for changes in ({"input": None}, {"stream": True}, {"model": 5}):
        refused = await harness.engine.answer(harness.request({**body, **changes}, dialect="openai_compaction"))
        assert (refused.status, error_of(refused.body)[1]) == (400, next(iter(changes)))
