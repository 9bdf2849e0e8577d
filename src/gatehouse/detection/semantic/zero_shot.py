"""Scores labels without training (zero-shot), by the similarity of a text to the examples or words of a label, relative
to ordinary texts."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gatehouse.detection.semantic.backbone import Vector
from gatehouse.detection.semantic.heads import sigmoid

Vectors = NDArray[np.float32]

#: Maximum number of labels whose prototypes are cached.
_MAX_CACHED_PROTOTYPES: Final = 512
#: Number of examples of a label that determine the similarity: the nearest ones.
_NEAREST_PROTOTYPES: Final = 2


class KnownLabel(msgspec.Struct, frozen=True):
    words: str
    examples: tuple[str, ...]


class Curve(msgspec.Struct, frozen=True):
    """A logistic curve that converts a distance, in standard deviations, to a score. The score is 0.5 at `middle`."""

    slope: float
    middle: float


class _Prototype(msgspec.Struct, frozen=True):
    vectors: Vectors
    mean: float
    deviation: float
    curve: Curve

    def score(self, windows: Vectors) -> float:
        distance = (nearness(windows, self.vectors).max() - self.mean) / self.deviation
        return float(sigmoid(self.curve.slope * (distance - self.curve.middle)))


def nearness(texts: Vectors, prototypes: Vectors) -> Vector:
    """Return for each text its mean similarity to the `_NEAREST_PROTOTYPES` nearest prototypes."""
    similarities = np.sort(texts @ prototypes.T, axis=1)
    scores: Vector = similarities[:, -_NEAREST_PROTOTYPES:].mean(axis=1)
    return scores


def similarity_to_ordinary(background: Vectors, prototypes: Vectors) -> tuple[float, float]:
    """Return the mean and standard deviation of the similarities of `background`, which are ordinary texts."""
    near = nearness(background, prototypes)
    return float(near.mean()), float(max(near.std(), 1e-3))


def known_labels(folder: Path) -> dict[str, KnownLabel]:
    return msgspec.json.decode((folder / "labels.json").read_bytes(), type=dict[str, KnownLabel])


def sentences(label: str) -> list[str]:
    """Return sentences that represent a label without examples. A label is a name, optionally with a colon and a
    description."""
    name, _, description = label.partition(":")
    words = " ".join(name.replace("_", " ").replace("-", " ").split()) or label
    return [words, f"This is about {words}.", *([description.strip()] if description.strip() else [])]


class ZeroShot:
    """Scores labels by the similarity of a text to the examples or words of the label.

    `embed` returns the vector of a text. `examples` has the vectors of the examples of each known label. A similarity
    is measured in standard deviations from the similarities of ordinary texts. These are `background` and the examples
    of the other labels."""

    def __init__(
        self,
        embed: Callable[[str], Vector],
        examples: Mapping[str, Vectors],
        background: Vectors,
        by_examples: Curve,
        by_words: Curve,
    ) -> None:
        self._embed = embed
        self._examples = examples
        self._background = background
        self._by_examples = by_examples
        self._by_words = by_words
        self._prototypes: OrderedDict[str, _Prototype] = OrderedDict()

    def score(self, windows: Vectors, label: str) -> float:
        """Return the score of a text: the highest score of its windows."""
        return self._prototype(label).score(windows)

    def _prototype(self, label: str) -> _Prototype:
        if (cached := self._prototypes.get(label)) is not None:
            self._prototypes.move_to_end(label)
            return cached
        if label in self._examples:
            prototype = self._new_prototype(self._examples[label], self._by_examples, label)
        else:
            prototype = self._new_prototype(
                np.stack([self._embed(text) for text in sentences(label)]), self._by_words, label
            )
        self._prototypes[label] = prototype
        if len(self._prototypes) > _MAX_CACHED_PROTOTYPES:
            self._prototypes.popitem(last=False)
        return prototype

    def _new_prototype(self, vectors: Vectors, curve: Curve, label: str) -> _Prototype:
        others = [examples for name, examples in self._examples.items() if name != label]
        mean, deviation = similarity_to_ordinary(np.concatenate([self._background, *others]), vectors)
        return _Prototype(vectors, mean, deviation, curve)
