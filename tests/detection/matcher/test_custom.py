"""An organization's own regex: taken with bounds, or refused with a reason and a place."""

from time import process_time

import pytest
from tests.detection.matcher.patterns import pattern

from gatehouse.detection.custom import check_pattern, custom_shape
from gatehouse.detection.matcher import Matcher

REFUSED = {
    "": ("is empty", None),
    "(a": ("missing )", 2),
    r"a\)b)c": ("unexpected )", 4),
    "a**": ("bad repetition", 1),
    r"\\Z\Z": ("invalid escape", 3),
    "(?i)\u00e9\\Z": ("invalid escape", 5),
    "a\\": ("trailing", None),
    "[a-z": ("missing ]", 0),
    "(?=x)y": ("look-ahead", 0),
    "a(?<!x)y": ("look-behind", 1),
    r"(x)\1": ("references", 3),
    ".*": ("empty text", None),
    r"\b": ("empty text", None),
    "(?:a|)": ("empty text", None),
    "(a+)+b": ("bound the inner", None),
    "(.*)*x": ("bound the inner", None),
    "x{1,2000}": ("repetition", 1),
    "(?:[a-z]{1,30}){1,30}(?:[0-9]{1,20}){1,20}": ("1300 characters", None),
    "foo(?i)bar": ("flags stand", 3),
    r"\Aabc": (r"\A", None),
    r"\Qa.b\E": (r"\Q", 0),
    r"\C": ("not taken", None),
    r"\p{L}{1,500}": ("too large", None),
    r"(?:\p{L}\p{N}){500}": ("too large", None),
    "x" * 2001: ("2001 characters", 2000),
}


@pytest.mark.parametrize(("regex", "expected"), REFUSED.items(), ids=[r[:20] for r in REFUSED])
def test_what_is_refused_says_why_and_where(regex: str, expected: tuple[str, int | None]) -> None:
    problem = check_pattern(regex)
    assert problem is not None
    assert expected[0] in problem.reason
    assert problem.position == expected[1]


TAKEN = {
    r"\bACME-\d{4}\b": (r"\bACME-\d{4}\b", 9),
    r"ACME-\d+": (r"ACME-\d{1,100}", 105),
    r"a[*+]b*?c": (r"a[*+]b{0,100}?c", 103),
    r"\+\*x{2,}": (r"\+\*x{2,102}", 104),
    r"^\d{9}$": (r"(?m)^\d{9}$", 9),
    r"(?i)^acme$": (r"(?mi)^acme$", 4),
    r"[[:alpha:]]{3}\p{Greek}": (r"[[:alpha:]]{3}\p{Greek}", 4),
    r"a{,3}": (r"a{,3}", 5),
    r"(?P<value>\d{3})x": (r"(?P<value>\d{3})x", 4),
    r"паспорт \d{4}": (r"паспорт \d{4}", 12),
    r"\p{Lu}\p{L}+ [\p{L}-]{2,}": (r"\p{Lu}\p{L}+ [\p{L}-]{2,}", 204),
    r"[a-z]{1,500}-[0-9]+": (r"[a-z]{1,500}-[0-9]{1,100}", 601),
}


@pytest.mark.parametrize(("regex", "expected"), TAKEN.items())
def test_what_is_taken_has_bounds_and_a_length(regex: str, expected: tuple[str, int]) -> None:
    assert check_pattern(regex) is None
    shape = custom_shape(regex, score=1.0)
    assert (shape.regex, shape.max_length) == expected


#: Known for taking exponential or quadratic time somewhere, each with a text that does it.
EVIL = [
    (r"(a+)+$", "a" * 30 + "!"),
    (r"(a|aa)+$", "a" * 30 + "!"),
    (r"([a-zA-Z]+)*1", "a" * 40),
    (r"(x+x+)+y", "x" * 40),
    (r"(.*a){11}b", "a" * 30),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 40),
    (r"(\w+\s?)+$", "aaa bbb "),
    (r"a(?:.*b)?", "a" * 40),
    (r"(?:.*,)?x", "x,"),
    (r"[^a]*b|c", "c" * 40),
    (r"(?s)<!--.*?-->", "<!--"),
    (r"\s+$", " " * 40),
    (r"(?i)(?:secret|key).{0,200}=", "secret key "),
    (r"\d{1,100}x", "1" * 40),
    (r"(?:a?){30}a{30}", "a" * 30),
    (r"(a|a?)+$", "a" * 30 + "!"),
    (r"(?:\d+,?)+;", "1," * 30),
    (r"<(?:[^>]*>?)*/>", "<" * 60),
    (r"^(?:(?:https?|ftp):\/\/)?(?:[a-z0-9-]+\.)+[a-z]{2,}$", "a." * 40),
    (r"([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+", "a" * 60),
    (r"(?s)x.*?y|x", "x" * 60),
    (r".+b|a", "a" * 60),
    (r"\d{3}-\d{2}(?:.*x)?|-", "000-00" * 10),
]


@pytest.mark.parametrize(("regex", "evil"), EVIL)
def test_evil_patterns_are_refused_or_stay_linear(regex: str, evil: str) -> None:
    if check_pattern(regex) is not None:
        return
    matcher = Matcher((pattern("own", custom_shape(regex, score=1.0)),))

    def seconds(length: int) -> float:
        text = (evil * (length // len(evil) + 1))[:length]
        best = 1e9
        for _ in range(3):
            started = process_time()
            matcher.scan(text, decoded=False)
            best = min(best, process_time() - started)
        return best

    seconds(1_000)
    assert seconds(64_000) < 9 * max(seconds(16_000), 0.001)


def test_a_match_of_a_class_without_bounds_is_no_longer_than_promised_either() -> None:
    shape = custom_shape(r"\p{Lu}\p{L}+", score=1.0)
    found = Matcher((pattern("own", shape),)).scan("X" + "\u00e9" * 300)
    assert [(f.start, f.end) for f in found] == [(0, 101)]


@pytest.mark.parametrize(
    "regex", ["|".join([r"\p{L}{1000}"] * 150), r"(?i)" + "\u017f" * 1900, "(?:a{1,9}){1,9}" * 130]
)
def test_what_would_take_long_to_compile_is_refused(regex: str) -> None:
    problem = check_pattern(regex)
    assert problem is not None
    assert "bound its repetitions" in problem.reason


def test_a_match_is_never_longer_than_promised() -> None:
    shape = custom_shape(r"a.*b", score=1.0)
    text = "a" + "x" * 99 + "b" + " " * 300 + "a" + "x" * 500 + "b"
    assert [(f.start, f.end) for f in Matcher((pattern("own", shape),)).scan(text)] == [(0, 101)]
