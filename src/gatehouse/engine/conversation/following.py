"""Which texts of a body follow each other: what one speaker says is one text to a model, however it is cut."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

#: Where a text stands: its holder, and its key there.
Place: TypeAlias = tuple[dict[str, Any], str]

_CONVERSATIONS: Final = ("messages", "input")
_SYSTEM: Final = ("system", "instructions")
#: Each of their messages is the answer of another call.
_TOOLS: Final = frozenset({"tool", "function"})


def following(body: dict[str, Any]) -> Iterator[list[Place]]:
    """Of a request: the texts of each role in order, whatever others say in between, and the parts of each tool's
    result."""
    by_role: dict[str, list[Place]] = {"system": [place for field in _SYSTEM for place in _texts(body, field)]}
    for field in _CONVERSATIONS:
        for message in _objects(body.get(field)):
            role, content = str(message.get("role")), message.get("content")
            if type(content) is str:
                if role not in _TOOLS:
                    by_role.setdefault(role, []).append((message, "content"))
            elif type(content) is list:
                texts = _texts(message, "content")
                if role in _TOOLS:
                    yield texts
                else:
                    by_role.setdefault(role, []).extend(texts)
                for part in content:
                    if type(part) is dict and type(part.get("content")) is list:
                        yield _texts(part, "content")
            elif type(message.get("output")) is list:
                yield _texts(message, "output")
    yield from by_role.values()


def following_in_answer(body: dict[str, Any]) -> Iterator[list[Place]]:
    """The same of an answer: the parts of each message."""
    yield _texts(body, "content")
    for choice in _objects(body.get("choices")):
        for message in _objects([choice.get("message")]):
            yield _texts(message, "content")
    yield [place for item in _objects(body.get("output")) for place in _texts(item, "content")]


def _texts(holder: dict[str, Any], key: str) -> list[Place]:
    """A text, or the texts of a list of parts."""
    if type(holder.get(key)) is str:
        return [(holder, key)]
    return [(part, "text") for part in _objects(holder.get(key)) if type(part.get("text")) is str]


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if type(value) is dict] if type(values) is list else []
