"""What a call has taken whose provider does not say, by size: as `engine.estimate` tells it before a call is made."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Unseen, slots
from gatehouse.engine.estimate import BYTES_A_TOKEN, UNSEEN_TOKENS, texts, unseen

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


def _answers(call: ModelCall) -> bool:
    return DIALECTS[call.dialect].operation == "chat"
