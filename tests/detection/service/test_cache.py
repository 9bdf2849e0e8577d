"""The cache of answers."""

import pytest

from gatehouse.detection.service import cache as caching
from gatehouse.detection.service.cache import Cache, key


def test_the_least_recently_used_entry_is_removed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MAX_ENTRIES", 2)
    cache = Cache()
    one, two, three = (key("ner", (), text) for text in ("one", "two", "three"))
    cache.put(one, ["1"])
    cache.put(two, ["2"])
    cache.get(one)
    cache.put(three, ["3"])
    assert [cache.get(item) for item in (one, two, three)] == [["1"], None, ["3"]]


def test_an_empty_answer_is_cached_and_a_very_large_one_is_not() -> None:
    cache = Cache()
    cache.put(key("ner", (), "nothing"), [])
    cache.put(key("ner", (), "much"), [0] * 1000)
    assert cache.get(key("ner", (), "nothing")) == []
    assert cache.get(key("ner", (), "much")) is None


def test_a_key_distinguishes_tiers_labels_and_texts_without_containing_the_text() -> None:
    keys = [
        key("ner", (), "Anna"), key("llm", (), "Anna"), key("llm", ["x"], "Anna"), key("llm", ["x", "y"], "Anna"),
        key("ner", (), "anna"), key("ner", (), "\ud83d"),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert not any("Anna" in str(key) for key in keys)
