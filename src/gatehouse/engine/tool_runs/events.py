"""Events of a stream with an answer that is already complete."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

_DONE: Final = b"data: [DONE]\n\n"
#: the events of an item that the gateway has run, before and after it
_RUN_EVENTS: Final = {
    "mcp_list_tools": ("response.mcp_list_tools.in_progress", "response.mcp_list_tools.completed"),
    "mcp_call": ("response.mcp_call.in_progress", "response.mcp_call.completed"),
}


def chat_events(answer: dict[str, Any], *, has_usage: bool) -> list[bytes]:
    """Return a chat completion as chunks."""
    base: dict[str, Any] = {"object": "chat.completion.chunk"}
    for key in ("id", "created", "model", "system_fingerprint", "service_tier"):
        if key in answer:
            base[key] = answer[key]
    if has_usage:
        base["usage"] = None
    chunks = []
    for choice in answer.get("choices", []):
        message = dict(choice.get("message") or {})
        if calls := message.get("tool_calls"):
            message["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
        index = choice.get("index", 0)
        start = {"index": index, "delta": message, "logprobs": choice.get("logprobs"), "finish_reason": None}
        end = {"index": index, "delta": {}, "logprobs": None, "finish_reason": choice.get("finish_reason")}
        chunks += [{**base, "choices": [start]}, {**base, "choices": [end]}]
    if has_usage:
        chunks.append({**base, "choices": [], "usage": answer.get("usage")})
    return [*(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks), _DONE]


def response_events(answer: dict[str, Any]) -> list[bytes]:
    """Return a response as its events, in the order of the Responses API."""
    begun = {**answer, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(answer["output"]):
        events += _item_events(item, index)
    status = answer.get("status", "completed")
    kind = status if status in {"completed", "incomplete", "failed"} else "completed"
    events.append({"type": f"response.{kind}", "response": answer})
    return [
        f"event: {event['type']}\ndata: ".encode() + msgspec.json.encode({**event, "sequence_number": number}) + b"\n\n"
        for number, event in enumerate(events)
    ]


def _item_events(item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    place = {"output_index": index, "item_id": item.get("id")}
    kind = item.get("type")
    begun = {key: value for key, value in item.items() if key not in {"output", "error"}}
    if "tools" in item:
        begun["tools"] = []
    if "content" in item:
        begun["content"] = []
    if "arguments" in item:
        begun["arguments"] = ""
    if "status" in item:
        begun["status"] = "in_progress"
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    first, last = _RUN_EVENTS.get(str(kind), (None, None))
    if first is not None:
        yield {"type": first, **place}
    if kind == "message":
        for part_index, part in enumerate(item.get("content") or []):
            yield from _part_events(part, {**place, "content_index": part_index})
    if kind in {"mcp_call", "function_call"}:
        name = "mcp_call_arguments" if kind == "mcp_call" else "function_call_arguments"
        yield {"type": f"response.{name}.delta", **place, "delta": item["arguments"]}
        yield {"type": f"response.{name}.done", **place, "name": item["name"], "arguments": item["arguments"]}
    if last is not None:
        yield {"type": "response.mcp_call.failed" if item.get("status") == "failed" else last, **place}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _part_events(part: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    field = "refusal" if part.get("type") == "refusal" else "text"
    kind = "refusal" if field == "refusal" else "output_text"
    extra: dict[str, Any] = {} if field == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
    yield {"type": f"response.{kind}.delta", **place, "delta": part.get(field, ""), **extra}
    yield {"type": f"response.{kind}.done", **place, field: part.get(field, ""), **extra}
    yield {"type": "response.content_part.done", **place, "part": part}
