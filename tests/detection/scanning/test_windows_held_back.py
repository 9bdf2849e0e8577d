"""The number of characters that a stream holds back. For every built-in pattern, disguised and split in any way, the
released text is the same as with the findings of the whole text."""

# ruff: noqa: RUF001 - look-alikes are among the texts

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.detection.scanning.test_windows import scanned

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import custom_pattern
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.scanning.windows import SEARCH_STEP_CHARACTERS, STEP_CHARACTERS, Scanner

BUILT = Matcher(BUILT_IN)
OWN = Matcher(
    [
        custom_pattern("staff", "Staff", "staff", r"\bEMP\d{5}\b"),
        custom_pattern("block", "Block", "block", r"BEGIN[\s\S]+?END"),
        custom_pattern("project", "Project", "project", r"(?i)project\s+\w+", context=("secret",)),
    ]
)


def delayed_characters_of(text: str, matchers: tuple[Matcher, ...] = (BUILT,)) -> int:
    """Return the number of held back characters at the end of a text that may continue."""
    scanner = Scanner(matchers)
    scanner.push("So it is said, in many words and in few. " * 20 + text)
    _, released = scanner.advance(final=False)
    return 41 * 20 + len(text) - released


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("The quick brown fox jumps over the lazy dog", 4),
        ("and then it was over. ", 6),
        ("Die Würde des Menschen ist unantastbar", 12),
        ("Le coût de la vie a augmenté l'année dernière", 15),
        ("Siempre hay una solución para cada problema", 9),
        ("Она не знала, что делать дальше", 8),
        ("これは普通の文章です。カードの番号はありません", 12),
        ("这是一段普通的文字,没有任何号码", 6),
        ("- first of all\n- second, and more\n\nNext", 5),
        ("# A title\n\nSome **bold** words and `code` here", 5),
        ("for each in items:\n    total += each.price * count", 6),
        ('{"name": "the answer", "kind": "text", "size": 12, ', 7),
        ("revenue grew by 12 percent in the third quarter", 8),
        ("it was 3 of 4, or 75 in a hundred of them all", 4),
        # Text that may still become a value is held back.
        ("the card is 4111 1111 1111", 16),
        ("the card is 4111 1111 1111 1111", 21),
        ("the account is DE89 3704 0044", 14),
        ("she lives at 742 Evergreen", 14),
        ("write to jane.doe@exam", 15),
        ("the key is AKIAIOSFODNN7EXA", 17),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA", 49),
        ("-----BEGIN a letter to all of you", 4),
        ("it is 912803456, which is", 19),
    ],
)
def test_only_text_that_may_become_a_value_is_held_back(text: str, most: int) -> None:
    assert delayed_characters_of(text) <= most


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("the card is 4111 1111 1111", 14),
        ("the account is DE89 3704 0044", 14),
        ("she lives at 742 Evergreen", 13),
        ("write to jane.doe@exam", 13),
        ("PO Bo", 5),
        ("card 4111 1111 1111 11\n", 18),
        ("card 4111 1111 1111 11\\u003", 23),
        ("card 4 1 1 1 1", 9),
        ("the number 912803456", 9),
    ],
)
def test_text_that_may_become_a_value_is_held_back(text: str, least: int) -> None:
    assert delayed_characters_of(text) >= least


def test_custom_patterns_hold_back_only_text_that_they_may_match() -> None:
    assert delayed_characters_of("The quick brown fox jumps over the lazy dog", (BUILT, OWN)) <= 4
    assert delayed_characters_of("a letter of BEGIN and so on", (BUILT, OWN)) == len("BEGIN and so on")


def test_prose_is_released_word_by_word() -> None:
    text = "The quick brown fox jumps over the lazy dog, and nobody knows why he did so again and again. " * 20
    scanner = Scanner((BUILT,))
    delayed_characters = []
    for place in range(0, len(text), 5):
        scanner.push(text[place : place + 5])
        _, released = scanner.advance(final=False)
        delayed_characters.append(min(place + 5, len(text)) - released)
    assert max(delayed_characters) <= STEP_CHARACTERS + 20
    assert sum(delayed_characters) / len(delayed_characters) <= STEP_CHARACTERS


