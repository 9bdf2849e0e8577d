"""Events of complete answers, read by the official client's types."""

import json

from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gatehouse.engine.tool_runs.events import chat_events, response_events

EVENT = TypeAdapter[ResponseStreamEvent](ResponseStreamEvent)
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Sent.", "annotations": []}, {"type": "refusal", "refusal": "No."}],
}  # fmt: skip
CALL = {
    "id": "mcp_1", "type": "mcp_call", "server_label": "mail", "name": "send", "arguments": "{}", "output": None,
    "error": {"type": "mcp_tool_execution_error", "content": []}, "status": "failed", "approval_request_id": None,
}  # fmt: skip
LISTED = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "mail", "tools": []}
FUNCTION = {
    "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at":1}',
    "status": "completed",
}  # fmt: skip
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"}


def test_a_response_becomes_its_events_in_order() -> None:
    items = [LISTED, CALL, REASONING, MESSAGE, FUNCTION]
    answer = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": items,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip
    frames = [block.decode().splitlines() for block in response_events(answer)]
    events = [json.loads(frame[1].removeprefix("data: ")) for frame in frames]
    assert [frame[0] for frame in frames] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        EVENT.validate_python(event)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == items
    kinds = [event["type"] for event in events]
    assert "response.mcp_call.failed" in kinds
    assert "response.mcp_call.completed" not in kinds
    assert kinds[-1] == "response.completed"
    assert events[-1]["response"] == answer


def test_an_incomplete_response_ends_with_its_own_event() -> None:
    answer = {"status": "incomplete", "output": []}
    assert response_events(answer)[-1].startswith(b"event: response.incomplete\n")


def test_a_completion_becomes_chunks() -> None:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    answer = {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "usage": {"total_tokens": 3},
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": calls},
             "finish_reason": "tool_calls"}
        ],
    }  # fmt: skip
    *blocks, last = chat_events(answer, has_usage=False)
    assert last == b"data: [DONE]\n\n"
    chunks = [ChatCompletionChunk.model_validate_json(block.removeprefix(b"data: ")) for block in blocks]
    assert chunks[0].choices[0].delta.tool_calls is not None
    assert chunks[0].choices[0].delta.tool_calls[0].index == 0
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, "tool_calls"]
    assert all(chunk.usage is None for chunk in chunks)
