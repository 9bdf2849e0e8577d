"""An organization's own regex finds what RE2 finds, or is refused with a reason and a position."""

from contextlib import suppress

import pytest
import re2
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from gatehouse.detection.custom import check_pattern, custom_pattern, stream_max_length
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import STREAM_MAX_CHARACTERS, Pattern
from gatehouse.detection.regex import byte_search
from gatehouse.detection.regex.byte_search import Search, Spans
from gatehouse.detection.scanning.texts import scan_in_slices
from gatehouse.detection.scanning.windows import Scanner
from gatehouse.detection.search import as_written, matching, walks
from gatehouse.detection.search.as_written import SearchAborted


def own(regex: str) -> Pattern:
    return custom_pattern("own", "own", "own", regex)


def places(findings: list[Finding]) -> list[tuple[int, int]]:
    return [(finding.start, finding.end) for finding in findings]


def streamed(matcher: Matcher, text: str, lengths: list[int], *, json_escapes: bool = False) -> list[Finding]:
    """Return the findings in a text that arrives in pieces of these lengths and is searched after each piece."""
    scanner = Scanner((matcher,), json_escapes=json_escapes)
    results: list[Finding] = []
    place = turn = 0
    while place < len(text):
        length = lengths[turn % len(lengths)]
        scanner.push(text[place : place + length])
        place, turn = place + length, turn + 1
        new, released = scanner.advance(final=False)
        results += new
        assert all(finding.end <= released for finding in results)
    return results + scanner.advance(final=True)[0]


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
    r"\b": ("nothing but the empty text", None),
    "^$": ("nothing but the empty text", None),
    "(?:|x{0})": ("nothing but the empty text", None),
    "x{1,2000}": ("repetition", 1),
    r"a\C": ("not bytes", 1),
    r"\p{L}{1,500}": ("too large", None),
    r"(?:\p{L}\p{N}){500}": ("too large", None),
    "x" * 2001: ("2001 characters", 2000),
}


@pytest.mark.parametrize(("regex", "expected"), REFUSED.items(), ids=[r[:20] for r in REFUSED])
def test_an_invalid_regex_is_refused_with_reason_and_position(regex: str, expected: tuple[str, int | None]) -> None:
    problem = check_pattern(regex)
    assert problem is not None
    assert expected[0] in problem.reason
    assert problem.position == expected[1]


PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEowIBAAKCAQEA0Zq7/x+vTg8wJm5n2Lr3Xb1c\n" * 25
    + "-----END RSA PRIVATE KEY-----"
)

#: Regexes, a text that is found as a whole, and the text around it.
TAKEN = [
    (r"BEGIN SECRET[\s\S]+?END SECRET", "BEGIN SECRET" + "abc\n" * 40 + "END SECRET", " and "),
    (r"-----BEGIN[A-Z ]+-----[\s\S]+?-----END[A-Z ]+-----", PEM, "\n"),
    ("BEGIN.*END", "BEGIN" + "x" * 150 + "END", "\n"),
    ("[0-9]+", "1" * 250, " "),
    ("x{2,}", "x" * 5_000, " "),
    (r"\w+@\w+(\.\w+)+", "someone@mail.example.com", " "),
    (r"([a-z0-9]+\.)*example\.com", "a.b2.c.example.com", " "),
    (r"(\d+,)*\d+", "1,22,333", " "),
    ("(?:[A-Z][a-z]+ ){2,}", "Anna Maria Smith ", "- "),
    (r"(\w+\s?)+@", "to whom it may concern @", "; "),
    (r"\Qa.b\E", "a.b", "axb"),
    ("a*", "aaa", "b"),
    (r"a(?i)b\x{43}(?-i)[[:digit:]]\pN", "aBc12", " "),
    (r"a[*+\]]b*?c{,3}", "a]bc{,3}", " "),
    (r"(?U)<.+>", "<em>", ">"),
    (r"\p{Lu}\p{L}+", "\u00c4" + "\u00e9" * 300, " "),
    (r"паспорт \d{4}", "паспорт 4509", " "),
]


@pytest.mark.parametrize(("regex", "value", "around"), TAKEN)
def test_a_match_of_any_length_is_found_as_a_whole(regex: str, value: str, around: str) -> None:
    assert check_pattern(regex) is None
    text = around + value + around
    assert places(Matcher([own(regex)]).scan(text)) == [(len(around), len(around) + len(value))]


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        (r"\A\d+", [(0, 2)]),
        (r"^\d+", [(0, 2)]),
        (r"(?m)^\d+", [(0, 2), (3, 5), (6, 8)]),
        (r"\d+\z", [(6, 8)]),
        (r"\d+$", [(6, 8)]),
        (r"(?m:\d+$)", [(0, 2), (3, 5), (6, 8)]),
        (r"^(?s:.)*$", [(0, 8)]),
        (r"(?:^|,)\d+", [(0, 2)]),
    ],
)
def test_anchors_are_the_ends_of_the_text(regex: str, expected: list[tuple[int, int]]) -> None:
    assert places(Matcher([own(regex)]).scan("12\n34\n56")) == expected
    assert places(streamed(Matcher([own(regex)]), "12\n34\n56", [1])) == expected


