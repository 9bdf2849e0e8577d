from hypothesis import given
from hypothesis import strategies as st

from gatehouse.detection.units import MAX_UNIT_CHARACTERS, MIN_UNIT_CHARACTERS, units

FIRST = "Maria Keller of the Harbour Insurance Group wrote to our office in Rotterdam about a claim."
SECOND = " She asks whether the payment of last month has arrived, since the bank has no record of it."


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in units(text)]


def test_sentences_of_some_length_are_units() -> None:
    assert parts(FIRST + SECOND) == [FIRST, SECOND]


def test_short_sentences_stay_together() -> None:
    text = "Ada called. She is in Oslo. Call back."
    assert parts(text) == [text]


def test_an_abbreviation_ends_no_sentence() -> None:
    text = "The letter that arrived on Friday was signed by the two auditors and, as we know, by Mr. Okafor himself."
    assert parts(text) == [text]


def test_a_line_ends_a_unit() -> None:
    assert parts("x" * MIN_UNIT_CHARACTERS + "\nnext") == ["x" * MIN_UNIT_CHARACTERS + "\n", "next"]


def test_a_text_without_sentences_is_cut_at_a_space() -> None:
    cut = parts("word " * 300)
    assert max(map(len, cut)) <= MAX_UNIT_CHARACTERS
    assert all(part.endswith(" ") for part in cut)


def test_a_text_without_spaces_is_cut_all_the_same() -> None:
    assert [len(part) for part in parts("x" * (2 * MAX_UNIT_CHARACTERS + 1))] == [
        MAX_UNIT_CHARACTERS,
        MAX_UNIT_CHARACTERS,
        1,
    ]


TEXTS = st.lists(st.sampled_from(["Ada ", "met. ", "Mr. ", "Bo", "?", "\n", " ", "。", "x" * 50, '."'])).map("".join)


@given(TEXTS)
def test_units_cover_the_whole_text(text: str) -> None:
    assert "".join(parts(text)) == text


@given(TEXTS, st.integers(min_value=0, max_value=2000))
def test_completed_units_do_not_change_with_later_text(text: str, at: int) -> None:
    begun = text[:at]
    settled = list(units(begun, final=False))
    assert settled == list(units(text))[: len(settled)]
    assert len(begun) - (settled[-1][1] if settled else 0) <= MAX_UNIT_CHARACTERS + 1
