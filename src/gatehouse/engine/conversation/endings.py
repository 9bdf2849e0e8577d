"""Whether a complete answer, as its client gets it, came to a normal end: the model was done, called a tool, or had
said as much as it may. One that a provider's filter cut off, or that the model declined, did not."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from gatehouse.engine.conversation.sse import data_of, event_at


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Chat(msgspec.Struct):
    """A completion, or a chunk of one."""

    choices: list[_Choice] = []


class _Delta(msgspec.Struct):
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    """A message, or the event that ends one."""

    stop_reason: str | None = None
    delta: _Delta | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    incomplete_details: _Why | None = None


class _ResponseEvent(_Response):
    """A response, or the event that holds it at its end."""

    response: _Response | None = None


_chat = msgspec.json.Decoder(_Chat)
_message = msgspec.json.Decoder(_Message)
_response = msgspec.json.Decoder(_ResponseEvent)


def _of_chat(data: bytes) -> Iterator[str | None]:
    for choice in _chat.decode(data).choices:
        yield choice.finish_reason


def _of_message(data: bytes) -> Iterator[str | None]:
    said = _message.decode(data)
    yield said.stop_reason or (said.delta.stop_reason if said.delta else None)


def _of_response(data: bytes) -> Iterator[str | None]:
    said = _response.decode(data)
    response = said.response or said
    yield (response.incomplete_details and response.incomplete_details.reason) or response.status


class _Ending(NamedTuple):
    #: where a stream tells. Inside a text these bytes do not stand: its quotes are escaped.
    told_at: re.Pattern[bytes]
    reasons: Callable[[bytes], Iterable[str | None]]
    normal: frozenset[str]


_ENDINGS: Final = {
    "openai_chat": _Ending(
        re.compile(rb'"finish_reason"\s*:\s*"'), _of_chat,
        frozenset({"stop", "length", "tool_calls", "function_call"}),
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
    """`answer` is a whole body, or a stream's events. What cannot be read, or tells no reason, did not. Vectors have no
    end to speak of."""
    if dialect == "openai_embeddings":
        return True
    ending = _ENDINGS[dialect]
    try:
        told: list[Any] = [
            reason
            for data in (_telling(answer, ending.told_at) if stream else (answer,))
            for reason in ending.reasons(data)
            if reason is not None or not stream
        ]
    except _UNREADABLE:
        return False
    return bool(told) and all(reason in ending.normal for reason in told)


def _telling(events: bytes, told_at: re.Pattern[bytes]) -> Iterator[bytes]:
    seen = 0
    for match in told_at.finditer(events):
        if match.start() >= seen:
            start, seen = event_at(events, match.start())
            yield data_of(events[start:seen])
