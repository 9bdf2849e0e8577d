"""Stored responses and their items when a client refers to them again, through the whole engine."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import msgspec
import pytest
from tests.engine.scenarios.test_kept_responses import ALLOWED, become_another_user, error_of, kept_id, operation
from tests.engine.scenarios.test_native_responses import ask, ask_streamed, ask_whole, engine, sent
from tests.support import native_responses as native
from tests.support.engine import TENANT

from gatehouse.engine.conversation.dialects.openai_responses import native as native_answers
from gatehouse.foundation.errors import Refusal, TooManyRequests
from gatehouse.foundation.secrets.owned_ids import KeptObject
from gatehouse.policy.budgets import BudgetRecord

USER = {"role": "user", "content": "a"}
IMAGE_CALL = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aW1hZ2U="}


def without(item: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != field}


async def test_a_call_without_its_image_passes_for_its_owner_only() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, IMAGE_CALL)
    items = [USER, without(first["output"][0], "result")]
    assert items[1]["id"] != "ig_1"
    await ask_whole(harness, native.message("Ho"), input=items)
    assert sent(harness)["input"][1] == without(IMAGE_CALL, "result")
    become_another_user(harness)
    answer = await ask(harness, input=items)
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "input[1].id"))


@pytest.mark.parametrize("result", [None, ""])
async def test_a_call_without_its_image_and_with_the_providers_id_is_not_found(result: Any) -> None:
    harness = engine(*ALLOWED)
    answer = await ask(harness, input=[USER, {**IMAGE_CALL, "result": result}])
    assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "input[1].id"))
    assert harness.outbound.sent == []


async def test_a_call_with_its_image_passes() -> None:
    harness = engine()
    await ask_whole(harness, native.message("Ho"), input=[USER, IMAGE_CALL])
    assert sent(harness)["input"][1] == IMAGE_CALL


async def test_the_id_of_reasoning_without_content_is_sent_only_for_its_owner() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.reasoning("Why", encrypted=None))
    items = [USER, first["output"][0]]
    await ask_whole(harness, native.message("Ho"), input=items)
    assert sent(harness)["input"][1] == native.reasoning("Why", encrypted=None)
    become_another_user(harness)
    for item in (items[1], native.reasoning("Why", encrypted=None)):
        await ask_whole(harness, native.message("Ho"), input=[USER, item])
        assert sent(harness)["input"][1] == without(native.reasoning("Why", encrypted=None), "id")


async def test_an_approval_names_the_providers_request() -> None:
    harness = engine(*ALLOWED, "tools.mcp")
    request = {
        "type": "mcp_approval_request", "id": "mcpr_1", "name": "look", "arguments": "{}", "server_label": "a",
    }  # fmt: skip
    first = await ask_whole(harness, request)
    public_id = first["output"][0]["id"]
    assert public_id != "mcpr_1"
    approval = {"type": "mcp_approval_response", "approve": True, "approval_request_id": public_id}
    called = {
        "type": "mcp_call", "id": "mcp_1", "approval_request_id": "mcpr_1", "name": "look", "arguments": "{}",
        "server_label": "a",
    }  # fmt: skip
    second = await ask_whole(harness, called, input=[approval], previous_response_id=first["id"])
    assert sent(harness)["input"] == [{**approval, "approval_request_id": "mcpr_1"}]
    assert second["output"][0]["approval_request_id"] == public_id


async def test_acknowledged_safety_checks_have_the_providers_ids() -> None:
    harness = engine(*ALLOWED)
    checks = [{"id": "cu_sc_1", "code": "malicious_instructions", "message": "Look out"}]
    call = {
        "type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "screenshot"},
        "pending_safety_checks": checks, "status": "completed",
    }  # fmt: skip
    first = await ask_whole(harness, call)
    received = first["output"][0]["pending_safety_checks"]
    assert received[0]["id"] != "cu_sc_1"
    output = {
        "type": "computer_call_output", "call_id": "c", "acknowledged_safety_checks": received,
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="},
    }  # fmt: skip
    await ask_whole(harness, native.message("Ho"), input=[output], previous_response_id=first["id"])
    assert sent(harness)["input"][0]["acknowledged_safety_checks"] == checks


async def test_a_follow_up_on_a_response_that_the_provider_lost_is_not_found() -> None:
    harness = engine(*ALLOWED)
    first = await ask_whole(harness, native.message("Hi"))
    lost = {"error": {"message": "Previous response with id 'resp_up1' not found.", "code": None}}
    for status in (400, 404):
        harness.outbound.script = [(status, [json.dumps(lost).encode()])]
        answer = await ask(harness, previous_response_id=first["id"])
        assert (answer.status, error_of(answer.body)) == (404, ("response_not_found", "previous_response_id"))
        assert b"up1" not in answer.body
    for failure in ((400, "Invalid image."), (404, "model_not_found")):
        harness.outbound.script = [(failure[0], [json.dumps({"error": {"message": failure[1]}}).encode()])]
        answer = await ask(harness, previous_response_id=first["id"])
        assert json.loads(answer.body)["error"]["code"] != "response_not_found"


@pytest.mark.parametrize("path", ["", "/input_items"])
async def test_a_kept_response_has_no_log_probabilities(path: str) -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    for name in ("include", "include[]"):
        answer = await operation(harness, public_id, path=path, query=f"{name}=message.output_text.logprobs")
        assert (answer.status, error_of(answer.body)[1]) == (400, name)
    item = native.message("Your card is 4111 1111 1111 1111.")
    item["content"][0]["logprobs"] = [{"token": token, "logprob": -1} for token in ("4111", " 1111", " 1111", " 1111")]
    kept = {"object": "list", "data": [item]} if path else native.response(item)
    harness.outbound.script = [(200, [json.dumps(kept).encode()])]
    answer = await operation(harness, public_id, path=path)
    assert answer.status == 200
    assert b" 1111" not in answer.body


@pytest.mark.parametrize("name", ["a\nb", "x" * 300])
async def test_an_id_with_an_impossible_name_is_not_recorded(name: str) -> None:
    harness = engine(*ALLOWED)
    content = msgspec.json.encode(KeptObject(name, "m", "resp_up1"))
    answer = await operation(harness, "resp_" + urlsafe_b64encode(bytes(16) + content).decode().rstrip("="))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "response_not_found")
    assert all(name not in str(outcome) and repr(name)[1:-1] not in str(outcome) for outcome in harness.outcomes)


async def test_ids_beyond_the_remembered_ones_are_translated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_answers, "_MAX_REMEMBERED_IDS", 1)
    harness = engine(*ALLOWED)
    received = await ask_streamed(harness, native.stream(native.message("Hi"), native.function_call("{}")))
    output = received[-1]["response"]["output"]
    assert {event["item_id"] for event in received if "item_id" in event} == {item["id"] for item in output}
    assert "fc_1c" not in {item["id"] for item in output}


async def test_an_exhausted_budget_does_not_keep_a_response_from_being_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = engine(*ALLOWED)
    public_id = await kept_id(harness)
    harness.budgets = (BudgetRecord(id=TENANT, scope_type="tenant", scope_id=TENANT, period="month", limit_requests=1),)

    def exhausted(budgets: Any) -> Refusal:
        return TooManyRequests()

    async def reserve(budgets: Any, taking: Any, **more: Any) -> Any:
        raise TooManyRequests

    monkeypatch.setattr(harness, "reserve", reserve)
    harness.outbound.script = [(200, [json.dumps(native.response()).encode()])] * 2
    for method in ("GET", "DELETE"):
        assert (await operation(harness, public_id, method=method)).status == 200
    assert (await ask(harness)).status == 429
    monkeypatch.setattr(harness, "exhausted", exhausted)
    harness.outbound.script = [(200, [json.dumps(native.response()).encode()])]
    assert (await operation(harness, public_id)).status == 200
    assert (await ask(harness)).status == 429
