"""Divides texts into windows in the same way as at run time, and caches their embeddings on disk."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatehouse.detection.semantic import ngrams, windows
from gatehouse.detection.semantic.backbone import Backbone
from gatehouse.detection.semantic.heads import ScoringHead

Array = NDArray[Any]


@dataclass(frozen=True)
class Window:
    ids: Array
    embedding: Array


class CachedBackbone(Backbone):
    """A backbone that caches embeddings. `cache` is the file of the cache, or None."""

    def __init__(self, data: Path, cache: Path | None = None) -> None:
        super().__init__(data)
        self._cache = cache
        self._known: dict[bytes, Array] = pickle.loads(cache.read_bytes()) if cache and cache.exists() else {}

    def embed(self, ids: Array) -> Array:
        key = ids.astype(np.int32).tobytes()
        if key not in self._known:
            self._known[key] = super().embed(ids)
        return self._known[key]

    def keep(self) -> None:
        if self._cache:
            self._cache.write_bytes(pickle.dumps(self._known))


class Reader:
    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone

    def read(self, text: str) -> list[Window]:
        """Return at most six windows of a text, evenly distributed. The suspicious ones are not known before a head is
        trained."""
        ids = self._backbone.tokens(text)
        spans = windows.spans(len(ids))
        if len(spans) > windows.MAX_WINDOWS:
            spans = [spans[i] for i in np.linspace(0, len(spans) - 1, windows.MAX_WINDOWS).round().astype(int)]
        return [self._window(ids[start:end]) for start, end in spans]

    def worst_passages(self, text: str, head: ScoringHead) -> list[Window]:
        """Return the passages that are most suspicious according to `head`, which would be read separately at run time,
        and the next most suspicious ones."""
        ids = self._backbone.tokens(text)
        passages = windows.passages(len(ids))
        if not passages:
            return []
        suspicion = head.suspicion(ngrams.buckets(ids, head.buckets), passages)
        worst = np.argsort(-suspicion)[: 1 + len(passages) // 8][:4]
        return [self._window(ids[slice(*passages[number])]) for number in worst]

    def _window(self, ids: Array) -> Window:
        return Window(ids, self._backbone.embed(ids))
