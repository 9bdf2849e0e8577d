"""Answers of a provider that has the Responses API: complete, and as a stream's events."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

ENCRYPTED = "gAAAAABo" + "QmFzZTY0" * 20
USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}


def reasoning(*summaries: str, content: Sequence[str] = (), encrypted: str | None = ENCRYPTED) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": "rs_1a", "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summaries],
    }  # fmt: skip
    if content:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in content]
    return item if encrypted is None else {**item, "encrypted_content": encrypted}


def message(text: str, *, refusal: bool = False, annotations: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    part = (
        {"type": "refusal", "refusal": text}
        if refusal
        else {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}
    )
    return {"id": "msg_1b", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def function_call(arguments: str, *, name: str = "look", call_id: str = "call_1") -> dict[str, Any]:
    return {
        "id": "fc_1c", "type": "function_call", "status": "completed", "call_id": call_id, "name": name,
        "arguments": arguments,
    }  # fmt: skip


def custom_call(text: str, *, name: str = "patch") -> dict[str, Any]:
    return {
        "id": "ctc_1d", "type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": name,
        "input": text,
    }  # fmt: skip


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return a response object, which repeats texts of the request as OpenAI's does."""
    return {
        "id": "resp_up1", "object": "response", "created_at": 1_700_000_000, "status": status, "error": None,
        "incomplete_details": None, "instructions": "Repeated instructions", "max_output_tokens": None,
        "model": "m-2026-01-01", "output": list(items), "parallel_tool_calls": True, "previous_response_id": None,
        "reasoning": {"effort": "low", "summary": "auto"}, "store": False, "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [{"type": "function", "name": "look", "description": "Repeated tool", "parameters": {}}],
        "top_p": 1.0, "truncation": "disabled", "usage": USAGE if status != "in_progress" else None,
        "metadata": {"note": "Repeated note"}, **more,
    }  # fmt: skip


def stream(*items: dict[str, Any], piece: int = 3, final: str = "completed", **more: Any) -> list[bytes]:
    """Return the events of a response, with texts in pieces of some characters."""
    kinds = [
        ("response.created", {"response": response(status="in_progress", **more)}),
        ("response.in_progress", {"response": response(status="in_progress", **more)}),
        *(event for index, item in enumerate(items) for event in _item_events(index, item, piece)),
        (f"response.{final}", {"response": response(*items, status=final, **more)}),
    ]
    return [
        f"event: {kind}\ndata: ".encode()
        + json.dumps({"type": kind, **fields, "sequence_number": number}, separators=(",", ":")).encode()
        + b"\n\n"
        for number, (kind, fields) in enumerate(kinds)
    ]


_Event = tuple[str, dict[str, Any]]
_TEXT_FIELDS = {"content", "summary", "arguments", "input", "code"}


def _item_events(index: int, item: dict[str, Any], piece: int) -> Iterator[_Event]:
    place = {"item_id": item["id"], "output_index": index}
    started = {name: value for name, value in item.items() if name not in _TEXT_FIELDS}
    kind = item["type"]
    if kind == "message":
        started |= {"content": [], "status": "in_progress"}
    elif kind == "reasoning":
        started |= {"summary": []}
    else:
        field = {"function_call": "arguments", "code_interpreter_call": "code"}.get(kind, "input")
        started |= {field: "", "status": "in_progress"}
    yield "response.output_item.added", {"output_index": index, "item": started}
    if kind == "message":
        for number, part in enumerate(item["content"]):
            field = "refusal" if part["type"] == "refusal" else "text"
            name = "refusal" if field == "refusal" else "output_text"
            here = {**place, "content_index": number}
            empty = {**part, field: ""} | ({"annotations": []} if field == "text" else {})
            yield "response.content_part.added", {**here, "part": empty}
            extra: dict[str, Any] = {"logprobs": []} if field == "text" else {}
            yield from _text_events(f"response.{name}", here, field, part[field], piece, extra)
            for order, annotation in enumerate(part.get("annotations", ())):
                yield (
                    "response.output_text.annotation.added",
                    {**here, "annotation_index": order, "annotation": annotation},
                )
            yield "response.content_part.done", {**here, "part": part}
    elif kind == "reasoning":
        for number, part in enumerate(item["summary"]):
            here = {**place, "summary_index": number}
            yield "response.reasoning_summary_part.added", {**here, "part": {"type": "summary_text", "text": ""}}
            yield from _text_events("response.reasoning_summary_text", here, "text", part["text"], piece, {})
            yield "response.reasoning_summary_part.done", {**here, "part": part}
        for number, part in enumerate(item.get("content", ())):
            here = {**place, "content_index": number}
            yield from _text_events("response.reasoning_text", here, "text", part["text"], piece, {})
    elif kind == "function_call":
        yield from _text_events("response.function_call_arguments", place, "arguments", item["arguments"], piece, {})
    elif kind == "code_interpreter_call":
        yield from _text_events("response.code_interpreter_call_code", place, "code", item["code"], piece, {})
    else:
        yield from _text_events("response.custom_tool_call_input", place, "input", item["input"], piece, {})
    yield "response.output_item.done", {"output_index": index, "item": item}


def _text_events(
    kind: str, place: dict[str, Any], field: str, text: str, piece: int, extra: dict[str, Any]
) -> Iterator[_Event]:
    for start in range(0, len(text), piece):
        yield f"{kind}.delta", {**place, "delta": text[start : start + piece], **extra, "obfuscation": "aZ9"}
    yield f"{kind}.done", {**place, field: text, **extra}
