"""What a call has taken whose provider does not say, by size: as `engine.estimate` tells it before a call is made."""

from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Unseen, slots
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.estimate import BYTES_A_TOKEN, UNSEEN_TOKENS, texts, unseen

#: Fields of a stream's event that hold what the model wrote; everything else in an event is framing.
_WRITTEN: Final = frozenset({
    "arguments", "code", "content", "delta", "input", "output", "partial_json", "reasoning", "reasoning_content",
    "refusal", "summary", "text", "thinking",
})  # fmt: skip

_answer: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def read(call: ModelCall, sent_bytes: int) -> int:
    """Tokens that a provider has read, which was sent so many bytes, spaces and escapes of the client's not counted.
    Those of images and other files are no text."""
    if not _answers(call):
        return sent_bytes // BYTES_A_TOKEN
    files = sum(each.size for each in slots(call.body) if isinstance(each, Unseen))
    return max(sent_bytes - files, 0) // BYTES_A_TOKEN + unseen(call.body) * UNSEEN_TOKENS


def written(call: ModelCall, answer: bytes) -> int:
    """Tokens of a whole answer, as the client gets it."""
    if not _answers(call):
        return 0
    try:
        size = sum(len(text.encode()) for text in texts(_answer.decode(answer)))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        size = len(answer)
    return -(-size // BYTES_A_TOKEN)


def framing_bytes(block: bytes) -> float | None:
    """How many bytes of an event are not text, on average over the events of a stream's block. None: no event of it
    can be read."""
    count = framing = 0
    for event in events(block):
        try:
            body = _answer.decode(data_of(event) or b"")
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        count += 1
        framing += len(event) - _written_bytes(body)
    return framing / count if count else None


def _written_bytes(body: dict[str, Any]) -> int:
    size = 0
    waiting: list[tuple[bool, Any]] = [(False, body)]
    while waiting:
        is_text, value = waiting.pop()
        if isinstance(value, str):
            size += len(value.encode(errors="replace")) if is_text else 0
        elif isinstance(value, list):
            waiting += [(is_text, item) for item in value]
        elif isinstance(value, dict):
            waiting += [(key in _WRITTEN, item) for key, item in value.items()]
    return size


def _answers(call: ModelCall) -> bool:
    return DIALECTS[call.dialect].operation == "chat"