def test_text_that_needs_a_search_waits_for_the_next_one() -> None:
    text = 'In 1987 there were 12 of them; it was "fine" then, and on Monday it wasn\'t. ' * 20
    scanner = Scanner((BUILT,))
    delayed_characters = []
    for place in range(0, len(text), 5):
        scanner.push(text[place : place + 5])
        _, released = scanner.advance(final=False)
        delayed_characters.append(min(place + 5, len(text)) - released)
    assert max(delayed_characters) <= SEARCH_STEP_CHARACTERS + 62 + STEP_CHARACTERS


EXAMPLES = sorted({text for pattern in BUILT_IN for text in (*pattern.examples, *pattern.counterexamples)})
WORDS = sorted({word for pattern in BUILT_IN for word in pattern.context})
FILLING = [
    *(" ", "\n", "\r\n", "a word ", ". ", ", ", "1", "-", "\\", "\\n", "\\t", "\u200b", "\u0301", "é", "с", "“"),
    *("don't ", "I ", "x: ", '"', "'", " = ", "und dann ", "Привет мир ", "你好", "=", "(", "|", "```\n", '{"a": "'),
    *("EMP12345", "BEGIN x END", "secret project zeus "),
]


def _over_a_break(text: str) -> str:
    return text[: len(text) // 2] + "\n" + text[len(text) // 2 :]


values = st.sampled_from(EXAMPLES)
disguised = st.one_of(
    values,
    values.map(_over_a_break),
    values.map(lambda text: json.dumps(text)[1:-1]),
    values.map(lambda text: " ".join(text.replace(" ", ""))),
    values.map(lambda text: "".join(chr(0xE0000 + ord(part)) if " " <= part <= "~" else part for part in text)),
    values.map(lambda text: "".join(f"\\u{ord(part):04x}" if part in "13579" else part for part in text)),
    values.map(lambda text: text.translate(str.maketrans("ACeo", "АСео"))),
    values.map(lambda text: text[: 2 * len(text) // 3]),
)
hostile = st.lists(
    st.one_of(disguised, st.sampled_from(WORDS), st.sampled_from(FILLING), st.just(" ")), min_size=1, max_size=20
).map("".join)
lengths = st.lists(st.sampled_from([1, 2, 3, 7, 16, 40, 90]), min_size=1, max_size=5)


@settings(max_examples=150, deadline=None)
@given(hostile, lengths, st.booleans(), st.booleans())
def test_every_pattern_is_found_in_pieces_as_in_the_whole_text(
    text: str, lengths: list[int], own: bool, json_escapes: bool
) -> None:
    matchers = (BUILT, OWN) if own else (BUILT,)
    result, _ = scanned(text, lengths, matchers, json_escapes=json_escapes)
    assert result == scanned(text, [len(text)], matchers, json_escapes=json_escapes)[0]


@pytest.mark.parametrize("length", [1, 9, 13, 20, 33, 80])
@pytest.mark.parametrize("lead", [0, 59, 60])
def test_every_example_after_prose_is_found_in_pieces_as_in_the_whole_text(length: int, lead: int) -> None:
    prose = "and so it was, as it had always been, in that long year of the"[:lead]
    for pattern in BUILT_IN:
        for example in pattern.examples[:: 1 if length == 13 else 4]:
            text = f"{prose} {example} and so it goes on for a while, as before. " + "x and then " * 8
            assert scanned(text, [length], (BUILT,))[0] == scanned(text, [len(text)], (BUILT,))[0], example


@pytest.mark.parametrize("json_escapes", [True, False])
def test_pairs_of_escapes_may_be_cut_anywhere(json_escapes: bool) -> None:
    text = '{"a": "so \\ud83d\\ude00 my card \\ud83d is 4111 1111 1111 1111 \\ud83d\\ude00"}'
    whole = scanned(text, [len(text)], (BUILT,), json_escapes=json_escapes)[0]
    assert whole
    for length in range(1, len(text)):
        assert scanned(text, [length, 1, 2], (BUILT,), json_escapes=json_escapes)[0] == whole
