"""Finds consecutive texts of a body: the texts of one speaker are one text to a model, however they are split."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

#: the location of a text: the object that contains it, and its key
Place: TypeAlias = tuple[dict[str, Any], str]

_CONVERSATIONS: Final = ("messages", "input")
_SYSTEM: Final = ("system", "instructions")
#: roles in which each message belongs to a different tool call
_TOOL_ROLES: Final = frozenset({"tool", "function"})


def consecutive_texts(body: dict[str, Any]) -> Iterator[list[Place]]:
    """Yields the consecutive texts of a request: those of each role in order, regardless of other roles in between,
    the parts of each tool's result, and those of each summary of reasoning."""
    by_role: dict[str, list[Place]] = {"system": [place for field in _SYSTEM for place in _texts(body, field)]}
    for field in _CONVERSATIONS:
        for message in _objects(body.get(field)):
            role, content = str(message.get("role")), message.get("content")
            if type(content) is str:
                if role not in _TOOL_ROLES:
                    by_role.setdefault(role, []).append((message, "content"))
            elif type(content) is list:
                texts = _texts(message, "content")
                if role in _TOOL_ROLES:
                    yield texts
                else:
                    by_role.setdefault(role, []).extend(texts)
                for part in content:
                    if type(part) is dict and type(part.get("content")) is list:
                        yield _texts(part, "content")
            elif type(message.get("output")) is list:
                yield _texts(message, "output")
    yield from by_role.values()
    yield from _summaries(body["input"]) if "input" in body else ()


def consecutive_texts_of_answer(body: dict[str, Any]) -> Iterator[list[Place]]:
    """Yields the consecutive texts of an answer: the parts of each message and of each summary of reasoning,
    and the segments of a transcription."""
    yield _texts(body, "content")
    yield _texts(body, "segments")
    for choice in _objects(body.get("choices")):
        for message in _objects([choice.get("message")]):
            yield _texts(message, "content")
    items = _objects(body.get("output"))
    yield [place for item in items for place in _texts(item, "content")]
    yield from _summaries(items)


def _summaries(items: Any) -> Iterator[list[Place]]:
    """Yields the texts of each summary of reasoning."""
    for item in _objects(items):
        if "summary" in item:
            yield _texts(item, "summary")


def _texts(holder: dict[str, Any], key: str) -> list[Place]:
    """Return the location of a text, or those of the texts in a list of parts."""
    if type(holder.get(key)) is str:
        return [(holder, key)]
    return [(part, "text") for part in _objects(holder.get(key)) if type(part.get("text")) is str]


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if type(value) is dict] if type(values) is list else []
