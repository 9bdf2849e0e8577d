"""Estimates the usage of a call by size if its provider reports none, with the factors of `engine.money.estimate`."""

from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS, TRAITS
from gatehouse.engine.conversation.slots import NonText, slots
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.money.estimate import (
    BYTES_A_TOKEN,
    NONTEXT_TOKENS,
    count_nontext,
    texts,
)

#: Fields of a stream's event that contain text of the model; everything else in an event is framing.
_TEXT_FIELDS: Final = frozenset({
    "arguments", "code", "content", "delta", "input", "output", "partial_json", "reasoning", "reasoning_content",
    "refusal", "summary", "text", "thinking",
})  # fmt: skip

_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def read(call: ModelCall, sent_bytes: int) -> int:
    """Return the input tokens of a call of `sent_bytes`, which exclude whitespace and escapes of the client. Bytes of
    images and other files are not treated as text."""
    if DIALECTS[call.dialect].operation == "embeddings":
        return sent_bytes // BYTES_A_TOKEN
    file_bytes = sum(slot.size for slot in slots(call.body) if isinstance(slot, NonText))
    files = count_nontext(call.body) + len(call.files)
    return max(sent_bytes - file_bytes, 0) // BYTES_A_TOKEN + files * NONTEXT_TOKENS


def written(call: ModelCall, answer: bytes) -> int:
    """Return the tokens of a whole answer in the client's dialect."""
    if not _answers(call):
        return 0
    try:
        size = sum(len(text.encode()) for text in texts(_decoder.decode(answer)))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        size = len(answer)
    return -(-size // BYTES_A_TOKEN)


def framing_bytes(block: bytes) -> float | None:
    """Return the average number of bytes of an event that are not text, over the events of a stream's block. None: no
    event of it can be decoded."""
    count = framing = 0
    for event in events(block):
        try:
            body = _decoder.decode(data_of(event) or b"")
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        count += 1
        framing += len(event) - _text_bytes(body)
    return framing / count if count else None


def _text_bytes(body: dict[str, Any]) -> int:
    size = 0
    pending: list[tuple[bool, Any]] = [(False, body)]
    while pending:
        is_text, value = pending.pop()
        if isinstance(value, str):
            size += len(value.encode(errors="replace")) if is_text else 0
        elif isinstance(value, list):
            pending += [(is_text, item) for item in value]
        elif isinstance(value, dict):
            pending += [(key in _TEXT_FIELDS, item) for key, item in value.items()]
    return size


def _answers(call: ModelCall) -> bool:
    return TRAITS[call.dialect].has_output_tokens
