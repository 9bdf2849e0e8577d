"""How much of what was said before is sent along with a question."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.policy.records import ModelRecord

#: Tokens of context that a model is believed to have whose catalog entry does not say.
UNKNOWN_WINDOW: Final = 32_768
#: Earlier messages that are sent at most.
MOST_MESSAGES: Final = 500
#: The same estimate as for policy rules' `tokens`.
_BYTES_A_TOKEN: Final = 4
#: What surrounds a message on the wire.
_TOKENS_A_MESSAGE: Final = 4


class Said(msgspec.Struct, frozen=True):
    role: str
    content: str

    @property
    def tokens(self) -> int:
        """An estimate."""
        return -(-len(self.content.encode()) // _BYTES_A_TOKEN) + _TOKENS_A_MESSAGE


def room(model: ModelRecord | None) -> int:
    """Tokens for what is sent. A quarter of the window, or what the model can say if that is less, is the answer's."""
    window = (model.context_window if model else None) or UNKNOWN_WINDOW
    answer = window // 4
    if model is not None and model.max_output_tokens is not None:
        answer = min(answer, model.max_output_tokens)
    return window - answer


def text_bytes(model: ModelRecord | None) -> int:
    return room(model) * _BYTES_A_TOKEN


def that_fit(said: Sequence[Said], tokens: int) -> list[Said]:
    """The newest that have room together, oldest first, from a question on: an answer alone says little. Answers that
    broke off before their first word are left out."""
    fitting: list[Said] = []
    for message in reversed(said):
        if not message.content:
            continue
        tokens -= message.tokens
        if tokens < 0:
            break
        fitting.append(message)
    while fitting and fitting[-1].role != "user":
        fitting.pop()
    return fitting[::-1]
