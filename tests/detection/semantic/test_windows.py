import numpy as np
import pytest

from gatehouse.detection.semantic.backbone import HEAD_CHARACTERS, TAIL_CHARACTERS, readable_part
from gatehouse.detection.semantic.windows import (
    MAX_WINDOWS,
    OVERLAP_TOKENS,
    PASSAGE_TOKENS,
    WINDOW_TOKENS,
    choose,
    passages,
    spans,
)


@pytest.mark.parametrize("tokens", [0, 1, WINDOW_TOKENS, WINDOW_TOKENS + 1, 1000, 12_345])
def test_windows_cover_all_tokens_and_none_is_longer_than_it_may_be(tokens: int) -> None:
    windows = spans(tokens)
    assert {token for start, end in windows for token in range(start, end)} == set(range(tokens))
    assert all(end - start <= WINDOW_TOKENS for start, end in windows)
    assert windows[-1][1] == tokens


def test_windows_of_a_text_are_about_equally_long_and_overlap() -> None:
    assert spans(200) == [(0, 116), (84, 200)]


@pytest.mark.parametrize("tokens", [2 * PASSAGE_TOKENS, 2 * PASSAGE_TOKENS + 1, 1000])
def test_every_order_of_three_quarters_of_a_passage_is_whole_in_one(tokens: int) -> None:
    windows = passages(tokens)
    order = PASSAGE_TOKENS * 3 // 4
    assert all(
        any(start <= begin and begin + order <= end for start, end in windows) for begin in range(tokens - order + 1)
    )


def test_a_short_text_has_no_passages() -> None:
    assert passages(2 * PASSAGE_TOKENS - 1) == []


def test_few_windows_are_all_read() -> None:
    windows = spans(WINDOW_TOKENS + (WINDOW_TOKENS - OVERLAP_TOKENS) * (MAX_WINDOWS - 1))
    assert len(windows) == MAX_WINDOWS
    assert choose(windows, np.zeros(len(windows), dtype=np.float32)) == windows


def test_of_many_windows_the_first_the_last_and_the_most_suspicious_are_read() -> None:
    windows = spans(20_000)
    suspicion = np.zeros(len(windows), dtype=np.float32)
    suspicion[[7, 30, 99, 101]] = [1, 3, 2, 4]
    assert choose(windows, suspicion) == [windows[number] for number in (0, 7, 30, 99, 101, len(windows) - 1)]


def test_a_text_of_unbounded_length_loses_its_middle() -> None:
    text = "a" * HEAD_CHARACTERS + "b" * 1_000_000 + "c" * TAIL_CHARACTERS
    read = readable_part(text)
    assert read == "a" * HEAD_CHARACTERS + "\n" + "c" * TAIL_CHARACTERS
    assert readable_part(read[:-1]) == read[:-1]
