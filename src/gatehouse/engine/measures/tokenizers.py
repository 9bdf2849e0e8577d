"""Counts tokens with the vocabulary of a model's vendor, if it is installed locally.

OpenAI's vocabularies are files of `tiktoken`, which downloads them on first use. The gateway downloads nothing: it uses
them if the package is installed and the files are already in `TIKTOKEN_CACHE_DIR`. The tokens of other models, and of
all models without these files, are estimated (`engine.money.estimate`).
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

#: Maximum characters that are counted, in about three milliseconds. The tokens of the rest are extrapolated.
_MAX_COUNTED_CHARACTERS: Final = 8 * 1024
#: Tokens of the protocol around each text.
_FRAME_TOKENS: Final = 4
#: Vocabularies by prefixes of models' names, the longer ones first.
_VOCABULARIES: Final = (
    ("gpt-4o", "o200k_base"), ("gpt-4.1", "o200k_base"), ("gpt-4.5", "o200k_base"), ("gpt-5", "o200k_base"),
    ("chatgpt-4o", "o200k_base"), ("gpt-oss", "o200k_base"), ("o1", "o200k_base"), ("o3", "o200k_base"),
    ("o4", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-3.5", "cl100k_base"), ("text-embedding-", "cl100k_base"),
)  # fmt: skip
#: SHA-256 of each vocabulary's file. `tiktoken` would download a file with another digest again.
_FILE_DIGESTS: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_SOURCE_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

_loaded: dict[str, Counter] = {}


def load(directory: Path) -> list[str]:
    """Load the vocabularies in `TIKTOKEN_CACHE_DIR` for this process, and return their names. Takes a second, so it
    must not run on the event loop."""
    # With another directory, tiktoken would download the files.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    for name, digest in _FILE_DIGESTS.items():
        # The file name that tiktoken uses.
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
    """Return the counter of a model; None if its vocabulary is not loaded."""
    if not _loaded:
        return None
    bare_id = model_id.rpartition("/")[2]
    return next((_loaded.get(name) for prefix, name in _VOCABULARIES if bare_id.startswith(prefix)), None)


def count(x: CallRequest, count_tokens: Counter) -> int:
    """Return the tokens of the call's input."""
    left, tokens, size, counted = _MAX_COUNTED_CHARACTERS, 0, 0, 0
    for text in texts(x.call.body):
        size += len(text)
        tokens += _FRAME_TOKENS
        if left > 0:
            part = text[:left]
            tokens += count_tokens(part)
            counted += len(part)
            left -= len(part)
    extrapolated = tokens * (size - counted) // counted if counted else 0
    return tokens + extrapolated + count_nontext(x.call.body) * NONTEXT_TOKENS
