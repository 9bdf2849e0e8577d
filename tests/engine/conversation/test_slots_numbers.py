"""Numbers in fields that dialects and schemas define are not inspected. All other numbers are."""

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import types as anthropic
from openai.types import CreateEmbeddingResponse, chat, responses
from pydantic import BaseModel

from gatehouse.engine.conversation.slots import Slot, slots

#: A time of 2026 that is also a company's number with a valid check digit.
NUMBER = 1795459617
ANSWERS = {
    "chat": chat.ChatCompletion, "chunk": chat.ChatCompletionChunk, "response": responses.Response,
    "embeddings": CreateEmbeddingResponse, "message": anthropic.Message, "event": anthropic.RawMessageStreamEvent,
}  # fmt: skip
#: Fields of the clients' types that hold a tool's or a person's content, or numbers that are never long.
CONTENT = frozenset(
    {
        "attributes", "value", "code", "x", "y", "scroll_x", "scroll_y", "timeout_ms", "max_output_length", "exit_code",
        "score", "logprob", "bytes", "embedding", "display_height", "display_width", "frame_count", "frame_duration_ms",
        "max_num_results", "output_compression", "partial_images", "embedding_weight", "text_weight",
        "score_threshold", "category_scores", "temperature", "top_p", "top_logprobs", "max_tool_calls", "index",
        "new_lines", "new_start", "num_lines", "old_lines", "old_start", "return_code", "start_line", "total_lines",
        "end_page_number", "start_page_number", "max_uses",
    }
)  # fmt: skip


def _paths(kind: Any, path: tuple[str, ...] = (), seen: frozenset[Any] = frozenset()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each number in a client's type."""
    if typing.get_origin(kind) is not None:
        for inner in typing.get_args(kind):
            yield from _paths(inner, path, seen)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind not in seen:
            for name, field in kind.model_fields.items():
                yield from _paths(field.annotation, (*path, field.alias or name), seen | {kind})
    elif kind in (int, float):
        yield path


def _holding(path: tuple[str, ...], number: float) -> dict[str, Any]:
    inner: Any = number
    for name in reversed(path):
        inner = {name: inner}
    return typing.cast("dict[str, Any]", inner)


def _texts(body: dict[str, Any], *, answer: bool) -> list[str]:
    return [slot.text for slot in slots(body, answer=answer) if isinstance(slot, Slot) and not slot.is_key]


@pytest.mark.parametrize("name", ANSWERS)
def test_times_counts_and_places_that_the_clients_know_are_never_replaced(name: str) -> None:
    paths = {path for path in _paths(ANSWERS[name]) if path[-1] not in CONTENT}
    assert paths
    for path in paths:
        assert _texts(_holding(path, NUMBER), answer=True) == [], path


@pytest.mark.parametrize("path", [("created_at",), ("completed_at",), ("expires_at",), ("created",)])
def test_a_number_of_a_card_is_looked_at_under_any_name(path: tuple[str, ...]) -> None:
    assert _texts(_holding(path, 4111111111111111), answer=True) == ["4111111111111111"]
    assert _texts(_holding(path, NUMBER), answer=False) == []


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 9999999999, "minimum": -9999999999, "default": 4111111111111111,
                         "enum": [1795459617, 4111111111111111], "multipleOf": 10000000, "const": 4111111111111111,
                         "examples": [1795459617, 4111111111111111]}},
}  # fmt: skip
HOLDERS = {
    "chat": {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]},
    "functions": {"functions": [{"name": "f", "parameters": SCHEMA}]},
    "response_format": {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}},
    "responses": {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
    "item": {"input": [{"type": "additional_tools", "tools": [{"name": "f", "parameters": SCHEMA}]}]},
    "text": {"text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}},
    "messages": {"tools": [{"name": "f", "input_schema": SCHEMA}]},
    "output_config": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
}


@pytest.mark.parametrize("name", HOLDERS)
def test_numbers_of_a_schema_stay_numbers(name: str) -> None:
    assert not [text for text in _texts(HOLDERS[name], answer=False) if text.lstrip("-").isdigit()]


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"function": {"parameters": {"properties": {"n": {"default": {"card": 4111111111111111}}}}}}]},
        {"tools": [{"function": {"parameters": {"card": 4111111111111}}}]},
        {"metadata": {"parameters": {"maximum": 4111111111111}}},
        {"messages": [{"content": [{"input": {"parameters": {"default": 4111111111111}}}]}]},
        {"input": {"schema": {"const": 4111111111111111}}},
        {"input": [{"schema": {"const": 4111111111111111}}]},
        {"input": [{"type": "message", "tools": [{"parameters": {"const": 4111111111111111}}]}]},
        {"messages": [], "input": [{"type": "additional_tools", "tools": [{"schema": {"const": 4111111111111111}}]}]},
    ],
)
def test_a_number_elsewhere_or_as_long_as_a_cards_is_looked_at(body: dict[str, Any]) -> None:
    assert [text for text in _texts(body, answer=False) if text.startswith("4111111111")]
