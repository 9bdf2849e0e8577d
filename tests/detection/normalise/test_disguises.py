"""Disguised values: with separated characters, in hidden characters, reversed, in rot13."""

# ruff: noqa: RUF001 - other scripts are among the texts

from codecs import encode

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import custom_pattern
from gatehouse.detection.findings import Finding, by_place
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.normalise import spaced
from gatehouse.detection.scanning.ciphers import Ciphers
from gatehouse.detection.scanning.windows import Scanner

MATCHER = Matcher(BUILT_IN)
THRESHOLDS = {pattern.id: pattern.threshold for pattern in BUILT_IN}

CARD = "4111 1111 1111 1111"
IBAN = "DE89 3704 0044 0532 0130 00"
GITHUB = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"[:36]
EMAIL = "anna.schmidt@example.com"
VALUES = [
    pytest.param(CARD, "credit-card", id="card"),
    pytest.param(IBAN, "iban", id="iban"),
    pytest.param(EMAIL, "email", id="email"),
    pytest.param(GITHUB, "github-token", id="token"),
    pytest.param("192.168.17.203", "ip-v4", id="address"),
]


def findings_in(text: str) -> set[tuple[str, str]]:
    return {(finding.source, text[finding.start : finding.end]) for finding in MATCHER.scan(text) if counts(finding)}


def counts(finding: Finding) -> bool:
    return finding.score >= THRESHOLDS[finding.source]


def tags(value: str) -> str:
    return "".join(chr(0xE0000 + ord(item)) for item in value)


def selectors(value: str) -> str:
    return "".join(chr(0xFE00 + byte if byte < 16 else 0xE0100 + byte - 16) for byte in value.encode())


def bits(value: str) -> str:
    return "".join("\u200b\u200c"[bit == "1"] for byte in value.encode() for bit in f"{byte:08b}")


@pytest.mark.parametrize("separator", [" ", "  ", ".", "-", "_", "*", "|", "/", "~"])
@pytest.mark.parametrize(("value", "source"), VALUES)
def test_a_value_with_separated_characters_is_found_at_its_position(value: str, source: str, separator: str) -> None:
    written = separator.join(value)
    for text in (written, f"Please pay with {written}\nand thanks."):
        assert (source, written) in findings_in(text)


@pytest.mark.parametrize("hide", [tags, selectors, bits])
@pytest.mark.parametrize(("value", "source"), VALUES)
def test_a_value_in_hidden_characters_is_found_at_its_position(value: str, source: str, hide) -> None:  # type: ignore[no-untyped-def]
    carried = hide(value)
    assert (source, carried) in findings_in(f"Good morning!{carried} How are you?")


def test_a_value_in_tag_characters_in_json_is_found() -> None:
    escaped = "".join(f"\\udb40\\u{0xDC00 + ord(pattern):04x}" for pattern in EMAIL)
    text = f'{{"a": "hello {escaped} there"}}'
    (email,) = [finding for finding in MATCHER.scan(text, json_escapes=True) if finding.source == "email"]
    assert text[email.start : email.end] == escaped


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (CARD, "credit-card"),
        (IBAN, "iban"),
        (EMAIL, "email"),
        (GITHUB, "github-token"),
        ("AKIAIOSFODNN7EXAMPLQ", "aws-access-key"),
    ],
)
def test_a_reversed_value_is_found_at_its_position(value: str, source: str) -> None:
    written = value[::-1]
    for text in (written, f"Read it backwards: {written} and thanks. {'So it goes. ' * 20}"):
        assert (source, written) in findings_in(text)


@pytest.mark.parametrize(
    ("value", "source"), [(IBAN, "iban"), (GITHUB, "github-token"), ("AKIAIOSFODNN7EXAMPLQ", "aws-access-key")]
)
def test_a_value_in_rot13_is_found_at_its_position(value: str, source: str) -> None:
    written = encode(value, "rot13")
    for text in (written, f"Turn it: {written} and thanks. {'So it goes. ' * 20}"):
        assert (source, written) in findings_in(text)


@pytest.mark.parametrize(
    ("before", "value", "behind", "source"),
    [
        ("License plate ", "34 ABC 1234", "", "vehicle-plate"),
        ("My US number is ", "(415) 555-0132", ", call it", "phone"),
        ("My mobile number is ", "+639171234567", ".", "phone"),
        ("IP: ", "192.168.1.1", ".", "ip-v4"),
    ],
)
def test_a_reversed_value_among_words_is_found(before: str, value: str, behind: str, source: str) -> None:
    written = value[::-1]
    assert (source, written) in findings_in(f"{before}{written}{behind}")


