"""Word lists in texts."""

import random
import string

import pytest

from gatehouse.detection.keywords import SLICE_CHARACTERS, Keywords, folded, passages


def occurs(keyword: str, text: str, *, json_escapes: bool = False) -> bool:
    words = Keywords([keyword])
    return any(map(words.within, passages(text, words.longest, json_escapes=json_escapes)))


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("falcon", "tell me about FALCON"),
        ("Falcon", "falcon"),
        ("falcon", "(falcon)"),
        ("falcon", "project_falcon_2"),
        ("falcon", "fal\u200bcon"),
        ("falcon", "fa\u00adlcon"),
        ("falcon", "\uff46\uff41\uff4c\uff43\uff4f\uff4e"),
        ("falcon", "f\u0430lcon"),
        ("Stra\u00dfe", "die STRA\u1e9eE"),
        ("\u0441\u0435\u043a\u0440\u0435\u0442", "\u042d\u0442\u043e \u0421\u0415\u041a\u0420\u0415\u0422."),
        ("project falcon", "Project\n   Falcon"),
        ("project falcon", "project\u00a0falcon"),
        ("C++", "in C++20"),
        (".env", "the .env file"),
        ("$$$", "a$$$b"),
        ("42", "is 42."),
        ("\u673a\u5bc6", "\u8fd9\u662f\u673a\u5bc6\u6587\u4ef6"),
        ("\ud68c\uc758", "\ube44\ubc00\ud68c\uc758\ub294"),
        ("falcon", "\u7528falcon\u7684"),
    ],
)
def test_a_keyword_is_found(keyword: str, text: str) -> None:
    assert occurs(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("falcon", "falconry"),
        ("falcon", "gyrfalcon"),
        ("cat", "concatenate"),
        ("cat", "cat\u00e9gorie"),
        ("42", "1420"),
        ("C++", "ABC++"),
        ("project falcon", "projectfalcon"),
        ("a.c", "abc"),
        ("falcon", ""),
    ],
)
def test_parts_of_words_are_not_found(keyword: str, text: str) -> None:
    assert not occurs(keyword, text)


@pytest.mark.parametrize("json_escapes", [True, False])
def test_backslash_escapes_are_seen_through(*, json_escapes: bool) -> None:
    assert occurs("falcon", r'{"q": "f\u0061lcon"}', json_escapes=json_escapes)
    assert occurs("falcon", r'{"q": "see\nfalcon\tfly"}', json_escapes=json_escapes)
    assert not occurs("falcon", r'{"q": "see\\dfalcon"}', json_escapes=json_escapes)


@pytest.mark.parametrize("shift", range(-20, 21))
@pytest.mark.parametrize("filler", ["x", " ", "\u00e9 "])
def test_a_keyword_at_the_end_of_a_passage_is_found(shift: int, filler: str) -> None:
    before = (filler * SLICE_CHARACTERS)[: SLICE_CHARACTERS + shift - 1] + " "
    assert occurs("project falcon", before + "project falcon" + " and so on" * 2_000)


@pytest.mark.parametrize("shift", range(-10, 11))
def test_the_end_of_a_passage_does_not_end_a_word(shift: int) -> None:
    for text in (
        "x" * (SLICE_CHARACTERS + shift) + "falcon" + "x" * SLICE_CHARACTERS,
        "x" * (SLICE_CHARACTERS + shift) + "falcon " + "x" * SLICE_CHARACTERS,
    ):
        assert not occurs("falcon", text)


def test_white_space_across_passages_counts_as_one_blank() -> None:
    assert occurs("project falcon", "a " * (SLICE_CHARACTERS // 2 - 100) + "project" + " " * 3_000 + "falcon")


def test_many_keywords_are_each_found() -> None:
    chance = random.Random(7)
    keywords = sorted({"".join(chance.choices(string.ascii_lowercase, k=12)) for _ in range(2_000)})
    words = Keywords(keywords)
    for keyword in chance.sample(keywords, 100):
        assert any(map(words.within, passages(f"some text and {keyword.upper()} in it", words.longest)))
    assert not any(map(words.within, passages("some text and nothing in it " * 1_000, words.longest)))


def test_invisible_text_is_not_a_keyword() -> None:
    assert folded("\u200b\u200d ") == ""
    words = Keywords(["\u200b", " "])
    assert not any(map(words.within, passages("anything", words.longest)))
