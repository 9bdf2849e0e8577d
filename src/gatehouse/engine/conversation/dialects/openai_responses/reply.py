"""Renders complete answers, and their parts for the events of a stream."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion.custom_tools import input_of
from gatehouse.engine.conversation.dialects.openai_chat.content import signature_fields
from gatehouse.engine.conversation.dialects.openai_responses.reasoning import (
    ShownReasoning,
    is_shown,
    reasoning_item,
    shown_reasoning,
)
from gatehouse.engine.conversation.dialects.openai_responses.tools import DeclaredTool, read_tools
from gatehouse.engine.conversation.form import Completion, Finish, Reasoning, Text, ToolCall
from gatehouse.engine.conversation.usage import Usage
from gatehouse.foundation.ids import new_id

#: reasons of incomplete answers by finish reason
_INCOMPLETE: Final[dict[Finish, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response_id(upstream: str) -> str:
    return f"resp_{upstream or new_id().hex}"


def write(completion: Completion, body: Mapping[str, Any]) -> bytes:
    """Return the body for the client. `body` is the client's request."""
    rendered = response(
        body, response_id(completion.id), completion.model, completion.created or int(time.time()),
        output=_items(completion, read_tools(body).by_function, shown_reasoning(body)),
        finish=completion.finish, usage=completion.usage,
    )  # fmt: skip
    return msgspec.json.encode(rendered)


def response(
    body: Mapping[str, Any],
    id: str,
    model: str,
    created: int,
    *,
    output: Sequence[dict[str, Any]] = (),
    finish: Finish | None = None,
    usage: Usage | None = None,
) -> dict[str, Any]:
    """Return a response object. `finish` is None for one in progress. Repeats only the settings of the request and none
    of its texts: instructions may be the organization's, and repeated texts would have to be inspected again."""
    reason = None if finish is None else _INCOMPLETE.get(finish)
    tools = body.get("parallel_tool_calls")
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "status": status(finish),
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "instructions": None,
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": {},
        "model": model,
        "output": list(output),
        "parallel_tool_calls": True if tools is None else tools,
        "previous_response_id": None,
        "store": False,
        "temperature": body.get("temperature"),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": None if usage is None else _usage_fields(usage),
    }


def status(finish: Finish | None) -> str:
    if finish is None:
        return "in_progress"
    return "incomplete" if finish in _INCOMPLETE else "completed"


def message_item(id: str, status_: str, content: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"id": f"msg_{id}", "type": "message", "status": status_, "role": "assistant", "content": list(content)}


def part(text: str, *, refusal: bool) -> dict[str, Any]:
    if refusal:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(id: str, status_: str, call: ToolCall, tool: DeclaredTool | None) -> dict[str, Any]:
    """Return the item of a call. `tool` is the called tool of the request, or None if the model invented the name. For
    a custom tool, `call.arguments` is the input."""
    is_custom = tool is not None and tool.is_custom
    item = {
        "id": call_item_id(id, tool),
        "type": "custom_tool_call" if is_custom else "function_call",
        "status": status_,
        "call_id": call.id,
        "name": call.name if tool is None else tool.key.name,
        "input" if is_custom else "arguments": call.arguments,
        **signature_fields(call.signature),
    }
    if tool is not None and tool.key.namespace is not None:
        item["namespace"] = tool.key.namespace
    return item


def call_item_id(id: str, tool: DeclaredTool | None) -> str:
    return f"ctc_{id}" if tool is not None and tool.is_custom else f"fc_{id}"


def _whole_call_item(id: str, status_: str, call: ToolCall, tool: DeclaredTool | None) -> dict[str, Any]:
    if tool is not None and tool.is_custom:
        call = msgspec.structs.replace(call, arguments=input_of(call.arguments))
    return call_item(id, status_, call, tool)


def _items(completion: Completion, tools: Mapping[str, DeclaredTool], shown: ShownReasoning) -> list[dict[str, Any]]:
    """Return the items of the answer. As in a stream, consecutive texts form one message, and consecutive texts of one
    kind (answer or refusal) form one part of it."""
    id_, closed = completion.id, status(completion.finish)
    items: list[dict[str, Any]] = []
    texts: list[Text] = []

    def close() -> None:
        if texts:
            content = [part(text.text, refusal=text.refusal) for text in texts]
            items.append(message_item(f"{id_}_{len(items)}", closed, content))
            texts.clear()

    for item in completion.parts:
        if isinstance(item, Reasoning):
            if is_shown(item, shown):
                close()
                items.append(reasoning_item(f"{id_}_{len(items)}", item, shown))
        elif isinstance(item, ToolCall):
            close()
            items.append(_whole_call_item(f"{id_}_{len(items)}", closed, item, tools.get(item.name)))
        elif texts and texts[-1].refusal == item.refusal:
            texts[-1] = Text(texts[-1].text + item.text, refusal=item.refusal)
        elif item.text:
            texts.append(item)
    close()
    return items


def _usage_fields(usage: Usage) -> dict[str, Any]:
    """Return the usage in OpenAI's fields. Tokens read from or written to a cache are input tokens too."""
    input_tokens = usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": input_tokens + usage.output_tokens,
    }
