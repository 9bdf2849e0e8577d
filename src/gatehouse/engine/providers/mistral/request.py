"""Writes requests to Mistral from the internal form. Fields that Mistral does not have are omitted, because it would
refuse the request."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gatehouse.engine.conversation.conversion import effort
from gatehouse.engine.conversation.conversion.call_ids import accepted_id
from gatehouse.engine.conversation.conversion.documents import data_url
from gatehouse.engine.conversation.conversion.images import to_url
from gatehouse.engine.conversation.conversion.system_messages import leading_texts, placed
from gatehouse.engine.conversation.dialects.openai_chat.request import write_format
from gatehouse.engine.conversation.form import (
    Content,
    Document,
    FormMessage,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

#: Mistral's own fields, which clients may send in any dialect.
EXTRA_FIELDS: Final = frozenset(
    {"safe_prompt", "prompt_mode", "guardrails", "random_seed", "min_tokens", "repetition_penalty"}
)
_UNWRITTEN: Final = frozenset(
    {
        "user", "prompt_cache_key", "detail", "is_error", "signature", "document_name", "reasoning",
        "returned_reasoning", "later_system", "betas",
    }
)  # fmt: skip
#: The maximum in the other dialects is 2.
_MAX_TEMPERATURE: Final = 1.5

#: Inserted between a tool's result and a user's message, where Mistral requires a non-empty answer.
_EMPTY_ANSWER: Final = {"role": "assistant", "content": " "}
_ID: Final = re.compile("[A-Za-z0-9]{9}")


def unwritten(request: Request) -> frozenset[str]:
    """Return the features of a request that `write` leaves out or changes."""
    names = _UNWRITTEN | effort.unwritten_levels(request.effort, effort.for_mistral(request.effort, request.reasons))
    temperature = request.sampling.temperature
    return names | {"temperature"} if temperature is not None and temperature > _MAX_TEMPERATURE else names


def write(request: Request) -> dict[str, Any]:
    request = placed(request)
    # Mistral takes files from the user only.
    leading_texts(request.messages)
    sampling = request.sampling
    body: dict[str, Any] = {
        **{name: value for name, value in request.extra.items() if name in EXTRA_FIELDS},
        "model": request.model,
        "messages": _write_messages(request.messages),
        "max_tokens": sampling.max_tokens,
        "temperature": None if sampling.temperature is None else min(sampling.temperature, _MAX_TEMPERATURE),
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "stop": list(sampling.stop) or None,
        "tools": [_write_tool(tool) for tool in request.tools] or None,
        "tool_choice": _write_choice(request.tool_choice) if request.tools else None,
        "parallel_tool_calls": request.parallel_tool_calls if request.tools else None,
        "response_format": write_format(request.response_format),
        "reasoning_effort": effort.for_mistral(request.effort, request.reasons),
        "stream": request.stream or None,
    }
    if sampling.seed is not None:
        body["random_seed"] = sampling.seed
    return {name: value for name, value in body.items() if value is not None}


def short_id(call_id: str) -> str:
    """Return a tool call's id in Mistral's format, nine letters and digits."""
    return accepted_id(call_id, _ID, 9)


def _write_messages(messages: Sequence[FormMessage]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for entry in (entry for message in messages for entry in _write_message(message)):
        if entry["role"] == "user" and written and written[-1]["role"] == "tool":
            written.append(_EMPTY_ANSWER)
        written.append(entry)
    if written and written[-1]["role"] == "assistant" and "tool_calls" not in written[-1]:
        # The answer continues this message. Without `prefix`, Mistral refuses the order of the messages.
        written[-1]["prefix"] = True
    return written


def _write_message(message: FormMessage) -> Iterator[dict[str, Any]]:
    """Yield one or several messages: each tool's result is a message of its own here."""
    content: list[Content] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield {"role": "tool", "tool_call_id": short_id(part.call_id), "content": _write_content(part.content)}
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments or "{}"}
            calls.append({"id": short_id(part.id), "type": "function", "function": function})
        elif isinstance(part, Content):
            content.append(part)
    if calls:
        yield {"role": message.role, "content": _write_content(content), "tool_calls": calls}
    elif content:
        yield {"role": message.role, "content": _write_content(content)}


def _write_content(parts: Sequence[Content]) -> Any:
    if all(isinstance(part, Text) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, Text))
    return [_write_part(part) for part in parts]


def _write_part(part: Content) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Document):
        return {"type": "document_url", "document_url": part.url or data_url(part, "messages")}
    return {"type": "image_url", "image_url": to_url(part)}


def _write_tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "parameters": tool.parameters or {"type": "object", "properties": {}},
    }
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _write_choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.mode == "named":
        return {"type": "function", "function": {"name": choice.name}}
    return "any" if choice.mode == "required" else choice.mode
