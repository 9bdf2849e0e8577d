"""Content of the sandbox's answers. It depends on the request only, so that the same request always gets the same
answer, except for its time."""

import hashlib
import math
import re
import time
from typing import Any

import msgspec

from gatehouse.engine.conversation.form import Completion, Finish, FormMessage, Request, Text, ToolCall, ToolResult
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.sandbox.behaviour import Behaviour

#: Creation time of the models, in Unix time.
CREATED_SECONDS = 1_700_000_000
EMBEDDING_DIMENSIONS = 8
MAX_DIMENSIONS = 4096
MAX_WORDS = 2_000
MAX_CHOICES = 16

_WORD = re.compile(r"\s*\S+\s*?")


def complete(request: Request, behaviour: Behaviour) -> Completion:
    """Return a chat's whole answer."""
    call = _tool_call(request) if behaviour.tools else None
    finish: Finish = "stop"
    if call is not None:
        parts: tuple[Text | ToolCall, ...] = (call,)
        finish = "tool_calls"
        text = call.arguments
    else:
        text = _answer_text(request, behaviour)
        limit = request.sampling.max_tokens
        words = _WORD.findall(text)
        if limit is not None and len(words) > limit and behaviour.tokens is None:
            text, finish = "".join(words[:limit]), "length"
        parts = (Text(text),)
    prompt = "".join(_text(message) for message in request.messages)
    usage = Usage(input_tokens=count(prompt), output_tokens=count(text))
    if behaviour.tokens is not None:
        usage = Usage(input_tokens=behaviour.tokens[0], output_tokens=behaviour.tokens[1])
    digest = digest_of(prompt)
    return Completion(
        id=f"sandbox-{digest}", model=request.model, parts=parts, finish=finish, usage=usage, created=int(time.time())
    )


def digest_of(text: str) -> str:
    """Return a short digest in hexadecimal, for ids."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def count(text: str) -> int:
    """Return the tokens of a text: one for each four bytes, at least one."""
    return max(1, math.ceil(len(text.encode()) / 4))


def pieces(text: str) -> list[str]:
    """Split a text into the words of a stream, without loss."""
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    return [*words, rest] if rest else words


def vector(text: str, dimensions: int) -> list[float]:
    """Return a unit vector that depends on the text only."""
    stream = hashlib.shake_256(text.encode()).digest(dimensions)
    values = [byte - 127.5 for byte in stream]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def _answer_text(request: Request, behaviour: Behaviour) -> str:
    if behaviour.chunks is not None:
        return "".join(f"chunk-{number} " for number in range(behaviour.chunks))
    if behaviour.tokens is not None:
        return "word " * min(behaviour.tokens[1], MAX_WORDS)
    last = request.messages[-1]
    results = [part for part in last.parts if isinstance(part, ToolResult)]
    if results:
        output = "".join(item.text for result in results for item in result.content if isinstance(item, Text))
        return f"The tool said: {output}"
    question = next((_text(message) for message in reversed(request.messages) if message.role == "user"), "")
    if request.response_format is not None:
        return msgspec.json.encode({"echo": question}).decode()
    return question or "Hello from the sandbox."


def _text(message: FormMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _tool_call(request: Request) -> ToolCall | None:
    """Return a call of the named tool or the first one; None if the last message has a tool's result."""
    has_result = any(isinstance(part, ToolResult) for part in request.messages[-1].parts)
    choice = request.tool_choice
    if not request.tools or has_result or (choice is not None and choice.mode == "none"):
        return None
    tool = next((tool for tool in request.tools if choice and tool.name == choice.name), request.tools[0])
    arguments = msgspec.json.encode(_example(tool.parameters or {})).decode()
    digest = hashlib.sha256((tool.name + arguments).encode()).hexdigest()[:16]
    return ToolCall(id=f"call_{digest}", name=tool.name, arguments=arguments)


def _example(schema: dict[str, Any]) -> dict[str, Any]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    return {name: _value(properties.get(name)) for name in required if isinstance(name, str)}


def _value(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return "sandbox"
    values, value_type = schema.get("enum"), schema.get("type")
    if isinstance(values, list) and values:
        return values[0]
    if value_type == "object":
        return _example(schema)
    examples = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}
    return examples.get(value_type, "sandbox") if isinstance(value_type, str) else "sandbox"
