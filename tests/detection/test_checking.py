"""Which patterns an organization may have: what is taken stays linear, the rest is refused with a reason."""

from time import perf_counter

import pytest

from gatehouse.detection.checking import check_pattern
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import custom_pattern

#: Patterns that are known for denial of service in backtracking engines, with a text that does it.
EVIL = [
    (r"(a+)+$", "a" * 30 + "!"),
    (r"(a|aa)+$", "a" * 30 + "!"),
    (r"(a|a?)+$", "a" * 30 + "!"),
    (r"([a-zA-Z]+)*x", "a" * 30 + "!"),
    (r"(.*a){20}b", "a" * 60),
    (r"(x+x+)+y", "x" * 60),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60),
    (r"(\w+\s?)+$", "word " * 12 + "!"),
    (r"(?:\d+,?)+;", "1," * 30),
    (r"<(?:[^>]*>?)*/>", "<" * 60),
    (r"^(?:(?:https?|ftp):\/\/)?(?:[a-z0-9-]+\.)+[a-z]{2,}$", "a." * 40),
    (r"([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+", "a" * 60),
    (r"(?:a?){30}a{30}", "a" * 30),
    (r"\s+$x", " " * 60),
    (r"a(?:.*b)?", "a" * 60),
    (r"(?s)x.*?y|x", "x" * 60),
    (r".+b|a", "a" * 60),
    (r"(.{1,200}){1,4}z", "\u00e9" * 60),
    (r"\d{3}-\d{2}(?:.*x)?|-", "000-00" * 10),
]


def _seconds(matcher: Matcher, text: str) -> float:
    best = 1e9
    for _ in range(3):
        started = perf_counter()
        matcher.scan(text)
        best = min(best, perf_counter() - started)
    return best


@pytest.mark.parametrize(("regex", "evil"), EVIL)
def test_what_is_taken_is_linear_on_its_evil_text_and_the_rest_is_refused(regex: str, evil: str) -> None:
    if check_pattern(regex) is not None:
        return
    matcher = Matcher([custom_pattern("evil", "evil", "evil", regex, (), "redact", 0.5)])
    short = (evil * (16_000 // len(evil) + 1))[:16_000]
    # 8 times the text: 8 times the time if linear, 64 times and seconds if quadratic.
    assert _seconds(matcher, short * 8) < 24 * max(_seconds(matcher, short), 5e-3)


@pytest.mark.parametrize("regex", [r"a(?:.*b)?", r"(?s)x.*?y|x", r".+b|a", r"(.{1,200}){1,4}z"])
def test_what_looks_at_all_of_the_text_for_each_match_is_refused(regex: str) -> None:
    fault = check_pattern(regex)
    assert fault is not None
    assert "too slow" in fault.reason


@pytest.mark.parametrize(
    "regex",
    [
        r"EMP-[0-9]{6}",
        r"\bEMP[0-9]+\b",
        r"(?i)project\s+(?P<value>[a-z]{3,20})",
        r"[\w.+-]{1,64}@example\.com",
        r"\p{Lu}\p{L}+\s\p{Lu}\p{L}+",
        r"[a-z]{1,500}-[0-9]+",
        "geheim",
        "機密",
    ],
)
def test_an_ordinary_pattern_is_taken(regex: str) -> None:
    assert check_pattern(regex) is None


@pytest.mark.parametrize(
    ("regex", "position"),
    [
        ("(abc", 4),
        ("x[abc", 1),
        ("a**", 1),
        (r"a\)b)c", 4),
        (r"\\Z\Z", 3),
        ("(?i)\u00e9\\Z", 5),
        ("[z-a]", 1),
        ("*a", 0),
        ("(?:(?:a{100}){100}){100}", 13),
        ("a\\", 1),
        ("(?<!a)b", 0),
    ],
)
def test_the_place_of_a_fault_is_told_in_code_points(regex: str, position: int) -> None:
    fault = check_pattern(regex)
    assert fault is not None
    assert fault.position == position
    assert str(fault).endswith(f"(position {position})")


def test_a_check_takes_milliseconds() -> None:
    started = perf_counter()
    for _ in range(10):
        check_pattern(r"[\w.+-]{1,64}@example\.com")
    assert (perf_counter() - started) / 10 < 0.1
