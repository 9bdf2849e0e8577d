"""Requests as Mistral takes them. What it has no field for is left out: it would refuse the whole."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gatehouse.engine.conversation.call_ids import fitting
from gatehouse.engine.conversation.dialects.openai_chat.request import write_format
from gatehouse.engine.conversation.form import (
    Image,
    Message,
    Part,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gatehouse.engine.conversation.images import to_url

#: Its own fields, which a client of any dialect may send beside those of the dialect.
_OWN: Final = ("safe_prompt", "prompt_mode", "guardrails", "random_seed", "min_tokens", "repetition_penalty")
#: The other dialects' scale goes to 2.
_HOTTEST: Final = 1.5

#: Between a tool's result and what the user says next, where an answer has to stand that is not empty.
_BRIDGE: Final = {"role": "assistant", "content": " "}
_ID: Final = re.compile("[A-Za-z0-9]{9}")


def write(request: Request) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        **{name: request.extra[name] for name in _OWN if name in request.extra},
        "model": request.model,
        "messages": _write_messages(request.messages),
        "max_tokens": sampling.max_tokens,
        "temperature": None if sampling.temperature is None else min(sampling.temperature, _HOTTEST),
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "stop": list(sampling.stop) or None,
        "tools": [_write_tool(tool) for tool in request.tools] or None,
        "tool_choice": _write_choice(request.tool_choice) if request.tools else None,
        "parallel_tool_calls": request.parallel_tool_calls if request.tools else None,
        "response_format": write_format(request.response_format),
        "reasoning_effort": request.reasoning_effort,
        "stream": request.stream or None,
    }
    if sampling.seed is not None:
        body["random_seed"] = sampling.seed
    return {name: value for name, value in body.items() if value is not None}


def short_id(call_id: str) -> str:
    """A tool call's id as Mistral wants it, nine letters and digits."""
    return fitting(call_id, _ID, 9)


def _write_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for shown in (shown for message in messages for shown in _write_message(message)):
        if shown["role"] == "user" and written and written[-1]["role"] == "tool":
            written.append(_BRIDGE)
        written.append(shown)
    if written and written[-1]["role"] == "assistant" and "tool_calls" not in written[-1]:
        # The answer is to go on from there. Unsaid, it is an order of messages that is refused.
        written[-1]["prefix"] = True
    return written


def _write_message(message: Message) -> Iterator[dict[str, Any]]:
    """One message may become several: each tool's result is a message of its own here."""
    plain: list[Part] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield {"role": "tool", "tool_call_id": short_id(part.call_id), "content": _write_content(part.content)}
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments or "{}"}
            calls.append({"id": short_id(part.id), "type": "function", "function": function})
        else:
            plain.append(part)
    if calls:
        yield {"role": message.role, "content": _write_content(plain), "tool_calls": calls}
    elif plain:
        yield {"role": message.role, "content": _write_content(plain)}


def _write_content(parts: Sequence[Part]) -> Any:
    if not any(isinstance(part, Image) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, Text))
    return [_write_part(part) for part in parts if isinstance(part, Text | Image)]


def _write_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
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
