"""Labels without a trained head: how near a text is to a label's examples or words, measured against ordinary texts."""

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

#: Vectors of labels that somebody made up, kept.
_KEPT: Final = 512
#: A label's nearest examples that count.
_NEAREST: Final = 2


class KnownLabel(msgspec.Struct, frozen=True):
    words: str
    examples: tuple[str, ...]


class Curve(msgspec.Struct, frozen=True):
    """From a distance in standard deviations to a score: one half at `middle`."""

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
    """[texts]: the mean similarity to the nearest prototypes."""
    similarities = np.sort(texts @ prototypes.T, axis=1)
    scores: Vector = similarities[:, -_NEAREST:].mean(axis=1)
    return scores


def ordinary(background: Vectors, prototypes: Vectors) -> tuple[float, float]:
    """How near ordinary texts are: mean and standard deviation."""
    near = nearness(background, prototypes)
    return float(near.mean()), float(max(near.std(), 1e-3))


def known_labels(folder: Path) -> dict[str, KnownLabel]:
    return msgspec.json.decode((folder / "labels.json").read_bytes(), type=dict[str, KnownLabel])


def sentences(label: str) -> list[str]:
    """What a label that nobody has given examples for says: its name in words, and its description behind a colon."""
    name, _, description = label.partition(":")
    words = " ".join(name.replace("_", " ").replace("-", " ").split()) or label
    return [words, f"This is about {words}.", *([description.strip()] if description.strip() else [])]


class ZeroShot:
    """`embed` gives one text's vector; `examples` the vectors of the known labels' examples. A similarity is compared
    with those of `background` and of all other labels' examples: what is near to everything is near to nothing."""

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
        """Of a text by its windows: the best one counts."""
        return self._prototype(label).score(windows)

    def _prototype(self, label: str) -> _Prototype:
        if (kept := self._prototypes.get(label)) is not None:
            self._prototypes.move_to_end(label)
            return kept
        if label in self._examples:
            made = self._made(self._examples[label], self._by_examples, label)
        else:
            made = self._made(np.stack([self._embed(text) for text in sentences(label)]), self._by_words, label)
        self._prototypes[label] = made
        if len(self._prototypes) > _KEPT:
            self._prototypes.popitem(last=False)
        return made

    def _made(self, vectors: Vectors, curve: Curve, label: str) -> _Prototype:
        others = [examples for name, examples in self._examples.items() if name != label]
        mean, deviation = ordinary(np.concatenate([self._background, *others]), vectors)
        return _Prototype(vectors, mean, deviation, curve)