def test_the_group_value_is_the_finding() -> None:
    text = "key=" + "k" * 600 + ";"
    assert places(Matcher([own("key=(?P<value>k+)")]).scan(text)) == [(4, 604)]


def test_context_words_raise_the_score_of_a_match_near_them() -> None:
    pattern = custom_pattern("own", "own", "own", r"\d+", context=("badge",))
    text = "badge 123 " + "and so on " * 20 + "456 and so on, and so on, 789 badge"
    for item in (Matcher([pattern]).scan(text), streamed(Matcher([pattern]), text, [3])):
        assert [(text[f.start : f.end], f.score) for f in item] == [("123", 1.0), ("456", 0.6), ("789", 1.0)]


LENGTHS = {
    "EMP-[0-9]{6}": None,
    "x{1,1000}": None,
    "(?:[a-z]{1,100},){10}": None,
    "x{1000}" * 5: STREAM_MAX_CHARACTERS,
    "EMP-[0-9]+": STREAM_MAX_CHARACTERS,
    "(?:|a+)": STREAM_MAX_CHARACTERS,
    r"a{3}|(?:b(?:cd)?){2}\b": None,
}


@pytest.mark.parametrize(("regex", "expected"), LENGTHS.items())
def test_a_pattern_has_the_maximum_length_of_a_match_in_a_stream(regex: str, expected: int | None) -> None:
    assert stream_max_length(regex) == expected


_parts = st.sampled_from(["a", "b", ".", "[^a]", r"\w", "é", "(?i:A)", r"\n", "(?s:.)", "aa|b", "|a"])
_ends = st.sampled_from(["^", "$", r"\b", r"\B", "(?m:^)", "(?m:$)", r"\A", r"\z"])
_repeats = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,3}", "*?", "+?", "??", "{1,}?"])
regexes = st.recursive(
    _parts | _ends,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda branches: f"(?:{'|'.join(branches)})"),
        st.tuples(inner, _repeats).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=6,
)
# Without capitals and digits, because line breaks between them are ignored.
texts = st.text("aabbé \n", max_size=60)
cuts = st.lists(st.integers(1, 12), min_size=1, max_size=4)


def oracle(regex: str, text: str, longest: int | None = None) -> list[tuple[int, int]]:
    """Return the matches of RE2's own search without empty ones. If `longest` is set, each match is searched in this
    many characters."""
    options = matching.options()
    compiled = re2.compile(regex, options)
    results = []
    place = 0
    while place < len(text):
        match = compiled.search(text, place)
        if match is None:
            break
        if longest is not None and match.end() - match.start() > longest:
            match = compiled.match(text, match.start(), match.start() + longest) or match
            if match.end() - match.start() > longest:
                place = match.start() + 1
                continue
        if match.start() < match.end():
            results.append(match.span())
            place = match.end()
        else:
            # RE2 also finds empty matches within the bytes of a character.
            place += 1
    return results


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "_MAX_WINDOW_BYTES", 1)
    monkeypatch.setattr(as_written, "_MAX_WINDOW_BYTES", 1)
    monkeypatch.setattr(walks, "_MIN_WINDOW_BYTES", 1)
    monkeypatch.setattr(walks, "_STREAM_WINDOW_BYTES", 1)


_fixture_once = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.usefixtures("small_windows")
@_fixture_once
@given(regexes, texts)
def test_a_text_gives_the_matches_of_re2(regex: str, text: str) -> None:
    assume(check_pattern(regex) is None)
    assert places(Matcher([own(regex)]).scan(text, decoded=False)) == oracle(regex, text)


@pytest.mark.usefixtures("small_windows")
@_fixture_once
@given(regexes, texts, cuts)
def test_a_stream_gives_the_same_matches_as_the_whole_text(regex: str, text: str, lengths: list[int]) -> None:
    assume(check_pattern(regex) is None)
    assert places(streamed(Matcher([own(regex)]), text, lengths)) == oracle(regex, text)


_SEVERAL = [
    r"\d{3,}", r"EMP-\d+", "[A-Z0-9]{6}", r"BEGIN[\s\S]+?END", r"\w+@\w+\.\w+", r"^\d+", "(?m)^EMP.*$", "a*",
    r"паспорт \d+",
]  # fmt: skip
_DISGUISED = [
    "123", "\n", "EMP-", "45", "BEGIN", "END", " ", "aa", "\\n", "é", "\u0441", "паспорт ", "@", "b.c",
    "\u200b", "4\n5", "\r\n", "\\", "words and words ", "ABC", "\uff11\uff12",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(_SEVERAL), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(_DISGUISED), max_size=60).map("".join),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_stream_finds_disguised_values_like_the_whole_text(
    several: list[str], text: str, lengths: list[int], json_escapes: bool
) -> None:
    matcher = Matcher([custom_pattern(regex, "own", "own", regex, context=("words",)) for regex in several])
    whole = matcher.scan(text, decoded=False, json_escapes=json_escapes)
    assert streamed(matcher, text, lengths, json_escapes=json_escapes) == whole


