"""The view of characters as they are read, and the positions in the original text."""

# ruff: noqa: RUF001 - look-alikes are the subject

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.detection.normalise import characters, seen

SEEN_AS = {
    "zero-width space": ("41\u200b11", "4111"),
    "zero-width joiner and non-joiner": ("4\u200d1\u200c11", "4111"),
    "soft hyphen": ("41\u00ad11", "4111"),
    "word joiner and byte order mark": ("4\u20601\ufeff11", "4111"),
    "bidi controls": ("\u202e41\u206911", "4111"),
    "tags": ("41\U000e003111", "4111"),
    "variation selectors": ("4\ufe0f1\U000e010011", "4111"),
    "combining marks": ("4\u03011\u033611", "4111"),
    "keycaps": ("4\ufe0f\u20e31\ufe0f\u20e3", "41"),
    "full width": ("４１１１－ＡＢ", "4111-AB"),
    "Arabic-Indic and Devanagari digits": ("٤١१०", "4110"),
    "mathematical letters and digits": ("𝟒𝟙𝐀𝒷", "41Ab"),
    "circled digits and superscripts": ("④¹", "41"),
    "non-breaking hyphen, dashes, minus": ("1\u20112\u20133\u20144\u22125", "1-2-3-4-5"),
    "blanks": ("1\u00a02\u20093\u30004", "1 2 3 4"),
    "quotes": ("“a” ‘b’", "\"a\" 'b'"),
    "Cyrillic look-alikes in a token": ("АКІА7QЕ", "AKIA7QE"),
    "Greek look-alikes in a token": ("ΑΒ12", "AB12"),
}


@pytest.mark.parametrize(("written", "read"), SEEN_AS.values(), ids=SEEN_AS.keys())
def test_invisible_characters_are_seen_through(written: str, read: str) -> None:
    assert seen(written, json_escapes=False).text == read


@pytest.mark.parametrize(
    "text",
    [
        "Москва и Санкт-Петербург, оператор СССР",
        "Η Αθήνα είναι πρωτεύουσα",
        "паспорт 4509 123456",
        "паспорт4509",
        "numéro déjà façon Müller",
        "東京都 電話番号",
        "שלום עולם",
    ],
)
def test_honest_words_of_other_scripts_stay_as_they_are(text: str) -> None:
    assert seen(text, json_escapes=False).text == text


def test_positions_in_a_view_are_mapped_to_the_callers_code_points() -> None:
    text = "😀 x\u200b４\u030111 y"
    view = seen(text, json_escapes=False)
    start = view.text.index("411")
    assert text[slice(*view.origin(start, start + 3))] == "４\u030111"


def test_ascii_text_is_its_own_view() -> None:
    view = seen("plain text", json_escapes=False)
    assert view.starts is None
    assert view.origin(2, 4) == (2, 4)


def test_escapes_of_json_are_seen_through_and_lead_back() -> None:
    text = r'{"a": "\u0034\u0031\/x\n\"\\u0035 \ud83d\ude00"}'
    view = seen(text, json_escapes=True)
    assert view.text == '{"a": "41/x\n"\\u0035 😀"}'
    start = view.text.index("41")
    assert text[slice(*view.origin(start, start + 2))] == r"\u0034\u0031"


def test_without_the_option_escapes_are_just_text() -> None:
    assert seen(r"\u0034", json_escapes=False).text == r"\u0034"


@given(st.text())
def test_offsets_of_characters_and_bytes_fit_together(text: str) -> None:
    view = seen(text, json_escapes=False)
    for place in range(len(view) + 1):
        assert view.character(view.byte(place)) == place
    starts = [view.origin(place, place + 1)[0] for place in range(len(view))]
    assert starts == sorted(set(starts))
    assert all(view.at(start) == place for place, start in enumerate(starts))


@given(st.text(max_size=300), st.integers(0, 300))
def test_distant_text_does_not_change_a_view(text: str, cut: int) -> None:
    """This property lets a stream be read in pieces."""
    view_of_all, part = seen(text, json_escapes=False), seen(text[:cut], json_escapes=False)
    settled = max(0, len(part) - 33)
    assert view_of_all.text[:settled] == part.text[:settled]


def test_positions_in_a_view_of_a_view_are_mapped_to_the_source() -> None:
    below = seen("a\u200bb\u200bc", json_escapes=False)
    above = below.without(np.array([1]))
    assert above.text == "ac"
    assert above.origin(1, 2) == (4, 5)


@given(st.text("аесрoxx\u200b1 -,ж", max_size=300))
def test_a_long_text_is_read_block_by_block_as_in_one(text: str) -> None:
    view_of_all = seen(text, json_escapes=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(characters, "_BLOCK_CHARACTERS", 7)
        assert seen(text, json_escapes=False).text == view_of_all.text
