"""`JsonCursor` moves through JSON once."""

import json
from collections.abc import Iterator
from random import Random

import pytest

from gatehouse.engine.dlp.json_texts import grammar, replacement
from gatehouse.engine.dlp.json_texts.replacement import JsonCursor, is_json, is_json_in_steps
from gatehouse.engine.dlp.steps import finish


def positions(text: str) -> Iterator[tuple[bool, bool]]:
    """Yield, for each position of a JSON text, whether it is in a string, and whether a backslash escapes the next
    character."""
    in_string = escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif in_string and character == "\\":
            escaped = True
        elif character == '"':
            in_string = not in_string
        yield in_string, escaped


@pytest.mark.parametrize("seed", range(20))
def test_a_cursor_has_the_right_state_for_any_cut_of_the_text(seed: int) -> None:
    choose = Random(seed)
    content = "".join(choose.choices(['"', "\\", "a", "é", "\n", "{", "1"], k=200))
    text = json.dumps({content: [content, 1, {"b": content[::-1]}]})
    states, cursor = [(False, False), *positions(text)], JsonCursor()
    while cursor.position < len(text):
        cursor.move(text[cursor.position : cursor.position + choose.randint(1, 9)])
        assert (cursor.in_string, cursor.escaped) == states[cursor.position]
        if cursor.in_string:
            assert text[cursor.string_start - 1] == '"'


class _CountedText(str):
    """A text that counts the characters that `find` and regexes read."""

    looked_at = 0

    def find(self, part: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        place = super().find(part, start, len(self) if end is None else end)
        _CountedText.looked_at += (len(self) if place < 0 else place) - start
        return place


def test_the_cost_of_escapes_in_a_long_string_is_proportional_to_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    for count in (1_000, 4_000):
        _CountedText.looked_at = 0
        JsonCursor().move(_CountedText('"' + "\\n" * count))
        looked_at.append(_CountedText.looked_at + count)
    assert looked_at[1] < 5 * looked_at[0]


@pytest.mark.parametrize("number", ["1.5", "1e5", "1E+5", "-1.25e-7", "0.5", "10"])
@pytest.mark.parametrize("offset", range(-6, 7))
def test_a_number_across_the_end_of_a_window_is_read(number: str, offset: int) -> None:
    # The digits reach about the end of a number's window, and the remaining characters of the number follow.
    digits = "1" * (grammar.WINDOW_CHARACTERS + offset)
    text = f'["{"x" * 20}", {digits}{number}]'
    if is_json(text):
        assert finish(is_json_in_steps(text))


def test_replacements_in_a_long_text_are_fitted_in_steps() -> None:
    text = json.dumps(["x" * (4 * grammar.WINDOW_CHARACTERS), "secret"])
    start = text.index("secret")
    steps = replacement.fit_whole_json([replacement.Replacement(start, start + 6, "[S]")], text)
    assert sum(1 for _ in steps) >= 4
