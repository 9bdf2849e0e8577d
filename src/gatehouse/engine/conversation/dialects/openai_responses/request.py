"""Converts requests of the responses API to the internal form."""

from collections.abc import Mapping
from typing import Any, Final

from gatehouse.engine.conversation.conversion import effort
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.decoding.optional_fields import (
    boolean,
    integer,
    number,
    text,
)
from gatehouse.engine.conversation.dialects.openai_responses.items import read_items
from gatehouse.engine.conversation.dialects.openai_responses.reasoning import ENCRYPTED, shown_reasoning
from gatehouse.engine.conversation.dialects.openai_responses.tools import read_choice, read_tools
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import FormMessage, Request, ResponseFormat, Sampling, Text

#: fields that are converted, or do not concern the provider
_CONVERTED_FIELDS: Final = frozenset(
    {
        "include", "input", "instructions", "max_output_tokens", "model", "parallel_tool_calls", "prompt_cache_key",
        "reasoning", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_p", "user",
    }
)  # fmt: skip
#: fields of this dialect; other fields are extensions of a provider
_DIALECT_FIELDS: Final = frozenset(
    {
        "access_programs", "background", "context_management", "conversation", "image", "include", "input",
        "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation",
        "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
        "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
        "client_metadata",
    }
)  # fmt: skip

_FORMAT_FIELDS: Final = frozenset({"type", "name", "description", "schema", "strict"})


def read(body: Mapping[str, Any], model: str, stream: bool) -> Request:
    tools = read_tools(body)
    reasoning, text_options = body.get("reasoning") or {}, body.get("text") or {}
    lost = (
        unread(body, _CONVERTED_FIELDS | (body.keys() - _DIALECT_FIELDS))
        | unread(reasoning, frozenset({"effort", "summary", "generate_summary"}), "reasoning.")
        | unread(text_options, frozenset({"format"}), "text.")
        | tools.lost
    )
    if any(value != ENCRYPTED for value in body.get("include") or ()):
        lost["include"] = None
    shown = shown_reasoning(body)
    messages = read_items(body["input"], tools, lost)
    instructions = text(body, "instructions")
    if instructions:
        messages.insert(0, FormMessage("system", (Text(instructions),)))
    if not any(message.parts for message in messages):
        raise InvalidField("input", "`input` contains nothing to answer: no text, image, tool call or result.")
    tool_choice, functions = read_choice(body.get("tool_choice"), tools)
    return Request(
        model=model,
        stream=stream,
        messages=tuple(messages),
        tools=functions,
        tool_choice=tool_choice,
        parallel_tool_calls=boolean(body, "parallel_tool_calls"),
        response_format=_read_format(text_options.get("format"), lost),
        user=text(body, "user"),
        effort=effort.of_openai(text(reasoning, "effort"), "reasoning.effort"),
        shows_reasoning=shown.texts,
        returns_reasoning=shown.signatures,
        prompt_cache_key=text(body, "prompt_cache_key"),
        extra={name: value for name, value in body.items() if name not in _DIALECT_FIELDS},
        sampling=Sampling(
            max_tokens=integer(body, "max_output_tokens"),
            temperature=number(body, "temperature"),
            top_p=number(body, "top_p"),
        ),
        lost=tuple(lost),
    )


def _read_format(value: Any, lost: dict[str, None]) -> ResponseFormat | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if value is None or kind == "text":
        return None
    if kind == "json_object":
        return ResponseFormat(kind="json_object")
    if kind != "json_schema" or not isinstance(value.get("schema"), dict):
        raise InvalidField(
            "text.format", "`text.format` must be of type `text`, `json_object` or `json_schema` with its `schema`."
        )
    lost |= unread(value, _FORMAT_FIELDS, "text.format.")
    return ResponseFormat(
        kind="json_schema",
        name=text(value, "name"),
        description=text(value, "description"),
        schema=value["schema"],
        strict=boolean(value, "strict"),
    )
