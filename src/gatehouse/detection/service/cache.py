"""Caches the answers of the model tiers. Conversations send the same texts again with every turn."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from gatehouse.detection.models import TierName

Key: TypeAlias = tuple[TierName, tuple[str, ...], bytes]

#: Maximum number of cached answers. An answer is a few findings or scores, so they take a few megabytes.
MAX_ENTRIES: Final = 10_000
#: Maximum number of findings or scores of an answer that is cached. It bounds the memory.
_MAX_CACHED_PARTS: Final = 100


def key(tier: TierName, labels: Sequence[str], text: str) -> Key:
    """Return the key of a text. The key contains a digest of the text, but not the text itself."""
    return tier, tuple(labels), blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Cache:
    """A least-recently-used cache in memory."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, Any] = OrderedDict()

    def get(self, key: Key) -> Any | None:
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: Key, answer: Any) -> None:
        if len(answer) > _MAX_CACHED_PARTS:
            return
        self._answers[key] = answer
        if len(self._answers) > MAX_ENTRIES:
            self._answers.popitem(last=False)

    def clear(self) -> None:
        self._answers.clear()

    def __len__(self) -> int:
        return len(self._answers)
