"""`is_json_in_steps` gives the same results as `json` for long texts. The tests measure costs by counting the
characters that are read, because times would differ between machines."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counted import Counter
from tests.support.hostile import CARD

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.body import apply_replacements_in_steps
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_texts import grammar
from gatehouse.engine.dlp.json_texts.replacement import is_json, is_json_in_steps
from gatehouse.engine.dlp.steps import finish

MIB: Final = 1 << 20
#: so small that every text of these tests is longer than one window
WINDOW_CHARACTERS: Final = 8

_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=30,
)
_SIGNS: Final = '[]{},:"\\ \n0123456789-+.eEtrufalsnNIy'


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    with pytest.MonkeyPatch.context() as patch:
        yield Counter(patch)


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    # Tests with `largest` in their names use the real window size.
    if "largest" not in request.node.name:
        monkeypatch.setattr(grammar, "WINDOW_CHARACTERS", WINDOW_CHARACTERS)


def _corrupted(text: str, random: Random) -> str:
    place = random.randrange(len(text))
    return text[:place] + random.choice(["", *_SIGNS]) + text[place + random.randint(0, 1) :]


@settings(max_examples=300, deadline=None)
@given(_values, st.booleans(), st.sampled_from([None, 1]), st.randoms(use_true_random=False))
def test_valid_and_nearly_valid_json(value: Any, ascii_only: bool, indent: int | None, random: Random) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only, indent=indent)
    assert finish(is_json_in_steps(text))
    for _ in range(4):
        text = _corrupted(text, random) or "["
        assert finish(is_json_in_steps(text)) == is_json(text), text


@pytest.mark.parametrize(
    "text",
    [
        *('["%s"]' % ("x" * n + "\\u00e9" + "\\\\" * n) for n in range(2, 12)),
        *(
            f"[{number}]"
            for number in ("-0.1250000e+1234", "12345678901234", "-9999999999", "0.00000000001", "1E5555555")
        ),
        *(f"[{number}]" for number in ("01234567890", "-", "1.eeeeeeeeee", "1234567890.", "12345678e", "1234567890e+")),
        '["\t        "]',
        '["\\x          "]',
        '["\\u12         "]',
        '["aaaaaaaaaaaaaaaa',
        '["aaaaaaaaaaaaaaaa\\',
        '"a string of its own"',
        '"two strings" "of their own"',
        "[NaN, Infinity, -Infinity, null]",
        "[nulll, 1, 2, 3]",
        "[1, 2, 3, 4, 5, ]",
        "[12345678 .5]",
        "[12345678.5 e1]",
        "[12345678.12345678 e1]",
        "[12345678.12345678e12345678 ]",
        "[1234567890 , 1]",
        '{"a": 1, "b": 2, }',
        '{"a": 1, "b" 2, "c": 3}',
        '{"a": 1, 2: 3, "c": 3}',
        "[                    ]",
        "[1                    ]",
        "[1, 2                   ,3]",
        "[1, 2, 3, 4         }",
        "[1, 2, 3, 4          ]   x",
        "[1, 2, 3, 4          ]    ",
        "[[[[[[[[1]]]]], 1], 2], 3]",
        "[" * 20,
        "[]]]]]]]]]]]]]]",
        "          1234567890",
    ],
)
def test_tokens_at_the_edges_of_windows(text: str) -> None:
    for blanks in range(WINDOW_CHARACTERS):
        assert finish(is_json_in_steps(" " * blanks + text)) == is_json(" " * blanks + text)


def test_too_deeply_nested_text_is_not_json() -> None:
    for levels, expected in ((grammar.MAX_DEPTH, True), (grammar.MAX_DEPTH + 3, False)):
        assert finish(is_json_in_steps("[" * levels + "1" + "]" * levels)) == expected


def _repeated(unit: str, *, opens: str = "[", closes: str = "]") -> Callable[[int], str]:
    return lambda size: opens + ",".join([unit] * (size // (len(unit) + 1))) + closes


LARGEST: Final[dict[str, Callable[[int], str]]] = {
    "objects": _repeated(f'{{"card": "{CARD}"}}'),
    "numbers": _repeated("0"),
    "members": _repeated('"card":"4111"', opens="{", closes="}"),
    "one string": lambda size: json.dumps((CARD + " ") * (size // 20)),
    "escapes": lambda size: '["' + "\\u0034" * (size // 6) + '"]',
    "one number": lambda size: "[" + "4" * size + "]",
    "blanks": _repeated("1" + " " * 40_000),
    "long strings": _repeated('"' + "x" * 40_000 + '"'),
    "long lists": _repeated("[" + "1," * 20_000 + "1]"),
    "long lists in lists": _repeated("[[[[" + "1," * 20_000 + "1]]]]"),
    "deep lists": _repeated("[[[[]]]]"),
    "deepest lists": _repeated("[" * 800 + "]" * 800),
    "unterminated string": lambda size: '["' + "x" * size,
    "unclosed lists": lambda size: "[[1]," * 100 + "1," * (size // 2),
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_text_takes_many_steps(counter: Counter, name: str) -> None:
    """No step reads more than a few windows, and all steps together read each character only a few times."""
    # Deep texts are read one token at a time, which is slow, so the test uses a smaller text.
    size = MIB if "deep" in name else 10 * MIB
    text = LARGEST[name](size)
    steps = is_json_in_steps(text)
    longest = total = 0
    outcome: bool | None = None
    while outcome is None:
        counter.characters = 0
        try:
            next(steps)
        except StopIteration as stopped:
            outcome = stopped.value
        longest, total = max(longest, counter.characters), total + counter.characters
    assert outcome == (name not in {"unterminated string", "unclosed lists"})
    assert longest <= 6 * grammar.WINDOW_CHARACTERS
    assert total <= 6 * size + grammar.WINDOW_CHARACTERS


def test_changes_to_the_largest_text_are_made_in_steps() -> None:
    text = json.dumps({"log": _repeated(f'{{"card": {CARD.replace(" ", "")}, "x": "{"y" * 2000}"}}')(4 * MIB)})
    changes = []
    place = text.find("4111")
    while place >= 0:
        changes.append(Replacement(place, place + 16, "[CREDIT_CARD_1]"))
        place = text.find("4111", place + 16)
    steps = apply_replacements_in_steps(Slot({}, "content", text), changes)
    step_count = 0
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            redacted = stopped.value
            break
        step_count += 1
    # There are steps for scanning the outer text, for scanning the JSON text in its string, and one step for each
    # change at each of the two levels.
    assert step_count >= 2 * len(text) // (4 * grammar.WINDOW_CHARACTERS) + 2 * len(changes)
    assert {item["card"] for item in json.loads(json.loads(redacted)["log"])} == {"[CREDIT_CARD_1]"}
