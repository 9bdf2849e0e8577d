"""How many earlier messages are sent with a question."""

from uuid import uuid4

import pytest

from gatehouse.platform.conversations.conversations.calls.context import (
    DEFAULT_WINDOW_TOKENS,
    PromptMessage,
    max_prompt_tokens,
    newest_that_fit,
)
from gatehouse.policy.catalog import ModelRecord


def __messages(text: str) -> list[PromptMessage]:
    """Return messages of four letters, which are five tokens. `Q` is a question, `A` an answer, `.` an empty answer."""
    roles = {"Q": "user", "A": "assistant", ".": "assistant"}
    return [PromptMessage(roles[item], "" if item == "." else f"{item}{n:03}") for n, item in enumerate(text)]


@pytest.mark.parametrize(
    ("turns", "tokens", "sent"),
    [
        ("", 100, ""),
        ("QAQA", 100, "Q000 A001 Q002 A003"),
        ("QAQA", 20, "Q000 A001 Q002 A003"),
        ("QAQA", 19, "Q002 A003"),
        ("QAQA", 14, "Q002 A003"),
        ("QAQA", 9, ""),
        ("QAQA", -5, ""),
        ("Q.QA", 100, "Q000 Q002 A003"),
        ("QAQ", 5, "Q002"),
    ],
)
def test_the_newest_messages_that_fit_are_sent_starting_with_a_question(turns: str, tokens: int, sent: str) -> None:
    assert " ".join(item.content for item in newest_that_fit(__messages(turns), tokens)) == sent


@pytest.mark.parametrize(
    ("window", "output", "tokens"),
    [
        (None, None, DEFAULT_WINDOW_TOKENS * 3 // 4),
        (8_000, None, 6_000),
        (8_000, 1_000, 7_000),
        (8_000, 8_000, 6_000),
    ],
)
def test_at_most_a_quarter_of_the_context_window_is_left_for_the_answer(
    window: int | None, output: int | None, tokens: int
) -> None:
    model = ModelRecord(id=uuid4(), provider="p", model_id="m", context_window=window, max_output_tokens=output)
    assert max_prompt_tokens(model) == tokens


def test_tokens_are_estimated_from_bytes() -> None:
    assert [PromptMessage("user", text).tokens for text in ("abcd", "abcde", "\u9580\u9580")] == [5, 6, 6]
