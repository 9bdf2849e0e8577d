"""The built-in patterns match their examples, counterexamples and metadata."""

import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.catalog.shapes import MAX_CHARACTERS_WITHOUT_OPENING, width
from gatehouse.detection.pattern import CATEGORIES, Pattern, Shape
from gatehouse.detection.search import matching
from gatehouse.detection.search.matching import find

LOG_ONLY = {
    "email",
    "phone",
    "date",
    "postal_code",
    "ip_address",
    "mac_address",
    "url",
    "internal_host",
    "cloud_resource",
}


def examples(kind: str) -> Iterator[object]:
    for pattern in BUILT_IN:
        for place, text in enumerate(getattr(pattern, kind)):
            yield pytest.param(pattern, text, id=f"{pattern.id}-{place}")


def shapes() -> Iterator[object]:
    for pattern in BUILT_IN:
        for place, shape in enumerate(pattern.shapes):
            yield pytest.param(shape, id=f"{pattern.id}-{place}")


@pytest.mark.parametrize(("pattern", "text"), examples("examples"))
def test_an_example_is_found(pattern: Pattern, text: str) -> None:
    assert find(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), examples("counterexamples"))
def test_a_counterexample_is_not_found(pattern: Pattern, text: str) -> None:
    assert find(pattern, text) == []


def test_there_are_76_built_in_patterns_in_all_categories() -> None:
    counts = Counter(pattern.category for pattern in BUILT_IN)
    assert counts == {"secret": 30, "pii": 20, "financial": 12, "medical": 8, "infrastructure": 6}
    assert set(counts) == set(CATEGORIES)


@pytest.mark.parametrize("pattern", BUILT_IN, ids=lambda pattern: pattern.id)
def test_an_entry_is_complete(pattern: Pattern) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", pattern.id)
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", pattern.entity_type)
    assert pattern.name
    assert pattern.examples
    assert pattern.counterexamples
    assert pattern.shapes
    assert all(word == word.lower() == word.strip() != "" for word in pattern.context)
    assert len(set(pattern.context)) == len(pattern.context)


def test_ids_and_names_are_unique() -> None:
    assert len({pattern.id for pattern in BUILT_IN}) == len({pattern.name for pattern in BUILT_IN}) == len(BUILT_IN)


@pytest.mark.parametrize("pattern", BUILT_IN, ids=lambda pattern: pattern.id)
def test_only_data_that_is_not_secret_is_merely_logged(pattern: Pattern) -> None:
    assert pattern.action == ("log_only" if pattern.entity_type in LOG_ONLY else "redact")


def test_patterns_of_one_entity_type_agree_on_category_action_and_threshold() -> None:
    kinds = {(pattern.entity_type, pattern.category, pattern.action, pattern.threshold) for pattern in BUILT_IN}
    assert len(kinds) == len({pattern.entity_type for pattern in BUILT_IN})


@pytest.mark.parametrize("shape", shapes())
def test_a_match_is_no_longer_than_the_maximum_of_its_shape(shape: Shape) -> None:
    assert shape.max_length == width(shape.regex)
    assert shape.max_length <= MAX_CHARACTERS_WITHOUT_OPENING or shape.opening


@pytest.mark.parametrize("shape", [shape for pattern in BUILT_IN for shape in pattern.shapes if shape.opening])
def test_a_match_begins_with_the_opening(shape: Shape) -> None:
    written = re.sub(r"^(\\b|\(\?:)*", "", shape.regex).replace("\\", "")
    assert written.startswith(str(shape.opening))


@pytest.mark.parametrize("pattern", BUILT_IN, ids=lambda pattern: pattern.id)
def test_a_shape_that_needs_context_has_context_words(pattern: Pattern) -> None:
    assert pattern.context or not any(shape.needs_context for shape in pattern.shapes)


@pytest.mark.parametrize("pattern", BUILT_IN, ids=lambda pattern: pattern.id)
def test_without_a_word_of_context_a_shape_that_needs_it_finds_nothing(pattern: Pattern) -> None:
    for shape in pattern.shapes:
        if shape.needs_context:
            compiled = matching.compile_shape(shape, matching.compile_context(("no such word",)))
            assert [span for text in pattern.examples for span in matching.spans(compiled, text)] == []


#: Text before and after a value in tables, file names, logs and sentences.
NEIGHBOURS = (
    ("", " 12/27"),
    ("", " 12/2027"),
    ("", " 1234"),
    ("", " EUR"),
    ("", " 2026-11-23"),
    ("2026-11-23 ", " EUR 99"),
    ("12:30 ", ""),
    ("7 ", ""),
    ("1234 ", " 1234"),
    ("99.50 ", " 12.00"),
    ("12,", ",34"),
    ("12;", ";34"),
    ("12\t", "\t34"),
    ("|", "|"),
    ("card_", ""),
    ("_", "_"),
    ("scan_", ".pdf"),
    ("scan-1_", "_v2.pdf"),
)
CARDS = (
    *("4242424242424242", "5555555555554444", "6011111111111117", "378282246310005", "30569309025904"),
    *("4242 4242 4242 4242", "5555-5555-5555-4444", "3782 822463 10005", "3056-930902-5904"),
)
IBANS = ("DE89 3704 0044 0532 0130 00", "AT61 1904 3002 3457 3201", "GB29NWBK60161331926819", "NO93 8601 1117 947")
TOKENS = ("AKIAQ3EGRDXKQ4TPLSMN", "ghp_wmiz6OkJrLWrPYbCUdWFVNP8gAE5Nl08B1ta", "sk_live_4eC39HqLyjWDarjtT1zdp7dc")