def test_a_reversed_number_needs_evidence() -> None:
    number = "4111111111111111"[::-1]
    long = "So it goes. " * 20
    assert ("credit-card", number) in findings_in(f"My credit card backwards is {number}. {long}")
    assert findings_in(f"Line {number} of the file. {long}") == set()


@pytest.mark.parametrize(
    "text",
    [
        "C H A P T E R  1 2",
        "C H A P T E R   1 2   T H E   H O U S E",
        "A P P E N D I X  B",
        "Steps 1 2 3 4 5 6 7 8 9 10 11 12 are done.",
        "5 3 4 6 7 8 9 1 2\n6 7 2 1 9 5 3 4 8\n1 9 8 3 4 2 5 6 7",
        "0 0 1 0 1 1 0 1 1 0 0 1 0 1 1 0\n0 1 1 0 0 1 1 1 0 1 0 1 1 1 0 0",
        "| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |",
        "a.b.c.d.e.f.g.h.i.j.k",
        "x - y - z - 1 - 2 - 3 - 4 - 5 - 6",
        "A B C D E F G H I J K L M N O P",
        "desserts stressed, drawer reward, level, 12321 and 123454321",
        "Guvf vf n frperg zrffntr va ebg13, jub pna ernq vg?",
        "".join(encode("The quick brown fox jumps over the lazy dog, 12 times a day.", "rot13")),
        "Мама мыла раму. Номер дома 12, квартира 34, Москва.",
        "Η γρήγορη καφέ αλεπού πηδάει πάνω από το σκυλί 12 φορές.",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f against "
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f and "
        "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f, 3 to 2",
        "می\u200cخواهم کتاب\u200cهای این نویسنده را بخوانم و خانه\u200cام",
        "👨\u200d👩\u200d👧\u200d👦 and ❤\ufe0f and ☺\ufe0f",
        "Padding:" + "\u200b" * 200 + " and an end.",
        "Padding:" + "\u200c\u200b" * 200 + " and an end.",
    ],
)
def test_ordinary_text_that_looks_disguised_is_not_found(text: str) -> None:
    assert findings_in(text) == set()
    assert findings_in(f"{text}\n" * 5) == set()


def in_pieces(text: str, size: int) -> list[Finding]:
    scanner = Scanner((MATCHER,))
    results: list[Finding] = []
    for place in range(0, len(text), size):
        scanner.push(text[place : place + size])
        results += scanner.advance(final=False)[0]
    return [*results, *scanner.advance(final=True)[0]]


@pytest.mark.parametrize("size", [1, 7, 33, 200])
@pytest.mark.parametrize("disguise", [" ".join, ".".join, tags, selectors, bits])
@pytest.mark.parametrize(("value", "source"), VALUES)
def test_a_stream_finds_values_with_separated_or_hidden_characters(
    value: str, source: str, disguise, size: int
) -> None:  # type: ignore[no-untyped-def]
    written = disguise(value)
    text = f"{'Nothing to see here. ' * 12}Take {written} please. {'Nothing to see here. ' * 12}"
    all_findings = [finding for finding in MATCHER.scan(text) if counts(finding)]
    assert (source, written) in {(item.source, text[item.start : item.end]) for item in all_findings}
    streamed = [piece for piece in in_pieces(text, size) if counts(piece)]
    assert sorted(streamed, key=by_place) == sorted(all_findings, key=by_place)


def test_own_patterns_are_not_searched_in_reversed_or_separated_text() -> None:
    own = Matcher((custom_pattern("own", "Own", entity_type="own", regex=r"[A-Z]{3}-[0-9]{4}"),))
    assert own.scan("4321-CBA A B C - 1 2 3 4") == []


def test_the_work_on_disguises_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    read_once, rows_once = Ciphers._read, spaced._gaps

    def count_places(self, places, reading):  # type: ignore[no-untyped-def]
        nonlocal read
        read += places[-1][1] - places[0][0] + 1024
        return read_once(self, places, reading)

    def count_rows(text, first, end):  # type: ignore[no-untyped-def]
        nonlocal read
        read += end - first
        return rows_once(text, first, end)

    monkeypatch.setattr(Ciphers, "_read", count_places)
    monkeypatch.setattr(spaced, "_gaps", count_rows)
    for unit in ("moc.elpmaxe@anna ", "1111 1111 1111 1114 x ", "4 1 1 1 ", "a b c d e f g h, "):
        work = []
        for length in (20_000, 40_000, 80_000):
            read = 0
            MATCHER.scan((unit * length)[:length])
            work.append(read)
        assert work[0] > 0
        assert work[2] < 3 * work[1] < 9 * work[0], (unit, work)
