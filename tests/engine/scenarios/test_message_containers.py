"""Containers of Anthropic's messages: their ids are bound to the organization and user."""

import json
from typing import Any

import pytest
from tests.engine.scenarios.test_kept_responses import become_another_tenant, become_another_user
from tests.engine.scenarios.test_native_responses import sent
from tests.support.engine import EngineHarness

from gatehouse.engine.exchange import Answer

TOOL = "tools.code_execution"
TOOLS = [{"type": "code_execution_20250825", "name": "code_execution"}]
CONTAINER = {"expires_at": "2026-12-01T10:00:00Z", "id": "container_up1", "skills": None}
USAGE = {"input_tokens": 3, "output_tokens": 4}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"container": {"id": "of_the_model"}}}],
    "usage": USAGE, "container": CONTAINER,
}  # fmt: skip
EVENTS = (
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 'a "container": b'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"container": CONTAINER, "stop_reason": "end_turn"}, "usage": USAGE},
    {"type": "message_stop"},
)


def engine(*allowed: str) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", kind="anthropic")
    harness.allowed_fields = allowed
    return harness


async def ask(harness: EngineHarness, **body: Any) -> Answer:
    messages = [{"role": "user", "content": "hi"}]
    call = {"model": "one/m", "max_tokens": 9, "messages": messages, "tools": TOOLS, **body}
    return await harness.engine.answer(harness.request(call, dialect="anthropic_messages"))


async def answered_container(harness: EngineHarness, *, stream: bool = False, **body: Any) -> dict[str, Any]:
    """Return the container that a successful answer names."""
    if not stream:
        harness.outbound.script = [(200, [json.dumps(MESSAGE).encode()])]
        answer = await ask(harness, **body)
        assert answer.status == 200, answer.body
        message = json.loads(answer.body)
        assert message["content"] == MESSAGE["content"]
        return dict(message["container"])
    pieces = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS]
    harness.outbound.script = [(200, list(pieces))]
    answer = await ask(harness, stream=True, **body)
    assert answer.stream is not None, answer.body
    received = b"".join([block async for block in answer.stream])
    events = [json.loads(event.partition(b"data: ")[2]) for event in received.split(b"\n\n") if event]
    assert events[2] == EVENTS[2]
    assert events[0]["message"]["container"] == events[4]["delta"]["container"]
    return dict(events[4]["delta"]["container"])


def error_of(answer: Answer) -> tuple[str, str]:
    error = json.loads(answer.body)["error"]
    return error["code"], error["param"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("as_object", [False, True])
async def test_the_owner_uses_a_container_again_without_the_permission(stream: bool, as_object: bool) -> None:
    harness = engine(TOOL)
    container = await answered_container(harness, stream=stream)
    public_id = container["id"]
    assert container == {**CONTAINER, "id": public_id}
    assert public_id.startswith("cntr_gw_")
    value = {"id": public_id, "skills": []} if as_object else public_id
    again = await answered_container(harness, stream=stream, container=value)
    assert again["id"] == public_id
    assert sent(harness)["container"] == ({"id": "container_up1", "skills": []} if as_object else "container_up1")


@pytest.mark.parametrize("change", [become_another_user, become_another_tenant])
@pytest.mark.parametrize("allowed", [(TOOL,), (TOOL, "container")])
async def test_the_container_of_another_caller_is_not_found(change: Any, allowed: tuple[str, ...]) -> None:
    harness = engine(*allowed)
    public_id = (await answered_container(harness))["id"]
    change(harness)
    for value, place in ((public_id, "container"), ({"id": public_id}, "container.id")):
        answer = await ask(harness, container=value)
        assert (answer.status, error_of(answer)) == (404, ("response_not_found", place))
    assert len(harness.outbound.sent) == 1


async def test_the_providers_id_and_skills_need_the_permission() -> None:
    harness = engine(TOOL)
    public_id = (await answered_container(harness))["id"]
    skill = {"type": "custom", "skill_id": "skill_1", "version": "latest"}
    for value in ("container_up1", {"id": "container_up1"}, {"id": public_id, "skills": [skill]}):
        answer = await ask(harness, container=value)
        assert (answer.status, error_of(answer)) == (400, ("field_not_allowed", "container"))
    harness = engine(TOOL, "container")
    await answered_container(harness, container={"id": "container_up1", "skills": [skill]})
    assert sent(harness)["container"] == {"id": "container_up1", "skills": [skill]}


async def test_another_provider_does_not_receive_the_id() -> None:
    harness = engine(TOOL)
    harness.serve("two", "m", kind="anthropic")
    public_id = (await answered_container(harness))["id"]
    answer = await ask(harness, model="two/m", container=public_id)
    assert (answer.status, error_of(answer)) == (400, ("field_not_allowed", "container"))
    # The permission of the field does not change this, and neither do skills beside the id.
    harness.allowed_fields = (TOOL, "container")
    skill = {"type": "custom", "skill_id": "skill_1", "version": "latest"}
    answer = await ask(harness, model="two/m", container={"id": public_id, "skills": [skill]})
    assert (answer.status, error_of(answer)) == (400, ("field_not_allowed", "container"))
    assert len(harness.outbound.sent) == 1


CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "reply"), [("anthropic", MESSAGE), ("openai", CHAT)])
async def test_a_permission_of_another_field_changes_no_plain_message(kind: str, reply: dict[str, Any]) -> None:
    harness = EngineHarness()
    harness.serve("one", "m", kind=kind)
    harness.allowed_fields = ("store",)
    harness.outbound.script = [(200, [json.dumps(reply).encode()])]
    answer = await ask(harness, tools=[])
    assert answer.status == 200, answer.body


async def test_no_permission_allows_a_previous_response_outside_the_responses_api() -> None:
    harness = engine("previous_response_id", "store")
    answer = await ask(harness, tools=[], previous_response_id="resp_x")
    assert answer.status == 400
    assert error_of(answer)[1] == "previous_response_id"
    assert harness.outbound.sent == []
