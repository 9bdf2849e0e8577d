"""Counts tokens with the vocabulary of a model's vendor, if the vocabulary is installed locally.

OpenAI's vocabularies are files of `tiktoken`, which downloads them on first use. The gateway downloads nothing: it uses
the files if the package is installed and the files are already in `TIKTOKEN_CACHE_DIR`. Without the files, and for
models of other vendors, tokens are estimated (`engine.money.estimate`).
"""

import hashlib
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.money.estimate import NONTEXT_TOKENS, count_nontext, texts

#: Counts the tokens of a text.
Counter: TypeAlias = Callable[[str], int]

#: Maximum number of characters that are counted, which takes about three milliseconds. The tokens of longer texts are
#: extrapolated.
_MAX_COUNTED_CHARACTERS: Final = 8 * 1024
#: Tokens that the protocol adds to each text.
_FRAME_TOKENS: Final = 4
#: The vocabulary of each model, by the prefix of the model's name. Longer prefixes come first.
_VOCABULARIES: Final = (
    ("gpt-4o", "o200k_base"), ("gpt-4.1", "o200k_base"), ("gpt-4.5", "o200k_base"), ("gpt-5", "o200k_base"),
    ("chatgpt-4o", "o200k_base"), ("gpt-oss", "o200k_base"), ("o1", "o200k_base"), ("o3", "o200k_base"),
    ("o4", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5", "cl100k_base"), ("text-embedding-", "cl100k_base"),
)  # fmt: skip
#: SHA-256 digest of each vocabulary's file. `tiktoken` would download a file with another digest again.
_FILE_DIGESTS: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_SOURCE_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

_loaded: dict[str, Counter] = {}


def load(directory: Path) -> list[str]:
    """Load the vocabularies in `TIKTOKEN_CACHE_DIR` for this process, and return their names. Takes about a second, so
    it must not run on the event loop."""
    # Without this variable, tiktoken would look in another directory and download the files.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    for name, digest in _FILE_DIGESTS.items():
        # tiktoken names a file by the SHA-1 digest of its URL.
        file = directory / hashlib.sha1(_SOURCE_URL.format(name).encode()).hexdigest()  # noqa: S324 - a name, no secret
        if name in _loaded or not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            continue
        try:
            encode = import_module("tiktoken").get_encoding(name).encode_ordinary
        except ImportError:
            break
        _loaded[name] = lambda text, encode=encode: len(encode(text))  # type: ignore[misc]
    return sorted(_loaded)


def counter(model_id: str) -> Counter | None:
    """Return the token counter of a model, or None if the model's vocabulary is not loaded."""
    if not _loaded:
        return None
    bare_id = model_id.rpartition("/")[2]
    return next((_loaded.get(name) for prefix, name in _VOCABULARIES if bare_id.startswith(prefix)), None)


def count(x: CallRequest, count_tokens: Counter) -> int:
    """Return the number of tokens of the call's input."""
    remaining, tokens, size, counted = _MAX_COUNTED_CHARACTERS, 0, 0, 0
    for text in texts(x.call.body):
        size += len(text)
        tokens += _FRAME_TOKENS
        if remaining > 0:
            part = text[:remaining]
            tokens += count_tokens(part)
            counted += len(part)
            remaining -= len(part)
    extrapolated = tokens * (size - counted) // counted if counted else 0
    return tokens + extrapolated + count_nontext(x.call.body) * NONTEXT_TOKENS
