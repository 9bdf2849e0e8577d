"""Selects the earlier messages that are sent with a question."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.policy.catalog import ModelRecord

#: Context window of a model whose catalog entry has none.
DEFAULT_WINDOW_TOKENS: Final = 32_768
#: Maximum number of earlier messages that are sent with a question.
MAX_MESSAGES: Final = 500
#: Estimated number of bytes of a token, the same as for the variable `tokens` of policy rules.
_BYTES_PER_TOKEN: Final = 4
#: Tokens that each message adds to its text.
_TOKENS_PER_MESSAGE: Final = 4


class PromptMessage(msgspec.Struct, frozen=True):
    role: str
    content: str

    @property
    def tokens(self) -> int:
        """Return the estimated number of tokens, including the overhead of the message."""
        return -(-len(self.content.encode()) // _BYTES_PER_TOKEN) + _TOKENS_PER_MESSAGE


def max_prompt_tokens(model: ModelRecord | None) -> int:
    """Return the number of tokens available for the prompt. A quarter of the context window is reserved for the answer,
    or `max_output_tokens` if that is less."""
    window = (model.context_window if model else None) or DEFAULT_WINDOW_TOKENS
    answer = window // 4
    if model is not None and model.max_output_tokens is not None:
        answer = min(answer, model.max_output_tokens)
    return window - answer


def max_prompt_bytes(model: ModelRecord | None) -> int:
    return max_prompt_tokens(model) * _BYTES_PER_TOKEN


def newest_that_fit(messages: Sequence[PromptMessage], tokens: int) -> list[PromptMessage]:
    """Return the newest messages that fit into `tokens`, oldest first. The first of them is a question, because an
    answer without its question is of little use. Empty answers are left out."""
    fitting: list[PromptMessage] = []
    for message in reversed(messages):
        if not message.content:
            continue
        tokens -= message.tokens
        if tokens < 0:
            break
        fitting.append(message)
    while fitting and fitting[-1].role != "user":
        fitting.pop()
    return fitting[::-1]
