"""Trained heads of the embedded classifier. A head has one hidden layer over the embedding, and weights for n-grams of
tokens."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatehouse.detection.semantic import ngrams
from gatehouse.detection.semantic.backbone import Vector

Array = NDArray[Any]


class ScoringHead:
    """Computes one logit for each of `classes` for a window of text. The caller converts the logits to scores.

    The arrays have the names `{name}.hidden` [384, h], `.hidden_bias` [h], `.out` [h, c], `.bias` [c] and `.grams`
    [buckets, c]."""

    def __init__(self, arrays: Mapping[str, Array], name: str) -> None:
        self.classes: tuple[str, ...] = tuple(map(str, arrays[f"{name}.classes"]))
        self._hidden, self._hidden_bias, self._out, self._bias, self._grams = (
            arrays[f"{name}.{part}"].astype(np.float32) for part in ("hidden", "hidden_bias", "out", "bias", "grams")
        )

    @property
    def buckets(self) -> int:
        return len(self._grams)

    def logits(self, embedding: Vector, buckets: ngrams.Buckets) -> Vector:
        used, values = ngrams.distinct(buckets)
        hidden = np.maximum(embedding @ self._hidden + self._hidden_bias, 0)
        logits: Vector = hidden @ self._out + self._bias + values @ self._grams[used]
        return logits

    def suspicion(self, buckets: ngrams.Buckets, windows: list[tuple[int, int]]) -> Vector:
        """Return for each window the summed weight of its n-grams, for the class with the greatest sum."""
        padded = np.concatenate([self._grams, np.zeros((1, len(self.classes)), dtype=np.float32)])
        running: Vector = np.cumsum(padded[buckets].sum(axis=0), axis=0, dtype=np.float32)
        before = np.concatenate([np.zeros((1, len(self.classes)), dtype=np.float32), running])
        starts, ends = np.array(windows).T
        most: Vector = np.max(before[ends] - before[starts], axis=1)
        return most


def sigmoid(logits: Vector) -> Vector:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), dtype=np.float32)


def softmax(logits: Vector) -> Vector:
    powers = np.exp(logits - logits.max())
    shares: Vector = powers / powers.sum()
    return shares
