"""Detects whether a complete answer ended normally: the model was done, called a tool, or reached its limit. An answer
did not end normally if a provider's filter cut it off or if the model refused the request."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from gatehouse.engine.conversation.sse import data_of, event_at


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Chat(msgspec.Struct):
    """A completion or a chunk."""

    choices: list[_Choice] = []


class _Delta(msgspec.Struct):
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    """A message, or the event that ends it."""

    stop_reason: str | None = None
    delta: _Delta | None = None


class _IncompleteDetails(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    incomplete_details: _IncompleteDetails | None = None


class _ResponseEvent(_Response):
    """A response, or the final event that contains it."""

    response: _Response | None = None


_chat = msgspec.json.Decoder(_Chat)
_message = msgspec.json.Decoder(_Message)
_response = msgspec.json.Decoder(_ResponseEvent)


def _of_chat(data: bytes) -> Iterator[str | None]:
    for choice in _chat.decode(data).choices:
        yield choice.finish_reason


def _of_message(data: bytes) -> Iterator[str | None]:
    message = _message.decode(data)
    yield message.stop_reason or (message.delta.stop_reason if message.delta else None)


def _of_response(data: bytes) -> Iterator[str | None]:
    event = _response.decode(data)
    response = event.response or event
    yield (response.incomplete_details and response.incomplete_details.reason) or response.status


class _Ending(NamedTuple):
    #: matches events with a reason; never matches within a text, because its quotes are escaped
    marker: re.Pattern[bytes]
    reasons: Callable[[bytes], Iterable[str | None]]
    normal: frozenset[str]


_ENDINGS: Final = {
    "openai_chat": _Ending(
        re.compile(rb'"finish_reason"\s*:\s*"'), _of_chat,
        frozenset({"stop", "length", "tool_calls", "function_call"}),
    ),
    "openai_completions": _Ending(
        re.compile(rb'"finish_reason"\s*:\s*"'), _of_chat, frozenset({"stop", "length"}),
    ),
    "anthropic_messages": _Ending(
        re.compile(rb'"stop_reason"\s*:\s*"'), _of_message,
        frozenset({"end_turn", "stop_sequence", "max_tokens", "tool_use"}),
    ),
    "openai_responses": _Ending(
        re.compile(rb'"type"\s*:\s*"response\.(?:completed|incomplete|failed)"'), _of_response,
        frozenset({"completed", "max_output_tokens"}),
    ),
}  # fmt: skip
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def ended_normally(dialect: str, answer: bytes, *, stream: bool) -> bool:
    """Return whether an answer ended normally. `answer` is a complete body or a stream's events. Return False if it
    cannot be read or has no reason. Answers of operations other than chats and text completions always end normally."""
    ending = _ENDINGS.get(dialect)
    if ending is None:
        return True
    try:
        reasons: list[Any] = [
            reason
            for data in (_marked_events(answer, ending.marker) if stream else (answer,))
            for reason in ending.reasons(data)
            if reason is not None or not stream
        ]
    except _UNREADABLE:
        return False
    return bool(reasons) and all(reason in ending.normal for reason in reasons)


def _marked_events(events: bytes, marker: re.Pattern[bytes]) -> Iterator[bytes]:
    end = 0
    for match in marker.finditer(events):
        if match.start() >= end:
            start, end = event_at(events, match.start())
            yield data_of(events[start:end])
