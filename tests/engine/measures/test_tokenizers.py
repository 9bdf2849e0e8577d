"""Counting tokens with locally installed vocabularies, without downloading any."""

import hashlib
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.engine.money.test_estimate import decoded_call

from gatehouse.engine.measures import tokenizers

FILE = hashlib.sha1(b"https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken").hexdigest()


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a vocabulary in which each word is a token."""
    monkeypatch.setitem(tokenizers._loaded, "o200k_base", words)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("nothing is asked of the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")


@pytest.mark.usefixtures("offline")
def test_without_a_vocabulary_nothing_is_counted(tmp_path: Path) -> None:
    assert tokenizers.load(tmp_path) == []
    assert tokenizers.counter("gpt-4o") is None


@pytest.mark.usefixtures("offline")
def test_a_file_with_another_digest_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"IQ== 0\n")
    assert tokenizers.load(tmp_path) == []


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("model", "counts"),
    [
        ("gpt-4o-mini", True), ("openai/gpt-4.1", True), ("o3-mini", True), ("gpt-5", True),
        # The vocabulary of these models is not loaded.
        ("gpt-4", False), ("gpt-4-turbo", False), ("claude-sonnet-4", False), ("llama-3", False),
    ],
)  # fmt: skip
def test_a_model_counts_by_its_own_vocabulary(model: str, counts: bool) -> None:
    assert (tokenizers.counter(model) is not None) is counts


async def test_every_text_counts_with_the_tokens_of_its_frame() -> None:
    body = {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one two three"}]}
    assert tokenizers.count(await decoded_call(body), words) == 2 + 3 + 2 * 4


async def test_tokens_beyond_the_counted_part_are_extrapolated() -> None:
    body = {"messages": [{"role": "user", "content": "word " * 100_000}]}
    assert tokenizers.count(await decoded_call(body), words) == pytest.approx(100_000, rel=0.01)
