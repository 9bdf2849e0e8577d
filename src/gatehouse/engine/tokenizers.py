"""Counting tokens as a model's vendor does, where that can be done without asking anybody.

OpenAI's vocabularies are files of `tiktoken`, which downloads them when they are first used. Here nothing is
downloaded: they count where the package is installed and the files lie in `TIKTOKEN_CACHE_DIR` already. Other models,
and everything without them, are estimated (`engine.estimate`).
"""

import hashlib
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

from gatehouse.engine.estimate import UNSEEN_TOKENS, texts, unseen
from gatehouse.engine.exchange import Asked

#: Tokens of a text.
Counter: TypeAlias = Callable[[str], int]

#: Characters that are counted; what comes behind them is taken to be like them. Some three milliseconds.
_COUNTED: Final = 8 * 1024
#: Tokens of the protocol around each text.
_FRAME: Final = 4
#: By the beginnings of models' names, the longer ones first.
_OF_MODELS: Final = (
    ("gpt-4o", "o200k_base"), ("gpt-4.1", "o200k_base"), ("gpt-4.5", "o200k_base"), ("gpt-5", "o200k_base"),
    ("chatgpt-4o", "o200k_base"), ("gpt-oss", "o200k_base"), ("o1", "o200k_base"), ("o3", "o200k_base"),
    ("o4", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5", "cl100k_base"), ("text-embedding-", "cl100k_base"),
)  # fmt: skip
#: SHA-256 of each vocabulary's file. A file that is another would be downloaded anew.
_FILES: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_SOURCE: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

_loaded: dict[str, Counter] = {}


def load(directory: Path) -> list[str]:
    """Loads the vocabularies that lie in `TIKTOKEN_CACHE_DIR`, for this process. Takes a second: not for a loop. The
    names of those that were loaded."""
    # Where tiktoken looks: it would look elsewhere, and then download.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    for name, digest in _FILES.items():
        # As tiktoken names it.
        file = directory / hashlib.sha1(_SOURCE.format(name).encode()).hexdigest()  # noqa: S324 - a name, no secret
        if name in _loaded or not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            continue
        try:
            encode = import_module("tiktoken").get_encoding(name).encode_ordinary
        except ImportError:
            break
        _loaded[name] = lambda text, encode=encode: len(encode(text))  # type: ignore[misc]
    return sorted(_loaded)


def counter(model_id: str) -> Counter | None:
    """How this model counts; None where nobody here can tell."""
    if not _loaded:
        return None
    bare = model_id.rpartition("/")[2]
    return next((_loaded.get(name) for beginning, name in _OF_MODELS if bare.startswith(beginning)), None)


def count(x: Asked, counting: Counter) -> int:
    """The input's tokens."""
    left, tokens, size, counted = _COUNTED, 0, 0, 0
    for text in texts(x.call.body):
        size += len(text)
        tokens += _FRAME
        if left > 0:
            part = text[:left]
            tokens += counting(part)
            counted += len(part)
            left -= len(part)
    more = tokens * (size - counted) // counted if counted else 0
    return tokens + more + unseen(x.call.body) * UNSEEN_TOKENS
