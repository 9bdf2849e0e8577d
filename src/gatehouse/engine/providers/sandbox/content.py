"""What the sandbox says: made from the request alone, so the same request always gets the same answer, but for its
time."""

import hashlib
import math
import re
import time
from typing import Any

import msgspec

from gatehouse.engine.conversation.form import Completion, Finish, Message, Request, Text, ToolCall, ToolResult
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.sandbox.behaviour import Behaviour

#: When its models were made.
CREATED = 1_700_000_000
DIMENSIONS = 8
MAX_DIMENSIONS = 4096
MAX_WORDS = 2_000

_WORD = re.compile(r"\s*\S+\s*?")


def complete(request: Request, behaviour: Behaviour) -> Completion:
    """A chat's whole answer."""
    call = _tool_call(request) if behaviour.tools else None
    finish: Finish = "stop"
    if call is not None:
        parts: tuple[Text | ToolCall, ...] = (call,)
        finish = "tool_calls"
        said = call.arguments
    else:
        said = _said(request, behaviour)
        limit = request.sampling.max_tokens
        words = _WORD.findall(said)
        if limit is not None and len(words) > limit and behaviour.tokens is None:
            said, finish = "".join(words[:limit]), "length"
        parts = (Text(said),)
    heard = "".join(_text(message) for message in request.messages)
    usage = Usage(input_tokens=count(heard), output_tokens=count(said))
    if behaviour.tokens is not None:
        usage = Usage(input_tokens=behaviour.tokens[0], output_tokens=behaviour.tokens[1])
    digest = hashlib.sha256(heard.encode()).hexdigest()[:24]
    return Completion(
        id=f"sandbox-{digest}", model=request.model, parts=parts, finish=finish, usage=usage, created=int(time.time())
    )


def count(text: str) -> int:
    """Tokens of a text: four bytes each, at least one."""
    return max(1, math.ceil(len(text.encode()) / 4))


def pieces(text: str) -> list[str]:
    """A text as it is streamed: word by word, nothing lost."""
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    return [*words, rest] if rest else words


def vector(text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on the text only."""
    stream = hashlib.shake_256(text.encode()).digest(dimensions)
    values = [byte - 127.5 for byte in stream]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def _said(request: Request, behaviour: Behaviour) -> str:
    if behaviour.chunks is not None:
        return "".join(f"chunk-{number} " for number in range(behaviour.chunks))
    if behaviour.tokens is not None:
        return "word " * min(behaviour.tokens[1], MAX_WORDS)
    last = request.messages[-1]
    results = [part for part in last.parts if isinstance(part, ToolResult)]
    if results:
        told = "".join(item.text for result in results for item in result.content if isinstance(item, Text))
        return f"The tool said: {told}"
    asked = next((_text(message) for message in reversed(request.messages) if message.role == "user"), "")
    if request.response_format is not None:
        return msgspec.json.encode({"echo": asked}).decode()
    return asked or "Hello from the sandbox."


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _tool_call(request: Request) -> ToolCall | None:
    """A call of the named tool or the first one, unless a result is there already."""
    answered = any(isinstance(part, ToolResult) for part in request.messages[-1].parts)
    choice = request.tool_choice
    if not request.tools or answered or (choice is not None and choice.mode == "none"):
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
    allowed, kind = schema.get("enum"), schema.get("type")
    if isinstance(allowed, list) and allowed:
        return allowed[0]
    if kind == "object":
        return _example(schema)
    examples = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}
    return examples.get(kind, "sandbox") if isinstance(kind, str) else "sandbox"
