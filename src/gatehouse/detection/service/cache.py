"""A cache of answers: conversations send their history again with every turn."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from gatehouse.detection.models import TierName

Key: TypeAlias = tuple[TierName, tuple[str, ...], bytes]

#: A few megabytes: an answer is a few findings or scores.
ENTRIES: Final = 10_000
#: An answer with more parts is not cached, so that the memory is bounded.
_LARGEST: Final = 100


def key(tier: TierName, labels: Sequence[str], text: str) -> Key:
    """Return the key of a text. It has a digest of the text, not the text."""
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
        if len(answer) > _LARGEST:
            return
        self._answers[key] = answer
        if len(self._answers) > ENTRIES:
            self._answers.popitem(last=False)

    def clear(self) -> None:
        self._answers.clear()

    def __len__(self) -> int:
        return len(self._answers)