@pytest.mark.parametrize(("before", "behind"), NEIGHBOURS)
@pytest.mark.parametrize("value", [*CARDS, *IBANS, *TOKENS])
def test_a_value_is_found_beside_numbers_dates_and_underscores(value: str, before: str, behind: str) -> None:
    text = f"see {before}{value}{behind} today"
    start = text.index(value)
    result = {span[:2] for pattern in BUILT_IN for span in find(pattern, text)}
    assert (start, start + len(value)) in result


@pytest.mark.parametrize("separator", ["  ", "   ", "\t", " - ", "/", ",", ", ", "_", "."])
def test_the_groups_of_a_card_number_may_have_various_separators(separator: str) -> None:
    card = next(pattern for pattern in BUILT_IN if pattern.id == "credit-card")
    for value in ("4242 4242 4242 4242", "3782 822463 10005"):
        written = value.replace(" ", separator)
        for text in (f"pay {written} now", written, f"({written})", f"my card is {written}{separator}12/27"):
            start = text.index(written)
            assert (start, start + len(written)) in {span[:2] for span in find(card, text)}, text
        # A row of numbers is not a card.
        assert find(card, separator.join(("12", written, "12"))) == []


def test_tables_of_numbers_are_not_changed() -> None:
    card = next(pattern for pattern in BUILT_IN if pattern.id == "credit-card")
    numbers = random.Random(7)
    rows = [
        separator.join(str(numbers.randrange(10 ** numbers.randrange(1, 6))) for _ in range(12))
        for separator in (" ", ",", "\t", ", ", "  ", ".", "/")
        for _ in range(300)
    ]
    assert sum(bool(find(card, row)) for row in rows) <= 2


ORDINARY = (
    "my password is too weak",
    "The secret is patience.",
    "password: must be at least 8 characters",
    "const token = await getToken(user.id);",
    "secret = os.environ['SECRET_KEY']",
    "password = request.form['password']",
    "self.password = password",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "uuid 550e8400-e29b-41d4-a716-446655440000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "timestamp=1700000000000",
    "Order #1700000000 shipped 1700000001",
    "ISBN 978-3-16-148410-0",
    '{"max_tokens": 4096, "temperature": 0.7}',
    '<input type="password" name="password" id="pw1">',
    "password_hash = bcrypt.hashpw(pw, salt)",
    "secretary: John Smith2",
    "export PATH=$PATH:/usr/local/bin",
    "ratio 12/3456/7890",
    "100 000 000 people",
    "chapter 12 34 56",
    "model gpt-4o, 128000 tokens",
    "from 10:20:30 to 11:00:00",
    "Licence: MIT",
)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_not_changed(text: str) -> None:
    result = {pattern.entity_type for pattern in BUILT_IN if find(pattern, text)}
    assert result == set()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the wifi password: Tr0ub4dor&3", "Tr0ub4dor&3"),
        ("login admin / pass: S3cret!9", "S3cret!9"),
        ("mongodb+srv://app:pa55w0rd!@cluster0.example.net/db", "pa55w0rd!"),
        ("jdbc:mysql://h/db?user=root&password=r00tpw", "r00tpw"),
        ("my passport no. is 533380006", "533380006"),
        ("my card is 5555-5555-5555-4444", "5555-5555-5555-4444"),
        ("this is an iban VG96 VPVG 0000 0123 4567 8901 in a sentence", "VG96 VPVG 0000 0123 4567 8901"),
        ("NHS number 943 476 5919.", "943 476 5919"),
    ],
)
def test_the_value_is_found_without_the_text_around_it(text: str, value: str) -> None:
    result = {text[span.start : span.end] for pattern in BUILT_IN for span in find(pattern, text)}
    assert value in result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9434765919", True),
        ("id\n9434765919\nid", False),
        ("9434765919\n9434765870\n", False),
        ("9434765919\n", True),
        ("9434765919 ms", False),
        ("row 9434765919", False),
        ('  "9434765919",', True),
    ],
)
def test_a_number_with_a_weak_check_digit_is_found_where_it_is_the_whole_text(text: str, expected: bool) -> None:
    (nhs,) = (pattern for pattern in BUILT_IN if pattern.id == "uk-nhs")
    assert bool(find(nhs, text)) is expected


def test_a_unix_time_is_not_found_as_an_identifier() -> None:
    for time in (*range(1_700_000_000, 1_700_000_200), *range(1_700_000_000_000, 1_700_000_000_200)):
        assert [pattern.id for pattern in BUILT_IN if pattern.action != "log_only" and find(pattern, str(time))] == []


@pytest.mark.parametrize("regex", ["a*", "a+b", "(?:ab){2,}"])
def test_a_shape_without_bound_is_refused(regex: str) -> None:
    with pytest.raises(ValueError, match="not bounded"):
        width(regex)