@pytest.mark.usefixtures("small_windows")
@_fixture_once
@given(st.lists(regexes, min_size=2, max_size=4), texts, cuts)
def test_patterns_together_find_the_same_as_each_of_them(several: list[str], text: str, lengths: list[int]) -> None:
    several = [f"(?P<value>{regex})" for regex in several]
    assume(not any(map(check_pattern, several)))
    matcher = Matcher([custom_pattern(str(number), "own", "own", regex) for number, regex in enumerate(several)])
    for item in (matcher.scan(text, decoded=False), streamed(matcher, text, lengths)):
        for number, regex in enumerate(several):
            assert places([item for item in item if item.source == str(number)]) == oracle(regex, text)


@pytest.mark.usefixtures("small_windows")
@_fixture_once
@example(regex="a+", text="a" * 13 + "b", lengths=[40])
@example(regex="a+", text="a" * 13 + "b", lengths=[2])
@example(regex="a[^b]*b|aa", text="aaaaaaaabaab", lengths=[40])
@example(regex="a[^b]*b|aa", text="aaaaaaaabaab", lengths=[1])
@given(regexes, texts, cuts)
def test_a_longer_match_in_a_stream_is_found_up_to_its_bound(
    monkeypatch: pytest.MonkeyPatch, regex: str, text: str, lengths: list[int]
) -> None:
    assume(check_pattern(regex) is None)
    monkeypatch.setattr(walks, "STREAM_MAX_CHARACTERS", 5)
    assert places(streamed(Matcher([own(regex)]), text, lengths)) == oracle(regex, text, longest=5)


#: Regexes that need exponential or quadratic time in some engines, each with a text that causes this.
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


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of bytes of each search for a pattern in a text."""
    sizes: list[int] = []

    def counting(compiled: object) -> Search:
        search = byte_search.search_of(compiled)

        def counted(anchor: object, data: bytes | memoryview, start: int, end: int) -> Spans:
            sizes.append(end - start)
            return search(anchor, data, start, end)

        return counted

    monkeypatch.setattr(as_written, "search_of", counting)
    monkeypatch.setattr(walks, "MIN_SEARCHED_BYTES", 0)
    return sizes


@pytest.mark.parametrize(("regex", "evil"), EVIL)
def test_the_searched_amount_of_a_text_stays_linear(regex: str, evil: str, searched: list[int]) -> None:
    matcher = Matcher([own(regex)])
    for length in (1_000, 16_000):
        text = (evil * (length // len(evil) + 1))[:length]
        searched.clear()
        with suppress(SearchAborted):
            matcher.scan(text, decoded=False)
        # The search for a first match reads the text once more.
        assert sum(searched) <= (walks.SEARCHED_BYTES_PER_BYTE + 4) * length


@pytest.mark.parametrize("regex", [r"^a[\s\S]*b", r"^a*[\s\S]*b$", r"\A(?:a|b)?"])
def test_the_searched_amount_of_many_small_texts_stays_linear(regex: str, searched: list[int]) -> None:
    matcher = Matcher([own(regex)])
    for count in (500, 8_000):
        text = "a\n" * count + "b"
        parts = [(place, place + 1) for place in range(0, len(text), 2)]
        searched.clear()
        assert list(scan_in_slices((matcher,), text, parts=parts))
        assert sum(searched) <= (walks.SEARCHED_BYTES_PER_BYTE + 4) * len(text)


def test_a_search_that_takes_too_long_is_stopped_and_the_others_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "MIN_SEARCHED_BYTES", 0)
    greedy = custom_pattern("greedy", "greedy", "greedy", "a(?:[^b]*b)?")
    matcher = Matcher([greedy, own("c+")])
    results: list[Finding] = []
    with pytest.raises(SearchAborted) as aborted:
        for part in matcher.scan_in_slices("a" * 300_000 + "ccc"):
            results += part
    assert aborted.value.sources == ("greedy",)
    assert [(f.start, f.end) for f in results if f.source == "own"] == [(300_000, 300_003)]


@pytest.mark.parametrize("regex", ["|".join([r"\p{L}{1000}"] * 150), "(?:a{1,9}){1,9}" * 130])
def test_patterns_that_take_long_to_compile_are_refused(regex: str) -> None:
    problem = check_pattern(regex)
    assert problem is not None
    assert "bound its repetitions" in problem.reason
